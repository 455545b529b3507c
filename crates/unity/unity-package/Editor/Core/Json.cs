using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Raincheck.Core
{
    /// <summary>A number that neither 64 bits nor a double hold without loss: its digits as they were written.</summary>
    public sealed class JsonNumber
    {
        /// <summary>The number as it stood in the text.</summary>
        public readonly string Text;

        /// <summary>Keeps a number's text.</summary>
        public JsonNumber(string text) { Text = text; }

        /// <summary>The number as it stood in the text.</summary>
        public override string ToString() => Text;
    }

    /// <summary>A text that is not JSON, with the place of the fault.</summary>
    public sealed class JsonException : Exception
    {
        /// <summary>Names a fault.</summary>
        public JsonException(string message) : base(message) { }
    }

    /// <summary>Reads JSON. <see cref="JsonWriter"/> writes it.</summary>
    /// <remarks>
    /// Whole numbers keep every digit. Raw control characters inside strings are read, since some writers leave them;
    /// a member that comes twice, a nesting deeper than <see cref="MaxDepth"/> and anything after the value are faults.
    /// </remarks>
    public static class Json
    {
        /// <summary>How deep arrays and objects may nest.</summary>
        public const int MaxDepth = 128;

        /// <summary>Reads one value.</summary>
        public static object Parse(string text)
        {
            var reader = new Reader(text);
            var value = reader.Value(0);
            reader.End();
            return value;
        }

        /// <summary>Reads one object; anything else is a fault.</summary>
        public static JsonObject ParseObject(string text) =>
            Parse(text) as JsonObject ?? throw new JsonException("expected an object");

        /// <summary>Writes one value.</summary>
        public static string Write(object value)
        {
            var into = new StringBuilder();
            JsonWriter.Write(into, value);
            return into.ToString();
        }

        /// <summary>Reads any number as a double; <c>null</c> for what is no number.</summary>
        public static double? AsDouble(object value)
        {
            switch (value)
            {
                case double real: return real;
                case float real: return real;
                case long whole: return whole;
                case int whole: return whole;
                case ulong whole: return whole;
                case JsonNumber number:
                    return double.TryParse(number.Text, NumberStyles.Float, CultureInfo.InvariantCulture, out var parsed) ? parsed : (double?)null;
                default: return null;
            }
        }

        sealed class Reader
        {
            readonly string _text;
            int _at;

            public Reader(string text) { _text = text ?? ""; }

            public object Value(int depth)
            {
                if (depth > MaxDepth) throw Fault("nested too deep");
                Space();
                switch (Peek())
                {
                    case '{': return Members(depth);
                    case '[': return Items(depth);
                    case '"': return Chars();
                    case 't': Word("true"); return true;
                    case 'f': Word("false"); return false;
                    case 'n': Word("null"); return null;
                    default: return Digits();
                }
            }

            public void End()
            {
                Space();
                if (_at < _text.Length) throw Fault("text after the value");
            }

            JsonObject Members(int depth)
            {
                var members = new JsonObject();
                _at++;
                Space();
                if (Take('}')) return members;
                while (true)
                {
                    Space();
                    if (Peek() != '"') throw Fault("expected a member name");
                    var name = Chars();
                    if (members.Has(name)) throw Fault("member `" + name + "` comes twice");
                    Space();
                    if (!Take(':')) throw Fault("expected `:`");
                    members[name] = Value(depth + 1);
                    Space();
                    if (Take('}')) return members;
                    if (!Take(',')) throw Fault("expected `,` or `}`");
                }
            }

            List<object> Items(int depth)
            {
                var items = new List<object>();
                _at++;
                Space();
                if (Take(']')) return items;
                while (true)
                {
                    items.Add(Value(depth + 1));
                    Space();
                    if (Take(']')) return items;
                    if (!Take(',')) throw Fault("expected `,` or `]`");
                }
            }

            string Chars()
            {
                var from = ++_at;
                while (_at < _text.Length && _text[_at] != '"' && _text[_at] != '\\') _at++;
                if (_at < _text.Length && _text[_at] == '"') return _text.Substring(from, _at++ - from);
                var into = new StringBuilder(_text, from, _at - from, Math.Max(16, 2 * (_at - from)));
                while (true)
                {
                    if (_at >= _text.Length) throw Fault("a string does not end");
                    var next = _text[_at++];
                    if (next == '"') return into.ToString();
                    into.Append(next == '\\' ? Escaped() : next);
                }
            }

            char Escaped()
            {
                if (_at >= _text.Length) throw Fault("a string does not end");
                switch (_text[_at++])
                {
                    case '"': return '"';
                    case '\\': return '\\';
                    case '/': return '/';
                    case 'b': return '\b';
                    case 'f': return '\f';
                    case 'n': return '\n';
                    case 'r': return '\r';
                    case 't': return '\t';
                    case 'u':
                        if (_at + 4 > _text.Length) throw Fault("a string does not end");
                        var code = 0;
                        for (var digit = 0; digit < 4; digit++) code = code * 16 + Hex(_text[_at++]);
                        return (char)code;
                    default: throw Fault("an unknown escape");
                }
            }

            int Hex(char digit)
            {
                if (digit >= '0' && digit <= '9') return digit - '0';
                if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
                if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
                throw Fault("expected a hexadecimal digit");
            }

            object Digits()
            {
                var from = _at;
                if (Peek() == '-') _at++;
                if (!Run()) throw Fault("expected a value");
                var first = _text[from] == '-' ? from + 1 : from;
                if (_text[first] == '0' && _at > first + 1) throw Fault("a number begins with 0");
                var whole = true;
                if (Peek() == '.')
                {
                    whole = false;
                    _at++;
                    if (!Run()) throw Fault("expected a digit");
                }
                if (Peek() == 'e' || Peek() == 'E')
                {
                    whole = false;
                    _at++;
                    if (Peek() == '+' || Peek() == '-') _at++;
                    if (!Run()) throw Fault("expected a digit");
                }
                return Number(_text.Substring(from, _at - from), whole);
            }

            static object Number(string text, bool whole)
            {
                const NumberStyles Plain = NumberStyles.AllowLeadingSign;
                if (whole && text != "-0")
                {
                    if (long.TryParse(text, Plain, CultureInfo.InvariantCulture, out var small)) return small;
                    if (ulong.TryParse(text, Plain, CultureInfo.InvariantCulture, out var large)) return large;
                    return new JsonNumber(text);
                }
                if (double.TryParse(text, NumberStyles.Float, CultureInfo.InvariantCulture, out var real) && !double.IsInfinity(real))
                    return real;
                return new JsonNumber(text);
            }

            bool Run()
            {
                var from = _at;
                while (_at < _text.Length && _text[_at] >= '0' && _text[_at] <= '9') _at++;
                return _at > from;
            }

            char Peek() => _at < _text.Length ? _text[_at] : '\0';

            bool Take(char wanted)
            {
                if (_at >= _text.Length || _text[_at] != wanted) return false;
                _at++;
                return true;
            }

            void Word(string word)
            {
                if (string.CompareOrdinal(_text, _at, word, 0, word.Length) != 0) throw Fault("expected a value");
                _at += word.Length;
            }

            void Space()
            {
                while (_at < _text.Length && (_text[_at] == ' ' || _text[_at] == '\t' || _text[_at] == '\n' || _text[_at] == '\r')) _at++;
            }

            JsonException Fault(string message) =>
                new JsonException(message + " at character " + _at.ToString(CultureInfo.InvariantCulture));
        }
    }
}
