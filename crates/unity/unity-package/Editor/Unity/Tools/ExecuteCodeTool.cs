using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Threading.Tasks;
using Raincheck.Core;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>Compiles C# outside of the editor's process and runs it. Off unless a person turned it on.</summary>
    sealed class ExecuteCodeTool : Tool
    {
        /// <summary>Whether a person, or the one who started this editor, allows it.</summary>
        public static bool Allowed => _allowed;

        // Read once on the main thread, as a control tool reports it from another one.
        static bool _allowed;

        public ExecuteCodeTool()
        {
            _allowed = RaincheckSettings.ExecuteCode || Environment.GetEnvironmentVariable("RAINCHECK_EXECUTE_CODE") == "1";
        }

        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "execute_code",
            Description = "Runs C# statements in the editor; `return` gives the answer. Off unless allowed in Preferences > Raincheck.",
            Mode = ToolMode.Job,
            SupportsCancel = true,
            Schema = Arguments.Schema(new[] { "code" }, new JsonObject { { "code", Arguments.Type("string") } }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            Arguments.Only(context.Params, "code");
            var code = Arguments.Need(context.Params, "code");
            _allowed = RaincheckSettings.ExecuteCode || Environment.GetEnvironmentVariable("RAINCHECK_EXECUTE_CODE") == "1";
            if (!_allowed)
                throw new ToolException("disabled", "execute_code is off; a person can allow it in Unity under Preferences > Raincheck");
            return Compiled(context, code);
        }

        static IEnumerator Compiled(ToolContext context, string code)
        {
            var compiler = EditorCompiler.Find();
            if (compiler == null) throw new ToolException("no_compiler", "the editor's own compiler was not found");
            context.Report(0, 2, "compiling", new JsonObject { { "logs", new object[0] }, { "execution_status", "in_progress" } });
            // What Unity has to be asked is asked here; the rest does not need the main thread.
            var references = EditorCompiler.References();
            var folder = Path.Combine(Path.GetDirectoryName(Application.dataPath), "Temp", "Raincheck");
            var compile = Task.Run(() => compiler.Compile(code, references, folder, context.Cancellation));
            yield return compile;
            context.ThrowIfCancelled();
            var output = compile.GetAwaiter().GetResult();
            if (output.Assembly == null)
                throw new ToolException("compile_errors", "the code does not compile", new JsonObject { { "diagnostics", output.Diagnostics } });
            var logs = new List<object>();
            void Hear(string text, string stack, LogType type) => logs.Add(new JsonObject { { "type", type.ToString().ToLowerInvariant() }, { "message", Words.Visible(Words.Cut(text, 4000)) } });
            context.Report(1, 2, "running", new JsonObject { { "logs", logs.ToArray() }, { "execution_status", "in_progress" } });
            Application.logMessageReceived += Hear;
            try
            {
                var answer = Invoke(output.Assembly, context);
                if (answer is IEnumerator steps)
                {
                    while (steps.MoveNext())
                    {
                        context.Report(1, 2, "running", new JsonObject { { "logs", logs.ToArray() }, { "execution_status", "in_progress" } });
                        yield return steps.Current ?? Wait.NextUpdate;
                    }
                    answer = context.Result;
                }
                context.Result = new JsonObject { { "result", answer }, { "logs", logs }, { "execution_status", "completed" } };
            }
            finally { Application.logMessageReceived -= Hear; }
        }

        // Where each domain is a load context, the code has to be in the one of this package to know its types.
        static Assembly Load(byte[] assembly)
        {
            var runtime = System.Runtime.InteropServices.RuntimeInformation.FrameworkDescription;
            var isCore = runtime.StartsWith(".NET ", StringComparison.Ordinal) && !runtime.StartsWith(".NET Framework", StringComparison.Ordinal);
            var contexts = isCore ? Type.GetType("System.Runtime.Loader.AssemblyLoadContext, System.Runtime.Loader") : null;
            if (contexts == null) return Assembly.Load(assembly);
            var mine = contexts.GetMethod("GetLoadContext").Invoke(null, new object[] { typeof(ExecuteCodeTool).Assembly });
            using (var stream = new MemoryStream(assembly))
                return (Assembly)contexts.GetMethod("LoadFromStream", new[] { typeof(Stream) }).Invoke(mine, new object[] { stream });
        }

        static object Invoke(byte[] assembly, ToolContext context)
        {
            try
            {
                return Load(assembly).GetType(EditorCompiler.TypeName, true).GetMethod(EditorCompiler.MethodName).Invoke(null, new object[] { context });
            }
            catch (TargetInvocationException fault) when (fault.InnerException != null)
            {
                System.Runtime.ExceptionServices.ExceptionDispatchInfo.Capture(fault.InnerException).Throw();
                throw;
            }
        }
    }
}
