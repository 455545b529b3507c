using System.Collections.Generic;
using NUnit.Framework;
using Raincheck.Core;

namespace Raincheck.Tests
{
    public class ConsoleRingTests
    {
        static List<object> Entries(ConsoleRing ring, JsonObject query) => (List<object>)ring.Read(query)["entries"];

        static JsonObject Entry(ConsoleRing ring, int at, bool withStack = false) =>
            (JsonObject)Entries(ring, new JsonObject { { "limit", 50L }, { "include_stacktrace", withStack } })[at];

        static ConsoleRing Fed()
        {
            var ring = new ConsoleRing();
            ring.Add("log", "Wave 3 of 5 planned:\r\n\r\n  slot[0] = <color=#ff8800>Bat</color>\r\n  slot[1] = error CS0246 is only text here\r\nUnityEngine.Debug:Log (object) is also only text",
                "Demo.Waves:Plan (int) (at Assets/Scripts/Waves.cs:41)\nDemo.Waves/<Run>d__7:MoveNext () (at Assets/Scripts/Waves.cs:63)\nUnityEngine.SetupCoroutine:InvokeMoveNext (System.Collections.IEnumerator,intptr)\n", 0);
            ring.Add("exception", "NullReferenceException: Object reference not set to an instance of an object", "Demo.Hud.Refresh () (at Assets/Scripts/Hud.cs:12)\r\n", 0);
            ring.Add("assert", "Assertion failed", "", 0);
            ring.Add("error", "Assets\\Scripts\\Old Stuff\\Näh.cs(7,13): error CS0103: The name 'spd' does not exist in the current context", "", 0);
            ring.Add("log", "\u001b[31mred\u001b[0m \u202eabc\u202c bell\u0007 nul\u0000end 🎮 é", "", 0);
            ring.Add("warning", "", "", 0);
            return ring;
        }

        // Case unity-console-multiline, in five tests.
        [Test]
        public void TheWholeTextIsTheMessageAndTheTypeIsTheOneThatWasGiven()
        {
            var first = Entry(Fed(), 0);
            Assert.AreEqual("Wave 3 of 5 planned:\n\n  slot[0] = <color=#ff8800>Bat</color>\n  slot[1] = error CS0246 is only text here\nUnityEngine.Debug:Log (object) is also only text", first.Text("message"));
            Assert.AreEqual("log", first.Text("type"));
            Assert.False(first.Has("stack"));
        }

        [Test]
        public void TheStackIsAFieldOfItsOwnOnRequest()
        {
            Assert.AreEqual(3, Entry(Fed(), 0, true).Text("stack").Split('\n').Length);
        }

        [Test]
        public void WhoAsksForErrorsGetsExceptionsAndAssertsToo()
        {
            var types = Entries(Fed(), new JsonObject { { "types", new List<object> { "error" } } }).ConvertAll(one => ((JsonObject)one).Text("type"));
            Assert.AreEqual("exception,assert,error", string.Join(",", types));
        }

        [Test]
        public void ControlAndBidiCharactersBecomeVisible()
        {
            var message = Entry(Fed(), 4).Text("message");
            Assert.AreEqual("\\u001b[31mred\\u001b[0m \\u202eabc\\u202c bell\\u0007 nul\\u0000end 🎮 é", message);
        }

        [Test]
        public void AnEmptyMessageIsAnEntry()
        {
            Assert.AreEqual(6, Entries(Fed(), new JsonObject()).Count);
        }

        [Test]
        public void ACursorGivesEachEntryOnceAndTellsWhatWasMissed()
        {
            var ring = new ConsoleRing(10);
            for (var at = 1; at <= 25; at++) ring.Add("log", "line " + at, "", 0);
            var first = ring.Read(new JsonObject { { "since_cursor", "3" }, { "limit", 4L } });
            Assert.AreEqual(12L, first["missed"]);
            var seen = new List<string>();
            for (var page = first; ((List<object>)page["entries"]).Count > 0; page = ring.Read(new JsonObject { { "since_cursor", page.Text("next_cursor") }, { "limit", 4L } }))
                foreach (JsonObject entry in (List<object>)page["entries"]) seen.Add(entry.Text("message"));
            Assert.AreEqual(10, seen.Count);
            Assert.AreEqual("line 16", seen[0]);
            Assert.AreEqual("line 25", seen[9]);
        }

        [Test]
        public void TheNewestComeWithoutACursorAndAFilterLooksAtTheText()
        {
            var ring = new ConsoleRing();
            for (var at = 1; at <= 300; at++) ring.Add(at % 2 == 0 ? "log" : "warning", "Line " + at, "", 0);
            var newest = ring.Read(new JsonObject { { "limit", 2L } });
            Assert.AreEqual("Line 299", ((JsonObject)((List<object>)newest["entries"])[0]).Text("message"));
            Assert.AreEqual(300, newest["matching"]);
            Assert.AreEqual(3, ring.Read(new JsonObject { { "filter", "line 10" }, { "types", "log" } }).Integer("matching") - 3);
        }

        [Test]
        public void WhatDoesNotFitIsRefusedByName()
        {
            foreach (var query in new[] { new JsonObject { { "types", "loud" } }, new JsonObject { { "limit", "ten" } }, new JsonObject { { "since_cursor", true } } })
                Assert.AreEqual("invalid_params", Assert.Throws<ToolException>(() => Fed().Read(query)).Code);
            Assert.AreEqual(2, Entries(Fed(), new JsonObject { { "limit", "2" } }).Count);
        }

        [Test]
        public void ADomainReloadKeepsTextAndNumbers()
        {
            var ring = Fed();
            var next = new ConsoleRing();
            next.Load(ring.Save(4));
            next.Add("log", "after", "", 0);
            var entries = Entries(next, new JsonObject());
            Assert.AreEqual(5, entries.Count);
            Assert.AreEqual(7L, ((JsonObject)entries[4])["seq"]);
            next.Load("not JSON");
        }
    }
}
