"""The tools of the package, on the fake of UnityEditor."""
from __future__ import annotations

import base64

from kit import Kit, check, same, scenario
from peer import Refused

WAVES = ["Demo.Tests.WaveTests.Spawns", "Demo.Tests.WaveTests.Ends", "Demo.Tests.HudTests.Shows"]


def refused(call, code: str) -> dict:
    try:
        value = call()
    except Refused as refusal:
        same(refusal.said["code"], code, "the code of the refusal")
        return refusal.said
    raise AssertionError(f"expected {code}, was {value}")


@scenario("run_tests: 42 tests with partial results")
def tests(kit: Kit) -> None:
    peer, editor = kit.both()
    editor.do("tests", names=[f"Demo.Tests.Many.Test{n:02}" for n in range(42)] + ["Demo.Tests.Other.Fails"])
    editor.do("hold_tests", at=15)
    rid = peer.ask("run_tests", {"mode": "EditMode", "filter": "Demo.Tests.Many"}, job=True)
    report = peer.wait(lambda log: next((m for m in log if m["type"] == "progress" and m.get("partial", {}).get("completed_count") == 15), None), "a report of 15")
    partial = report["partial"]
    same((partial["total_tests"], partial["test_run_status"], report["current"], report["total"]), (42, "running", 15, 42), "the partial result")
    same(partial["completed_tests"][-1], "Demo.Tests.Many.Test14", "the newest name")
    same(peer.call("get_editor_state")["state"], "running_tests", "the state meanwhile")
    editor.do("hold_tests", at=-1)
    result = peer.outcome(rid)["result"]
    same((result["test_run_status"], result["total_tests"], result["completed_count"], result["passed"], result["failed"]), ("passed", 42, 42, 42, 0), "the result")
    result = peer.outcome(peer.ask("run_tests", {}))["result"]
    same((result["test_run_status"], result["failed"], result["failures"][0]["message"]), ("failed", 1, "Expected: 1\nBut was: 2"), "a run that fails")


# Case unity-no-test-matched.
@scenario("run_tests: a filter that matches nothing runs nothing and says so, and counts are of what was selected")
def no_test_matched(kit: Kit) -> None:
    peer, editor = kit.both()
    editor.do("tests", names=WAVES)
    none = peer.call("run_tests", {"mode": "EditMode", "filter": "Demo.Tests.NoSuchFixture"})
    check("Demo.Tests.NoSuchFixture" in none["message"] and WAVES[0] in none["message"], none["message"])
    same((none["total_tests"], none["test_run_status"], none["filter"]), (0, "no_tests", ["Demo.Tests.NoSuchFixture"]), "the counts")
    some = peer.call("run_tests", {"mode": "EditMode", "filter": "Demo.Tests.WaveTests"})
    same((some["total_tests"], some["completed_count"]), (2, 2), "the counts of what matched")
    both = peer.call("run_tests", {"filter": ["Demo.Tests.HudTests.Shows", "Demo.Tests.WaveTests.Ends"]})
    same(both["completed_count"], 2, "a filter that is a list")
    refused(lambda: peer.call("run_tests", {"mode": "Sideways"}), "invalid_params")
    refused(lambda: peer.call("run_tests", {"fliter": "x"}), "invalid_params")
    same(editor.counted("tests", "0"), 0, "runs of nothing, which never end")


# Case unity-odd-test-names.
@scenario("run_tests: names are data, equal ones are two tests")
def odd_names(kit: Kit) -> None:
    peer, editor = kit.both()
    names = ['Demo.Tests.P.Reads("\x01")', 'Demo.Tests.P.Reads("<a&b>")', 'Demo.Tests.P.読む("😀")', "Demo.Tests.P.Twice", "Demo.Tests.P.Twice"]
    editor.do("tests", names=names)
    result = peer.call("run_tests", {"filter": "Demo.Tests.P"})
    same(result["completed_count"], 5, "tests")
    same(result["completed_tests"], ['Demo.Tests.P.Reads("\\u0001")', *names[1:]], "names")


@scenario("run_tests: a domain reload in the middle changes nothing, with one word before it or none")
def tests_through_a_reload(kit: Kit) -> None:
    peer, editor = kit.both()
    editor.do("tests", names=[f"Demo.Test{n:02}" for n in range(42)])
    for dirty in (False, True):
        editor.do("hold_tests", at=20)
        rid = peer.ask("run_tests", {}, job=True)
        peer.wait(lambda _: any(m["type"] == "progress" and m.get("partial", {}).get("completed_count") == 20 for m in peer.about(rid)), "a report of 20")
        connections = len(peer.hellos)
        editor.reload(dirty)
        peer.wait_connected(connections + 1)
        editor.do("hold_tests", at=-1)
        result = peer.outcome(rid)["result"]
        same((result["test_run_status"], result["completed_count"], result["passed"], result["source"]), ("passed", 42, 42, "callbacks"), f"dirty: {dirty}")


