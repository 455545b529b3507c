using System;
using System.Threading;
using Raincheck.Core;

namespace Raincheck
{
    /// <summary>One run of a tool: its parameters, and the way to report, to notice a cancel and to answer.</summary>
    public sealed class ToolContext
    {
        readonly IRunner _runner;
        readonly Job _job;
        readonly CancellationTokenSource _cancel = new CancellationTokenSource();

        internal ToolContext(IRunner runner, Job job)
        {
            _runner = runner;
            _job = job;
        }

        /// <summary>The parameters of the call.</summary>
        public JsonObject Params => _job.Params;

        /// <summary>Names this run: <c>task.attempt</c>.</summary>
        public string RequestId => _job.RequestId;

        /// <summary>When the run was accepted, in milliseconds since 1970.</summary>
        public long AcceptedMs => _job.AcceptedMs;

        /// <summary>The answer. Anything that can be written as JSON.</summary>
        public object Result { get; set; }

        /// <summary>Cancelled when the caller wants the run to end. Read it from any thread.</summary>
        public CancellationToken Cancellation => _cancel.Token;

        /// <summary>Whether the caller wants the run to end.</summary>
        public bool IsCancelled => _cancel.IsCancellationRequested;

        /// <summary>Ends the run as cancelled if the caller wants it to end.</summary>
        public void ThrowIfCancelled() => _cancel.Token.ThrowIfCancellationRequested();

        /// <summary>
        /// What the run wrote down with <see cref="Remember"/>; it is there again after a domain reload.
        /// <c>null</c> before the first time.
        /// </summary>
        public JsonObject Memory => _job.Memory;

        /// <summary>Writes down what the run needs to go on after a domain reload. It is on disk when this returns.</summary>
        public void Remember(JsonObject memory) => _runner.Remember(_job, memory);

        /// <summary>
        /// Tells how far the run is. What comes faster than four times a second is merged, the newest wins.
        /// Call it from any thread.
        /// </summary>
        /// <param name="current">Steps that are done.</param>
        /// <param name="total">Steps in all, or 0 when that is not known.</param>
        /// <param name="message">What is being done.</param>
        /// <param name="partial">What can be read of the answer so far; replaces the one before.</param>
        public void Report(double current, double total = 0, string message = null, object partial = null) =>
            _runner.Report(_job, current, total, message, partial);

        internal void Cancel()
        {
            try { _cancel.Cancel(); }
            catch (AggregateException)
            {
                // What a tool does when it is cancelled is its own affair.
            }
        }
    }
}

namespace Raincheck.Core
{
    /// <summary>What a run may ask of the bridge.</summary>
    interface IRunner
    {
        void Remember(Job job, JsonObject memory);
        void Report(Job job, double current, double total, string message, object partial);
    }
}
