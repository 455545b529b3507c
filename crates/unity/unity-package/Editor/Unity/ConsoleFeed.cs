using Raincheck.Core;
using UnityEditor;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>Fills the console ring from the editor's log, and carries its newest part over domain reloads.</summary>
    static class ConsoleFeed
    {
        const string Key = "Raincheck.Console";
        const int Kept = 500;

        /// <summary>What <c>read_console</c> reads.</summary>
        public static readonly ConsoleRing Ring = new ConsoleRing();

        public static void Begin()
        {
            Ring.Load(SessionState.GetString(Key, ""));
            Application.logMessageReceivedThreaded += Received;
            Bootstrap.OnLeave(() => SessionState.SetString(Key, Ring.Save(Kept)));
        }

        public static void End() => Application.logMessageReceivedThreaded -= Received;

        static void Received(string condition, string stack, LogType type) => Ring.Add(Name(type), condition, stack, Words.NowMs());

        static string Name(LogType type)
        {
            switch (type)
            {
                case LogType.Error: return "error";
                case LogType.Assert: return "assert";
                case LogType.Warning: return "warning";
                case LogType.Exception: return "exception";
                default: return "log";
            }
        }
    }
}
