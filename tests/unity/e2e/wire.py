"""Handshake, order of messages, at most one execution, cancel, chunks."""
from __future__ import annotations

import base64
import json
import random
import uuid

from kit import Kit, check, same, scenario


# [UNITY-2] [UNITY-4]
@scenario("handshake: both ends prove themselves and nothing private is sent before")
def handshake(kit: Kit) -> None:
    peer, _ = kit.both()
    hello, auth = peer.hellos[0], peer.auths[0]
    same(hello["protocol_version"], 1, "protocol_version")
    check(str(kit.project) not in json.dumps(hello, ensure_ascii=False), "the hello names the project's path")
    check(not {"project_path", "tools", "running"} & set(hello), f"the hello says {sorted(hello)}")
    same(len(base64.urlsafe_b64decode(hello["nonce"] + "==")), 16, "bytes of the nonce")
    same(auth["project_path"], str(kit.project), "project_path")
    same((auth["running"], auth["finished_unacked"]), ([], []), "what runs at the beginning")
    check({"run_tests", "manage_scene", "kit_echo"} <= {t["name"] for t in auth["tools"]}, "tools are missing")
    check("Origin" not in peer.requests_headers[0], "an Origin header was sent")
    statuses = peer.wait(lambda log: (s := [m for m in log if m["type"] == "editor_status"]) and len(s) >= 3 and s, "three signs of life")
    same([s["seq"] for s in statuses[:3]], [1, 2, 3], "seq of the status")
    same(statuses[0]["state"], "ready", "state")


# [UNITY-2]
@scenario("handshake: a server that does not prove itself learns nothing, and a later one is found")
def imposter(kit: Kit) -> None:
    peer = kit.peer(wrong_mac=True)
    kit.editor()
    peer.wait(lambda _: peer.closed, "the editor leaves", 60)
    same(peer.auths, [], "what was sent to a server without proof")
    peer.stop()
    peer.wrong_mac = False
    peer.start()
    peer.wait_connected()


# [UNITY-3]
@scenario("handshake: refused with 4401 it waits for a new endpoint, superseded with 4409 it stays away")
def refused(kit: Kit) -> None:
    peer = kit.peer()
    peer.close_with = 4401
    editor = kit.editor()
    peer.wait(lambda _: peer.closed, "the first connection ends", 60)
    peer.stop()
    peer.start()
    peer.wait_connected()
    same(len(peer.hellos), 2, "attempts; none between the refusal and the new endpoint")
    peer.close_with = 4409
    peer.abort()
    editor.wait(lambda events: any("stays away" in e.get("detail", "") for e in events), "the editor says that it stays away")
    peer.stop()
    peer.start()
    # The proof that it stays away is that a later editor of the project is the next to say hello.
    editor.quit()
    kit.editor()
    peer.wait_connected(2)
    same(len({h["pid"] for h in peer.hellos}), 2, "processes that said hello")
    same(peer.hellos[-1]["pid"], kit.editors[-1].pid, "who said hello last")


@scenario("calls: answers and failures come back whole")
def answers(kit: Kit) -> None:
    peer, _ = kit.both()
    value = {"text": "é🎮\u0001\u0000", "n": 9007199254740993, "big": 18446744073709551615, "deep": [[[{"a": None}]]]}
    same(peer.call("kit_echo", value), value, "kit_echo")
    same(peer.call("kit_add", {"a": 40, "b": 2}), 42, "kit_add")
    same(peer.call("kit_task", {"value": 7}), {"value": 7, "main_thread": True}, "kit_task")
    for how, code, words in (("tool", "kit_code", "as asked"), ("other", "exception", "broken\u0001 inside")):
        answer = peer.outcome(peer.ask("kit_fail", {"how": how}))
        same((answer["status"], answer["result"]["code"], answer["result"]["message"]), ("error", code, words), how)
    answer = peer.outcome(peer.ask("kit_add", {"a": 1, "c": 2}))
    check("`c`" in answer["result"]["message"], "the unknown parameter is not named")


