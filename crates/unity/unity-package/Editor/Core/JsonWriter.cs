using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Raincheck.Core
{
    /// <summary>Writes JSON that every strict reader takes.</summary>
    /// <remarks>
    /// Control characters, U+2028 and U+2029 are escaped; half of a surrogate pair becomes U+FFFD; a number that is not
    /// finite becomes <c>null</c>; what nests deeper than <see cref="MaxDepth"/> becomes a text that says so. Values of
    /// other types are written as their text.
    /// </remarks>
    static class JsonWriter
    {
        /// <summary>How deep what is written nests: less than what readers take, as messages wrap it.</summary>
        public const int MaxDepth = 100;

        const string Deeper = "(nested too deep)";

        public static void Write(StringBuilder into, object value) => Write(into, value, 0);

        static void Write(StringBuilder into, object value, int depth)
        {
            switch (value)
            {
                case null: into.Append("null"); break;
                case string text: Text(into, text); break;
                case bool flag: into.Append(flag ? "true" : "false"); break;
                case JsonNumber number: into.Append(number.Text); break;
                case double real: Real(into, real, real.ToString("R", CultureInfo.InvariantCulture)); break;
                case float real: Real(into, real, real.ToString("R", CultureInfo.InvariantCulture)); break;
                case decimal real: into.Append(real.ToString(CultureInfo.InvariantCulture)); break;
                case Enum name: Text(into, name.ToString()); break;
                case char one: Text(into, one.ToString()); break;
                case byte _: case sbyte _: case short _: case ushort _: case int _: case uint _: case long _: case ulong _:
                    into.Append(((IFormattable)value).ToString(null, CultureInfo.InvariantCulture));
                    break;
                case JsonObject members: Members(into, members, depth); break;
                case IDictionary entries: Entries(into, entries, depth); break;
                case IEnumerable items: Items(into, items, depth); break;
                default: Text(into, value.ToString()); break;
            }
        }

        static void Members(StringBuilder into, JsonObject members, int depth)
        {
            if (depth >= MaxDepth) { Text(into, Deeper); return; }
            into.Append('{');
            var first = true;
            foreach (var member in members)
            {
                if (!first) into.Append(',');
                first = false;
                Text(into, member.Key);
                into.Append(':');
                Write(into, member.Value, depth + 1);
            }
            into.Append('}');
        }

        static void Entries(StringBuilder into, IDictionary entries, int depth)
        {
            var members = new JsonObject();
            foreach (DictionaryEntry entry in entries)
                members[Convert.ToString(entry.Key, CultureInfo.InvariantCulture)] = entry.Value;
            Members(into, members, depth);
        }

        static void Items(StringBuilder into, IEnumerable items, int depth)
        {
            if (depth >= MaxDepth) { Text(into, Deeper); return; }
            into.Append('[');
            var first = true;
            foreach (var item in items)
            {
                if (!first) into.Append(',');
                first = false;
                Write(into, item, depth + 1);
            }
            into.Append(']');
        }

        static void Real(StringBuilder into, double value, string text)
        {
            if (double.IsNaN(value) || double.IsInfinity(value)) { into.Append("null"); return; }
            into.Append(text);
            // A reader must see a real number again, not a whole one.
            if (text.IndexOf('.') < 0 && text.IndexOf('E') < 0) into.Append(".0");
        }

        static void Text(StringBuilder into, string text)
        {
            into.Append('"');
            for (var at = 0; at < text.Length; at++)
            {
                var next = text[at];
                switch (next)
                {
                    case '"': into.Append("\\\""); break;
                    case '\\': into.Append("\\\\"); break;
                    case '\n': into.Append("\\n"); break;
                    case '\r': into.Append("\\r"); break;
                    case '\t': into.Append("\\t"); break;
                    case '\u2028': case '\u2029': case '\u007f': Escape(into, next); break;
                    default:
                        if (next < ' ')
                        {
                            Escape(into, next);
                        }
                        else if (char.IsHighSurrogate(next) && at + 1 < text.Length && char.IsLowSurrogate(text[at + 1]))
                        {
                            into.Append(next).Append(text[++at]);
                        }
                        else
                        {
                            into.Append(char.IsSurrogate(next) ? '\ufffd' : next);
                        }
                        break;
                }
            }
            into.Append('"');
        }

        static void Escape(StringBuilder into, char one) =>
            into.Append("\\u").Append(((int)one).ToString("x4", CultureInfo.InvariantCulture));
    }
}
