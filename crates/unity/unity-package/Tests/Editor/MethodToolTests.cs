using System.Collections;
using System.Collections.Generic;
using System.Reflection;
using NUnit.Framework;
using Raincheck.Core;

namespace Raincheck.Tests
{
    public class MethodToolTests
    {
        enum Size { Small, Large }

        [RaincheckTool("takes", "Takes all kinds.", Mode = ToolMode.Job, SupportsCancel = true)]
        static string Takes(ToolContext context, string text, int count = 2, double factor = 0.5, bool flag = false, Size size = Size.Small, long? id = null, string[] names = null) =>
            text + " " + count + " " + factor.ToString(System.Globalization.CultureInfo.InvariantCulture) + " " + flag + " " + size + " " + id + " " + (names == null ? "-" : string.Join("+", names));

        [RaincheckTool("instance")]
        void Instance() { }

        [RaincheckTool("bad name!")]
        static void BadName() { }

        [RaincheckTool("strange")]
        static void Strange(System.IO.Stream stream) { }

        sealed class Silent : IRunner
        {
            public void Remember(Job job, JsonObject memory) => job.Memory = memory;
            public void Report(Job job, double current, double total, string message, object partial) { }
        }

        static MethodTool Tool(string method, out string fault) =>
            MethodTool.From(typeof(MethodToolTests).GetMethod(method, BindingFlags.Static | BindingFlags.Instance | BindingFlags.NonPublic), out fault);

        static object Call(string given)
        {
            var context = new ToolContext(new Silent(), new Job { RequestId = "a.1", Params = Json.ParseObject(given) });
            IEnumerator steps = Tool("Takes", out _).Run(context);
            Assert.Null(steps);
            return context.Result;
        }

        [Test]
        public void ParametersComeByNameWithTheirDefaults()
        {
            Assert.AreEqual("a 2 0.5 False Small  -", Call("{\"text\":\"a\"}"));
            Assert.AreEqual("a 7 3 True Large 9007199254740993 x+y",
                Call("{\"text\":\"a\",\"count\":7,\"factor\":3,\"flag\":true,\"size\":\"large\",\"id\":9007199254740993,\"names\":[\"x\",\"y\"]}"));
        }

        [Test]
        public void WhatDoesNotFitIsRefusedByName()
        {
            foreach (var pair in new Dictionary<string, string>
            {
                { "{}", "text" }, { "{\"text\":1}", "text" }, { "{\"text\":\"a\",\"count\":\"7\"}", "count" }, { "{\"text\":\"a\",\"count\":1.5}", "count" },
                { "{\"text\":\"a\",\"count\":99999999999}", "count" }, { "{\"text\":\"a\",\"size\":\"huge\"}", "size" }, { "{\"text\":\"a\",\"conut\":7}", "conut" },
                { "{\"text\":\"a\",\"names\":[1]}", "names" }, { "{\"text\":\"a\",\"flag\":1}", "flag" },
            })
            {
                var fault = Assert.Throws<ToolException>(() => Call(pair.Key));
                Assert.AreEqual("invalid_params", fault.Code);
                Assert.True(fault.Message.Contains("`" + pair.Value + "`"));
            }
        }

        [Test]
        public void TheSchemaSaysWhatTheMethodTakes()
        {
            var info = Tool("Takes", out var fault).Info;
            Assert.Null(fault);
            var schema = Json.Write(info.Schema);
            Assert.True(schema.Contains("\"count\":{\"type\":\"integer\"}"));
            Assert.True(schema.Contains("\"size\":{\"type\":\"string\",\"enum\":[\"Small\",\"Large\"]}"));
            Assert.True(schema.Contains("\"required\":[\"text\"]"));
            Assert.False(schema.Contains("context"));
        }

        [Test]
        public void WhatCannotBeAToolIsSaid()
        {
            foreach (var method in new[] { "Instance", "BadName", "Strange" })
            {
                Assert.Null(Tool(method, out var fault));
                Assert.NotNull(fault);
            }
        }
    }
}
