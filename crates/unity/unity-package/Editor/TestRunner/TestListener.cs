using System.IO;
using Raincheck.Core;
using UnityEditor;
using UnityEditor.TestTools.TestRunner.Api;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>
    /// Hears of every run of tests, in every domain. The test framework forgets its listeners at a domain reload, so
    /// this registers itself again at each load, and takes up the report that it wrote down before.
    /// </summary>
    [InitializeOnLoad]
    sealed class TestListener : ICallbacks
    {
        const string Key = "Raincheck.Tests";
        const int KeepEveryMs = 1000;

        static readonly TestListener Only = new TestListener();
        static readonly TestRunnerApi Api;
        static long _keptMs;

        static TestListener()
        {
            if (!Bootstrap.Runs) return;
            Api = ScriptableObject.CreateInstance<TestRunnerApi>();
            Api.hideFlags = HideFlags.HideAndDontSave;
            Api.RegisterCallbacks(Only);
            Load();
            Bootstrap.OnLeave(Leave);
            Bootstrap.Add(new RunTestsTool());
        }

        /// <summary>The framework, for whoever starts a run.</summary>
        public static TestRunnerApi Framework => Api;

        /// <summary>Whether a run is going on, whoever started it.</summary>
        public static bool Active { get; private set; }

        /// <summary>The report of the run that is going on or that ended last.</summary>
        public static TestReport Report { get; private set; } = new TestReport();

        /// <summary>When the framework was last heard of, in milliseconds since 1970; 0 before the first time in this domain.</summary>
        public static long HeardMs { get; private set; }

        /// <summary>Called when the report has changed.</summary>
        public static System.Action Changed;

        /// <summary>Begins a report of our own run of so many tests.</summary>
        public static void Expect(int total)
        {
            Report = new TestReport { Total = total };
            SetActive(true);
        }

        /// <summary>Notes that nobody will tell of the end of the run.</summary>
        public static void GiveUp() => SetActive(false);

        /// <summary>Where the framework writes the results of a run that ended.</summary>
        public static string ResultsFile => Path.Combine(Application.persistentDataPath, "TestResults.xml");

        public void RunStarted(ITestAdaptor tests)
        {
            Heard();
            if (!Active) Report = new TestReport { Total = Count(tests) };
            SetActive(true);
        }

        public void RunFinished(ITestResultAdaptor result)
        {
            Heard();
            // The tree has every test, also those whose end was not told to this domain.
            var whole = new TestReport { Total = Report.Total };
            Collect(result, whole);
            if (whole.Completed >= Report.Completed) Report = whole;
            SetActive(false);
        }

        public void TestStarted(ITestAdaptor test) => Heard();

        public void TestFinished(ITestResultAdaptor result)
        {
            Heard();
            if (result.Test.IsSuite || result.HasChildren) return;
            Add(Report, result);
            Changed?.Invoke();
            if (Words.NowMs() - _keptMs >= KeepEveryMs) Keep();
        }

        static void Leave()
        {
            if (Active) Keep();
            Api.UnregisterCallbacks(Only);
        }

        static void Heard() => HeardMs = Words.NowMs();

        static void Collect(ITestResultAdaptor result, TestReport into)
        {
            if (result.HasChildren)
            {
                foreach (var child in result.Children) Collect(child, into);
            }
            else if (!result.Test.IsSuite)
            {
                Add(into, result);
            }
        }

        static void Add(TestReport report, ITestResultAdaptor result) =>
            report.Add(result.Test.FullName, result.TestStatus.ToString(), result.Duration, result.Message, result.StackTrace);

        static int Count(ITestAdaptor test)
        {
            if (!test.IsSuite) return 1;
            var count = 0;
            foreach (var child in test.Children) count += Count(child);
            return count;
        }

        static void SetActive(bool active)
        {
            Active = active;
            StateTracker.Testing = active;
            Keep();
            Changed?.Invoke();
        }

        static void Keep()
        {
            _keptMs = Words.NowMs();
            SessionState.SetString(Key, Json.Write(new JsonObject { { "active", Active }, { "report", Report.ToJson("running") } }));
        }

        static void Load()
        {
            var saved = SessionState.GetString(Key, "");
            if (saved == "") return;
            var state = Json.ParseObject(saved);
            Report = TestReport.FromJson(state.Object("report"));
            Active = state.Flag("active") ?? false;
            StateTracker.Testing = Active;
        }
    }
}
