"""What is compiled, and against what."""
from __future__ import annotations

import hashlib
from pathlib import Path

from csc import Assembly, Compiler, Tools, runtime_config

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "crates" / "unity" / "unity-package"

#: The versions of Unity that the package is compiled for, each with the symbols it defines.
VERSIONS = {
    "2021_3": ["UNITY_2021_3_OR_NEWER"],
    "2022_3": ["UNITY_2021_3_OR_NEWER", "UNITY_2022_3_OR_NEWER"],
    "6000_0": ["UNITY_2021_3_OR_NEWER", "UNITY_2022_3_OR_NEWER", "UNITY_6000_0_OR_NEWER"],
    "6000_4": ["UNITY_2021_3_OR_NEWER", "UNITY_2022_3_OR_NEWER", "UNITY_6000_0_OR_NEWER", "UNITY_6000_4_OR_NEWER"],
    "6000_5": ["UNITY_2021_3_OR_NEWER", "UNITY_2022_3_OR_NEWER", "UNITY_6000_0_OR_NEWER", "UNITY_6000_4_OR_NEWER", "UNITY_6000_5_OR_NEWER"],
}
#: The one whose assemblies run here.
RUNS = "6000_0"


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.cs"))


def plan(out: Path) -> list[Assembly]:
    """Every assembly, in an order in which each comes after those it refers to."""
    core = sources(PACKAGE / "Editor" / "Core")
    assemblies = [
        # The core knows no engine: these references are all it gets.
        Assembly("Raincheck.Core.Editor", core, out / "netfx" / "Raincheck.Core.Editor.dll", profile="netfx"),
        Assembly("Raincheck.Core.Editor", core, out / "run" / "Raincheck.Core.Editor.dll"),
    ]
    for version, symbols in VERSIONS.items():
        for profile in ("netfx", "net8") if version == RUNS else ("netfx",):
            folder = out / "run" if profile == "net8" else out / version
            core_dll = out / ("run" if profile == "net8" else "netfx") / "Raincheck.Core.Editor.dll"
            engine, editor, tests = folder / "UnityEngine.dll", folder / "UnityEditor.dll", folder / "UnityEditor.TestRunner.dll"
            symbols_all = [*symbols, "UNITY_EDITOR", *(["UNITY_EDITOR_WIN"] if version in ("2022_3", "6000_5") else [])]
            package, runner = folder / "Raincheck.Editor.dll", folder / "Raincheck.TestRunner.Editor.dll"
            assemblies += [
                Assembly("UnityEngine", sources(HERE / "fake" / "engine"), engine, [], symbols_all, profile),
                Assembly("UnityEditor", sources(HERE / "fake" / "editor"), editor, [engine], symbols_all, profile),
                Assembly("UnityEditor.TestRunner", sources(HERE / "fake" / "tests"), tests, [engine, editor], symbols_all, profile),
                Assembly("Raincheck.Editor", sources(PACKAGE / "Editor" / "Unity"), package, [core_dll, engine, editor], symbols_all, profile),
                Assembly("Raincheck.TestRunner.Editor", sources(PACKAGE / "Editor" / "TestRunner"), runner, [core_dll, engine, editor, tests, package], symbols_all, profile),
            ]
    run = out / "run"
    fakes = [run / "UnityEngine.dll", run / "UnityEditor.dll", run / "UnityEditor.TestRunner.dll"]
    assemblies += [
        Assembly("Scenario", sources(HERE / "scenario"), run / "Scenario.dll", [*fakes, run / "Raincheck.Core.Editor.dll"]),
        Assembly("nunit.framework", sources(HERE / "fake" / "nunit"), run / "nunit.framework.dll"),
        Assembly("Raincheck.Editor.Tests", sources(PACKAGE / "Tests"), run / "Raincheck.Editor.Tests.dll", [run / "nunit.framework.dll", run / "Raincheck.Core.Editor.dll"]),
        Assembly("UnitTests", [HERE / "headless" / "UnitTests.cs"], run / "UnitTests.dll", [run / "nunit.framework.dll"], program=True),
        Assembly("FakeEditor", [HERE / "headless" / "Program.cs"], run / "FakeEditor.dll", fakes, program=True),
    ]
    return assemblies


