using System;
using System.Collections.Generic;
using System.Text;

namespace Raincheck.Core
{
    /// <summary>Cuts messages that are too long for one frame into pieces, and puts such pieces together.</summary>
    public sealed class Chunks
    {
        /// <summary>The longest message that travels, in bytes.</summary>
        public const int MaxMessage = 64 * 1024 * 1024;

        // More unfinished messages than this are nobody's honest traffic.
        const int MaxOpen = 16;

        readonly Dictionary<string, byte[][]> _open = new Dictionary<string, byte[][]>(StringComparer.Ordinal);

        /// <summary>The texts to send for a message: itself when it is short enough, else its chunks.</summary>
        public static IEnumerable<string> Cut(string requestId, string message, int limit)
        {
            // A UTF-16 unit never needs more than three bytes, so most messages need no counting.
            if (message.Length <= limit / 3 || Encoding.UTF8.GetByteCount(message) <= limit)
            {
                yield return message;
                yield break;
            }
            var bytes = Encoding.UTF8.GetBytes(message);
            var size = Math.Max(1024, (limit - 1024) / 4 * 3);
            var total = (bytes.Length + size - 1) / size;
            for (var index = 0; index < total; index++)
            {
                var from = index * size;
                yield return Json.Write(new JsonObject
                {
                    { "type", "chunk" },
                    { "request_id", requestId },
                    { "index", index },
                    { "total", total },
                    { "data", Convert.ToBase64String(bytes, from, Math.Min(size, bytes.Length - from)) },
                });
            }
        }

        /// <summary>Takes a chunk; answers the whole message once all its chunks are there, else <c>null</c>.</summary>
        public string Take(JsonObject chunk)
        {
            var id = chunk.Text("request_id");
            var index = chunk.Integer("index") ?? -1;
            var total = chunk.Integer("total") ?? 0;
            if (id == null || total < 1 || total > 65536 || index < 0 || index >= total) throw new JsonException("a chunk without its place");
            if (!_open.TryGetValue(id, out var parts) || parts.Length != total)
            {
                if (_open.Count >= MaxOpen) _open.Clear();
                _open[id] = parts = new byte[total][];
            }
            try { parts[index] = Convert.FromBase64String(chunk.Text("data") ?? ""); }
            catch (FormatException) { throw new JsonException("a chunk whose data is not base64"); }
            long size = 0;
            foreach (var part in parts) size += part?.Length ?? 0;
            if (size > MaxMessage)
            {
                _open.Remove(id);
                throw new JsonException("a message longer than 64 MiB");
            }
            if (Array.IndexOf(parts, null) >= 0) return null;
            _open.Remove(id);
            var whole = new byte[size];
            var at = 0;
            foreach (var part in parts)
            {
                Buffer.BlockCopy(part, 0, whole, at, part.Length);
                at += part.Length;
            }
            return Encoding.UTF8.GetString(whole);
        }
    }
}