@scenario("run_tests: a run that nobody hears of any more is found again in its results file")
def tests_from_the_file(kit: Kit) -> None:
    peer, editor = kit.both()
    editor.do("tests", names=WAVES)
    editor.do("hold_tests", at=1)
    editor.do("mute_tests", on=True)
    rid = peer.ask("run_tests", {}, job=True)
    peer.of(rid, "progress")
    editor.reload()
    peer.wait_connected(2)
    editor.do("hold_tests", at=-1)
    result = peer.outcome(rid, 60)["result"]
    same((result["source"], result["completed_count"], result["test_run_status"]), ("file", 3, "passed"), "the result")
    editor.do("mute_tests", on=False)
    same(peer.call("run_tests", {})["completed_count"], 3, "a run after it")


@scenario("run_tests: a cancel ends the run")
def tests_cancelled(kit: Kit) -> None:
    peer, editor = kit.both()
    editor.do("tests", names=WAVES)
    editor.do("hold_tests", at=1)
    rid = peer.ask("run_tests", {}, job=True)
    peer.wait(lambda _: any(m.get("partial", {}).get("completed_count") == 1 for m in peer.about(rid)), "a report of 1")
    peer.send({"type": "cancel", "request_id": "c", "target_request_id": rid})
    same(peer.outcome(rid)["status"], "cancelled", "the outcome")
    editor.do("hold_tests", at=-1)
    same(peer.call("run_tests", {})["completed_count"], 3, "a run after it")


@scenario("refresh_and_compile: errors are answered without a reload, success after it, also when it comes twice")
def compiles(kit: Kit) -> None:
    peer, editor = kit.both()
    nothing = peer.call("refresh_and_compile", {})
    same((nothing["compiled"], nothing["succeeded"], nothing["errors"]), (False, True, 0), "nothing to do")
    editor.do("edit_scripts", errors=["error CS0103: The name 'spd' does not exist"])
    broken = peer.call("refresh_and_compile", {}, 60)
    same((broken["compiled"], broken["succeeded"], broken["errors"], broken["warnings"]), (True, False, 1, 1), "a compile that fails")
    first = broken["diagnostics"][0]
    same((first["type"], first["file"], first["line"], first["column"]), ("error", "Assets/Scripts/Kit.cs", 7, 13), "the diagnostic")
    same(len(peer.hellos), 1, "connections; a compile that fails reloads nothing")
    errors = peer.call("read_console", {"types": ["error"]})["entries"]
    check(any("CS0103" in e["message"] and e["line"] == 7 for e in errors), "the console does not have the compiler's error")
    refused(lambda: peer.call("run_tests", {}), "compile_errors")
    refused(lambda: peer.call("control_play_mode", {"action": "play"}), "compile_errors")
    for passes in (1, 2):
        editor.do("edit_scripts", errors=[], passes=passes)
        before = editor.counted("loaded")
        good = peer.call("refresh_and_compile", {}, 30)
        same((good["compiled"], good["succeeded"], good["errors"], good["warnings"]), (True, True, 0, 1), f"{passes} compiles")
        same(editor.counted("loaded") - before, passes, "reloads")
    same(peer.call("refresh_and_compile", {"force": True}, 30)["compiled"], True, "a forced compile")


@scenario("control_play_mode: answers when the editor has changed over, through the reload")
def play(kit: Kit) -> None:
    peer, editor = kit.both()
    refused(lambda: peer.call("control_play_mode", {"action": "pause"}), "not_playing")
    same(peer.call("control_play_mode", {"action": "play"}, 60), {"playing": True, "paused": False}, "play")
    same(len(peer.hellos), 2, "connections")
    same(peer.call("get_editor_state")["state"], "playing", "the state")
    same(peer.call("control_play_mode", {"action": "pause"})["paused"], True, "pause")
    refused(lambda: peer.call("manage_scene", {"action": "save"}), "playing")
    refused(lambda: peer.call("refresh_and_compile", {}), "playing")
    same(peer.call("control_play_mode", {"action": "stop"}, 60)["playing"], False, "stop")
    refused(lambda: peer.call("control_play_mode", {"action": "fly"}), "invalid_params")


