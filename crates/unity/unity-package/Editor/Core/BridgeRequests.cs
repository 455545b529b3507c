using System;
using System.Collections.Generic;
using System.IO;

namespace Raincheck.Core
{
    // What the server asks. Everything here runs on the thread that receives, never on the main thread.
    public sealed partial class Bridge
    {
        /// <summary>More accepted requests than this are refused: the server sends one at a time.</summary>
        const int MaxAccepted = 64;

        void ILinkOwner.Received(JsonObject message)
        {
            var type = message.Text("type");
            try
            {
                switch (type)
                {
                    case "execute": Execute(message, false); break;
                    case "submit_job": Execute(message, true); break;
                    case "get_job_status": JobStatus(message); break;
                    case "cancel": Cancel(message); break;
                    case "result_ack": Acknowledge(message); break;
                    case "ping": _link.Send(null, Json.Write(_status.ToPong())); break;
                    case "chunk": Assemble(message); break;
                    case "hello": case "capability": case "error": case "bye": case "pong": break;
                    default:
                        Refuse(message.Text("request_id"), "ERR_UNKNOWN_COMMAND", "unknown type `" + Words.Cut(type ?? "", 64) + "`");
                        break;
                }
            }
            catch (JsonException fault)
            {
                Refuse(message.Text("request_id"), "ERR_INVALID_REQUEST", fault.Message);
            }
        }

        void Assemble(JsonObject chunk)
        {
            var whole = _chunks.Take(chunk);
            if (whole != null) ((ILinkOwner)this).Received(Json.ParseObject(whole));
        }

        void Refuse(string requestId, string code, string message) =>
            _link.Send(requestId, Json.Write(Messages.Error(requestId, code, message, Guarantee.NotExecuted)));

        void Acknowledge(JsonObject message)
        {
            var id = message.Text("request_id");
            if (id == null) return;
            lock (_gate) _journal.Acknowledge(id);
        }

        // ---- execute and submit_job --------------------------------------------------------------------------------

        void Execute(JsonObject message, bool asJob)
        {
            var id = message.Text("request_id");
            var name = message.Text("tool_name");
            var fence = message.Integer("fence");
            var parameters = message["params"] ?? new JsonObject();
            if (string.IsNullOrEmpty(id)) { Refuse(null, "ERR_INVALID_REQUEST", "`request_id` is missing"); return; }
            if (fence == null) { Refuse(id, "ERR_INVALID_REQUEST", "`fence` has to be a whole number"); return; }
            Job job;
            lock (_gate)
            {
                if (IsRetired() || AnswerAgain(id)) return;
                var tool = name == null ? null : _tools.Find(name);
                if (tool == null)
                {
                    Refuse(id, "ERR_UNKNOWN_COMMAND", "this editor has no command `" + Words.Cut(name ?? "", 100) + "`; list_unity_commands names them");
                    return;
                }
                if (!(parameters is JsonObject)) { Refuse(id, "ERR_INVALID_PARAMS", "`params` has to be an object"); return; }
                if (!IsNewest(id, fence.Value, out var why)) { Refuse(id, "ERR_INVALID_REQUEST", why); return; }
                if (_journal.InOrder.Count >= MaxAccepted) { Refuse(id, "ERR_QUEUE_FULL", MaxAccepted + " requests are accepted and not ended"); return; }
                job = new Job
                {
                    RequestId = id,
                    Fence = fence.Value,
                    ToolName = name,
                    Params = (JsonObject)parameters,
                    JobId = asJob ? "job-" + id : null,
                    ClientRequestId = message.Text("client_request_id"),
                    AcceptedMs = Words.NowMs(),
                    Tool = tool,
                };
                if (!Accept(job)) return;
            }
            if (job.Tool.Info.Control) RunNow(job);
            else _host.WakeMainThread();
        }

        // Writes the request down, and only then says so.
        bool Accept(Job job)
        {
            try { _journal.Accept(job, durable: !job.Tool.Info.ReadOnly); }
            catch (Exception fault) when (fault is IOException || fault is UnauthorizedAccessException || fault is ObjectDisposedException)
            {
                Refuse(job.RequestId, "ERR_EDITOR_NOT_READY", "the request could not be written to the journal: " + fault.Message);
                return false;
            }
            SayAccepted(job.RequestId, job.JobId);
            if (!job.Tool.Info.Control) Enqueue(job);
            return true;
        }

        void SayAccepted(string requestId, string jobId)
        {
            _link.Send(requestId, Json.Write(new JsonObject { { "type", "accepted" }, { "request_id", requestId } }));
            if (jobId != null)
                _link.Send(requestId, Json.Write(new JsonObject
                {
                    { "type", "submit_job_result" }, { "request_id", requestId }, { "status", "accepted" }, { "job_id", jobId },
                }));
        }

