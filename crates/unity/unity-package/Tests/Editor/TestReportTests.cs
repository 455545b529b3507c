using System.Collections.Generic;
using NUnit.Framework;
using Raincheck.Core;

namespace Raincheck.Tests
{
    public class TestReportTests
    {
        // Case unity-odd-test-names: the results file that is read after a reload.
        const string Odd = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<test-run id=\"2\" testcasecount=\"7\" result=\"Failed\" total=\"7\" passed=\"5\" failed=\"1\" inconclusive=\"0\" skipped=\"1\" start-time=\"2026-03-02 10:11:12Z\" duration=\"0,25\">\n <test-suite type=\"TestFixture\" fullname=\"Demo.Tests.ParseTests\" result=\"Failed\">\n"
            + "  <test-case fullname=\"Demo.Tests.ParseTests.Reads(&quot;&#x1;&quot;)\" result=\"Passed\" duration=\"0.01\"/>\n"
            + "  <test-case fullname=\"Demo.Tests.ParseTests.Reads(&quot;&lt;a&amp;b&gt;&quot;)\" result=\"Passed\" duration=\"0.01\"/>\n"
            + "  <test-case fullname=\"Demo.Tests.ParseTests.Reads(&quot;x&#xA;y&quot;)\" result=\"Failed\" duration=\"NaN\"><failure><message><![CDATA[Expected: \"]]]]><![CDATA[>\" But was: \u001b[31mred]]></message><stack-trace><![CDATA[at Demo.Tests.ParseTests.Reads (System.String s) [0x00001] in C:\\Jobs\\demo\\Assets\\Tests\\Parse Tests.cs:19\n]]></stack-trace></failure></test-case>\n"
            + "  <test-case fullname=\"Demo.Tests.ParseTests.Reads(null)\" result=\"Skipped\" duration=\"0\"/>\n"
            + "  <test-case fullname=\"Demo.Tests.ParseTests.読む(&quot;😀&quot;)\" result=\"Passed\" duration=\"0.01\"/>\n"
            + "  <test-case fullname=\"Demo.Tests.ParseTests.Twice\" result=\"Passed\" duration=\"0,01\"/>\n"
            + "  <test-case fullname=\"Demo.Tests.ParseTests.Twice\" result=\"Passed\" duration=\"0.01\"/>\n </test-suite>\n</test-run>\n";

        [Test]
        public void OddNamesAndNumbersCostAFieldAndNeverTheRun()
        {
            var report = TestResultsFile.Parse(Odd);
            Assert.AreEqual("7 5 1 1", report.Total + " " + report.Passed + " " + report.Failed + " " + report.Skipped);
            var json = report.ToJson(report.Outcome(false));
            Assert.AreEqual("failed", json.Text("test_run_status"));
            var names = new List<object>((object[])json["completed_tests"]);
            Assert.AreEqual("Demo.Tests.ParseTests.Reads(\"\\u0001\")", names[0]);
            Assert.AreEqual(2, names.FindAll(name => (string)name == "Demo.Tests.ParseTests.Twice").Count);
            var failure = (JsonObject)((object[])json["failures"])[0];
            Assert.AreEqual("Expected: \"]]>\" But was: \\u001b[31mred", failure.Text("message"));
            Assert.AreEqual("at Demo.Tests.ParseTests.Reads (System.String s) [0x00001] in C:\\Jobs\\demo\\Assets\\Tests\\Parse Tests.cs:19", failure.Text("stack"));
            Assert.AreEqual(0.05, json["duration_s"]);
        }

        [Test]
        public void AFileThatIsCutKeepsWhatItHasAndAnotherIsNone()
        {
            Assert.AreEqual(2, TestResultsFile.Parse(Odd.Substring(0, Odd.IndexOf("Reads(&quot;x", System.StringComparison.Ordinal))).Completed);
            Assert.Null(TestResultsFile.Parse("<html></html>"));
            Assert.Null(TestResultsFile.Parse("no xml"));
            Assert.Null(TestResultsFile.Parse("<!DOCTYPE x [<!ENTITY e \"boom\">]><test-run total=\"1\">&e;</test-run>"));
        }

        [Test]
        public void AReportIsTheSameAfterADomainReload()
        {
            var report = TestResultsFile.Parse(Odd);
            var again = TestReport.FromJson(Json.ParseObject(Json.Write(report.ToJson("running"))));
            Assert.AreEqual(Json.Write(report.ToJson("x")), Json.Write(again.ToJson("x")));
        }

        [Test]
        public void NoTestIsNoPass()
        {
            Assert.AreEqual("no_tests", new TestReport().Outcome(false));
        }
    }
}
