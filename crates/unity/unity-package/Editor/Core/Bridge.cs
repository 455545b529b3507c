using System;
using System.Collections.Generic;
using System.IO;

namespace Raincheck.Core
{
    /// <summary>
    /// The editor's end of the bridge: takes requests from the server, runs each at most once on the main thread, and
    /// keeps every outcome until the server has acknowledged it, over lost connections, domain reloads and restarts.
    /// </summary>
    public sealed partial class Bridge : IRunner, ILinkOwner, IDisposable
    {
        const int ProtocolVersion = 1;

        readonly object _gate = new object();
        readonly IEditorHost _host;
        readonly ToolSet _tools;
        readonly Journal _journal;
        readonly EditorStatus _status;
        readonly Link _link;
        readonly string _sessionId = Guid.NewGuid().ToString();
        Chunks _chunks = new Chunks();
        bool _disposed;

        /// <summary>Takes over what the domain before left behind, and settles what did not survive.</summary>
        /// <param name="host">The editor.</param>
        /// <param name="tools">Every tool that may be called; nothing is added later.</param>
        /// <param name="folder">Where the journal lies.</param>
        public Bridge(IEditorHost host, ToolSet tools, string folder)
        {
            _host = host;
            _tools = tools;
            _status = new EditorStatus(host);
            _journal = Journal.Open(folder, host.ProcessId, host.ProcessStartedMs);
            _link = new Link(this, host);
            Inherit();
        }

        /// <summary>The state of the connection, for a person.</summary>
        public LinkStatus LinkStatus => _link.Status;

        /// <summary>The state of the editor; what it says is sent when it changes.</summary>
        public EditorStatus Status => _status;

        /// <summary>How many domains have opened this project's journal.</summary>
        public long DomainEpoch => _journal.Epoch;

        /// <summary>How many requests are accepted and not ended; those that are answered from memory do not count.</summary>
        public int RunningCount { get { lock (_gate) return _journal.InOrder.FindAll(job => job.Tool == null || !job.Tool.Info.Control).Count; } }

        /// <summary>How many outcomes wait for the server.</summary>
        public int UnacknowledgedCount { get { lock (_gate) return new List<Outcome>(_journal.Unacknowledged()).Count; } }

        /// <summary>Begins to look for the server.</summary>
        public void Start() => _link.Start();

        /// <summary>Tells the state of the editor. Call it from the main thread.</summary>
        public void SetState(string state, bool? focused = null)
        {
            if (_status.Set(state, focused)) SendStatus();
        }

        /// <summary>
        /// Says goodbye, writes down what runs, and ends the connection. Takes at most about a second.
        /// </summary>
        /// <param name="reason"><c>reload</c> or <c>quit</c>.</param>
        /// <param name="expectedBackMs">When to expect the editor again; <c>null</c> for never.</param>
        public void Leave(string reason, int? expectedBackMs)
        {
            lock (_gate)
            {
                if (_disposed) return;
                foreach (var job in _journal.InOrder) KeepProgress(job);
            }
            SendStatus();
            _link.Send(null, Json.Write(new JsonObject { { "type", "bye" }, { "reason", reason }, { "expected_back_ms", expectedBackMs } }));
            _link.Drain(300);
            Dispose();
        }

        /// <summary>Ends the connection and every thread, and closes the journal.</summary>
        public void Dispose()
        {
            lock (_gate)
            {
                if (_disposed) return;
                _disposed = true;
                foreach (var job in _journal.InOrder) job.Context?.Cancel();
            }
            _link.Dispose();
            lock (_gate) _journal.Dispose();
        }

        // A later domain has the journal: this one was never torn down, and whatever it still did would be done twice.
        bool IsRetired()
        {
            if (_disposed) return true;
            if (!IsTaken()) return false;
            _disposed = true;
            foreach (var job in _journal.InOrder) job.Context?.Cancel();
            _link.Stop();
            return true;
        }

        bool IsTaken()
        {
            try { return _journal.IsTaken(); }
            catch (Exception fault) when (fault is IOException || fault is UnauthorizedAccessException) { return false; }
        }

        bool ILinkOwner.IsRetired()
        {
            lock (_gate) return IsRetired();
        }

        // What was accepted before this domain: queued requests stay queued; what had begun goes on when its tool can,
        // else its outcome is that nobody knows.
        void Inherit()
        {
            foreach (var job in _journal.InOrder.ToArray())
            {
                job.Tool = _tools.Find(job.ToolName);
                if (!_journal.SameProcess || job.Tool == null) Lose(job);
                else if (job.State == JobState.Queued) Enqueue(job);
                else if (job.Tool.Info.ReloadSafe)
                {
                    job.Resumes = true;
                    Enqueue(job);
                }
                else Lose(job);
            }
        }

        void Lose(Job job)
        {
            var began = job.State == JobState.Running;
            var why = _journal.SameProcess ? "the domain reload" : "the end of the editor's process";
            var message = began
                ? Messages.Error(job.RequestId, "ERR_RECONNECT_TIMEOUT", "`" + job.ToolName + "` was running at " + why
                    + " and did not survive it; how far it came is not known. Look at the project before you run it again.", Guarantee.Unknown)
                : Messages.Error(job.RequestId, "ERR_UNITY_DISCONNECTED", "`" + job.ToolName + "` had not begun at " + why
                    + " and was dropped. Run it again.", Guarantee.NotExecuted);
            message["fence"] = job.Fence;
            message.AddIfPresent("job_id", job.JobId);
            _journal.End(job, Json.Write(message), true);
        }

