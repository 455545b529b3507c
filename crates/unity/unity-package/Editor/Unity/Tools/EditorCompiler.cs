using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using Raincheck.Core;
using UnityEditor;
using UnityEditor.Compilation;

namespace Raincheck.InEditor
{
    /// <summary>The compiler that comes with the editor, run as a process of its own.</summary>
    sealed class EditorCompiler
    {
        public const string TypeName = "RaincheckSnippet";
        public const string MethodName = "Run";
        const int LongestMs = 60000;

        // Where the versions of Unity keep it, below the editor's contents.
        static readonly string[][] Places =
        {
            new[] { "DotNetSdkRoslyn/csc.dll", "NetCoreRuntime/dotnet" },
            new[] { "Resources/Scripting/DotNetSdkRoslyn/csc.dll", "Resources/Scripting/NetCoreRuntime/dotnet" },
        };

        readonly string _runtime;
        readonly string _compiler;

        EditorCompiler(string runtime, string compiler)
        {
            _runtime = runtime;
            _compiler = compiler;
        }

        /// <summary>What came of a compile: the assembly, or why there is none.</summary>
        public sealed class Output
        {
            public byte[] Assembly;
            public List<object> Diagnostics = new List<object>();
        }

        /// <summary>Finds the compiler; <c>null</c> when this editor has none where it is expected.</summary>
        public static EditorCompiler Find()
        {
            foreach (var place in Places)
            {
                var compiler = Path.Combine(EditorApplication.applicationContentsPath, place[0]);
                var runtime = Path.Combine(EditorApplication.applicationContentsPath, place[1]);
                if (Path.DirectorySeparatorChar == '\\') runtime += ".exe";
                if (File.Exists(compiler) && File.Exists(runtime)) return new EditorCompiler(runtime, compiler);
            }
            return null;
        }

        /// <summary>What code of an editor assembly can use: the project's assemblies and what they refer to.</summary>
        public static List<string> References()
        {
            var paths = new HashSet<string>(StringComparer.Ordinal);
            foreach (var assembly in CompilationPipeline.GetAssemblies(AssembliesType.Editor))
            {
                paths.UnionWith(assembly.compiledAssemblyReferences);
                paths.Add(assembly.outputPath);
            }
            return new List<string>(paths);
        }

        /// <summary>Compiles statements. Needs no main thread; ends the compiler when cancelled.</summary>
        public Output Compile(string code, List<string> references, string folder, CancellationToken cancel)
        {
            var work = Path.Combine(folder, Guid.NewGuid().ToString("N"));
            Directory.CreateDirectory(work);
            try
            {
                var source = Path.Combine(work, "snippet.cs");
                var target = Path.Combine(work, "snippet.dll");
                var response = Path.Combine(work, "snippet.rsp");
                File.WriteAllText(source, Wrap(code), new UTF8Encoding(false));
                File.WriteAllText(response, ResponseFile(source, target, references), new UTF8Encoding(false));
                var output = new Output();
                var exit = Run(response, output, cancel);
                if (exit == 0 && File.Exists(target)) output.Assembly = File.ReadAllBytes(target);
                else if (output.Diagnostics.Count == 0)
                    output.Diagnostics.Add(new JsonObject { { "type", "error" }, { "message", "the compiler ended with code " + exit } });
                return output;
            }
            finally
            {
                try { Directory.Delete(work, true); }
                catch (IOException) { }
                catch (UnauthorizedAccessException) { }
            }
        }

        // The caller's lines keep their numbers.
        static string Wrap(string code)
        {
            var usings = new StringBuilder();
            var body = new StringBuilder();
            var leading = true;
            foreach (var line in code.Replace("\r\n", "\n").Split('\n'))
            {
                leading = leading && (line.Trim() == "" || Regex.IsMatch(line, @"^\s*using\s+[\w.=\s]+;\s*$"));
                if (leading && line.Trim() != "") usings.Append(line.Trim()).Append(' ');
                body.Append(leading ? "" : line).Append('\n');
            }
            return "using System; using System.Collections; using System.Collections.Generic; using System.Linq; using UnityEngine; using UnityEditor; using Raincheck; "
                + "using Object = UnityEngine.Object; " + usings
                + "public static class " + TypeName + " { public static object " + MethodName + "(ToolContext context) {\n"
                + "#line 1 \"code\"\n" + body + "#line hidden\n#pragma warning disable 162\nreturn null; } }\n";
        }

        static string ResponseFile(string source, string target, List<string> references)
        {
            var lines = new StringBuilder();
            lines.Append("-nologo\n-target:library\n-langversion:9\n-nostdlib+\n-optimize-\n-utf8output\n-preferreduilang:en-US\n-nowarn:1701,1702\n");
            lines.Append("-out:\"").Append(target).Append("\"\n");
            foreach (var reference in references) lines.Append("-r:\"").Append(Path.GetFullPath(reference)).Append("\"\n");
            return lines.Append('"').Append(source).Append("\"\n").ToString();
        }

        int Run(string response, Output output, CancellationToken cancel)
        {
            var start = new ProcessStartInfo(_runtime, "exec \"" + _compiler + "\" -noconfig @\"" + response + "\"")
            {
                UseShellExecute = false,
                CreateNoWindow = true,
                RedirectStandardOutput = true,
                RedirectStandardError = true,
                StandardOutputEncoding = Encoding.UTF8,
            };
            using (var process = new Process { StartInfo = start })
            {
                process.OutputDataReceived += (_, line) => { if (line.Data != null) lock (output) Add(output, line.Data); };
                process.ErrorDataReceived += (_, line) => { if (line.Data != null) lock (output) Add(output, line.Data); };
                process.Start();
                process.BeginOutputReadLine();
                process.BeginErrorReadLine();
                var until = Words.NowMs() + LongestMs;
                while (!process.WaitForExit(50))
                {
                    if (!cancel.IsCancellationRequested && Words.NowMs() < until) continue;
                    try { process.Kill(); }
                    catch (InvalidOperationException) { }
                    cancel.ThrowIfCancellationRequested();
                    throw new ToolException("compile_timeout", "the compiler did not end within " + LongestMs / 1000 + " s");
                }
                // Without a limit this waits for the last lines, too.
                process.WaitForExit();
                return process.ExitCode;
            }
        }

        static void Add(Output output, string line)
        {
            if (line.Trim() == "" || output.Diagnostics.Count >= 100) return;
            var parts = Regex.Match(line, @"^(?:(?<file>.*)\((?<line>\d+),(?<column>\d+)\): )?(?<type>error|warning) (?<code>\w+): (?<text>.*)$");
            if (!parts.Success)
            {
                output.Diagnostics.Add(new JsonObject { { "type", "error" }, { "message", Words.Visible(line) } });
                return;
            }
            // A warning without a place is about the command line.
            if (parts.Groups["type"].Value == "warning" && !parts.Groups["line"].Success) return;
            var shown = new JsonObject { { "type", parts.Groups["type"].Value }, { "code", parts.Groups["code"].Value }, { "message", Words.Visible(parts.Groups["text"].Value) } };
            if (parts.Groups["line"].Success) shown["line"] = int.Parse(parts.Groups["line"].Value, CultureInfo.InvariantCulture);
            output.Diagnostics.Add(shown);
        }
    }
}
