namespace Raincheck.Core
{
    /// <summary>What the core needs of the editor around it.</summary>
    public interface IEditorHost
    {
        /// <summary>The project's folder, the one that holds <c>ProjectSettings</c>.</summary>
        string ProjectPath { get; }

        /// <summary>The project's name for people.</summary>
        string ProjectName { get; }

        /// <summary>The version of Unity.</summary>
        string UnityVersion { get; }

        /// <summary>The version of this package.</summary>
        string PackageVersion { get; }

        /// <summary>The id of the editor's process.</summary>
        int ProcessId { get; }

        /// <summary>When the process started; with the id it names the process for good.</summary>
        long ProcessStartedMs { get; }

        /// <summary>Asks for <see cref="Bridge.Pump"/> soon. Called from any thread.</summary>
        void WakeMainThread();

        /// <summary>Writes a line for the person at the editor. Called from any thread.</summary>
        void Log(LogLevel level, string message);

        /// <summary>The title of a dialog that holds the main thread, or <c>null</c>. Called from any thread.</summary>
        string DialogTitle();
    }

    /// <summary>How much a log line matters.</summary>
    public enum LogLevel
    {
        /// <summary>Only for who looks for faults.</summary>
        Debug,

        /// <summary>Something a person may want to know.</summary>
        Info,

        /// <summary>Something is wrong and was worked around.</summary>
        Warning,

        /// <summary>Something is wrong and a person has to act.</summary>
        Error,
    }
}