# Cases unity-raw-control-characters and unity-64-bit-ids.
@scenario("calls: any text and any number survives the wire")
def odd_values(kit: Kit) -> None:
    peer, _ = kit.both()
    odd = peer.call("kit_odd")
    same(odd["control"], "tab\tnewline\nsoh\x01esc\x1b[2Jdel\x7f nul\x00 ls\u2028", "control characters")
    same((odd["half"], odd["emoji"]), ("\ufffd", "🎮"), "surrogates")
    same((odd["largest"], odd["smallest"], odd["odd"]), (18446744073709551615, -9223372036854775808, 9007199254740993), "numbers of 64 bits")
    same(odd["nan"], None, "not a number")


# [UNITY-5]
@scenario("calls: what cannot be carried out is refused as not executed, and the connection lives on")
def refusals(kit: Kit) -> None:
    peer, _ = kit.both()

    def refusal(message: dict | str, code: str, rid: str | None = None) -> None:
        at = peer.mark()
        peer.send(message)
        said = peer.wait(lambda log: next((m for m in log[at:] if m["type"] == "error" and (rid is None or m["request_id"] == rid)), None), f"{code} for {message}")
        same((said["error"]["code"], said["error"]["details"]["execution_guarantee"]), (code, "not_executed"), str(message)[:80])

    order = {"type": "execute", "request_id": "r.1", "fence": 5, "tool_name": "kit_echo", "params": {}}
    refusal({"type": "kit_nonsense", "request_id": "k1"}, "ERR_UNKNOWN_COMMAND", "k1")
    refusal("this is not JSON", "ERR_INVALID_REQUEST")
    refusal("[1,2]", "ERR_INVALID_REQUEST")
    refusal("{" * 3000, "ERR_INVALID_REQUEST")
    refusal({**order, "tool_name": "kit_missing"}, "ERR_UNKNOWN_COMMAND", "r.1")
    refusal({**order, "params": [1]}, "ERR_INVALID_PARAMS", "r.1")
    refusal({**order, "fence": "5"}, "ERR_INVALID_REQUEST", "r.1")
    refusal({k: v for k, v in order.items() if k != "request_id"}, "ERR_INVALID_REQUEST")
    refusal({"type": "chunk", "request_id": "c", "index": 3, "total": 2, "data": ""}, "ERR_INVALID_REQUEST", "c")
    refusal({"type": "get_job_status", "request_id": "j", "job_id": "none"}, "ERR_JOB_NOT_FOUND", "j")
    same(peer.call("kit_add", {"a": 1}), 2, "a call after all that")
    same(len(peer.hellos), 1, "connections")


@scenario("calls: twenty thousand messages leave the editor as it was")
def flood(kit: Kit) -> None:
    peer, _ = kit.both()
    for at in range(0, 20_000, 1000):
        peer._run(send_all(peer._ws, [json.dumps({"type": "kit_nonsense", "request_id": f"f{at + n}"}) for n in range(1000)]))
    peer.wait(lambda log: any(m.get("request_id") == "f19999" for m in log), "the last answer", 30)
    same(peer.call("kit_add", {"a": 1}), 2, "a call after the flood")
    same(len(peer.hellos), 1, "connections")


async def send_all(ws, messages: list[str]) -> None:
    for message in messages:
        await ws.send(message)


