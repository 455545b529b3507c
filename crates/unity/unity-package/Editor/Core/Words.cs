using System;
using System.Globalization;
using System.Text;

namespace Raincheck.Core
{
    /// <summary>Small helpers for text and time that several parts share.</summary>
    public static class Words
    {
        static readonly DateTime Epoch = new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc);

        /// <summary>Milliseconds since 1970, UTC.</summary>
        public static long NowMs() => (long)(DateTime.UtcNow - Epoch).TotalMilliseconds;

        /// <summary>The instant in RFC 3339, UTC, with milliseconds.</summary>
        public static string Rfc3339(long milliseconds) =>
            Epoch.AddMilliseconds(milliseconds).ToString("yyyy-MM-dd'T'HH:mm:ss.fff'Z'", CultureInfo.InvariantCulture);

        /// <summary>
        /// Makes text of an editor safe to show: line ends become LF; control characters other than LF and tab, and the
        /// characters that turn the direction of writing, become visible escapes.
        /// </summary>
        public static string Visible(string text)
        {
            if (string.IsNullOrEmpty(text)) return "";
            StringBuilder into = null;
            for (var at = 0; at < text.Length; at++)
            {
                var next = text[at];
                string instead = null;
                if (next == '\r') instead = at + 1 < text.Length && text[at + 1] == '\n' ? "" : "\n";
                else if (next != '\n' && next != '\t' && IsHidden(next)) instead = "\\u" + ((int)next).ToString("x4", CultureInfo.InvariantCulture);
                if (instead != null && into == null) into = new StringBuilder(text, 0, at, text.Length + 16);
                if (instead != null) into.Append(instead);
                else into?.Append(next);
            }
            return into == null ? text : into.ToString();
        }

        static bool IsHidden(char one) =>
            char.IsControl(one) || one == '\u061c' || one == '\u200e' || one == '\u200f' || one == '\u2028' || one == '\u2029'
            || (one >= '\u202a' && one <= '\u202e') || (one >= '\u2066' && one <= '\u2069') || one == '\ufeff';

        /// <summary>Cuts a text to at most so many UTF-16 units, never between the halves of a character.</summary>
        public static string Cut(string text, int most)
        {
            if (text == null || text.Length <= most) return text;
            var end = char.IsHighSurrogate(text[most - 1]) ? most - 1 : most;
            return text.Substring(0, end) + "…";
        }
    }
}
