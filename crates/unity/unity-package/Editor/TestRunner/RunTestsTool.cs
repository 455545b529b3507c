using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using Raincheck.Core;
using UnityEditor;
using UnityEditor.TestTools.TestRunner.Api;

namespace Raincheck.InEditor
{
    /// <summary>Runs tests. The run goes on over domain reloads, and is found again from the results file if need be.</summary>
    sealed class RunTestsTool : Tool
    {
        const int ListMs = 60000;
        const int LookAtFileAfterMs = 2000;
        const int GiveUpAfterMs = 60000;
        const int MostExamples = 5;

        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "run_tests",
            Description = "Runs EditMode or PlayMode tests. filter: full names, or the beginning of them, as a string or a list.",
            Mode = ToolMode.Job,
            SupportsCancel = true,
            ReloadSafe = true,
            Schema = Arguments.Schema(new string[0], new JsonObject
            {
                { "mode", Arguments.OneOf("EditMode", "PlayMode") },
                { "filter", new JsonObject { { "type", new[] { "string", "array" } } } },
            }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            Arguments.Only(context.Params, "mode", "filter");
            var mode = Mode(context.Params);
            var filter = Arguments.Texts(context.Params, "filter");
            filter.RemoveAll(string.IsNullOrEmpty);
            if (EditorApplication.isPlaying) throw new ToolException("playing", "tests do not run while the game plays; stop it first");
            if (TestListener.Active) throw new ToolException("busy", "tests are running already, started in the Test Runner window");
            return Begin(context, mode, filter);
        }

        public override IEnumerator Resume(ToolContext context)
        {
            if (context.Memory?.Text("guid") != null) return Follow(context, true);
            // Nothing was started yet.
            return context.Memory == null ? Run(context) : Lost();
        }

        static IEnumerator Lost() =>
            throw new ToolException("interrupted", "a domain reload came while the tests were being started; whether they ran is not known");

        // The framework has its own way to end a run; without it the run goes on to its end.
        public override bool EndsItself(ToolContext context)
        {
            var guid = context.Memory?.Text("guid");
            if (guid == null) return false;
            if (_cancelled == guid) return true;
            _cancelled = guid;
            typeof(TestRunnerApi).GetMethod("CancelTestRun", BindingFlags.Public | BindingFlags.Static)?.Invoke(null, new object[] { guid });
            return true;
        }

        static string _cancelled;

        static TestMode Mode(JsonObject given)
        {
            var mode = Arguments.Text(given, "mode") ?? "EditMode";
            if (string.Equals(mode, "EditMode", StringComparison.OrdinalIgnoreCase)) return TestMode.EditMode;
            if (string.Equals(mode, "PlayMode", StringComparison.OrdinalIgnoreCase)) return TestMode.PlayMode;
            throw Arguments.Invalid("`mode` takes EditMode or PlayMode");
        }

        static IEnumerator Begin(ToolContext context, TestMode mode, List<string> filter)
        {
            while (StateTracker.IsCompiling || EditorApplication.isUpdating)
            {
                context.Report(0, 0, "waiting for the compile to end");
                yield return Wait.NextUpdate;
            }
            if (EditorUtility.scriptCompilationFailed) throw new ToolException("compile_errors", "tests do not run while scripts have errors; refresh_and_compile names them");
            ITestAdaptor root = null;
            TestListener.Framework.RetrieveTestList(mode, tests => root = tests);
            var asked = Words.NowMs();
            while (root == null)
            {
                if (Words.NowMs() - asked > ListMs) throw new ToolException("no_test_list", "the test framework did not list its tests");
                yield return Wait.NextUpdate;
            }
            var all = new List<string>();
            Leaves(root, all);
            var chosen = Choose(all, filter);
            if (chosen.Count == 0)
            {
                context.Result = NoneMatched(mode, filter, all);
                yield break;
            }
            context.Remember(new JsonObject { { "began_ms", Words.NowMs() }, { "total", chosen.Count } });
            TestListener.Expect(chosen.Count);
            var selection = new Filter { testMode = mode };
            if (filter.Count > 0) selection.testNames = Distinct(chosen);
            string guid;
            try { guid = Execute(new ExecutionSettings(selection)); }
            catch
            {
                TestListener.GiveUp();
                throw;
            }
            var memory = context.Memory;
            memory["guid"] = guid;
            context.Remember(memory);
            yield return Follow(context, false);
        }

