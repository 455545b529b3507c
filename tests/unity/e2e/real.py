"""The package and the real `unity-mcp`, end to end: MCP at one side, the imitated editor at the other."""
from __future__ import annotations

import json

from kit import Kit, check, same, scenario


@scenario("unity-mcp: the tools answer, numbers and text arrive whole, a picture is a picture", needs_server=True)
def answers(kit: Kit) -> None:
    server, editor = kit.server(), kit.editor()
    same(server.call("read_console", timeout=30)["status"], "completed", "the first call that needs the editor")
    state = server.call("get_editor_state")["result"]
    check("ready" in json.dumps(state), f"the state is {state}")
    value = {"n": 18446744073709551615, "text": "é\u0001🎮 \u2028"}
    same(server.command("kit_echo", 10, **value)["result"], value, "kit_echo")
    editor.do("objects", count=20)
    made = server.call("manage_gameobject", action="create", name="Lid", parent="/Root", timeout=10)["result"]
    tree = server.call("manage_scene", action="get_hierarchy", timeout=10)["result"]
    same((tree["count"], made["id"] in [o["id"] for o in tree["objects"]]), (22, True), "the hierarchy")
    editor.do("camera")
    same(server.call("capture_screenshot", timeout=10)["_images"], 1, "pictures")
    failed = server.command("kit_fail", 10, how="tool")
    same(failed["status"], "error", "a failure")
    check("as asked" in json.dumps(failed), f"the words of the failure are not in {failed}")
    large = server.command("kit_large", 30, bytes=4 * 1024 * 1024)
    check(large.get("cached") or large.get("cache_id") or "cache" in json.dumps(large)[:2000], "an answer of 4 MiB is not kept under a handle")


@scenario("unity-mcp: a test run through a domain reload, with partial results and its end", needs_server=True)
def tests(kit: Kit) -> None:
    server, editor = kit.server(), kit.editor()
    editor.do("tests", names=[f"Demo.Test{n:02}" for n in range(42)])
    editor.do("hold_tests", at=15)
    server.call("read_console", timeout=30)
    first = server.call("run_tests", mode="EditMode", timeout=1)
    same(first["status"], "timeout", "the first answer")
    server.until(first["log_id"], lambda answer: answer.get("partial_result", {}).get("completed_count") == 15, "a partial result of 15")
    editor.reload()
    editor.do("hold_tests", at=-1)
    end = server.end(first["log_id"])
    same((end["status"], end["result"]["passed"], end["result"]["test_run_status"]), ("completed", 42, "passed"), "the end")
    same(editor.counted("tests", "42"), 1, "runs")
    none = server.call("run_tests", mode="EditMode", filter="Demo.NoSuch", timeout=20)
    same((none["status"], none["result"]["test_run_status"], none["result"]["total_tests"]), ("completed", "no_tests", 0), "a filter that matches nothing")
    check("Demo.NoSuch" in none["message"] and "no pass" in none["message"], f"the message is {none['message']}")


@scenario("unity-mcp: ten reloads with a call in flight, each executed once and answered", needs_server=True)
def reloads(kit: Kit) -> None:
    server, editor = kit.server(), kit.editor()
    server.call("read_console", timeout=30)
    for n in range(10):
        gate = kit.gate(str(n))
        call = server.begin("unity_call", name="kit_survivor", params={"mark": f"m{n}", "release": str(gate)}, timeout=60)
        editor.wait_event("effect", f"m{n}")
        editor.reload()
        gate.touch()
        answer = server.answer(call)
        same((answer["status"], answer["result"]), ("completed", {"lives": 2}), f"round {n}")
    same([editor.effects(f"m{n}") for n in range(10)], [1] * 10, "executions")


@scenario("unity-mcp: what did not survive a reload is an error whose guarantee is unknown", needs_server=True)
def interrupted(kit: Kit) -> None:
    server, editor = kit.server(), kit.editor()
    server.call("read_console", timeout=30)
    call = server.begin("unity_call", name="kit_hold", params={"mark": "m", "release": str(kit.gate("never"))}, timeout=60)
    editor.wait_event("effect", "m")
    editor.reload()
    answer = server.answer(call)
    same((answer["status"], answer["error_info"]["guarantee"]), ("error", "unknown"), "the answer")
    same(editor.effects("m"), 1, "executions")


@scenario("unity-mcp: killed in the middle of a call, the next server has its result", needs_server=True)
def killed(kit: Kit) -> None:
    server, editor = kit.server(), kit.editor()
    gate = kit.gate("a")
    server.call("read_console", timeout=30)
    first = server.command("kit_hold", 1, mark="m", release=str(gate))
    same(first["status"], "timeout", "the first answer")
    editor.wait_event("effect", "m")
    server.kill()
    gate.touch()
    editor.wait_event("cleanup", "m")
    again = kit.server()
    end = again.end(first["log_id"])
    same((end["status"], end["result"]), ("completed", {"mark": "m"}), "the end")
    same(editor.effects("m"), 1, "executions")


@scenario("unity-mcp: a cancel ends a running command of the project", needs_server=True)
def cancelled(kit: Kit) -> None:
    server, editor = kit.server(), kit.editor()
    server.call("read_console", timeout=30)
    first = server.command("kit_hold", 1, mark="m", release=str(kit.gate("never")))
    same(first["status"], "timeout", "the first answer")
    editor.wait_event("effect", "m")
    check(server.call("cancel_operation", log_id=first["log_id"])["status"] in ("cancelled", "cancel_requested"), "the answer to the cancel")
    editor.wait_event("cleanup", "m")
    same(server.end(first["log_id"])["state"], "cancelled", "the end")
    same(server.command("kit_add", 10, a=1)["result"], 2, "a call after it")


@scenario("unity-mcp: execute_code takes a flag of the server and the leave of the editor", needs_server=True)
def code(kit: Kit) -> None:
    server, _ = kit.server("--enable-execute-code"), kit.editor(env={"RAINCHECK_EXECUTE_CODE": "1"})
    answer = server.call("execute_code", code='Debug.Log("hi"); return 6 * 7;', timeout=60)
    same((answer["status"], answer["result"]["result"], answer["result"]["logs"][0]["message"]), ("completed", 42, "hi"), "the answer")
    wrong = server.call("execute_code", code="return nonsense;", timeout=60)
    check(wrong["status"] == "error" and "CS0103" in json.dumps(wrong), f"the diagnostics are not in {wrong}")
