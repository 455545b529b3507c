using System;
using System.Collections.Generic;
using System.IO;
using System.Security;
using System.Text;
using FakeUnity;
using UnityEngine;

namespace UnityEditor.TestTools.TestRunner.Api
{
    [Flags]
    public enum TestMode { EditMode = 1, PlayMode = 2 }

    public enum TestStatus { Skipped, Passed, Failed, Inconclusive }

    public interface ITestAdaptor
    {
        string Name { get; }
        string FullName { get; }
        bool IsSuite { get; }
        bool HasChildren { get; }
        IEnumerable<ITestAdaptor> Children { get; }
    }

    public interface ITestResultAdaptor
    {
        ITestAdaptor Test { get; }
        TestStatus TestStatus { get; }
        double Duration { get; }
        string Message { get; }
        string StackTrace { get; }
        bool HasChildren { get; }
        IEnumerable<ITestResultAdaptor> Children { get; }
    }

    public interface ICallbacks
    {
        void RunStarted(ITestAdaptor testsToRun);
        void RunFinished(ITestResultAdaptor result);
        void TestStarted(ITestAdaptor test);
        void TestFinished(ITestResultAdaptor result);
    }

    public class Filter
    {
        public TestMode testMode;
        public string[] testNames;
        public string[] groupNames;
        public string[] categoryNames;
        public string[] assemblyNames;
    }

    public class ExecutionSettings
    {
        public ExecutionSettings(params Filter[] filtersToExecute) { filters = filtersToExecute; }
        public Filter[] filters;
    }

    public class TestRunnerApi : ScriptableObject
    {
        public string Execute(ExecutionSettings executionSettings) => NativeTests.Execute(executionSettings.filters[0]);
        public void RegisterCallbacks<T>(T testCallbacks, int priority = 0) where T : ICallbacks => NativeTests.Listeners.Add(testCallbacks);
        public void UnregisterCallbacks<T>(T testCallbacks) where T : ICallbacks => NativeTests.Listeners.Remove(testCallbacks);
        public void RetrieveTestList(TestMode testMode, Action<ITestAdaptor> callback) => NativeTests.Wanted.Add(callback);
        public static bool CancelTestRun(string guid) => NativeTests.Cancel(guid);
    }
}

namespace FakeUnity
{
    using UnityEditor.TestTools.TestRunner.Api;

    /// <summary>The test framework: one test for each turn of the loop, going on over domain reloads.</summary>
    public static class NativeTests
    {
        sealed class Test : ITestAdaptor
        {
            public string FullName { get; set; }
            public string Name => FullName;
            public bool IsSuite => Tests != null;
            public bool HasChildren => IsSuite;
            public List<ITestAdaptor> Tests;
            public IEnumerable<ITestAdaptor> Children => Tests ?? new List<ITestAdaptor>();
        }

        sealed class Result : ITestResultAdaptor
        {
            public ITestAdaptor Test { get; set; }
            public TestStatus TestStatus { get; set; } = TestStatus.Passed;
            public double Duration => 0.01;
            public string Message { get; set; } = "";
            public string StackTrace => "";
            public bool HasChildren => Results != null;
            public List<ITestResultAdaptor> Results;
            public IEnumerable<ITestResultAdaptor> Children => Results ?? new List<ITestResultAdaptor>();
        }

        public static readonly List<string> Names = new List<string>();
        public static readonly List<ICallbacks> Listeners = new List<ICallbacks>();
        public static readonly List<Action<ITestAdaptor>> Wanted = new List<Action<ITestAdaptor>>();

        /// <summary>After how many tests the run waits to be let go on; -1 for never.</summary>
        public static int HoldAt = -1;

        /// <summary>After a reload nobody is told anything any more, as happens to real runs.</summary>
        public static bool Mute;
        static List<ITestAdaptor> _running;
        static List<ITestResultAdaptor> _done;
        static string _guid;
        static bool _told;
        static bool _muted;

        public static string Execute(Filter filter)
        {
            var names = filter.testNames == null ? Names : Names.FindAll(name => Array.IndexOf(filter.testNames, name) >= 0);
            // A run of nothing never ends, as in a real editor.
            if (names.Count > 0) _running = names.ConvertAll(name => (ITestAdaptor)new Test { FullName = name });
            _done = new List<ITestResultAdaptor>();
            _told = false;
            _muted = false;
            Native.Note("tests", names.Count.ToString());
            return _guid = Guid.NewGuid().ToString();
        }

        public static bool Cancel(string guid)
        {
            if (_running == null || guid != _guid) return false;
            Finish();
            return true;
        }

        public static void Tick()
        {
            foreach (var wanted in Wanted.ToArray()) wanted(new Test { FullName = "Proj", Tests = Names.ConvertAll(name => (ITestAdaptor)new Test { FullName = name }) });
            Wanted.Clear();
            if (_running == null) return;
            if (!_told)
            {
                _told = true;
                Tell(one => one.RunStarted(new Test { FullName = "Proj", Tests = _running }));
                return;
            }
            if (_done.Count == HoldAt) return;
            if (_done.Count == _running.Count) { Finish(); return; }
            var test = _running[_done.Count];
            var failed = test.FullName.Contains("Fails");
            var result = new Result { Test = test, TestStatus = failed ? TestStatus.Failed : TestStatus.Passed, Message = failed ? "Expected: 1\r\nBut was: 2" : "" };
            Tell(one => one.TestStarted(test));
            _done.Add(result);
            Tell(one => one.TestFinished(result));
        }

        public static void ForgetDomain()
        {
            Listeners.Clear();
            Wanted.Clear();
            _muted |= Mute && _running != null;
        }

        static void Finish()
        {
            var whole = new Result { Test = new Test { FullName = "Proj", Tests = _running }, Results = _done };
            Write();
            _running = null;
            Tell(one => one.RunFinished(whole));
        }

        static void Tell(Action<ICallbacks> what)
        {
            if (_muted) return;
            foreach (var listener in Listeners.ToArray()) what(listener);
        }

        static void Write()
        {
            var xml = new StringBuilder("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<test-run id=\"2\" testcasecount=\"" + _running.Count + "\" total=\"" + _running.Count + "\">\n");
            foreach (Result result in _done)
                xml.Append(" <test-case fullname=\"" + SecurityElement.Escape(result.Test.FullName) + "\" result=\"" + result.TestStatus + "\" duration=\"0.01\"/>\n");
            Directory.CreateDirectory(Application.persistentDataPath);
            File.WriteAllText(Path.Combine(Application.persistentDataPath, "TestResults.xml"), xml.Append("</test-run>\n").ToString());
        }
    }
}