#: Code that must not compile, with the fault that it must be refused with: the gate itself is tested.
PLANTED = [
    ("2021_3", "class X { static object F(UnityEngine.Object o) => o.GetEntityId(); }", "CS1061"),
    ("6000_4", "class X { static int F(UnityEngine.Object o) => o.GetInstanceID(); }", "CS0618"),
    ("6000_5", "class X { static int F(UnityEngine.Object o) => o.GetInstanceID(); }", "CS0619"),
    ("6000_5", "class X { static object F(int id) => UnityEditor.EditorUtility.InstanceIDToObject(id); }", "CS0619"),
    ("2021_3", "record X(int A);", "CS0518"),
    ("2021_3", "class X { static string F(byte[] b) => System.Convert.ToHexString(b); }", "CS0117"),
    ("2021_3", "namespace X;", "CS8773"),
    ("core", "class X { static void F() => UnityEngine.Debug.Log(1); }", "CS0103"),
]


def planted(out: Path) -> list[tuple[str, Assembly, str]]:
    cases = []
    folder = out / "planted"
    folder.mkdir(parents=True, exist_ok=True)
    for at, (where, code, fault) in enumerate(PLANTED):
        source = folder / f"Planted{at}.cs"
        source.write_text(code)
        references = [] if where == "core" else [out / where / "UnityEngine.dll", out / where / "UnityEditor.dll"]
        defines = [] if where == "core" else VERSIONS[where]
        cases.append((f"{fault} in {where}", Assembly(f"Planted{at}", [source], folder / "x.dll", references, defines, "netfx", check_only=True), fault))
    return cases


def fingerprint(tools: Tools) -> str:
    """Changes with everything that goes into the assemblies."""
    digest = hashlib.sha256()
    for path in sorted([*PACKAGE.rglob("*.cs"), *HERE.rglob("*.cs"), *HERE.glob("*.py"), HERE / "requirements.txt", HERE / "package-lock.json"]):
        digest.update(str(path.relative_to(HERE.parents[1])).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def build(tools: Tools, out: Path) -> list[tuple[str, list[str]]]:
    """Compiles everything; answers each step with its faults."""
    compiler = Compiler(tools)
    steps = []
    for assembly in plan(out):
        where = assembly.out.parent.name
        steps.append((f"{assembly.name} for {where}", compiler.compile(assembly)))
    for name, assembly, fault in planted(out):
        said = compiler.compile(assembly)
        steps.append((f"refused: {name}", [] if any(fault in line for line in said) else [f"expected {fault}, the compiler said {said or 'nothing'}"]))
    contents = out / "contents"
    csc = contents / "DotNetSdkRoslyn" / "csc.dll"
    libraries = sorted(p for p in tools.roslyn.glob("Microsoft.CodeAnalysis*.dll") if "Workspaces" not in p.name)
    steps.append(("csc for the editor's contents", compiler.compile(Assembly("csc", [HERE / "headless" / "Csc.cs"], csc, libraries, program=True))))
    for library in libraries:
        link(csc.parent / library.name, library)
    config = runtime_config(tools)
    csc.with_name("csc.runtimeconfig.json").write_text(config)
    for program in ("FakeEditor", "UnitTests"):
        (out / "run" / f"{program}.runtimeconfig.json").write_text(config)
    # A link would make the runtime look for its parts beside itself.
    runtime = contents / "NetCoreRuntime" / "dotnet"
    runtime.parent.mkdir(parents=True, exist_ok=True)
    runtime.write_text(f'#!/bin/sh\nexec "{tools.dotnet}" "$@"\n')
    runtime.chmod(0o755)
    return steps


def link(at: Path, to: Path) -> None:
    at.unlink(missing_ok=True)
    at.symlink_to(to)
