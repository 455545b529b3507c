using System.Collections.Generic;
using System.Text;
using NUnit.Framework;
using Raincheck.Core;

namespace Raincheck.Tests
{
    public class WireTests
    {
        [Test]
        public void TheMacIsTheOneThatTheServerComputes()
        {
            // Computed with Python's hmac from the same words.
            var secret = Proof.Bytes("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");
            Assert.AreEqual("hjrjSeg5OFF_VqJvxrAZAkvC5_w_cValdOPbWuWfe54", Proof.Mac(secret, "server", "bm9uY2UtY2xpZW50LTEyMw", "bm9uY2Utc2VydmVyLTEyMw", 40123));
            Assert.AreEqual("G4n0LjIp3MNUkUN2H3QyRhERzZM0aLvAUr-eF71quAY", Proof.Mac(secret, "client", "bm9uY2UtY2xpZW50LTEyMw", "bm9uY2Utc2VydmVyLTEyMw", 40123));
            Assert.AreEqual(16, Proof.Bytes(Proof.Nonce()).Length);
            Assert.False(Proof.Same("abc", "abd"));
            Assert.Null(Proof.Bytes("not base64!"));
        }

        [Test]
        public void OnlyThisMachineIsEverConnectedTo()
        {
            string File(string url, string more = "") => "{\"v\":1,\"kind\":\"unity\",\"port\":4711,\"secret\":\"AAECAwQFBgcICQoLDA0ODw\"" + (url == null ? "" : ",\"url\":\"" + url + "\"") + more + "}";
            foreach (var url in new[] { null, "ws://127.0.0.1:4711/unity", "http://127.0.0.1:4711", "http://localhost:4711/", "ws://[::1]:4711/unity" })
                Assert.AreEqual(4711, Endpoint.Parse(File(url))?.Address.Port);
            foreach (var url in new[] { "ws://example.com:4711/unity", "ws://127.0.0.1:80/unity", "ws://127.0.0.1.example.com:4711/", "not a url" })
                Assert.Null(Endpoint.Parse(File(url)));
            Assert.Null(Endpoint.Parse("{\"port\":4711}"));
            Assert.Null(Endpoint.Parse("{\"v\":1,\"kind\":\"browser\",\"port\":4711,\"secret\":\"AAECAwQFBgcICQoLDA0ODw\"}"));
            Assert.Null(Endpoint.Parse("[]"));
            Assert.Null(Endpoint.Parse("{\"port\":"));
        }

        [Test]
        public void ALongMessageTravelsInChunksAndComesTogether()
        {
            foreach (var size in new[] { 0, 1, 8191, 8193, 65535, 65536, 1048000 })
            {
                var message = Json.Write(new JsonObject { { "type", "result" }, { "pad", new string('é', size) }, { "end", "🎮" } });
                var chunks = new Chunks();
                string whole = null;
                foreach (var part in Chunks.Cut("r", message, 65536))
                {
                    Assert.True(Encoding.UTF8.GetByteCount(part) <= 65536);
                    var read = Json.ParseObject(part);
                    whole = read.Text("type") == "chunk" ? chunks.Take(read) : part;
                }
                Assert.True(whole == message);
            }
        }

        [Test]
        public void AChunkWithoutItsPlaceIsRefused()
        {
            foreach (var chunk in new[]
            {
                new JsonObject { { "index", 0L }, { "total", 1L }, { "data", "" } },
                new JsonObject { { "request_id", "r" }, { "index", 2L }, { "total", 2L }, { "data", "" } },
                new JsonObject { { "request_id", "r" }, { "index", 0L }, { "total", 70000L }, { "data", "" } },
                new JsonObject { { "request_id", "r" }, { "index", 0L }, { "total", 2L }, { "data", "?" } },
            })
                Assert.Throws<JsonException>(() => new Chunks().Take(chunk));
        }

        [Test]
        public void TheWaitsGrowToFiveSecondsAndBeginAgain()
        {
            var backoff = new Backoff(1);
            var expected = 200.0;
            for (var at = 0; at < 20; at++)
            {
                var wait = backoff.Next();
                Assert.True(wait >= expected * 0.8 - 1 && wait <= expected * 1.2 + 1);
                expected = System.Math.Min(expected * 1.8, 5000);
            }
            backoff.Reset();
            Assert.True(backoff.Next() <= 240);
        }
    }
}
