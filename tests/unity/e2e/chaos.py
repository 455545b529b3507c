"""Random worlds under a judge: whatever happens, nothing runs twice, nothing accepted is lost, nothing untrue is said."""
from __future__ import annotations

import json
import os
import random
import string

from kit import Kit, check, same, scenario


STEPS = 50


class World:
    """One world: what was asked, what the editor was put through, and the judgement at the end."""

    def __init__(self, kit: Kit, seed: int):
        self.kit, self.random = kit, random.Random(seed)
        self.peer, self.editor = kit.peer(), kit.editor()
        self.peer.wait_connected()
        self.asked: dict[str, dict] = {}
        self.history: list[str] = []
        self.editors = [self.editor]
        self.interruptions = 0
        self.gates = 0

    def step(self) -> None:
        weights = {
            self.ask_effect: 8, self.ask_survivor: 3, self.ask_hold: 3, self.repeat: 3, self.cancel: 2, self.open_gate: 6,
            self.abort: 2, self.reload: 2, self.reload_dirty: 1, self.restart_server: 1, self.crash: 1, self.silence: 1,
        }
        action = self.random.choices(list(weights), list(weights.values()))[0]
        self.history.append(action.__name__)
        self.before = self.peer._ws
        action()

    def ask(self, tool: str, gate: bool) -> None:
        mark = f"m{len(self.asked)}"
        params = {"mark": mark}
        if gate:
            params["release"] = str(self.kit.gate(mark))
        rid = self.peer.ask(tool, params, job=gate)
        self.asked[rid] = {"mark": mark, "tool": tool, "params": params, "gate": gate, "fence": self.peer._fence}

    def ask_effect(self) -> None:
        self.ask("kit_effect", False)

    def ask_survivor(self) -> None:
        self.ask("kit_survivor", True)

    def ask_hold(self) -> None:
        self.ask("kit_hold", True)

    def repeat(self) -> None:
        if self.asked:
            self.say_again(self.random.choice(list(self.asked)))

    def say_again(self, rid: str) -> None:
        one = self.asked[rid]
        self.peer.ask(one["tool"], one["params"], request_id=rid, fence=one["fence"], job=one["gate"])

    def cancel(self) -> None:
        if self.asked:
            self.peer.send({"type": "cancel", "request_id": "c", "target_request_id": self.random.choice(list(self.asked))})

    def open_gate(self) -> None:
        closed = [one for one in self.asked.values() if one["gate"] and not self.kit.gate(one["mark"]).exists()]
        if closed:
            self.kit.gate(self.random.choice(closed)["mark"]).touch()

    def abort(self) -> None:
        self.peer.abort()
        self.again()

    def silence(self) -> None:
        self.peer.acknowledges = not self.peer.acknowledges

    def reload(self) -> None:
        self.interruptions += 1
        self.editor.reload()
        self.again()

    def reload_dirty(self) -> None:
        self.interruptions += 1
        self.editor.reload(dirty=True)
        self.again()

    def restart_server(self) -> None:
        self.peer.stop()
        self.open_gate()
        self.peer.start()
        self.again()

    def crash(self) -> None:
        self.interruptions += 1
        self.editor.kill()
        self.editor = self.kit.editor()
        self.editors.append(self.editor)
        self.again()

    def again(self) -> None:
        self.peer.wait(lambda _: self.peer._ws not in (None, self.before), "the next connection", 30)

    def outcomes(self) -> dict[str, dict]:
        """Says again what has no outcome, as what was sent into a connection that ended never arrived; the rest is answered from the journal."""
        for _ in range(5):
            missing = [rid for rid in self.asked if not any(m["type"] in ("result", "error") for m in self.peer.about(rid))]
            for rid in missing:
                self.say_again(rid)
            try:
                return {rid: self.peer.outcome(rid, 10) for rid in self.asked}
            except TimeoutError as fault:
                last = fault
        raise last

    def judge(self) -> None:
        self.peer.acknowledges = True
        for one in self.asked.values():
            if one["gate"]:
                self.kit.gate(one["mark"]).touch()
        self.before = self.peer._ws
        self.peer.abort()
        self.again()
        outcomes = self.outcomes()
        for editor in self.editors[:-1]:
            editor.wait_event("ended", timeout=10)
        self.editor.do("sync")
        for rid, one in self.asked.items():
            said, ran = outcomes[rid], sum(e.count("effect", one["mark"]) for e in self.editors)
            context = f"{one['tool']} {rid} ran {ran} times, the outcome is {json.dumps(said)[:400]}, the history {self.history}"
            check(ran <= 1, context)
            every = [m for m in self.peer.about(rid) if m["type"] in ("result", "error")]
            kept = [m for m in every if m.get("error", {}).get("details", {}).get("execution_guarantee") != "executed"]
            check(all(m == kept[0] for m in kept), "two outcomes: " + context)
            if said["type"] == "error":
                guarantee = said["error"]["details"]["execution_guarantee"]
                check(self.interruptions > 0 and guarantee in ("unknown", "not_executed"), context)
                check(guarantee != "not_executed" or ran == 0, context)
            elif said["status"] == "ok":
                same(ran, 1, context)
            else:
                same(said["status"], "cancelled", context)


