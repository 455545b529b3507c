using System;
using System.Globalization;
using System.IO;
using System.Text;
using System.Xml;

namespace Raincheck.Core
{
    /// <summary>Reads the results file of NUnit. A strange number or character in it costs that field, never the run.</summary>
    public static class TestResultsFile
    {
        /// <summary>Reads the text of a <c>TestResults.xml</c>; <c>null</c> when it is no report of a run.</summary>
        public static TestReport Parse(string text)
        {
            var settings = new XmlReaderSettings
            {
                // Names hold characters that XML 1.0 does not allow; what matters is that the run is not lost.
                CheckCharacters = false,
                DtdProcessing = DtdProcessing.Prohibit,
                XmlResolver = null,
            };
            var report = new TestReport();
            var seen = false;
            try
            {
                using (var reader = XmlReader.Create(new StringReader(Legal(text)), settings))
                {
                    while (reader.Read())
                    {
                        if (reader.NodeType != XmlNodeType.Element) continue;
                        if (reader.LocalName == "test-run")
                        {
                            seen = true;
                            report.Total = Whole(reader.GetAttribute("total") ?? reader.GetAttribute("testcasecount"));
                        }
                        else if (reader.LocalName == "test-case" && seen)
                        {
                            Case(reader, report);
                        }
                    }
                }
            }
            catch (XmlException)
            {
                return seen && report.Completed > 0 ? report : null;
            }
            return seen ? report : null;
        }

        // Messages hold whatever a test printed; what XML does not allow becomes a visible escape.
        static string Legal(string text)
        {
            var into = new StringBuilder(text.Length);
            for (var at = 0; at < text.Length; at++)
            {
                var one = text[at];
                var isPair = char.IsHighSurrogate(one) && at + 1 < text.Length && char.IsLowSurrogate(text[at + 1]);
                if (isPair) into.Append(one).Append(text[++at]);
                else if (char.IsSurrogate(one) || one == '\ufffe' || one == '\uffff' || (one < ' ' && one != '\t' && one != '\n' && one != '\r'))
                    into.Append("\\u").Append(((int)one).ToString("x4", CultureInfo.InvariantCulture));
                else into.Append(one);
            }
            return into.ToString();
        }

        static void Case(XmlReader reader, TestReport report)
        {
            var name = reader.GetAttribute("fullname") ?? reader.GetAttribute("name");
            var outcome = reader.GetAttribute("result");
            var seconds = Real(reader.GetAttribute("duration"));
            string message = null, stack = null;
            if (!reader.IsEmptyElement)
            {
                var depth = reader.Depth;
                while (reader.Read() && reader.Depth > depth)
                {
                    if (reader.NodeType != XmlNodeType.Element) continue;
                    if (reader.LocalName == "message") message = Inside(reader);
                    else if (reader.LocalName == "stack-trace") stack = Inside(reader);
                }
            }
            report.Add(name, outcome, seconds, message, stack);
        }

        static string Inside(XmlReader reader)
        {
            var text = new StringBuilder();
            if (reader.IsEmptyElement) return "";
            var depth = reader.Depth;
            while (reader.Read() && reader.Depth > depth)
                if (reader.NodeType == XmlNodeType.Text || reader.NodeType == XmlNodeType.CDATA
                    || reader.NodeType == XmlNodeType.SignificantWhitespace || reader.NodeType == XmlNodeType.Whitespace) text.Append(reader.Value);
            return text.ToString();
        }

        static int Whole(string text) =>
            int.TryParse(text, NumberStyles.Integer, CultureInfo.InvariantCulture, out var value) ? value : 0;

        static double Real(string text) =>
            double.TryParse((text ?? "").Replace(',', '.'), NumberStyles.Float, CultureInfo.InvariantCulture, out var value) ? value : 0;
    }
}