@scenario("scenes: a hierarchy of three thousand objects, streamed and in pages")
def hierarchy(kit: Kit) -> None:
    peer, editor = kit.both()
    editor.do("objects", count=3000)
    rid = peer.ask("manage_scene", {"action": "get_hierarchy", "include_components": True})
    whole = peer.outcome(rid, 60)["result"]
    same((whole["count"], len(whole["objects"])), (3001, 3001), "objects")
    root, first = whole["objects"][:2]
    same((root["path"], root["depth"], root["children"], root["components"]), ("/Root", 0, 3000, ["Transform"]), "the root")
    same((first["path"], first["depth"], first["parent_id"], first["name"]), ("/Root/Crate/0", 1, root["id"], "Crate/0"), "a child")
    check(all(isinstance(o["id"], str) for o in whole["objects"]), "an id is not text")
    pages, after = [], None
    while True:
        page = peer.call("manage_scene", {"action": "get_hierarchy", "include_components": True, "limit": 700, **({"after": after} if after else {})})
        pages += page["objects"]
        after = page.get("next_after")
        if not after:
            break
    same(pages, whole["objects"], "the pages, one after the other")
    same(peer.call("manage_scene", {"action": "get_hierarchy", "max_depth": 0})["count"], 1, "a depth of 0")
    refused(lambda: peer.call("manage_scene", {"action": "get_hierarchy", "max_depth": "deep"}), "invalid_params")
    refused(lambda: peer.call("manage_scene", {"action": "explode"}), "invalid_params")


# Case unity-dialog-blocks-save.
@scenario("scenes: saving one without a path is an error, and no panel is raised")
def save(kit: Kit) -> None:
    peer, editor = kit.both()
    editor.do("scene_path", path="")
    refused(lambda: peer.call("manage_scene", {"action": "save"}), "scene_has_no_path")
    same((editor.counted("panel"), editor.counted("saved")), (0, 0), "panels and saves")
    refused(lambda: peer.call("manage_scene", {"action": "save", "path": "/etc/x.unity"}), "invalid_params")
    refused(lambda: peer.call("manage_scene", {"action": "save", "path": "Assets/../x.unity"}), "invalid_params")
    same(peer.call("manage_scene", {"action": "save", "path": "Assets/New.unity"})["path"], "Assets/New.unity", "a save with a path")
    same(editor.counted("saved", "Assets/New.unity"), 1, "saves")


@scenario("game objects: made, found by any spelling of the id, changed, taken away")
def objects(kit: Kit) -> None:
    peer, _ = kit.both()
    call = lambda action, **more: peer.call("manage_gameobject", {"action": action, **more})
    made = call("create", name="Crate 🎮", position=[1, 2.5, -3], components=["MeshRenderer", "Health"], properties={"Health": {"points": 9, "owner": "kit"}})
    same((made["name"], made["position"]), ("Crate 🎮", [1, 2.5, -3]), "what was made")
    same([c["type"] for c in made["components"]], ["UnityEngine.Transform", "UnityEngine.MeshRenderer", "Health"], "components")
    same(made["components"][2]["properties"], {"points": 9, "owner": "kit"}, "properties")
    for given in (made["id"], int(made["id"])):
        same(call("get", id=given)["name"], "Crate 🎮", f"by id {given!r}")
    same(call("get", target="/Crate 🎮")["id"], made["id"], "by path")
    child = call("create", name="Lid", parent=made["id"])
    same(child["path"], "/Crate 🎮/Lid", "a child")
    call("create", name="Lid")
    said = refused(lambda: call("get", target="Lid"), "ambiguous")
    check(child["id"] in said["message"], "the refusal names no id")
    same(call("find", search="lid")["count"], 2, "found by a part of the name")
    same(call("find", search="Health", by="component")["objects"][0]["id"], made["id"], "found by component")
    same(call("modify", id=child["id"], name="Top", active=False, tag="Kit", parent="")["path"], "/Top", "what was changed")
    refused(lambda: call("modify", id=made["id"], properties={"Health": {"points": "many"}}), "invalid_params")
    refused(lambda: call("modify", id=made["id"], properties={"Health": {"colour": 1}}), "not_found")
    count = call("find", search="", by="name")["count"]
    refused(lambda: call("create", name="Bad", position=[1, 2]), "invalid_params")
    same(call("find", search="", by="name")["count"], count, "objects after a call that failed")
    same(call("delete", id=made["id"])["deleted"], True, "delete")
    refused(lambda: call("get", id=made["id"]), "not_found")
    refused(lambda: call("get", id="18446744073709551615"), "not_found")


