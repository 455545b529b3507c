using System.Collections.Generic;
using Raincheck.Core;
using UnityEditor;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>The settings, which are each person's own, and their page with the state of the connection.</summary>
    static class RaincheckSettings
    {
        const string EnabledKey = "Raincheck.Enabled";
        const string VerboseKey = "Raincheck.Verbose";
        const string CodeKey = "Raincheck.ExecuteCode";

        public static bool Enabled
        {
            get => EditorPrefs.GetBool(EnabledKey, true);
            set => EditorPrefs.SetBool(EnabledKey, value);
        }

        public static bool Verbose
        {
            get => EditorPrefs.GetBool(VerboseKey, false);
            set => EditorPrefs.SetBool(VerboseKey, value);
        }

        /// <summary>Whether execute_code may run what it is given. Off unless a person turns it on, for this project alone.</summary>
        public static bool ExecuteCode
        {
            get => EditorPrefs.GetBool(CodeKey + "." + Application.dataPath, false);
            set => EditorPrefs.SetBool(CodeKey + "." + Application.dataPath, value);
        }

        [SettingsProvider]
        static SettingsProvider Page() => new SettingsProvider("Preferences/Raincheck", SettingsScope.User)
        {
            label = "Raincheck",
            keywords = new HashSet<string> { "raincheck", "mcp", "unity-mcp" },
            guiHandler = _ => Draw(),
            // The state of the connection changes without anybody touching the page.
            inspectorUpdateHandler = () => SettingsService.RepaintAllSettingsWindow(),
        };

        static void Draw()
        {
            EditorGUILayout.LabelField("Connection", EditorStyles.boldLabel);
            EditorGUILayout.HelpBox(Describe(), MessageType.Info);
            if (GUILayout.Button("Connect again")) Bootstrap.Restart();
            EditorGUILayout.Space();
            var enabled = EditorGUILayout.Toggle("Connect this editor", Enabled);
            if (enabled != Enabled)
            {
                Enabled = enabled;
                EditorUtility.RequestScriptReload();
            }
            Verbose = EditorGUILayout.Toggle("Log what the bridge does", Verbose);
            ExecuteCode = EditorGUILayout.Toggle("Allow execute_code", ExecuteCode);
            if (ExecuteCode)
                EditorGUILayout.HelpBox("Whoever uses the server can run any C# in this editor, with your rights.", MessageType.Warning);
        }

        /// <summary>The state of the connection in words.</summary>
        internal static string Describe()
        {
            var bridge = Bootstrap.Bridge;
            if (bridge == null) return Bootstrap.Fault ?? (Enabled ? "Not started." : "Turned off.");
            var link = bridge.LinkStatus;
            var text = Headline(link);
            if (link.Fault != null) text += "\nLast fault: " + link.Fault;
            text += "\nEndpoint file: " + link.EndpointFile;
            return text + "\nRequests running: " + bridge.RunningCount + ", answers not yet acknowledged: " + bridge.UnacknowledgedCount;
        }

        static string Headline(LinkStatus link)
        {
            switch (link.State)
            {
                case LinkState.Connected: return "Connected to unity-mcp " + link.ServerVersion + " on port " + link.Port + ".";
                case LinkState.Connecting: return "Connecting to port " + link.Port + ".";
                case LinkState.Refused: return "Refused. Waiting for the server to start again.";
                case LinkState.Superseded: return "Another editor of this project is connected.";
                case LinkState.NoServer: return "No server is running for this project. Start your MCP client.";
                default: return "Off.";
            }
        }
    }
}
