"""Compiles C# with Roslyn, loaded into this process: one start of the compiler for all assemblies."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Tools:
    """Where run.sh has put what this needs."""

    root: Path

    @property
    def roslyn(self) -> Path:
        return self.root / "node" / "node_modules" / "@autorest" / "csharp"

    @property
    def dotnet_root(self) -> Path:
        (found,) = self.root.glob("python/lib/python3*/site-packages/dnv/net/runtime/.net")
        return found

    @property
    def dotnet(self) -> Path:
        return self.dotnet_root / "dotnet"

    @property
    def runtime(self) -> Path:
        (found,) = (self.dotnet_root / "shared" / "Microsoft.NETCore.App").iterdir()
        return found

    def references(self, profile: str) -> list[Path]:
        """The class library: `net8`, which the tests run on, or `netfx`, which is what Unity's editor offers at least."""
        if profile == "net8":
            return [p for p in sorted(self.runtime.glob("*.dll")) if p.name.startswith(("System", "Microsoft.CSharp", "Microsoft.Win32", "mscorlib", "netstandard"))]
        wanted = ("mscorlib", "System", "System.Core", "System.Xml", "System.Net.Http", "System.Runtime.Serialization")
        facades = ("netstandard", "System.Runtime", "System.Collections", "System.IO")
        return [self.root / "netfx" / f"{n}.dll" for n in wanted] + [self.root / "netfx" / "Facades" / f"{n}.dll" for n in facades]


@dataclass
class Assembly:
    """What is compiled into one DLL."""

    name: str
    sources: list[Path]
    out: Path
    references: list[Path] = field(default_factory=list)
    defines: list[str] = field(default_factory=list)
    profile: str = "net8"
    program: bool = False
    #: Only looks for faults, writes nothing.
    check_only: bool = False


class Compiler:
    """Roslyn at C# 9, the version of every Unity from 2021.3 on."""

    def __init__(self, tools: Tools):
        os.environ["DOTNET_SYSTEM_GLOBALIZATION_INVARIANT"] = "1"
        os.environ.setdefault("DOTNET_TieredPGO", "0")
        from clr_loader import get_coreclr
        from pythonnet import set_runtime

        config = tools.root / "compiler.runtimeconfig.json"
        config.write_text(runtime_config(tools))
        set_runtime(get_coreclr(runtime_config=str(config), dotnet_root=str(tools.dotnet_root)))
        import clr

        clr.AddReference(str(tools.roslyn / "Microsoft.CodeAnalysis.dll"))
        clr.AddReference(str(tools.roslyn / "Microsoft.CodeAnalysis.CSharp.dll"))
        import Microsoft.CodeAnalysis as code
        import Microsoft.CodeAnalysis.CSharp as csharp
        from System import Array, String
        from System.Text import Encoding

        self.tools, self.code, self.csharp = tools, code, csharp
        self.array, self.string, self.encoding = Array, String, Encoding
        self.cached: dict[str, object] = {}

    def compile(self, assembly: Assembly) -> list[str]:
        """Compiles; answers the faults and warnings as lines, none when all is well."""
        missing = [r.name for r in assembly.references if not r.exists()]
        if missing:
            return [f"not compiled, as there is no {', '.join(missing)}"]
        code, csharp = self.code, self.csharp
        parse = csharp.CSharpParseOptions(csharp.LanguageVersion.CSharp9).WithPreprocessorSymbols(self.array[self.string](assembly.defines))
        trees = []
        for source in assembly.sources:
            text = code.Text.SourceText.From(source.read_text(encoding="utf-8"), self.encoding.UTF8)
            trees.append(csharp.CSharpSyntaxTree.ParseText(text, parse, str(source)))
        references = [self.reference(p) for p in self.tools.references(assembly.profile) + assembly.references]
        kind = code.OutputKind.ConsoleApplication if assembly.program else code.OutputKind.DynamicallyLinkedLibrary
        options = csharp.CSharpCompilationOptions(kind).WithOptimizationLevel(code.OptimizationLevel.Release).WithDeterministic(True)
        compilation = csharp.CSharpCompilation.Create(
            assembly.name,
            self.array[code.SyntaxTree](trees),
            self.array[code.MetadataReference](references),
            options,
        )
        if assembly.check_only:
            return self.lines(compilation.GetDiagnostics())
        assembly.out.parent.mkdir(parents=True, exist_ok=True)
        from System.IO import File

        with_pdb = assembly.out.with_suffix(".pdb")
        dll, pdb = File.Create(str(assembly.out)), File.Create(str(with_pdb))
        try:
            result = compilation.Emit(dll, pdb)
        finally:
            dll.Dispose()
            pdb.Dispose()
        lines = self.lines(result.Diagnostics)
        if not result.Success:
            assembly.out.unlink()
        return lines

    def reference(self, path: Path):
        key = f"{path}:{path.stat().st_mtime_ns}"
        if key not in self.cached:
            self.cached[key] = self.code.MetadataReference.CreateFromFile(str(path))
        return self.cached[key]

    def lines(self, diagnostics) -> list[str]:
        wanted = (self.code.DiagnosticSeverity.Error, self.code.DiagnosticSeverity.Warning)
        # CS1701/1702: one version of the class library stands for another. CS1591 is about comments, CS8632 about `?`.
        return [str(d) for d in diagnostics if d.Severity in wanted and d.Id not in ("CS1701", "CS1702") and not d.IsSuppressed]


def runtime_config(tools: Tools) -> str:
    version = tools.runtime.name
    return (
        '{"runtimeOptions":{"tfm":"net8.0","framework":{"name":"Microsoft.NETCore.App","version":"' + version + '"},'
        '"configProperties":{"System.Globalization.Invariant":true,"System.GC.Concurrent":false}}}'
    )