@scenario("assets and prefabs: found, made, moved, never outside of the project")
def assets(kit: Kit) -> None:
    peer, _ = kit.both()
    made = peer.call("manage_gameobject", {"action": "create", "name": "Lamp"})
    same(peer.call("manage_prefab", {"action": "create", "target": made["id"], "path": "Assets/Lamp.prefab"})["path"], "Assets/Lamp.prefab", "a prefab")
    refused(lambda: peer.call("manage_prefab", {"action": "create", "target": made["id"], "path": "Assets/Lamp.prefab"}), "exists")
    same(peer.call("manage_prefab", {"action": "instantiate", "path": "Assets/Lamp.prefab", "position": [1, 1, 1]})["name"], "Lamp", "an instance")
    asset = lambda action, **more: peer.call("manage_asset", {"action": action, **more})
    same(asset("find", search="Lamp")["assets"][0]["path"], "Assets/Lamp.prefab", "find")
    same(asset("create_folder", path="Assets/Lights")["path"], "Assets/Lights", "a folder")
    same(asset("move", path="Assets/Lamp.prefab", to="Assets/Lights/Lamp.prefab")["path"], "Assets/Lights/Lamp.prefab", "move")
    refused(lambda: asset("get", path="Assets/Lamp.prefab"), "not_found")
    for path in ("/etc/passwd", "Assets/../../x", "C:\\x"):
        refused(lambda: asset("delete", path=path), "invalid_params")
    same(asset("delete", path="Assets/Lights/Lamp.prefab")["deleted"], True, "delete")


# Case unity-console-multiline, through the editor's own log.
@scenario("read_console: whole texts, types as given, a cursor that a reload does not move")
def console(kit: Kit) -> None:
    peer, editor = kit.both()
    editor.do("log", type="Log", condition="Wave 3:\r\n\r\n  error CS0246 is only text", stack="Demo.Waves:Plan (int) (at Assets/Waves.cs:41)\nDemo.B:C ()\n")
    editor.do("log", type="Exception", condition="NullReferenceException: x", stack="Demo.Hud.Refresh () (at Assets/Hud.cs:12)\r\n")
    editor.do("log", type="Log", condition="\x1b[31mred\x1b[0m \u202eabc bell\x07 🎮", stack="")
    entries = peer.call("read_console", {"limit": 50})["entries"]
    first = next(e for e in entries if e["message"].startswith("Wave"))
    same((first["message"], first["type"], "stack" in first), ("Wave 3:\n\n  error CS0246 is only text", "log", False), "the first entry")
    same([e["type"] for e in peer.call("read_console", {"types": ["error"]})["entries"]], ["exception"], "errors")
    with_stack = peer.call("read_console", {"filter": "wave", "include_stacktrace": True})["entries"][0]
    same(len(with_stack["stack"].split("\n")), 2, "lines of the stack")
    check(entries[-1]["message"] == "\\u001b[31mred\\u001b[0m \\u202eabc bell\\u0007 🎮", entries[-1]["message"])
    cursor = peer.call("read_console", {})["next_cursor"]
    editor.reload()
    peer.wait_connected(2)
    editor.do("log", type="Warning", condition="after", stack="")
    later = peer.call("read_console", {"since_cursor": cursor})["entries"]
    same([e["message"] for e in later], ["after"], "what came after the cursor")
    refused(lambda: peer.call("read_console", {"types": ["loud"]}), "invalid_params")
    refused(lambda: peer.call("read_console", {"tail": 3}), "invalid_params")


@scenario("execute_code: off unless allowed")
def code_is_off(kit: Kit) -> None:
    peer, _ = kit.both()
    refused(lambda: peer.call("execute_code", {"code": "return 1;"}), "disabled")
    same(peer.call("get_editor_state")["execute_code"], False, "what the state says of it")


