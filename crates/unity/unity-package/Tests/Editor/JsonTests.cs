using System.Collections.Generic;
using NUnit.Framework;
using Raincheck.Core;

namespace Raincheck.Tests
{
    public class JsonTests
    {
        static string Again(string text) => Json.Write(Json.Parse(text));

        // Case unity-64-bit-ids.
        [Test]
        public void WholeNumbersKeepEveryDigit()
        {
            foreach (var number in new[] { "9007199254740993", "18446744073709551615", "-9223372036854775808", "568104417718935291", "0", "-1",
                "123456789012345678901234567890", "-18446744073709551616" })
                Assert.AreEqual("[" + number + "]", Again("[" + number + "]"));
        }

        [Test]
        public void RealNumbersStayRealAndExact()
        {
            Assert.AreEqual("[0.1,1.0,-0.0,1E+300]", Again("[0.1,1.0,-0.0,1e300]"));
            Assert.AreEqual("[1e400]", Again("[1e400]"));
            Assert.AreEqual("[null,null,null]", Json.Write(new[] { double.NaN, double.PositiveInfinity, double.NegativeInfinity }));
        }

        // Case unity-raw-control-characters.
        [Test]
        public void ControlCharactersAreReadRawAndWrittenEscaped()
        {
            var read = Json.ParseObject("{\"m\":\"tab\tsoh\u0001esc\u001b[2J\nnul\u0000\"}");
            Assert.AreEqual("tab\tsoh\u0001esc\u001b[2J\nnul\u0000", read.Text("m"));
            Assert.AreEqual("{\"m\":\"tab\\tsoh\\u0001esc\\u001b[2J\\nnul\\u0000\"}", Json.Write(read));
            Assert.AreEqual("\"\\u007f\\u2028\\u2029\"", Json.Write("\u007f\u2028\u2029"));
        }

        [Test]
        public void HalfASurrogatePairIsReplacedAndAWholeOneKept()
        {
            Assert.AreEqual("\"\ufffd-\ufffd-🎮\"", Json.Write("\ud83d-\udfae-🎮"));
            Assert.AreEqual("🎮", Json.Parse("\"\\ud83c\\udfae\""));
        }

        [Test]
        public void WhatIsNoJsonIsRefusedWithAPlace()
        {
            foreach (var text in new[] { "", "{", "[1,]", "{\"a\":1,}", "01", "1.", "-", "tru", "\"a", "\"\\x\"", "\"\\u12g4\"", "1 2", "{\"a\":1,\"a\":2}", "nul", "[1 2]", "{a:1}", "+1", ".5" })
                Assert.Throws<JsonException>(() => Json.Parse(text));
        }

        [Test]
        public void NestingHasALimitBothWays()
        {
            Assert.Throws<JsonException>(() => Json.Parse(new string('[', 100000)));
            Assert.NotNull(Json.Parse(new string('[', 100) + new string(']', 100)));
            object deep = 1;
            for (var depth = 0; depth < 5000; depth++) deep = new List<object> { deep };
            Assert.NotNull(Json.Parse(Json.Write(deep)));
        }

        [Test]
        public void MembersKeepTheirOrder()
        {
            Assert.AreEqual("{\"z\":1,\"a\":{\"é\":[]},\"m\":null}", Again(" { \"z\" : 1 , \"a\":{\"\\u00e9\":[ ]},\"m\":null } "));
        }
    }
}
