using System;
using System.Collections.Generic;
using System.IO;
using Raincheck.Core;
using UnityEditor;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>Checks in a real editor what cannot be checked outside of one, and logs what it finds.</summary>
    static class SelfTest
    {
        [MenuItem("Tools/Raincheck/Self test")]
        static void Run()
        {
            var report = new List<string>();
            var failed = 0;
            void Check(string what, Func<string> check)
            {
                string fault;
                try { fault = check(); }
                catch (Exception thrown) { fault = thrown.GetType().Name + ": " + thrown.Message; }
                if (fault != null) failed++;
                report.Add((fault == null ? "ok      " : "FAILED  ") + what + (fault == null ? "" : ": " + fault));
            }
            Check("the bridge runs", () => Bootstrap.Bridge == null ? Bootstrap.Fault ?? "it is off" : null);
            Check("connected to a server", () => Bootstrap.Bridge?.LinkStatus.State == LinkState.Connected ? null : RaincheckSettings.Describe());
            Check("the journal can be written", () => WriteProbe(Path.Combine(new UnityHost().ProjectPath, "Library", "Raincheck", "editor")));
            Check("an object is found by its id", FindById);
            Check("the package knows its version", () => new UnityHost().PackageVersion == "0.0.0" ? "the package manager does not name it" : null);
            Check("posting to the main thread works", () => System.Threading.SynchronizationContext.Current == null ? "there is no synchronisation context" : null);
            Check("the editor's own compiler is there", () => EditorCompiler.Find() == null ? "not below " + EditorApplication.applicationContentsPath : null);
            Check("the console is heard", HearConsole);
            var text = "Raincheck self test, Unity " + Application.unityVersion + ": " + (report.Count - failed) + " passed, " + failed + " failed\n" + string.Join("\n", report);
            if (failed == 0) Debug.Log(text);
            else Debug.LogWarning(text);
        }

        [MenuItem("Tools/Raincheck/Connection state")]
        static void State() => Debug.Log("Raincheck: " + RaincheckSettings.Describe());

        static string WriteProbe(string folder)
        {
            Directory.CreateDirectory(folder);
            var probe = Path.Combine(folder, "self-test.tmp");
            File.WriteAllText(probe, "x");
            File.Delete(probe);
            return null;
        }

        static string FindById()
        {
            var probe = new GameObject("Raincheck self test") { hideFlags = HideFlags.HideAndDontSave };
            try { return Compat.Find(Compat.IdOf(probe)) == probe ? null : "id " + Compat.IdOf(probe) + " names something else"; }
            finally { UnityEngine.Object.DestroyImmediate(probe); }
        }

        static string HearConsole()
        {
            var mark = "Raincheck self test " + Guid.NewGuid().ToString("N");
            Debug.Log(mark);
            var found = ConsoleFeed.Ring.Read(new JsonObject { { "filter", mark } });
            return found.Array("entries")?.Count == 1 || (found["entries"] as System.Collections.ICollection)?.Count == 1 ? null : "a logged line did not arrive";
        }
    }
}