        // ---- the link ----------------------------------------------------------------------------------------------

        JsonObject ILinkOwner.Hello(string nonce) => new JsonObject
        {
            { "type", "hello" },
            { "protocol_version", ProtocolVersion },
            { "plugin_version", _host.PackageVersion },
            { "unity_version", _host.UnityVersion },
            { "project_name", _host.ProjectName },
            { "editor_instance_id", EditorInstance.Id(_host.ProjectPath) },
            { "plugin_session_id", _sessionId },
            { "pid", _host.ProcessId },
            { "domain_epoch", _journal.Epoch },
            { "nonce", nonce },
        };

        JsonObject ILinkOwner.Auth()
        {
            lock (_gate)
            {
                var running = new List<object>();
                foreach (var job in _journal.InOrder)
                {
                    var entry = new JsonObject
                    {
                        { "request_id", job.RequestId },
                        { "fence", job.Fence },
                        { "tool_name", job.ToolName },
                        { "started_ms", job.AcceptedMs },
                    };
                    running.Add(entry.AddIfPresent("job_id", job.JobId));
                }
                var finished = new List<object>();
                foreach (var outcome in _journal.Unacknowledged()) finished.Add(outcome.RequestId);
                return new JsonObject
                {
                    { "type", "auth" },
                    { "mac", null },
                    { "project_path", _host.ProjectPath },
                    { "state", _status.State },
                    { "running", running },
                    { "finished_unacked", finished },
                    { "tools", _tools.ToJson() },
                };
            }
        }

        void ILinkOwner.Connected(Action open)
        {
            lock (_gate)
            {
                open();
                // What the last connection left unfinished will not be finished by this one.
                _chunks = new Chunks();
                _status.BeginConnection();
                SendStatus();
                foreach (var job in _journal.InOrder)
                {
                    if (job.Progress != null) job.ProgressUnsent = true;
                }
                foreach (var outcome in new List<Outcome>(_journal.Unacknowledged()))
                {
                    // Not every server acknowledges an error; it is said three times and then counts as said.
                    if (outcome.IsError && ++outcome.Sent > 3) _journal.Acknowledge(outcome.RequestId);
                    else _link.Send(outcome.RequestId, outcome.Message);
                }
            }
        }

        void ILinkOwner.Tick(long statusIntervalMs)
        {
            if (_status.Tick(statusIntervalMs)) SendStatus();
            lock (_gate)
            {
                foreach (var job in _journal.InOrder) SendProgress(job);
            }
        }

        void SendStatus()
        {
            lock (_gate) _link.Send(null, Json.Write(_status.ToMessage()));
        }

        // ---- reports of runs ---------------------------------------------------------------------------------------

        void IRunner.Report(Job job, double current, double total, string message, object partial)
        {
            lock (_gate)
            {
                if (job.State == JobState.Ended || _disposed) return;
                // Time grows over a domain reload without being written down; two reports never share a number.
                var seq = Math.Max((job.Progress?.Integer("seq") ?? 0) + 1, Words.NowMs() - job.AcceptedMs);
                var progress = new JsonObject { { "type", "progress" }, { "request_id", job.RequestId }, { "fence", job.Fence }, { "seq", seq }, { "current", current } };
                progress.AddIfPresent("job_id", job.JobId);
                if (total > 0) progress["total"] = total;
                progress.AddIfPresent("message", message).AddIfPresent("partial", partial);
                job.Progress = progress;
                job.ProgressUnsent = true;
                if (Words.NowMs() - job.ProgressKeptMs >= 1000) KeepProgress(job);
            }
        }

        void IRunner.Remember(Job job, JsonObject memory)
        {
            lock (_gate)
            {
                if (job.State == JobState.Ended || _disposed) return;
                job.Memory = memory;
                _journal.Remembers(job);
            }
        }

        void SendProgress(Job job)
        {
            if (!job.ProgressUnsent || job.Progress == null) return;
            job.ProgressUnsent = false;
            _link.Send(job.RequestId, Json.Write(job.Progress));
        }

        void KeepProgress(Job job)
        {
            if (job.Progress == null) return;
            job.ProgressKeptMs = Words.NowMs();
            try { _journal.Progressed(job); }
            catch (IOException fault) { _host.Log(LogLevel.Warning, "progress could not be written down: " + fault.Message); }
        }

        // ---- outcomes ----------------------------------------------------------------------------------------------

        void End(Job job, string status, object result)
        {
            string text;
            try { text = Json.Write(Messages.Result(job, status, result, _journal.Epoch)); }
            catch (Exception fault)
            {
                text = Json.Write(Messages.Result(job, "error", Failure("result_not_json", "the answer could not be written as JSON: " + fault.Message), _journal.Epoch));
            }
            if (text.Length > Chunks.MaxMessage)
                text = Json.Write(Messages.Result(job, "error", Failure("result_too_large",
                    "the answer has " + text.Length + " characters, more than 64 MiB; ask for less"), _journal.Epoch));
            lock (_gate)
            {
                if (job.State == JobState.Ended || IsRetired()) return;
                SendProgress(job);
                var outcome = _journal.End(job, text, false);
                _link.Send(job.RequestId, outcome.Message);
            }
        }

        static JsonObject Failure(ToolException fault)
        {
            var failure = Failure(fault.Code, fault.Message);
            failure.AddIfPresent("details", fault.Details);
            return failure;
        }

        static JsonObject Failure(string code, string message) => new JsonObject { { "code", code }, { "message", message } };
    }
}
