"""Lost connections, domain reloads, crashes: nothing is lost, nothing runs twice, and what is not known is said."""
from __future__ import annotations

from kit import Kit, check, same, scenario


# [UNITY-8]
@scenario("drop: a job goes on without a connection and its answer comes after it")
def drop_mid_job(kit: Kit) -> None:
    peer, editor = kit.both()
    gate = kit.gate("a")
    rid = peer.ask("kit_hold", {"mark": "m", "release": str(gate)}, job=True)
    peer.of(rid, "progress")
    peer.abort()
    peer.wait_connected(2)
    (running,) = peer.auths[-1]["running"]
    same((running["request_id"], running["tool_name"], running["fence"]), (rid, "kit_hold", peer.of(rid, "progress")["fence"]), "what runs")
    same(running["job_id"], peer.of(rid, "submit_job_result")["job_id"], "its job")
    at = peer.mark()
    peer.of(rid, "progress", after=at)
    gate.touch()
    same(peer.outcome(rid)["status"], "ok", "the outcome")
    same(editor.effects("m"), 1, "executions")


# [UNITY-20]
@scenario("server away: what ends meanwhile is kept, and said again until it is acknowledged")
def server_away(kit: Kit) -> None:
    peer, editor = kit.both()
    gate = kit.gate("a")
    rid = peer.ask("kit_hold", {"mark": "m", "release": str(gate)})
    peer.of(rid, "started")
    peer.stop()
    gate.touch()
    editor.wait_event("cleanup", "m")
    peer.acknowledges = False
    peer.start()
    peer.wait_connected(2)
    same((peer.auths[-1]["running"], peer.auths[-1]["finished_unacked"]), ([], [rid]), "what the editor says it has")
    first = peer.outcome(rid)
    peer.abort()
    peer.acknowledges = True
    peer.wait_connected(3)
    at = peer.mark()
    same(peer.of(rid, "result", after=0), first, "the answer that is said again")
    peer.wait(lambda log: sum(m["type"] == "result" for m in log) >= 2, f"the answer once more after {at}")
    peer.call("kit_add", {"a": 1})
    peer.abort()
    peer.wait_connected(4)
    same(peer.auths[-1]["finished_unacked"], [], "what is left after the acknowledgement")
    same(editor.effects("m"), 1, "executions")


# [UNITY-22]
@scenario("reload: what was queued runs after it, what cannot survive it is said to be unknown")
def reload_interrupts(kit: Kit) -> None:
    peer, editor = kit.both()
    running = peer.ask("kit_hold", {"mark": "running", "release": str(kit.gate("never"))})
    peer.of(running, "progress")
    queued = peer.ask("kit_effect", {"mark": "queued"})
    peer.of(queued, "accepted")
    check(editor.reload()["collected"], "the old domain is still referred to")
    peer.wait_connected(2)
    bye = peer.wait(lambda log: next((m for m in log if m["type"] == "bye"), None), "a goodbye")
    same(bye["reason"], "reload", "its reason")
    check(any(m["type"] == "editor_status" and m["state"] == "reloading" for m in peer.log), "the state reloading was not said")
    said = peer.outcome(running)
    same((said["type"], said["error"]["details"]["execution_guarantee"]), ("error", "unknown"), "what began")
    same(peer.outcome(queued)["status"], "ok", "what was queued")
    same((editor.effects("running"), editor.effects("queued")), (1, 1), "executions")
    same([h["domain_epoch"] for h in peer.hellos], [1, 2], "epochs")
    same(len({h["plugin_session_id"] for h in peer.hellos}), 2, "sessions")
    same(len({h["editor_instance_id"] for h in peer.hellos}), 1, "editors")


# [UNITY-25]
@scenario("reload: a cancel that came right before it still holds after it")
def cancel_before_reload(kit: Kit) -> None:
    peer, editor = kit.both()
    rid = peer.ask("kit_survivor", {"mark": "m", "release": str(kit.gate("never"))})
    peer.of(rid, "progress")
    gate = kit.gate("block")
    editor.do("block", release=str(gate), then_reload=True)
    peer.send({"type": "cancel", "request_id": "c", "target_request_id": rid})
    answer = peer.wait(lambda log: next((m for m in log if m["type"] == "cancel_result"), None), "a cancel_result")
    same(answer["status"], "cancel_requested", "the answer while the main thread stands still")
    gate.touch()
    outcome = peer.outcome(rid)
    same((outcome["status"], outcome["domain_epoch"]), ("cancelled", 2), "the outcome, and the domain it comes from")


# [UNITY-22]
@scenario("reload: while the editor compiles nothing begins that the reload would cut off")
def held_back(kit: Kit) -> None:
    peer, editor = kit.both()
    editor.do("hold_compile", on=True)
    editor.do("focus")
    peer.wait(lambda log: any(m["type"] == "editor_status" and m["state"] == "compiling" for m in log), "the state compiling")
    held = peer.ask("kit_effect", {"mark": "held"})
    peer.of(held, "accepted")
    peer.call("get_editor_state")
    same(editor.effects("held"), 0, "executions while it compiles")
    editor.do("hold_compile", on=False)
    answer = peer.outcome(held, 60)
    same((answer.get("status"), answer["domain_epoch"]), ("ok", 2), "the outcome, and the domain it comes from")
    same(editor.effects("held"), 1, "executions")