@scenario("execute_code: compiled by the editor's own compiler in a process of its own")
def code(kit: Kit) -> None:
    peer, _ = kit.both(env={"RAINCHECK_EXECUTE_CODE": "1"})
    run = lambda text, timeout=60: peer.call("execute_code", {"code": text}, timeout)
    value = run('Debug.Log("from\\u0001 the snippet"); return new JsonObject { { "sum", Enumerable.Range(1, 10).Sum() } };')
    same((value["result"], value["execution_status"]), ({"sum": 55}, "completed"), "the answer")
    same(value["logs"], [{"type": "log", "message": "from\\u0001 the snippet"}], "the logs")
    said = refused(lambda: run("using System.Text;\nvar b = new StringBuilder();\nreturn nonsense;"), "compile_errors")
    same((said["details"]["diagnostics"][0]["line"], said["details"]["diagnostics"][0]["code"]), (3, "CS0103"), "the diagnostic")
    refused(lambda: run('throw new InvalidOperationException("as asked");'), "exception")


@scenario("screenshot, menu and the list of commands")
def rest(kit: Kit) -> None:
    peer, editor = kit.both()
    refused(lambda: peer.call("capture_screenshot", {}), "no_camera")
    editor.do("camera")
    shot = peer.call("capture_screenshot", {"width": 64, "height": 32})
    check(base64.b64decode(shot["data"]).startswith(b"\x89PNG"), "no picture")
    same((shot["mime_type"], shot["width"]), ("image/png", 64), "the picture")
    refused(lambda: peer.call("capture_screenshot", {"width": 100_000}), "invalid_params")
    refused(lambda: peer.call("execute_menu_item", {"path": "No/Such"}), "not_found")
    refused(lambda: peer.call("execute_menu_item", {"path": "file/exit"}), "refused")
    same(editor.counted("menu", "file/exit"), 0, "menu commands that end the editor")
    commands = {c["name"]: c for c in peer.call("list_unity_commands")["commands"]}
    same(commands["kit_add"]["params"]["required"], ["a"], "the parameters of a project's own command")
    same((commands["run_tests"]["execution_mode"], commands["run_tests"]["reload_safe"], commands["read_console"]["class"]), ("job", True, "control"), "metadata")


@scenario("settings: the page tells the state, connects again, and turns execute_code on and the bridge off")
def settings(kit: Kit) -> None:
    peer, editor = kit.both()
    editor.do("settings")
    check(any("Connected to unity-mcp 0.0.1-peer" in e["detail"] for e in editor.events if e["event"] == "help_box"), "the page does not say that it is connected")
    rid = peer.ask("kit_survivor", {"mark": "m", "release": str(kit.gate("a"))})
    peer.of(rid, "started")
    editor.do("settings", click="Connect again")
    peer.wait_connected(2)
    same([r["request_id"] for r in peer.auths[-1]["running"]], [rid], "what runs after it")
    kit.gate("a").touch()
    same(peer.outcome(rid)["status"], "ok", "its outcome")
    editor.do("tests", names=WAVES)
    same(peer.call("run_tests", {})["completed_count"], 3, "tests after it")
    refused(lambda: peer.call("execute_code", {"code": "return 1;"}), "disabled")
    editor.do("settings", click="Allow execute_code")
    same(peer.call("execute_code", {"code": "return 1;"}, 60)["result"], 1, "execute_code after it was allowed")
    editor.do("settings", click="Connect this editor")
    editor.wait_event("loaded", n=2)
    bye = peer.wait(lambda log: [m for m in log if m["type"] == "bye"][1:], "a second goodbye")
    same(bye[0]["reason"], "reload", "the goodbye")
    editor.do("settings")
    check(any("Turned off" in e["detail"] for e in editor.events if e["event"] == "help_box"), "the page does not say that it is off")


@scenario("menu: the self test finds nothing wrong here")
def self_test(kit: Kit) -> None:
    peer, editor = kit.both()
    peer.call("execute_menu_item", {"path": "Tools/Raincheck/Self test"})
    said = editor.wait(lambda events: next((e["detail"] for e in events if "self test, Unity" in e.get("detail", "")), None), "the report")
    check(" 0 failed" in said, said)
    peer.call("execute_menu_item", {"path": "Tools/Raincheck/Connection state"})


@scenario("guards: an import worker and an editor without a window stay away, unless the second is asked to come")
def guards(kit: Kit) -> None:
    peer = kit.peer()
    for env in ({"FAKE_IMPORT_WORKER": "1"}, {"FAKE_BATCH_MODE": "1"}):
        editor = kit.editor(env=env)
        editor.wait_event("loaded")
        editor.do("sync")
        editor.quit()
    asked = kit.editor(env={"FAKE_BATCH_MODE": "1", "RAINCHECK_BATCH_MODE": "1"})
    peer.wait_connected()
    same([h["pid"] for h in peer.hellos], [asked.pid], "who said hello")
