using System;
using System.Collections.Generic;
using System.IO;
using System.Text;
using NUnit.Framework;
using Raincheck.Core;

namespace Raincheck.Tests
{
    public class JournalTests
    {
        string _folder;

        [SetUp]
        public void Make() => _folder = Path.Combine(Path.GetTempPath(), "raincheck-journal-" + Guid.NewGuid().ToString("N"));

        [TearDown]
        public void Remove() => Directory.Delete(_folder, true);

        Journal Open(int process = 1) => Journal.Open(_folder, process, 1000);

        static Job NewJob(string id, long fence = 1) =>
            new Job { RequestId = id, Fence = fence, ToolName = "t", Params = new JsonObject { { "n", ulong.MaxValue }, { "s", "\u0001é🎮" } } };

        static List<string> Waiting(Journal journal)
        {
            var ids = new List<string>();
            foreach (var outcome in journal.Unacknowledged()) ids.Add(outcome.RequestId + "=" + outcome.Message);
            return ids;
        }

        [Test]
        public void EverythingThatMattersIsThereAgain()
        {
            using (var journal = Open())
            {
                var first = NewJob("a.1", 7);
                journal.Accept(first, true);
                journal.Began(first);
                first.Memory = new JsonObject { { "lives", 1L } };
                journal.Remembers(first);
                journal.Accept(NewJob("b.1", 8), false);
                var ended = NewJob("c.2", 9);
                journal.Accept(ended, false);
                journal.End(ended, "answer", false);
            }
            using (var journal = Open())
            {
                Assert.AreEqual(2L, journal.Epoch);
                Assert.True(journal.SameProcess);
                Assert.AreEqual("a.1 b.1", string.Join(" ", journal.InOrder.ConvertAll(job => job.RequestId)));
                Assert.AreEqual(JobState.Running, journal.InOrder[0].State);
                Assert.AreEqual(1L, journal.InOrder[0].Memory["lives"]);
                Assert.AreEqual(JobState.Queued, journal.InOrder[1].State);
                Assert.AreEqual("{\"n\":18446744073709551615,\"s\":\"\\u0001é🎮\"}", Json.Write(journal.InOrder[1].Params));
                Assert.AreEqual("c.2=answer", string.Join(" ", Waiting(journal)));
                Assert.AreEqual(9L, journal.Fences["c"].Value);
                journal.Acknowledge("c.2");
            }
            using (var journal = Open(2))
            {
                Assert.False(journal.SameProcess);
                Assert.AreEqual(0, Waiting(journal).Count);
                Assert.AreEqual("answer", journal.Outcomes["c.2"].Message);
            }
        }

        [Test]
        public void ALineThatACrashHasCutIsDropped()
        {
            using (var journal = Open())
            {
                journal.Accept(NewJob("a.1"), false);
                journal.Accept(NewJob("b.1"), false);
            }
            var bytes = File.ReadAllBytes(TheFile());
            for (var cut = 1; cut < 40; cut++)
            {
                File.WriteAllBytes(TheFile(), Part(bytes, bytes.Length - cut));
                using (var journal = Open()) Assert.AreEqual(cut <= 1 ? 2 : 1, journal.InOrder.Count);
            }
        }

        string TheFile()
        {
            var files = Directory.GetFiles(_folder, "journal-*.jsonl");
            Assert.AreEqual(1, files.Length);
            return files[0];
        }

        static byte[] Part(byte[] bytes, int length)
        {
            var part = new byte[length];
            Array.Copy(bytes, part, length);
            return part;
        }

        [Test]
        public void ADomainThatWasNeverTornDownCannotSpeakForTheNextOne()
        {
            var old = Open();
            old.Accept(NewJob("a.1"), false);
            using (var journal = Open())
            {
                Assert.True(old.IsTaken());
                Assert.False(journal.IsTaken());
                Assert.Throws<IOException>(() => old.Accept(NewJob("c.1"), false));
                old.End(old.InOrder[0], "of the old domain", false);
                journal.Accept(NewJob("b.1"), false);
            }
            old.Dispose();
            using (var journal = Open()) Assert.AreEqual("a.1 b.1", string.Join(" ", journal.InOrder.ConvertAll(job => job.RequestId)));
        }

        [Test]
        public void AFolderThatSomebodyCleanedUpIsWrittenAgain()
        {
            using (var journal = Open())
            {
                journal.Accept(NewJob("a.1"), false);
                Directory.Delete(_folder, true);
                Assert.False(journal.IsTaken());
                journal.Accept(NewJob("b.1"), false);
            }
            using (var journal = Open()) Assert.AreEqual("a.1 b.1", string.Join(" ", journal.InOrder.ConvertAll(job => job.RequestId)));
        }

        [Test]
        public void ATakeoverThatACrashHasCutIsTakenUp()
        {
            using (var journal = Open()) journal.Accept(NewJob("a.1"), false);
            File.Move(TheFile(), TheFile() + ".taken");
            using (var journal = Open()) Assert.AreEqual(1, journal.InOrder.Count);
            Assert.NotNull(TheFile());
        }

        [Test]
        public void LongAnswersHaveAFileThatGoesWithTheAcknowledgement()
        {
            var large = new string('é', 300000);
            using (var journal = Open())
            {
                var job = NewJob("a.1");
                journal.Accept(job, false);
                journal.End(job, large, false);
            }
            using (var journal = Open())
            {
                Assert.True(journal.Outcomes["a.1"].Message == large);
                Assert.AreEqual(1, Directory.GetFiles(_folder, "outcome-*").Length);
                journal.Acknowledge("a.1");
                Assert.AreEqual(0, Directory.GetFiles(_folder, "outcome-*").Length);
                Assert.True(journal.Outcomes.ContainsKey("a.1"));
            }
        }

        [Test]
        public void TheFileStaysSmallHoweverMuchPassesThrough()
        {
            var text = new string('x', 10000);
            using (var journal = Open())
            {
                for (var at = 0; at < 3000; at++)
                {
                    var job = NewJob("t" + at + ".1", at);
                    journal.Accept(job, false);
                    journal.End(job, text, false);
                    journal.Acknowledge(job.RequestId);
                }
                Assert.True(new FileInfo(TheFile()).Length < 10 * 1024 * 1024);
                Assert.AreEqual(256, journal.Outcomes.Count);
                Assert.AreEqual(256, journal.Fences.Count);
            }
        }
    }
}
