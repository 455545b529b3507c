using System;
using System.Collections.Generic;

namespace Raincheck.Core
{
    /// <summary>What is known of a run of tests: counts, the failures in full, the newest names. Pure; writes itself as JSON.</summary>
    public sealed class TestReport
    {
        /// <summary>How many names of ended tests are shown: the newest.</summary>
        const int ShownNames = 200;

        /// <summary>How many failures are shown in full.</summary>
        const int ShownFailures = 100;

        readonly List<object> _names = new List<object>();
        readonly List<object> _failures = new List<object>();

        /// <summary>How many tests were selected.</summary>
        public int Total;
        public int Passed;
        public int Failed;
        public int Skipped;
        public int Inconclusive;
        public double Seconds;

        /// <summary>How many tests have ended.</summary>
        public int Completed => Passed + Failed + Skipped + Inconclusive;

        /// <summary>Counts a test that ended. Names are data; equal names are different tests.</summary>
        public void Add(string name, string outcome, double seconds, string message, string stack)
        {
            switch ((outcome ?? "").ToLowerInvariant())
            {
                case "passed": Passed++; break;
                case "failed": Failed++; break;
                case "skipped": Skipped++; break;
                default: Inconclusive++; break;
            }
            if (!double.IsNaN(seconds) && !double.IsInfinity(seconds)) Seconds += seconds;
            _names.Add(Words.Visible(Words.Cut(name ?? "", 1000)));
            if (_names.Count > ShownNames) _names.RemoveAt(0);
            if (!string.Equals(outcome, "failed", StringComparison.OrdinalIgnoreCase) || _failures.Count >= ShownFailures) return;
            var failure = new JsonObject { { "name", Words.Visible(Words.Cut(name ?? "", 1000)) }, { "message", Words.Visible(Words.Cut(message ?? "", 8000)) } };
            if (!string.IsNullOrEmpty(stack)) failure["stack"] = Words.Visible(Words.Cut(stack, 8000)).TrimEnd('\n', ' ');
            _failures.Add(failure);
        }

        /// <summary>How the whole run counts: <c>passed</c>, <c>failed</c>, <c>cancelled</c> or <c>no_tests</c>.</summary>
        public string Outcome(bool cancelled) =>
            cancelled ? "cancelled" : Failed > 0 ? "failed" : Completed == 0 ? "no_tests" : "passed";

        /// <summary>The report; <paramref name="status"/> is <c>running</c> or how it ended.</summary>
        public JsonObject ToJson(string status) => new JsonObject
        {
            { "test_run_status", status },
            { "total_tests", Math.Max(Total, Completed) },
            { "completed_count", Completed },
            { "passed", Passed },
            { "failed", Failed },
            { "skipped", Skipped },
            { "inconclusive", Inconclusive },
            { "duration_s", Math.Round(Seconds, 3) },
            { "failures", _failures.ToArray() },
            { "completed_tests", _names.ToArray() },
        };

        /// <summary>Reads what <see cref="ToJson"/> wrote.</summary>
        public static TestReport FromJson(JsonObject saved)
        {
            var report = new TestReport();
            if (saved == null) return report;
            report.Total = (int)(saved.Integer("total_tests") ?? 0);
            report.Passed = (int)(saved.Integer("passed") ?? 0);
            report.Failed = (int)(saved.Integer("failed") ?? 0);
            report.Skipped = (int)(saved.Integer("skipped") ?? 0);
            report.Inconclusive = (int)(saved.Integer("inconclusive") ?? 0);
            report.Seconds = saved.Number("duration_s") ?? 0;
            report._failures.AddRange(saved.Array("failures") ?? new List<object>());
            report._names.AddRange(saved.Array("completed_tests") ?? new List<object>());
            return report;
        }
    }
}