@scenario("jobs: accepted, started, progress in order, result; a status for who asks")
def order_of_messages(kit: Kit) -> None:
    peer, _ = kit.both()
    gate = kit.gate("a")
    rid = peer.ask("kit_hold", {"mark": "m", "release": str(gate)}, job=True)
    job_id = peer.of(rid, "submit_job_result")["job_id"]
    peer.wait(lambda log: sum(m["type"] == "progress" for m in log) >= 2, "two reports")
    at = peer.mark()
    peer.send({"type": "get_job_status", "request_id": "s1", "job_id": job_id})
    status = peer.wait(lambda log: next((m for m in log[at:] if m["type"] == "job_status"), None), "a job_status")
    same((status["state"], status["job_id"], status["request_id"]), ("running", job_id, "s1"), "job_status")
    gate.touch()
    result = peer.outcome(rid)
    same((result["status"], result["result"], result["job_id"]), ("ok", {"mark": "m"}, job_id), "result")
    told = [m for m in peer.about(rid) if m["type"] != "job_status"]
    same([m["type"] for m in told][:3], ["accepted", "submit_job_result", "started"], "the beginning")
    same(told[-1]["type"], "result", "the end")
    reports = [m for m in told if m["type"] == "progress"]
    check(all(a["seq"] < b["seq"] and a["partial"]["step"] <= b["partial"]["step"] for a, b in zip(reports, reports[1:])), "reports are not in order")
    check(all(m["fence"] == result["fence"] for m in reports), "a report has another fence")
    at = peer.mark()
    peer.send({"type": "get_job_status", "job_id": job_id})
    status = peer.wait(lambda log: next((m for m in log[at:] if m["type"] == "job_status"), None), "a job_status")
    same((status["state"], status["result"]), ("succeeded", {"mark": "m"}), "job_status after the end")


# [UNITY-21]
@scenario("duplicates: an id that comes again is answered and never executed again")
def duplicates(kit: Kit) -> None:
    peer, editor = kit.both()
    gate = kit.gate("a")
    rid = peer.ask("kit_hold", {"mark": "once", "release": str(gate)})
    peer.of(rid, "started")
    at = peer.mark()
    peer.ask("kit_hold", {"mark": "once", "release": str(gate)}, request_id=rid)
    peer.of(rid, "accepted", after=at)
    gate.touch()
    first = peer.outcome(rid)
    for _ in range(2):
        at = peer.mark()
        peer.ask("kit_hold", {"mark": "once", "release": str(gate)}, request_id=rid)
        again = peer.of(rid, "result", after=at)
        same(again, first, "the answer to a duplicate")
    same(editor.effects("once"), 1, "executions")
    # A long answer is not kept after it was acknowledged, but that it was executed is.
    rid = peer.ask("kit_large", {"bytes": 300_000})
    peer.outcome(rid)
    peer.call("kit_add", {"a": 1})
    at = peer.mark()
    peer.ask("kit_large", {"bytes": 300_000}, request_id=rid)
    same(peer.of(rid, "error", "result", after=at)["error"]["details"]["execution_guarantee"], "executed", "guarantee")


# [UNITY-21] [LEASE-1]
@scenario("fences: a stale attempt is refused, a newer one takes the place of one that has not begun")
def fences(kit: Kit) -> None:
    peer, editor = kit.both()
    task, gate = str(uuid.uuid4()), kit.gate("a")
    rid = peer.ask("kit_effect", {"mark": "second"}, request_id=f"{task}.2", fence=20)
    same(peer.outcome(rid)["status"], "ok", "the newest attempt")
    for attempt, fence in ((1, 10), (3, 20), (2, 30), (1, 40)):
        rid = f"{task}.{attempt}"
        at = peer.mark()
        peer.ask("kit_effect", {"mark": "stale"}, request_id=rid, fence=fence)
        said = peer.of(rid, "error", "result", after=at)
        if attempt == 2:
            same(said["status"], "ok", "a duplicate of the newest attempt")
            continue
        same(said["error"]["details"]["execution_guarantee"], "not_executed", f"attempt {attempt} with fence {fence}")
    holder = peer.ask("kit_hold", {"mark": "holder", "release": str(gate)})
    peer.of(holder, "started")
    other = str(uuid.uuid4())
    old = peer.ask("kit_effect", {"mark": "old"}, request_id=f"{other}.1", fence=50)
    peer.of(old, "accepted")
    new = peer.ask("kit_effect", {"mark": "new"}, request_id=f"{other}.2", fence=51)
    same(peer.outcome(old)["status"], "cancelled", "the attempt that gave way")
    gate.touch()
    same(peer.outcome(new)["status"], "ok", "the attempt that took its place")
    same([editor.effects(m) for m in ("second", "stale", "old", "new")], [1, 0, 0, 1], "executions")


