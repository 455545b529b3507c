using System;
using System.Collections;

namespace Raincheck
{
    /// <summary>How long a tool may run: what may need more than a few seconds is a job.</summary>
    public enum ToolMode
    {
        /// <summary>Ends within seconds.</summary>
        Sync,

        /// <summary>May run for minutes, and has an id of its own.</summary>
        Job,
    }

    /// <summary>A failure that the caller is to see, with a code that programs can tell apart.</summary>
    public sealed class ToolException : Exception
    {
        /// <summary>The code, in snake_case.</summary>
        public readonly string Code;

        /// <summary>More about it; may be <c>null</c>.</summary>
        public readonly JsonObject Details;

        /// <summary>Names a failure. The message says what is wrong and what to do next.</summary>
        public ToolException(string code, string message, JsonObject details = null) : base(message)
        {
            Code = code;
            Details = details;
        }
    }

    /// <summary>Values a tool's steps may yield to say when they go on.</summary>
    public static class Wait
    {
        /// <summary>Go on at the editor's next update, not within this one.</summary>
        public static readonly object NextUpdate = new object();
    }
}

namespace Raincheck.Core
{
    /// <summary>What the server learns of a tool.</summary>
    public sealed class ToolInfo
    {
        public string Name;
        public string Description = "";
        public ToolMode Mode = ToolMode.Sync;
        public bool SupportsCancel;
        public bool ReadOnly;

        /// <summary>Whether a run goes on after a domain reload.</summary>
        public bool ReloadSafe;
        public bool Idempotent;

        /// <summary>Answered from memory off the main thread, in any state of the editor.</summary>
        public bool Control;
        public int DefaultTimeoutMs;
        public int MaxTimeoutMs;

        /// <summary>JSON Schema of the parameters.</summary>
        public JsonObject Schema = new JsonObject { { "type", "object" } };

        /// <summary>The metadata as it goes over the wire.</summary>
        public JsonObject ToJson() => new JsonObject
        {
            { "name", Name },
            { "description", Description },
            { "execution_mode", Mode == ToolMode.Job ? "job" : "sync" },
            { "default_timeout_ms", DefaultTimeoutMs > 0 ? DefaultTimeoutMs : Mode == ToolMode.Job ? 300000 : 30000 },
            { "max_timeout_ms", MaxTimeoutMs > 0 ? MaxTimeoutMs : Mode == ToolMode.Job ? 1800000 : 60000 },
            { "supports_cancel", SupportsCancel },
            { "read_only", ReadOnly },
            { "reload_safe", ReloadSafe },
            { "idempotent", Idempotent || ReadOnly },
            { "class", Control ? "control" : "lane" },
            { "requires_client_request_id", false },
            { "execution_error_retryable", false },
            { "params", Schema },
        };
    }

    /// <summary>A command of the editor.</summary>
    public abstract class Tool
    {
        /// <summary>What the server learns of it.</summary>
        public abstract ToolInfo Info { get; }

        /// <summary>
        /// Begins a run. The steps are taken on the main thread, for a control tool on the thread that asks; between
        /// steps the run can be stopped. The value of <see cref="ToolContext.Result"/> after the last step is the answer.
        /// </summary>
        public abstract IEnumerator Run(ToolContext context);

        /// <summary>
        /// Goes on with a run that began before a domain reload; asked only of tools that are
        /// <see cref="ToolInfo.ReloadSafe"/>. What the run wrote to <see cref="ToolContext.Memory"/> is there again.
        /// </summary>
        public virtual IEnumerator Resume(ToolContext context) => Run(context);

        /// <summary>
        /// Told on the main thread that a running run is to end; <c>true</c> when the tool ends it itself. Otherwise the
        /// run is stopped before its next step.
        /// </summary>
        public virtual bool EndsItself(ToolContext context) => false;
    }
}