@scenario("reload: ten in a row, the surviving job goes on through all and no domain is leaked")
def ten_reloads(kit: Kit) -> None:
    peer, editor = kit.both()
    gate = kit.gate("a")
    rid = peer.ask("kit_survivor", {"mark": "m", "release": str(gate)}, job=True)
    peer.of(rid, "progress")
    for n in range(10):
        gone = editor.reload()
        same((gone["collected"], gone["left_behind"]), (True, ""), f"domain {n + 1}: whether it is gone, and what it still listens to")
        peer.wait_connected(n + 2)
        same([r["request_id"] for r in peer.auths[-1]["running"]], [rid], "what runs")
        peer.wait(lambda log: any(m["type"] == "progress" and m["partial"]["lives"] == n + 2 for m in log), f"life {n + 2}")
    gate.touch()
    same(peer.outcome(rid)["result"], {"lives": 11}, "the outcome")
    same(editor.effects("m"), 1, "executions")
    reports = [m["seq"] for m in peer.about(rid) if m["type"] == "progress"]
    check(all(a <= b for a, b in zip(reports, reports[1:])), f"seq went back: {reports}")


@scenario("reload: three calls in flight through ten reloads, every outcome arrives and none runs twice")
def three_in_flight(kit: Kit) -> None:
    peer, editor = kit.both()
    gone: list[str] = []
    for n in range(10):
        gate = kit.gate(str(n))
        rids = [peer.ask("kit_survivor", {"mark": f"s{n}", "release": str(gate)}), peer.ask("kit_effect", {"mark": f"e{n}"}), peer.ask("kit_echo", {"n": n})]
        gone += rids
        peer.of(rids[0], "started")
        editor.reload()
        gate.touch()
        for rid in rids:
            same(peer.outcome(rid, 60).get("status"), "ok", f"round {n}")
    same([editor.effects(f"{k}{n}") for k in "se" for n in range(10)], [1] * 20, "executions")


# [UNITY-23]
@scenario("reload: without a word before it, the next domain takes over and the old one is not heard")
def dirty_reload(kit: Kit) -> None:
    peer, editor = kit.both()
    gate = kit.gate("a")
    rid = peer.ask("kit_survivor", {"mark": "m", "release": str(gate)})
    peer.of(rid, "progress")
    editor.reload(dirty=True)
    peer.wait_connected(2)
    same([r["request_id"] for r in peer.auths[-1]["running"]], [rid], "what runs")
    peer.wait(lambda log: any(m["type"] == "progress" and m["partial"]["lives"] == 2 for m in log), "the second life")
    gate.touch()
    same(peer.outcome(rid)["result"], {"lives": 2}, "the outcome")
    same((editor.effects("m"), peer.hellos[-1]["domain_epoch"]), (1, 2), "executions and epoch")
    peer.wait(lambda _: any(code == 4409 for code, _ in peer.closed), "the old connection is closed")
    same(peer.call("kit_add", {"a": 1}), 2, "a call in the new domain")


# [UNITY-20] [UNITY-22]
@scenario("crash: after a kill what ran is unknown, what was queued was not executed, what had ended is there")
def crash(kit: Kit) -> None:
    peer, editor = kit.both()
    peer.acknowledges = False
    ended = peer.ask("kit_effect", {"mark": "ended"})
    first = peer.outcome(ended)
    large = peer.ask("kit_large", {"bytes": 2_000_000, "of": "é"})
    peer.outcome(large)
    running = peer.ask("kit_survivor", {"mark": "running", "release": str(kit.gate("never"))})
    peer.of(running, "started")
    queued = peer.ask("kit_effect", {"mark": "queued"})
    peer.of(queued, "accepted")
    editor.kill()
    at = peer.mark()
    again = kit.editor()
    peer.wait_connected(2)
    same(peer.auths[-1]["running"], [], "what runs after the restart")
    same(set(peer.auths[-1]["finished_unacked"]), {ended, large, running, queued}, "what is to be said")
    same(peer.of(ended, "result", after=at), first, "what had ended")
    same(len(peer.of(large, "result", after=at)["result"]), 1_000_000, "what had ended and was large")
    same(peer.of(running, "error", after=at)["error"]["details"]["execution_guarantee"], "unknown", "what ran")
    same(peer.of(queued, "error", after=at)["error"]["details"]["execution_guarantee"], "not_executed", "what was queued")
    same([again.effects(m) for m in ("ended", "running", "queued")], [0, 0, 0], "executions after the restart")
    # The server that says any of them again gets the same words, and nothing is run.
    at = peer.mark()
    peer.ask("kit_effect", {"mark": "queued"}, request_id=queued)
    same(peer.of(queued, "error", after=at)["error"]["details"]["execution_guarantee"], "not_executed", "what was queued, asked again")


# [UNITY-20]
@scenario("crash: an accepted request is in the journal before the server hears of it")
def accepted_is_written(kit: Kit) -> None:
    peer, editor = kit.both()
    gate = kit.gate("block")
    editor.do("block", release=str(gate))
    for n in range(20):
        rid = peer.ask("kit_effect", {"mark": str(n)})
        peer.of(rid, "accepted")
        (path,) = (kit.project / "Library" / "Raincheck" / "editor").glob("journal-*.jsonl")
        journal = path.read_text(encoding="utf-8")
        check(f'"{rid}"' in journal, f"request {n} is not in the journal")
    gate.touch()


@scenario("quit: the editor says goodbye, and another journal never stops the editor")
def quitting(kit: Kit) -> None:
    peer, editor = kit.both()
    editor.quit()
    bye = peer.wait(lambda log: next((m for m in log if m["type"] == "bye"), None), "a goodbye")
    same((bye["reason"], bye["expected_back_ms"]), ("quit", None), "the goodbye")
    folder = kit.project / "Library" / "Raincheck" / "editor"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("not a folder")
    broken = kit.editor()
    broken.wait(lambda events: any("journal could not be opened" in e.get("detail", "") for e in events), "the fault is said")
    same(len(peer.hellos), 1, "connections")