# [UNITY-25]
@scenario("cancel: queued ends at once, running ends if it can, ended is rejected")
def cancel(kit: Kit) -> None:
    peer, editor = kit.both()
    gate = kit.gate("a")

    def cancelled(**target: str) -> str:
        at = peer.mark()
        peer.send({"type": "cancel", "request_id": "c", **target})
        return peer.wait(lambda log: next((m for m in log[at:] if m["type"] == "cancel_result"), None), "a cancel_result")["status"]

    running = peer.ask("kit_hold", {"mark": "running", "release": str(gate)}, job=True)
    peer.of(running, "started")
    queued = peer.ask("kit_effect", {"mark": "queued"})
    peer.of(queued, "accepted")
    same(cancelled(target_request_id=queued), "cancelled", "a queued request")
    same(peer.outcome(queued)["status"], "cancelled", "its outcome")
    same(cancelled(target_job_id=peer.of(running, "submit_job_result")["job_id"]), "cancel_requested", "a running job")
    same(peer.outcome(running)["status"], "cancelled", "its outcome")
    editor.wait_event("cleanup", "running")
    same(cancelled(target_request_id=running), "rejected", "an ended one")
    same(cancelled(target_request_id="nobody.1"), "rejected", "an unknown one")
    stubborn = peer.ask("kit_stubborn", {"mark": "stubborn", "release": str(gate)})
    peer.of(stubborn, "started")
    same(cancelled(target_request_id=stubborn), "cancel_requested", "one that cannot be cancelled")
    gate.touch()
    same(peer.outcome(stubborn)["result"], "went on to the end", "its outcome")
    awaits = peer.ask("kit_awaits_cancel")
    peer.of(awaits, "started")
    same(cancelled(target_request_id=awaits), "cancel_requested", "one that waits for its token")
    same(peer.outcome(awaits)["status"], "cancelled", "its outcome")
    same(editor.effects("queued"), 0, "executions of the cancelled one")


