using System.Collections.Generic;
using Raincheck.Core;
using UnityEditor;
using UnityEditor.Compilation;

namespace Raincheck.InEditor
{
    /// <summary>
    /// What the compiler said last, written down as soon as each assembly is done, since a reload may follow at once. It
    /// does not pass through the log, so it is put into the console ring here.
    /// </summary>
    static class CompileWatch
    {
        const string Key = "Raincheck.Compile";
        const int Most = 200;

        static JsonObject _last = new JsonObject();

        /// <summary>Grows with each compile; survives reloads.</summary>
        public static long Count => _last.Integer("count") ?? 0;

        /// <summary>Whether the newest compile has ended.</summary>
        public static bool Ended => _last.Flag("ended") ?? true;

        public static void Begin()
        {
            var saved = SessionState.GetString(Key, "");
            if (saved != "") _last = Json.ParseObject(saved);
            CompilationPipeline.compilationStarted += Started;
            CompilationPipeline.assemblyCompilationFinished += Compiled;
            CompilationPipeline.compilationFinished += Finished;
        }

        public static void End()
        {
            CompilationPipeline.compilationStarted -= Started;
            CompilationPipeline.assemblyCompilationFinished -= Compiled;
            CompilationPipeline.compilationFinished -= Finished;
        }

        /// <summary>The diagnostics of the newest compile: <c>{errors, warnings, diagnostics}</c>.</summary>
        public static JsonObject Report()
        {
            var all = _last.Array("diagnostics") ?? new List<object>();
            return new JsonObject
            {
                { "errors", _last.Integer("errors") ?? 0 },
                { "warnings", _last.Integer("warnings") ?? 0 },
                { "assemblies", _last.Integer("assemblies") ?? 0 },
                { "diagnostics", all },
            };
        }

        static void Started(object compile)
        {
            _last = new JsonObject
            {
                { "count", Count + 1 }, { "ended", false }, { "errors", 0L }, { "warnings", 0L }, { "assemblies", 0L }, { "diagnostics", new List<object>() },
            };
            Save();
        }

        static void Finished(object compile)
        {
            _last["ended"] = true;
            Save();
        }

        static void Compiled(string assembly, CompilerMessage[] messages)
        {
            _last["assemblies"] = (_last.Integer("assemblies") ?? 0) + 1;
            var all = _last.Array("diagnostics");
            foreach (var message in messages)
            {
                var error = message.type == CompilerMessageType.Error;
                if (!error && message.type != CompilerMessageType.Warning) continue;
                var counter = error ? "errors" : "warnings";
                _last[counter] = (_last.Integer(counter) ?? 0) + 1;
                ConsoleFeed.Ring.Add(error ? "error" : "warning", message.message, "", Words.NowMs(), message.file, message.line);
                var shown = new JsonObject
                {
                    { "type", error ? "error" : "warning" },
                    { "message", Words.Visible(message.message) },
                    { "file", message.file },
                    { "line", message.line },
                    { "column", message.column },
                };
                // Errors are what a caller waits for: they come first, and warnings give way to them.
                if (error) all.Insert(FirstWarning(all), shown);
                else all.Add(shown);
                if (all.Count > Most) all.RemoveAt(all.Count - 1);
            }
            Save();
        }

        static int FirstWarning(List<object> all)
        {
            var at = all.FindIndex(one => one is JsonObject item && item.Text("type") == "warning");
            return at < 0 ? all.Count : at;
        }

        static void Save() => SessionState.SetString(Key, Json.Write(_last));
    }
}
