using System;
using System.Collections.Generic;
using System.Globalization;

namespace Raincheck.Core
{
    /// <summary>A line of the console.</summary>
    public sealed class ConsoleEntry
    {
        /// <summary>Grows by one with each entry, also over domain reloads.</summary>
        public long Seq;

        /// <summary><c>log</c>, <c>warning</c>, <c>error</c>, <c>exception</c> or <c>assert</c>.</summary>
        public string Type;

        /// <summary>The whole text.</summary>
        public string Message;

        /// <summary>The stack trace; may be empty.</summary>
        public string Stack;

        /// <summary>When it was logged, in milliseconds since 1970.</summary>
        public long TimeMs;

        /// <summary>The source file, for what the compiler said.</summary>
        public string File;

        /// <summary>The line in it; 0 when not known.</summary>
        public int Line;
    }

    /// <summary>The last entries of the console, and the query that reads them. Safe to use from any thread.</summary>
    public sealed class ConsoleRing
    {
        const int DefaultLimit = 100;
        const int MaxLimit = 1000;
        const int LongestText = 16 * 1024;

        static readonly string[] Types = { "log", "warning", "error", "exception", "assert" };

        readonly object _gate = new object();
        readonly LinkedList<ConsoleEntry> _entries = new LinkedList<ConsoleEntry>();
        readonly int _capacity;
        long _next = 1;

        /// <summary>Makes a ring of so many entries.</summary>
        public ConsoleRing(int capacity = 5000) { _capacity = capacity; }

        /// <summary>Adds an entry. The type is the one that the editor gave; the text is never looked at to guess it.</summary>
        public void Add(string type, string message, string stack, long timeMs, string file = null, int line = 0)
        {
            var entry = new ConsoleEntry
            {
                Type = Array.IndexOf(Types, type) >= 0 ? type : "log",
                Message = Words.Cut(message ?? "", LongestText),
                Stack = Words.Cut(stack ?? "", LongestText),
                TimeMs = timeMs,
                File = file,
                Line = line,
            };
            lock (_gate)
            {
                entry.Seq = _next++;
                _entries.AddLast(entry);
                if (_entries.Count > _capacity) _entries.RemoveFirst();
            }
        }

        /// <summary>Answers <c>read_console</c>: with a cursor what came after it, without one the newest.</summary>
        /// <exception cref="ToolException">A parameter is not as it has to be; the message names it.</exception>
        public JsonObject Read(JsonObject query)
        {
            var types = WantedTypes(query["types"]);
            var filter = query.Text("filter");
            var limit = (int)Math.Max(1, Math.Min(Whole(query, "limit") ?? DefaultLimit, MaxLimit));
            var since = Whole(query, "since_cursor");
            var withStack = query.Flag("include_stacktrace") ?? false;
            lock (_gate)
            {
                var found = new LinkedList<ConsoleEntry>();
                var matching = 0;
                for (var node = since == null ? _entries.Last : _entries.First; node != null; node = since == null ? node.Previous : node.Next)
                {
                    var entry = node.Value;
                    if (since != null && entry.Seq <= since) continue;
                    if (!types.Contains(entry.Type) || !Contains(entry.Message, filter)) continue;
                    matching++;
                    if (found.Count >= limit) continue;
                    if (since == null) found.AddFirst(entry);
                    else found.AddLast(entry);
                }
                var oldest = _entries.First?.Value.Seq ?? _next;
                var all = found.Count < limit || since == null;
                var answer = new JsonObject
                {
                    { "entries", ToJson(found, withStack) },
                    { "matching", matching },
                    { "next_cursor", (all ? _next - 1 : found.Last.Value.Seq).ToString(CultureInfo.InvariantCulture) },
                };
                if (since != null && since < oldest - 1) answer["missed"] = oldest - 1 - since;
                return answer;
            }
        }

        /// <summary>The newest entries as JSON, to be put back after a domain reload.</summary>
        public string Save(int most)
        {
            lock (_gate)
            {
                var kept = new List<object>();
                for (var node = _entries.Last; node != null && kept.Count < most; node = node.Previous)
                    kept.Insert(0, ToJson(node.Value, true, node.Value.Message, node.Value.Stack));
                return Json.Write(new JsonObject { { "next", _next }, { "entries", kept } });
            }
        }

        /// <summary>Puts back what <see cref="Save"/> wrote; what is not readable is ignored.</summary>
        public void Load(string saved)
        {
            if (string.IsNullOrEmpty(saved)) return;
            JsonObject state;
            try { state = Json.ParseObject(saved); }
            catch (JsonException) { return; }
            lock (_gate)
            {
                foreach (var item in state.Array("entries") ?? new List<object>())
                {
                    if (!(item is JsonObject entry)) continue;
                    _entries.AddLast(new ConsoleEntry
                    {
                        Seq = entry.Integer("seq") ?? 0,
                        Type = entry.Text("type") ?? "log",
                        Message = entry.Text("message") ?? "",
                        Stack = entry.Text("stack") ?? "",
                        TimeMs = entry.Integer("time_ms") ?? 0,
                        File = entry.Text("file"),
                        Line = (int)(entry.Integer("line") ?? 0),
                    });
                }
                _next = Math.Max(_next, state.Integer("next") ?? 1);
            }
        }

        static List<object> ToJson(IEnumerable<ConsoleEntry> entries, bool withStack)
        {
            var list = new List<object>();
            foreach (var entry in entries)
            {
                var shown = ToJson(entry, withStack, Words.Visible(entry.Message), Words.Visible(entry.Stack).TrimEnd('\n', ' '));
                shown.Remove("time_ms");
                shown["time"] = Words.Rfc3339(entry.TimeMs);
                list.Add(shown);
            }
            return list;
        }

        static JsonObject ToJson(ConsoleEntry entry, bool withStack, string message, string stack)
        {
            var shown = new JsonObject { { "seq", entry.Seq }, { "type", entry.Type }, { "message", message } };
            if (withStack) shown["stack"] = stack;
            shown.AddIfPresent("file", entry.File);
            if (entry.Line > 0) shown["line"] = entry.Line;
            shown["time_ms"] = entry.TimeMs;
            return shown;
        }

        static HashSet<string> WantedTypes(object wanted)
        {
            if (wanted == null) return new HashSet<string>(Types, StringComparer.Ordinal);
            var types = new HashSet<string>(StringComparer.Ordinal);
            foreach (var item in wanted as List<object> ?? new List<object> { wanted })
            {
                var type = item as string;
                if (type == "all") return WantedTypes(null);
                if (Array.IndexOf(Types, type) < 0)
                    throw new ToolException("invalid_params", "`types` takes " + string.Join(", ", Types) + " or all, not `" + Words.Cut(Convert.ToString(item, CultureInfo.InvariantCulture), 40) + "`");
                types.Add(type);
                // Who asks for errors wants everything that went wrong.
                if (type == "error") types.UnionWith(new[] { "exception", "assert" });
            }
            return types;
        }

        static long? Whole(JsonObject query, string name)
        {
            var value = query[name];
            if (value == null) return null;
            if (value is string text && long.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out var parsed)) return parsed;
            return query.Integer(name) ?? throw new ToolException("invalid_params", "`" + name + "` has to be a whole number");
        }

        static bool Contains(string text, string part) =>
            string.IsNullOrEmpty(part) || text.IndexOf(part, StringComparison.OrdinalIgnoreCase) >= 0;
    }
}