def worlds(kit: Kit, seed: int) -> None:
    world = World(kit, seed)
    try:
        for _ in range(STEPS):
            world.step()
        world.judge()
    except Exception as fault:
        raise AssertionError(f"seed {seed}, the history {world.history}: {fault}") from fault


for number in range(1, int(os.environ.get("RAINCHECK_WORLDS", "3")) + 1):
    scenario(f"chaos: random steps, world {number}")(lambda kit, seed=number: worlds(kit, seed))


@scenario("chaos: three hundred random values come back as they went")
def values(kit: Kit) -> None:
    peer, _ = kit.both()
    dice = random.Random(7)

    def text() -> str:
        pool = string.printable + "\x00\x01\x1b\x7f\u2028\u202eé読😀🎮\"\\/"
        return "".join(dice.choice(pool) for _ in range(dice.randrange(12)))

    def value(depth: int) -> object:
        kind = dice.randrange(9 if depth < 5 else 7)
        if kind == 7:
            return [value(depth + 1) for _ in range(dice.randrange(5))]
        if kind == 8:
            return {text(): value(depth + 1) for _ in range(dice.randrange(5))}
        return [None, True, False, dice.randint(-(1 << 63), (1 << 64) - 1), dice.uniform(-1e9, 1e9), dice.random() * 10.0 ** dice.randint(-300, 300), text()][kind]

    for at in range(300):
        sent = {"v": value(0)}
        got = peer.call("kit_echo", sent)
        same(json.dumps(got), json.dumps(sent), f"value {at}")


class RealWorld:
    """The same with the real `unity-mcp` between the caller and the editor: what it answers is judged by what ran."""

    def __init__(self, kit: Kit, seed: int):
        self.kit, self.random = kit, random.Random(seed)
        self.server, self.editor = kit.server(), kit.editor()
        self.editors, self.history, self.asked = [self.editor], [], {}
        self.server.call("read_console", timeout=30)

    def step(self) -> None:
        weights = {self.ask: 10, self.open_gate: 6, self.cancel: 2, self.reload: 2, self.reload_dirty: 1, self.crash: 1, self.restart: 1}
        action = self.random.choices(list(weights), list(weights.values()))[0]
        self.history.append(action.__name__)
        action()

    def ask(self) -> None:
        mark = f"m{len(self.asked)}"
        name = self.random.choice(["kit_effect", "kit_effect", "kit_survivor", "kit_hold"])
        params = {"mark": mark} if name == "kit_effect" else {"mark": mark, "release": str(self.kit.gate(mark))}
        answer = self.server.call("unity_call", name=name, params=params, timeout=0)
        if "log_id" in answer:
            self.asked[answer["log_id"]] = {"mark": mark, "name": name}

    def open_gate(self) -> None:
        closed = [one for one in self.asked.values() if not self.kit.gate(one["mark"]).exists()]
        if closed:
            self.kit.gate(self.random.choice(closed)["mark"]).touch()

    def cancel(self) -> None:
        if self.asked:
            self.server.call("cancel_operation", log_id=self.random.choice(list(self.asked)))

    def reload(self) -> None:
        self.editor.reload()

    def reload_dirty(self) -> None:
        self.editor.reload(dirty=True)

    def crash(self) -> None:
        self.editor.kill()
        self.editor = self.kit.editor()
        self.editors.append(self.editor)
        self.editor.wait_event("loaded")

    def restart(self) -> None:
        self.server.kill()
        self.server = self.kit.server()

    def judge(self) -> None:
        for one in self.asked.values():
            self.kit.gate(one["mark"]).touch()
        ends = {log_id: self.server.end(log_id) for log_id in self.asked}
        for editor in self.editors[:-1]:
            editor.wait_event("ended", timeout=10)
        self.editor.do("sync")
        for log_id, one in self.asked.items():
            end, ran = ends[log_id], sum(e.count("effect", one["mark"]) for e in self.editors)
            context = f"{one['name']} {one['mark']} ran {ran} times, the answer is {json.dumps(end)[:900]}"
            check(ran <= 1, context)
            if end["status"] == "completed":
                same(ran, 1, context)
            else:
                same(end["status"], "error", context)
                check(end["error_info"].get("guarantee") != "not_executed" or ran == 0, context)


def real_worlds(kit: Kit, seed: int) -> None:
    world = RealWorld(kit, seed)
    try:
        for _ in range(STEPS):
            world.step()
        world.judge()
    except Exception as fault:
        raise AssertionError(f"seed {seed}, the history {world.history}: {fault}") from fault


for number in range(1, int(os.environ.get("RAINCHECK_WORLDS", "2")) + 1):
    scenario(f"unity-mcp: chaos, world {number}", needs_server=True)(lambda kit, seed=number: real_worlds(kit, seed))