        // A request that is known is answered from what is known, never executed again.
        bool AnswerAgain(string id)
        {
            if (_journal.Running.TryGetValue(id, out var job))
            {
                SayAccepted(id, job.JobId);
                if (job.State == JobState.Running) _link.Send(id, Json.Write(Messages.About("started", job)));
                return true;
            }
            if (!_journal.Outcomes.TryGetValue(id, out var outcome)) return false;
            SayAccepted(id, outcome.JobId);
            _link.Send(id, outcome.Message ?? Json.Write(Messages.Error(id, "ERR_INVALID_REQUEST",
                "this request was executed and its answer acknowledged; the answer is no longer kept", Guarantee.Executed)));
            return true;
        }

        // Attempt and fence of a task only grow; an older attempt that has not begun gives way to a newer one.
        bool IsNewest(string id, long fence, out string why)
        {
            Journal.SplitId(id, out var task, out var attempt);
            why = null;
            if (!_journal.Fences.TryGetValue(task, out var newest)) return true;
            if (attempt <= newest.Key || fence <= newest.Value)
            {
                why = "a stale fence: attempt " + newest.Key + " with fence " + newest.Value + " of this task is known";
                return false;
            }
            foreach (var other in _journal.InOrder.ToArray())
            {
                Journal.SplitId(other.RequestId, out var otherTask, out _);
                if (otherTask != task) continue;
                if (other.State == JobState.Running)
                {
                    why = "attempt " + newest.Key + " of this task is still running";
                    return false;
                }
                EndQueued(other);
            }
            return true;
        }

        // ---- the rest ----------------------------------------------------------------------------------------------

        void JobStatus(JsonObject message)
        {
            var jobId = message.Text("job_id");
            var answer = new JsonObject { { "type", "job_status" }, { "job_id", jobId } };
            answer.AddIfPresent("request_id", message.Text("request_id"));
            lock (_gate)
            {
                var job = _journal.InOrder.Find(one => jobId != null && one.JobId == jobId);
                if (job != null)
                {
                    answer["state"] = job.State == JobState.Running ? "running" : "queued";
                    answer["progress"] = job.Progress;
                    _link.Send(job.RequestId, Json.Write(answer));
                    return;
                }
                foreach (var outcome in _journal.Outcomes.Values)
                {
                    if (jobId == null || outcome.JobId != jobId) continue;
                    var told = outcome.Message == null ? null : Json.ParseObject(outcome.Message);
                    answer["state"] = StateOf(told);
                    answer["progress"] = null;
                    if (told != null) answer["result"] = told["result"] ?? told["error"];
                    _link.Send(outcome.RequestId, Json.Write(answer));
                    return;
                }
            }
            Refuse(message.Text("request_id"), "ERR_JOB_NOT_FOUND", "this editor knows no such job");
        }

        static string StateOf(JsonObject outcome)
        {
            switch (outcome?.Text("status"))
            {
                case "cancelled": return "cancelled";
                case "error": return "failed";
                case "ok": return "succeeded";
                default: return outcome == null ? "succeeded" : "failed";
            }
        }

        void Cancel(JsonObject message)
        {
            var target = message.Text("target_request_id");
            var targetJob = message.Text("target_job_id");
            lock (_gate)
            {
                var job = _journal.InOrder.Find(one => one.RequestId == target || (targetJob != null && one.JobId == targetJob));
                var answer = new JsonObject { { "type", "cancel_result" } };
                answer.AddIfPresent("request_id", message.Text("request_id"));
                answer["target_request_id"] = job?.RequestId ?? target;
                answer["target_job_id"] = job?.JobId ?? targetJob;
                answer["status"] = job == null ? "rejected" : job.State == JobState.Queued ? "cancelled" : "cancel_requested";
                _link.Send(null, Json.Write(answer));
                if (job == null) return;
                if (job.State == JobState.Queued) EndQueued(job);
                else Stop(job);
            }
            _host.WakeMainThread();
        }

        void Stop(Job job)
        {
            // Written down first: a domain reload may come before the run has noticed.
            try { _journal.CancelRequested(job); }
            catch (IOException fault) { _host.Log(LogLevel.Warning, "a cancel could not be written down: " + fault.Message); }
            job.Context?.Cancel();
        }

        void EndQueued(Job job)
        {
            Dequeue(job);
            var outcome = _journal.End(job, Json.Write(Messages.Result(job, "cancelled", null, _journal.Epoch)), false);
            _link.Send(job.RequestId, outcome.Message);
        }
    }
}