# Case unity-fragmented-frames.
@scenario("frames: a message in pieces is read as one, a control frame between them is answered")
def fragments(kit: Kit) -> None:
    peer, _ = kit.both()
    for pad in (0, 1, 8191, 8193, 65535, 65536, 300_000):
        rid = f"{uuid.uuid4()}.1"
        text = json.dumps({"type": "execute", "request_id": rid, "fence": 1, "tool_name": "kit_echo", "params": {"pad": "x" * pad, "text": "🎮 C:\\Jobs\\läuft"}}, ensure_ascii=False)
        size = max(1, len(text) // 60)
        peer.frames([text[i : i + size] for i in range(0, len(text), size)])
        value = peer.outcome(rid)["result"]
        same((len(value["pad"]), value["text"]), (pad, "🎮 C:\\Jobs\\läuft"), f"pad of {pad}")
    peer._run(ping(peer._ws))


async def ping(ws) -> None:
    await (await ws.ping(b"are you there"))


# [UNITY-6]
@scenario("chunks: four mebibytes each way, no frame above the limit")
def chunks(kit: Kit) -> None:
    peer, _ = kit.both()
    size = 4 * 1024 * 1024
    rid = peer.ask("kit_large", {"bytes": size, "of": "é"})
    same(len(peer.outcome(rid, 30)["result"].encode()), size, "bytes of the answer")
    check(peer.count("chunk") >= 4, "the answer came in one piece")
    rid = f"{uuid.uuid4()}.1"
    raw = json.dumps({"type": "execute", "request_id": rid, "fence": 1, "tool_name": "kit_echo", "params": {"pad": "ü" * (size // 2)}}, ensure_ascii=False).encode()
    parts = [raw[i : i + 400_000] for i in range(0, len(raw), 400_000)]
    for index, part in enumerate(parts):
        peer.send({"type": "chunk", "request_id": rid, "index": index, "total": len(parts), "data": base64.b64encode(part).decode()})
    same(peer.outcome(rid, 30)["result"]["pad"], "ü" * (size // 2), "what was sent in chunks")
    same(len(peer.hellos), 1, "connections")


# [UNITY-24]
@scenario("main thread: control tools and pings are answered while it stands still, and the work goes on after")
def blocked(kit: Kit) -> None:
    peer, editor = kit.both()
    gate = kit.gate("block")
    editor.do("block", release=str(gate))
    work = peer.ask("kit_effect", {"mark": "later"})
    peer.of(work, "accepted")
    for tool in ("get_editor_state", "read_console", "list_unity_commands"):
        peer.call(tool)
    peer.send({"type": "ping"})
    pong = peer.wait(lambda log: next((m for m in log if m["type"] == "pong"), None), "a pong")
    check(pong["main_thread_lag_ms"] >= 0, "the lag")
    status = peer.wait(lambda log: next((m for m in log if m["type"] == "editor_status" and m["state"] == "blocked"), None), "the state blocked", 60)
    check(status["main_thread_lag_ms"] >= 3000, f"lag {status['main_thread_lag_ms']}")
    same(peer.call("get_editor_state")["state"], "blocked", "the state that is asked for")
    same(editor.count("effect", "later"), 0, "work while the main thread stands still")
    at = peer.mark()
    gate.touch()
    same(peer.outcome(work)["status"], "ok", "the work after it")
    peer.wait(lambda log: any(m["type"] == "editor_status" and m["state"] == "ready" for m in log[at:]), "the state ready")
    same(editor.effects("later"), 1, "executions")


@scenario("main thread: a job of many steps does not need as many updates")
def budget(kit: Kit) -> None:
    # The editor updates once a second, as one without focus does: two thousand updates would take half an hour.
    peer, _ = kit.both(tick_ms=1000)
    rid = peer.ask("kit_steps", {"count": 2000})
    same(peer.outcome(rid, 60)["result"], 2000, "steps")


@scenario("calls: five hundred one after the other, each executed once")
def many(kit: Kit) -> None:
    peer, editor = kit.both()
    for n in range(500):
        same(peer.call("kit_add", {"a": n, "b": n}), 2 * n, "a sum")
    same(editor.effects("kit_add"), 500, "executions")
    same(peer.count("error"), 0, "errors")


@scenario("messages: two thousand with random fields of every type leave the connection as it was")
def nonsense(kit: Kit) -> None:
    peer, _ = kit.both()
    dice = random.Random(11)
    kinds = ["execute", "submit_job", "get_job_status", "cancel", "result_ack", "ping", "chunk", "hello", "capability", "error", "bye", "kit", "", None, 7]
    fields = ["request_id", "fence", "tool_name", "params", "job_id", "target_request_id", "target_job_id", "index", "total", "data", "client_request_id", "timeout_ms"]
    odd = [None, True, -1, 0, 1.5, 1 << 63, "", "a", "a.1", "é\x00", "job-a.1", [], {}, [[]], {"a": [1]}, "AAAA", "kit_missing", 1e300]
    messages = []
    for _ in range(2000):
        message = {"type": dice.choice(kinds)}
        for name in dice.sample(fields, dice.randrange(len(fields))):
            message[name] = dice.choice(odd)
        messages.append(json.dumps(message))
    peer._run(send_all(peer._ws, messages), 60)
    same(peer.call("kit_add", {"a": 1}, 30), 2, "a call after all that")
    same(len(peer.hellos), 1, "connections")
