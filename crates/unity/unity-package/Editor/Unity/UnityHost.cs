using System;
using System.Diagnostics;
using System.IO;
using System.Threading;
using Raincheck.Core;
using UnityEditor;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>The editor as the core sees it.</summary>
    sealed class UnityHost : IEditorHost
    {
        readonly SynchronizationContext _main = SynchronizationContext.Current;
        readonly WindowsApi _windows = new WindowsApi();

        // Preferences can be read on the main thread only.
        readonly bool _verbose = RaincheckSettings.Verbose;
        int _asked;

        public UnityHost()
        {
            // Application.dataPath ends in /Assets, whatever the folders above are called.
            ProjectPath = Path.GetDirectoryName(Path.GetFullPath(Application.dataPath));
            ProjectName = Path.GetFileName(ProjectPath);
            UnityVersion = Application.unityVersion;
            PackageVersion = PackageInfo();
            using (var process = Process.GetCurrentProcess())
            {
                ProcessId = process.Id;
                ProcessStartedMs = StartedMs(process);
            }
        }

        public string ProjectPath { get; }
        public string ProjectName { get; }
        public string UnityVersion { get; }
        public string PackageVersion { get; }
        public int ProcessId { get; }
        public long ProcessStartedMs { get; }

        // An editor without focus updates rarely, on some systems not at all: the posted call runs, and asks for an update.
        public void WakeMainThread()
        {
            if (_main == null || Interlocked.Exchange(ref _asked, 1) == 1) return;
            _main.Post(_ =>
            {
                Interlocked.Exchange(ref _asked, 0);
                EditorApplication.QueuePlayerLoopUpdate();
                Bootstrap.PumpNow();
            }, null);
            _windows.WakeMainThread();
        }

        public void Log(Core.LogLevel level, string message)
        {
            if (level == Core.LogLevel.Error) UnityEngine.Debug.LogError("Raincheck: " + message);
            else if (level == Core.LogLevel.Warning) UnityEngine.Debug.LogWarning("Raincheck: " + message);
            else if (_verbose) UnityEngine.Debug.Log("Raincheck: " + message);
        }

        public string DialogTitle() => _windows.DialogTitle(ProcessId);

        static long StartedMs(Process process)
        {
            try { return (long)(process.StartTime.ToUniversalTime() - new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc)).TotalMilliseconds; }
            // Where the system does not say, the id alone has to name the process.
            catch (Exception fault) when (fault is InvalidOperationException || fault is NotSupportedException || fault is System.ComponentModel.Win32Exception) { return 0; }
        }

        static string PackageInfo()
        {
            var info = UnityEditor.PackageManager.PackageInfo.FindForAssembly(typeof(UnityHost).Assembly);
            return info == null ? "0.0.0" : info.version;
        }
    }
}
