using System;
using System.Collections;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading.Tasks;

namespace Raincheck.Core
{
    // Runs the accepted requests, one after the other, on the main thread.
    public sealed partial class Bridge
    {
        readonly LinkedList<Job> _lane = new LinkedList<Job>();
        Job _current;
        bool _holdsBack;
        int _pump;

        /// <summary>
        /// Works off what was accepted for about so long. Call it from the main thread at every update and whenever the
        /// host was asked to wake it; it asks to be woken again while there is work that need not wait for an update.
        /// </summary>
        public void Pump(double budgetMs)
        {
            if (_status.Pumped()) SendStatus();
            if (_disposed) return;
            _pump++;
            var clock = Stopwatch.StartNew();
            while (Current() is Job job)
            {
                if (!Advance(job)) return;
                if (clock.Elapsed.TotalMilliseconds < budgetMs) continue;
                _host.WakeMainThread();
                return;
            }
        }

        /// <summary>
        /// While a domain reload is near, nothing begins that it would cut off; what waits runs after it. Set it on the main thread.
        /// </summary>
        public bool HoldsBack { set => _holdsBack = value; }

        void Enqueue(Job job) => _lane.AddLast(job);

        void Dequeue(Job job) => _lane.Remove(job);

        // The job whose turn it is; begins the next one of the lane when there is none.
        Job Current()
        {
            lock (_gate)
            {
                if (_current != null && _current.State != JobState.Ended) return _current;
                _current = null;
                if (_lane.First == null || IsRetired()) return null;
                // What began now would be cut off by the reload; what survives one need not wait.
                if (_holdsBack && !_lane.First.Value.Tool.Info.ReloadSafe) return null;
                _current = _lane.First.Value;
                _lane.RemoveFirst();
                return Begin(_current) ? _current : null;
            }
        }

        bool Begin(Job job)
        {
            job.Context = new ToolContext(this, job);
            if (job.CancelRequested) job.Context.Cancel();
            if (job.Resumes) return true;
            try { _journal.Began(job); }
            catch (System.IO.IOException fault)
            {
                // What may have begun without a trace could be executed twice after a crash.
                var message = Messages.Error(job.RequestId, "ERR_EDITOR_NOT_READY", "the beginning could not be written to the journal: " + fault.Message, Guarantee.NotExecuted);
                message["fence"] = job.Fence;
                _link.Send(job.RequestId, _journal.End(job, Json.Write(message), true).Message);
                return false;
            }
            job.State = JobState.Running;
            _link.Send(job.RequestId, Json.Write(Messages.About("started", job)));
            return true;
        }

        // Takes one step; answers whether another can follow within this pump.
        bool Advance(Job job)
        {
            try
            {
                if (job.Steps.Count == 0)
                {
                    _status.EnterStep();
                    job.Steps.Push(job.Resumes ? job.Tool.Resume(job.Context) : job.Tool.Run(job.Context));
                }
                if (job.Context.IsCancelled && job.Tool.Info.SupportsCancel && !job.Tool.EndsItself(job.Context))
                    throw new OperationCanceledException();
                if (!IsDue(job)) return false;
                _status.EnterStep();
                Step(job);
                if (job.Steps.Count > 0) return job.WaitsFor == null;
                Finish(job, "ok", job.Context.Result);
            }
            catch (OperationCanceledException) when (job.Context.IsCancelled)
            {
                Finish(job, "cancelled", null);
            }
            catch (ToolException fault)
            {
                Finish(job, "error", Failure(fault));
            }
            catch (Exception fault)
            {
                var failure = Failure("exception", fault.Message);
                failure["exception"] = fault.GetType().FullName;
                failure["stack"] = Words.Cut(fault.StackTrace, 4000);
                Finish(job, "error", failure);
            }
            finally { _status.LeaveStep(); }
            return true;
        }

        bool IsDue(Job job)
        {
            switch (job.WaitsFor)
            {
                case null: return true;
                case Task task:
                    if (!task.IsCompleted) return false;
                    job.WaitsFor = null;
                    task.GetAwaiter().GetResult();
                    return true;
                default:
                    if ((int)job.WaitsFor == _pump) return false;
                    job.WaitsFor = null;
                    return true;
            }
        }

        void Step(Job job)
        {
            var steps = job.Steps.Peek();
            if (steps == null || !steps.MoveNext())
            {
                job.Steps.Pop();
                (steps as IDisposable)?.Dispose();
                return;
            }
            switch (steps.Current)
            {
                case null: break;
                case IEnumerator inner: job.Steps.Push(inner); break;
                case Task task:
                    job.WaitsFor = task;
                    task.ContinueWith(_ => _host.WakeMainThread(), TaskContinuationOptions.ExecuteSynchronously);
                    break;
                default: job.WaitsFor = _pump; break;
            }
        }

        void Finish(Job job, string status, object result)
        {
            while (job.Steps.Count > 0)
            {
                try { (job.Steps.Pop() as IDisposable)?.Dispose(); }
                catch (Exception fault) { _host.Log(LogLevel.Warning, "`" + job.ToolName + "` failed while it cleaned up: " + fault.Message); }
            }
            End(job, status, result);
        }

        // A control tool is answered at once on the thread that asks: it only reads memory.
        void RunNow(Job job)
        {
            lock (_gate)
            {
                job.Context = new ToolContext(this, job);
                job.State = JobState.Running;
                _link.Send(job.RequestId, Json.Write(Messages.About("started", job)));
            }
            try
            {
                var steps = job.Tool.Run(job.Context);
                while (steps != null && steps.MoveNext()) { }
                End(job, "ok", job.Context.Result);
            }
            catch (ToolException fault) { End(job, "error", Failure(fault)); }
            catch (Exception fault) { End(job, "error", Failure("exception", fault.Message)); }
        }
    }
}