        // The first versions of the framework start a run without naming it.
        static string Execute(ExecutionSettings settings)
        {
            try
            {
                var named = typeof(TestRunnerApi).GetMethod("Execute", new[] { typeof(ExecutionSettings) }).Invoke(TestListener.Framework, new object[] { settings });
                return named as string ?? "unnamed-" + Guid.NewGuid().ToString("N");
            }
            catch (TargetInvocationException fault) when (fault.InnerException != null)
            {
                System.Runtime.ExceptionServices.ExceptionDispatchInfo.Capture(fault.InnerException).Throw();
                throw;
            }
        }

        static IEnumerator Follow(ToolContext context, bool resumed)
        {
            var memory = context.Memory;
            var began = memory.Integer("began_ms") ?? 0;
            var since = Words.NowMs();
            void Tell()
            {
                var report = TestListener.Report;
                context.Report(report.Completed, report.Total, null, report.ToJson("running"));
            }
            TestListener.Changed = Tell;
            try
            {
                Tell();
                while (TestListener.Active)
                {
                    var silent = resumed && TestListener.HeardMs == 0 ? Words.NowMs() - since : 0;
                    if (silent > LookAtFileAfterMs && FromFile(began) is TestReport written)
                    {
                        TestListener.GiveUp();
                        context.Result = Finished(written, memory, "file");
                        yield break;
                    }
                    if (silent > GiveUpAfterMs && !EditorApplication.isPlaying && !StateTracker.IsCompiling)
                    {
                        TestListener.GiveUp();
                        throw new ToolException("interrupted", "nothing was heard of the tests since the domain reload, and there is no results file; whether they ran is not known",
                            TestListener.Report.ToJson("interrupted"));
                    }
                    yield return Wait.NextUpdate;
                }
                if (context.IsCancelled && _cancelled == memory.Text("guid") && TestListener.Report.Completed < TestListener.Report.Total)
                    context.ThrowIfCancelled();
                context.Result = Finished(TestListener.Report, memory, "callbacks");
            }
            finally { TestListener.Changed = null; }
        }

        static JsonObject Finished(TestReport report, JsonObject memory, string source)
        {
            report.Total = Math.Max(report.Total, (int)(memory.Integer("total") ?? 0));
            var result = report.ToJson(report.Outcome(false));
            result["source"] = source;
            return result;
        }

        // Only a file that was written after the run began is about this run.
        static TestReport FromFile(long beganMs)
        {
            try
            {
                var written = (long)(File.GetLastWriteTimeUtc(TestListener.ResultsFile) - new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc)).TotalMilliseconds;
                return written < beganMs ? null : TestResultsFile.Parse(File.ReadAllText(TestListener.ResultsFile));
            }
            catch (IOException) { return null; }
            catch (UnauthorizedAccessException) { return null; }
        }

        static void Leaves(ITestAdaptor test, List<string> into)
        {
            if (!test.IsSuite)
            {
                into.Add(test.FullName);
                return;
            }
            foreach (var child in test.Children) Leaves(child, into);
        }

        // A name selects itself and what is below it; what selects nothing that way may be a part of a name.
        static List<string> Choose(List<string> all, List<string> filter)
        {
            if (filter.Count == 0) return all;
            var chosen = all.FindAll(name => filter.Exists(one => name == one || name.StartsWith(one + ".", StringComparison.Ordinal)
                || name.StartsWith(one + "(", StringComparison.Ordinal) || name.StartsWith(one + "+", StringComparison.Ordinal)));
            return chosen.Count > 0 ? chosen : all.FindAll(name => filter.Exists(one => name.IndexOf(one, StringComparison.OrdinalIgnoreCase) >= 0));
        }

        static string[] Distinct(List<string> names)
        {
            var once = new string[new HashSet<string>(names, StringComparer.Ordinal).Count];
            new HashSet<string>(names, StringComparer.Ordinal).CopyTo(once);
            return once;
        }

        // A run of nothing says so; it can not be taken for one that passed.
        static JsonObject NoneMatched(TestMode mode, List<string> filter, List<string> all)
        {
            var examples = all.GetRange(0, Math.Min(MostExamples, all.Count)).ConvertAll(name => (object)Words.Visible(Words.Cut(name, 300)));
            var result = new TestReport().ToJson("no_tests");
            result["filter"] = filter.ConvertAll(one => (object)Words.Visible(Words.Cut(one, 300)));
            result["examples"] = examples;
            var text = filter.Count == 0 ? "this project has no " + mode + " tests"
                : "no " + mode + " test matches `" + Words.Visible(Words.Cut(string.Join("`, `", filter), 500)) + "`; there are " + all.Count
                  + (examples.Count > 0 ? ", for example `" + examples[0] + "`" : "");
            result["message"] = text;
            return result;
        }
    }
}
