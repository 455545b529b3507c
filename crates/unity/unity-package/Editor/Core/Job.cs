using System.Collections;
using System.Collections.Generic;

namespace Raincheck.Core
{
    /// <summary>Where a run of a tool is.</summary>
    enum JobState
    {
        /// <summary>Accepted, not begun.</summary>
        Queued,

        /// <summary>Begun, not ended.</summary>
        Running,

        /// <summary>Ended; its outcome is in the outbox.</summary>
        Ended,
    }

    /// <summary>One accepted request, from <c>accepted</c> until its outcome.</summary>
    sealed class Job
    {
        public string RequestId;
        public long Fence;
        public string ToolName;
        public JsonObject Params;

        /// <summary>Set for what came as <c>submit_job</c>.</summary>
        public string JobId;
        public string ClientRequestId;
        public long AcceptedMs;
        public JobState State;

        /// <summary>What the tool wrote down to go on after a domain reload.</summary>
        public JsonObject Memory;

        /// <summary>The newest progress message; its <c>seq</c> only grows, also over a domain reload.</summary>
        public JsonObject Progress;
        public bool ProgressUnsent;
        public long ProgressKeptMs;

        /// <summary>The server wants it to end; still holds after a domain reload.</summary>
        public bool CancelRequested;

        public Tool Tool;
        public ToolContext Context;

        /// <summary>Began in an earlier domain and goes on in this one.</summary>
        public bool Resumes;

        /// <summary>The steps of the run, innermost last.</summary>
        public readonly Stack<IEnumerator> Steps = new Stack<IEnumerator>();

        /// <summary>What the newest step waits for.</summary>
        public object WaitsFor;

        public JsonObject ToJson() => new JsonObject
        {
            { "request_id", RequestId },
            { "fence", Fence },
            { "tool_name", ToolName },
            { "params", Params },
            { "job_id", JobId },
            { "client_request_id", ClientRequestId },
            { "accepted_ms", AcceptedMs },
        };

        public static Job FromJson(JsonObject from) => new Job
        {
            RequestId = from.Text("request_id"),
            Fence = from.Integer("fence") ?? 0,
            ToolName = from.Text("tool_name"),
            Params = from.Object("params") ?? new JsonObject(),
            JobId = from.Text("job_id"),
            ClientRequestId = from.Text("client_request_id"),
            AcceptedMs = from.Integer("accepted_ms") ?? 0,
        };
    }

    /// <summary>An outcome: the message that says it, kept until the server has acknowledged it and for a while after.</summary>
    sealed class Outcome
    {
        public string RequestId;
        public string JobId;

        /// <summary>The whole message as text; <c>null</c> once it was acknowledged and was too long to be kept.</summary>
        public string Message;
        public bool Acknowledged;

        /// <summary>The file that holds a long message.</summary>
        public string File;

        /// <summary>In how many connections it was sent without being acknowledged.</summary>
        public int Sent;

        /// <summary>An <c>error</c> message ends a request too, but not every server acknowledges one.</summary>
        public bool IsError;
    }
}
