"""Compiles the Unity package against every supported version and runs it headless. `run.sh` starts it."""
from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import metas
from csc import Tools

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "e2e"))
ROOT = HERE.parents[1]


class Tally:
    def __init__(self) -> None:
        self.passed, self.failed = 0, 0

    def note(self, name: str, faults: list[str]) -> None:
        if not faults:
            self.passed += 1
            return
        self.failed += 1
        print(f"FAILED: {name}")
        for fault in faults[:20]:
            print("    " + fault.replace("\n", "\n    "))


def package(tally: Tally) -> None:
    """What can be said of the package without compiling it."""
    manifest = json.loads((metas.PACKAGE / "package.json").read_text())
    workspace = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    tally.note("the package has the version of the workspace", [] if manifest["version"] == workspace else [f"{manifest['version']} is not {workspace}"])
    tally.note("every file has its .meta, every GUID is unique", metas.faults())
    faults = [str(p) for p in metas.PACKAGE.rglob("*") if p.suffix.lower() in (".dll", ".so", ".dylib", ".exe")]
    tally.note("the package brings no binary", faults)
    core = json.loads((metas.PACKAGE / "Editor" / "Core" / "Raincheck.Core.Editor.asmdef").read_text())
    tally.note("the core has no engine references", [] if core["noEngineReferences"] else ["noEngineReferences is false"])
    definitions = [json.loads(p.read_text()) for p in metas.PACKAGE.rglob("*.asmdef")]
    tally.note("every assembly is for the editor alone", [d["name"] for d in definitions if d["includePlatforms"] != ["Editor"]])
    wrong = [str(p.relative_to(metas.PACKAGE)) for p in metas.PACKAGE.rglob("*.cs") if len(p.read_text().splitlines()) > 500]
    tally.note("no file of the package is longer than 500 lines", wrong)


def compiled(tools: Tools, out: Path, tally: Tally) -> bool:
    """Compiles what has changed since the last time; answers whether all is well."""
    import build

    stamp, print_now = out / "made-from", build.fingerprint(tools)
    if stamp.exists() and stamp.read_text().split("\n")[0] == print_now:
        tally.passed += int(stamp.read_text().split("\n")[1])
        return True
    before = (tally.passed, tally.failed)
    for name, faults in build.build(tools, out):
        tally.note(f"compiles: {name}", [f.replace(str(ROOT) + "/", "") for f in faults])
    if tally.failed > before[1]:
        return False
    stamp.write_text(f"{print_now}\n{tally.passed - before[0]}")
    return True


def unit_tests(tools: Tools, out: Path, tally: Tally) -> None:
    run = out / "run"
    done = subprocess.run([tools.dotnet, "exec", run / "UnitTests.dll", run / "Raincheck.Editor.Tests.dll"], capture_output=True, text=True, encoding="utf-8", timeout=300)
    for line in done.stdout.splitlines():
        said = json.loads(line)
        tally.note(said["name"], [said["fault"]] if said["fault"] else [])
    if done.returncode:
        tally.note("the package's own tests run", [done.stderr])


def scenarios(tools: Tools, out: Path, tally: Tally, binary: Path | None, args: argparse.Namespace) -> None:
    from kit import SCENARIOS, Kit
    import chaos, real, survival, tools as tool_scenarios, wire  # noqa: F401, E401 - they register their scenarios

    def one(name: str, run) -> tuple[str, list[str], float]:
        began, faults = time.monotonic(), []
        kit = Kit(tools.dotnet, out, binary)
        try:
            run(kit)
        except Exception:  # noqa: BLE001 - every fault is one of the scenario
            faults.append(traceback.format_exc())
        finally:
            faults += kit.close()
        return name, faults, time.monotonic() - began

    chosen = [(name, run) for name, run, needs_server in SCENARIOS if args.only in name and (binary or not needs_server)]
    with ThreadPoolExecutor(args.jobs) as pool:
        for name, faults, took in pool.map(lambda pair: one(*pair), chosen):
            tally.note(name, faults)
            if args.verbose:
                print(f"{took:6.1f} s  {'FAILED' if faults else 'ok    '}  {name}")


def server(args: argparse.Namespace) -> Path | None:
    """The server to run against: the one that is named, or the one that `cargo build` has made."""
    if args.server is not None:
        return args.server.resolve(strict=True)
    built = args.out.parent / "debug" / "unity-mcp"
    return built if built.exists() else None


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--tools", type=Path, required=True)
    asked.add_argument("--out", type=Path, required=True)
    asked.add_argument("--only", default="", help="scenarios whose name contains this")
    asked.add_argument("--server", type=Path, help="the unity-mcp to run against; else target/debug/unity-mcp where it is built")
    asked.add_argument("--jobs", type=int, default=4)
    asked.add_argument("--verbose", action="store_true")
    args = asked.parse_args()
    tools, tally, began = Tools(args.tools.resolve()), Tally(), time.monotonic()
    args.out = args.out.resolve()
    package(tally)
    if compiled(tools, args.out, tally):
        if not args.only:
            unit_tests(tools, args.out, tally)
        binary = server(args)
        if binary is None:
            print("the scenarios with unity-mcp are left out, as it is not built")
        scenarios(tools, args.out, tally, binary, args)
    print(f"{tally.passed} passed, {tally.failed} failed in {time.monotonic() - began:.0f} s")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
