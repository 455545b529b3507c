using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Text;

namespace Raincheck.Core
{
    /// <summary>
    /// What must outlive the domain and the process: accepted requests, what began, what tools wrote down, outcomes and
    /// acknowledgements. Each change is one line at the end of a file; the file is rewritten when it has grown.
    /// </summary>
    /// <remarks>
    /// A line that was cut by a crash is dropped. Each domain has a file of its own, which it begins with what it read from
    /// the one before; a domain whose file is gone has a successor and may not speak any more (<see cref="IsTaken"/>), so
    /// one that was never torn down does no harm. Not safe to call from several threads at once; <see cref="Bridge"/>
    /// holds its lock.
    /// </remarks>
    public sealed class Journal : IDisposable
    {
        /// <summary>Outcomes longer than this have a file of their own.</summary>
        const int LongMessage = 256 * 1024;

        /// <summary>Acknowledged outcomes longer than this are forgotten, except that they were there.</summary>
        const int KeptMessage = 64 * 1024;

        /// <summary>How many acknowledged outcomes answer a request that comes again.</summary>
        const int KeptOutcomes = 256;
        const long RewriteAt = 4 * 1024 * 1024;

        readonly string _folder;
        string _path;
        FileStream _file;
        long _epoch;
        long _size;
        long _rewriteAt = RewriteAt;
        string _process = "";
        bool _torn;

        internal readonly Dictionary<string, Job> Running = new Dictionary<string, Job>(StringComparer.Ordinal);
        internal readonly List<Job> InOrder = new List<Job>();
        internal readonly Dictionary<string, Outcome> Outcomes = new Dictionary<string, Outcome>(StringComparer.Ordinal);
        readonly List<Outcome> _outcomesInOrder = new List<Outcome>();

        /// <summary>The newest attempt and fence of each task.</summary>
        internal readonly Dictionary<string, KeyValuePair<long, long>> Fences = new Dictionary<string, KeyValuePair<long, long>>(StringComparer.Ordinal);
        readonly Queue<string> _fencesInOrder = new Queue<string>();

        Journal(string folder) { _folder = folder; }

        /// <summary>
        /// Tells whether a later domain has taken the journal over. When the file is gone for another reason, it is
        /// written again.
        /// </summary>
        public bool IsTaken()
        {
            if (File.Exists(_path)) return false;
            if (Directory.Exists(_folder) && Files().Exists(file => string.CompareOrdinal(file, _path) > 0)) return true;
            Directory.CreateDirectory(_folder);
            _file?.Dispose();
            _file = null;
            Rewrite();
            return false;
        }

        /// <summary>Grows by one with each domain that opens the journal.</summary>
        public long Epoch => _epoch;

        /// <summary>Whether the domain before this one lived in the same process.</summary>
        public bool SameProcess { get; private set; }

        /// <summary>Opens the journal of a project and takes it over from whoever had it.</summary>
        public static Journal Open(string folder, int processId, long processStartedMs)
        {
            Directory.CreateDirectory(folder);
            var journal = new Journal(folder);
            var process = processId.ToString(CultureInfo.InvariantCulture) + "@" + processStartedMs.ToString(CultureInfo.InvariantCulture);
            var files = journal.Files();
            var before = files.Count == 0 ? null : journal.Read(Claim(files));
            journal.SameProcess = before == process;
            journal._process = process;
            journal._epoch++;
            journal._path = Path.Combine(folder, Prefix + journal._epoch.ToString("D12", CultureInfo.InvariantCulture) + Suffix);
            journal.Rewrite();
            foreach (var file in files) Delete(file);
            return journal;
        }

        const string Prefix = "journal-";
        const string Suffix = ".jsonl";
        const string Taken = ".taken";

        // Every domain's file, oldest first: more than one is left only by a crash.
        List<string> Files()
        {
            var files = new List<string>(Directory.GetFiles(_folder, Prefix + "*" + Suffix));
            files.AddRange(Directory.GetFiles(_folder, Prefix + "*" + Suffix + Taken));
            files.Sort(StringComparer.Ordinal);
            return files;
        }

        // From here on the domain that wrote the newest file writes nothing more to it.
        static string Claim(List<string> files)
        {
            var newest = files[files.Count - 1];
            if (newest.EndsWith(Taken, StringComparison.Ordinal)) return newest;
            try { File.Move(newest, newest + Taken); }
            catch (IOException) { return newest; }
            files[files.Count - 1] = newest + Taken;
            return newest + Taken;
        }

        /// <summary>Writes down an accepted request. On disk when this returns, also over a loss of power if <paramref name="durable"/>.</summary>
        internal void Accept(Job job, bool durable)
        {
            Append(new JsonObject { { "t", "run" }, { "job", job.ToJson() } }, durable);
            Track(job);
        }

        internal void Began(Job job) => Append(new JsonObject { { "t", "start" }, { "id", job.RequestId } }, false);

        internal void Remembers(Job job) =>
            Append(new JsonObject { { "t", "keep" }, { "id", job.RequestId }, { "memory", job.Memory } }, false);

        internal void CancelRequested(Job job)
        {
            job.CancelRequested = true;
            Append(new JsonObject { { "t", "cancel" }, { "id", job.RequestId } }, false);
        }

        internal void Progressed(Job job) =>
            Append(new JsonObject { { "t", "prog" }, { "id", job.RequestId }, { "progress", job.Progress } }, false);

        /// <summary>Writes down an outcome and takes its request out of the running set.</summary>
        internal Outcome End(Job job, string message, bool isError)
        {
            var outcome = new Outcome { RequestId = job.RequestId, JobId = job.JobId, Message = message, IsError = isError };
            job.State = JobState.Ended;
            Forget(job.RequestId);
            Keep(outcome);
            try
            {
                var line = new JsonObject { { "t", "end" }, { "id", job.RequestId }, { "job_id", job.JobId }, { "error", isError } };
                if (message.Length > LongMessage) line["file"] = outcome.File = WriteLong(message);
                else line["message"] = message;
                Append(line, false);
            }
            catch (Exception fault) when (fault is IOException || fault is UnauthorizedAccessException || fault is ObjectDisposedException)
            {
                // The outcome still reaches the server as long as this domain lives.
                LastFault = fault.Message;
            }
            return outcome;
        }

        internal void Acknowledge(string requestId)
        {
            if (!Outcomes.TryGetValue(requestId, out var outcome) || outcome.Acknowledged) return;
            MarkAcknowledged(outcome);
            try { Append(new JsonObject { { "t", "ack" }, { "id", requestId } }, false); }
            catch (IOException fault) { LastFault = fault.Message; }
            Shrink();
        }

        /// <summary>Outcomes that nobody acknowledged, oldest first.</summary>
        internal IEnumerable<Outcome> Unacknowledged()
        {
            foreach (var outcome in _outcomesInOrder)
                if (!outcome.Acknowledged) yield return outcome;
        }

        /// <summary>What went wrong with the file last; <c>null</c> when nothing did.</summary>
        public string LastFault { get; private set; }

        /// <summary>Closes the file.</summary>
        public void Dispose()
        {
            _file?.Dispose();
            _file = null;
        }

        // ---- the file ----------------------------------------------------------------------------------------------

        void Append(JsonObject line, bool durable)
        {
            if (_file == null) throw new ObjectDisposedException(nameof(Journal));
            if (IsTaken()) throw new IOException("a later domain has taken the journal over");
            // What a full disk has cut must not spoil the line after it.
            var bytes = Encoding.UTF8.GetBytes((_torn ? "\n" : "") + Json.Write(line) + "\n");
            _torn = true;
            _file.Write(bytes, 0, bytes.Length);
            _file.Flush(durable);
            _torn = false;
            _size += bytes.Length;
            if (_size > _rewriteAt) Rewrite();
        }

        // Writes the present state to a new file and puts it in the place of the old one.
        void Rewrite()
        {
            var fresh = _path + ".new";
            var text = new StringBuilder();
            void Line(JsonObject line) => text.Append(Json.Write(line)).Append('\n');
            Line(new JsonObject { { "t", "load" }, { "epoch", _epoch }, { "process", _process } });
            foreach (var outcome in _outcomesInOrder)
            {
                var line = new JsonObject { { "t", "end" }, { "id", outcome.RequestId }, { "job_id", outcome.JobId }, { "error", outcome.IsError } };
                if (outcome.File != null) line["file"] = outcome.File;
                else line.AddIfPresent("message", outcome.Message);
                Line(line);
                if (outcome.Acknowledged) Line(new JsonObject { { "t", "ack" }, { "id", outcome.RequestId } });
            }
            foreach (var fence in Fences)
                Line(new JsonObject { { "t", "fence" }, { "task", fence.Key }, { "attempt", fence.Value.Key }, { "fence", fence.Value.Value } });
            foreach (var job in InOrder)
            {
                Line(new JsonObject { { "t", "run" }, { "job", job.ToJson() } });
                if (job.State == JobState.Running) Line(new JsonObject { { "t", "start" }, { "id", job.RequestId } });
                if (job.CancelRequested) Line(new JsonObject { { "t", "cancel" }, { "id", job.RequestId } });
                if (job.Memory != null) Line(new JsonObject { { "t", "keep" }, { "id", job.RequestId }, { "memory", job.Memory } });
                if (job.Progress != null) Line(new JsonObject { { "t", "prog" }, { "id", job.RequestId }, { "progress", job.Progress } });
            }
            try
            {
                var bytes = Encoding.UTF8.GetBytes(text.ToString());
                Delete(fresh);
                using (var file = new FileStream(fresh, FileMode.Create, FileAccess.Write, FileShare.None))
                {
                    file.Write(bytes, 0, bytes.Length);
                    file.Flush(true);
                }
                _file?.Dispose();
                _file = null;
                if (File.Exists(_path)) File.Replace(fresh, _path, null);
                else File.Move(fresh, _path);
                _size = bytes.Length;
                _rewriteAt = Math.Max(RewriteAt, 2 * _size);
            }
            catch (Exception fault) when (File.Exists(_path) && (fault is IOException || fault is UnauthorizedAccessException))
            {
                // Somebody holds the file, which Windows does not let us replace: go on with the long one.
                LastFault = fault.Message;
                _rewriteAt = Math.Max(RewriteAt, 2 * _size);
            }
            if (_file == null) _file = new FileStream(_path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite | FileShare.Delete);
        }

        string WriteLong(string message)
        {
            var name = "outcome-" + Guid.NewGuid().ToString("N") + ".json";
            File.WriteAllText(Path.Combine(_folder, name), message, new UTF8Encoding(false));
            return name;
        }

        void Drop(Outcome outcome)
        {
            outcome.Message = null;
            if (outcome.File != null) Delete(Path.Combine(_folder, outcome.File));
            outcome.File = null;
        }

        static void Delete(string path)
        {
            try { File.Delete(path); }
            catch (IOException) { }
            catch (UnauthorizedAccessException) { }
        }

        // Reads a file; answers the process that wrote it.
        string Read(string path)
        {
            string process = null;
            using (var file = new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete))
            using (var lines = new StreamReader(file, Encoding.UTF8))
            {
                for (var text = lines.ReadLine(); text != null; text = lines.ReadLine())
                {
                    JsonObject line;
                    try { line = Json.ParseObject(text); }
                    catch (JsonException) { continue; }
                    if (line.Text("t") != "load") Replay(line);
                    else
                    {
                        process = line.Text("process");
                        _epoch = line.Integer("epoch") ?? 0;
                    }
                }
            }
            foreach (var outcome in _outcomesInOrder) ReadLong(outcome);
            DeleteStrays();
            return process;
        }

        void Replay(JsonObject line)
        {
            var id = line.Text("id");
            switch (line.Text("t"))
            {
                case "run":
                    var job = Job.FromJson(line.Object("job"));
                    Forget(job.RequestId);
                    Track(job);
                    break;
                case "fence":
                    Fence(line.Text("task"), line.Integer("attempt") ?? 0, line.Integer("fence") ?? 0);
                    break;
                case "start":
                    if (Running.TryGetValue(id, out var begun)) begun.State = JobState.Running;
                    break;
                case "cancel":
                    if (Running.TryGetValue(id, out var ends)) ends.CancelRequested = true;
                    break;
                case "keep":
                    if (Running.TryGetValue(id, out var keeps)) keeps.Memory = line.Object("memory");
                    break;
                case "prog":
                    if (Running.TryGetValue(id, out var moved)) moved.Progress = line.Object("progress");
                    break;
                case "end":
                    Forget(id);
                    Keep(new Outcome
                    {
                        RequestId = id,
                        JobId = line.Text("job_id"),
                        Message = line.Text("message"),
                        File = line.Text("file"),
                        IsError = line.Flag("error") ?? false,
                    });
                    break;
                case "ack":
                    if (Outcomes.TryGetValue(id, out var outcome)) MarkAcknowledged(outcome);
                    break;
            }
        }

        void ReadLong(Outcome outcome)
        {
            if (outcome.File == null) return;
            try { outcome.Message = File.ReadAllText(Path.Combine(_folder, outcome.File), Encoding.UTF8); }
            catch (IOException) { outcome.File = null; }
        }

        void DeleteStrays()
        {
            var used = new HashSet<string>(StringComparer.Ordinal);
            foreach (var outcome in _outcomesInOrder)
                if (outcome.File != null) used.Add(outcome.File);
            foreach (var path in Directory.GetFiles(_folder, "outcome-*.json"))
            {
                if (!used.Contains(Path.GetFileName(path))) Delete(path);
            }
        }

        // ---- the state ---------------------------------------------------------------------------------------------

        void Track(Job job)
        {
            Running[job.RequestId] = job;
            InOrder.Add(job);
            SplitId(job.RequestId, out var task, out var attempt);
            Fence(task, attempt, job.Fence);
        }

        void Forget(string requestId)
        {
            if (!Running.TryGetValue(requestId, out var job)) return;
            Running.Remove(requestId);
            InOrder.Remove(job);
        }

        void Keep(Outcome outcome)
        {
            if (Outcomes.TryGetValue(outcome.RequestId, out var old)) _outcomesInOrder.Remove(old);
            Outcomes[outcome.RequestId] = outcome;
            _outcomesInOrder.Add(outcome);
        }

        void MarkAcknowledged(Outcome outcome)
        {
            outcome.Acknowledged = true;
            if (outcome.File != null || (outcome.Message != null && outcome.Message.Length > KeptMessage)) Drop(outcome);
        }

        void Shrink()
        {
            var acknowledged = 0;
            for (var at = _outcomesInOrder.Count - 1; at >= 0; at--)
            {
                var outcome = _outcomesInOrder[at];
                if (!outcome.Acknowledged || ++acknowledged <= KeptOutcomes) continue;
                Drop(outcome);
                _outcomesInOrder.RemoveAt(at);
                Outcomes.Remove(outcome.RequestId);
            }
        }

        void Fence(string task, long attempt, long fence)
        {
            if (task == null) return;
            if (!Fences.TryGetValue(task, out var newest)) _fencesInOrder.Enqueue(task);
            if (attempt >= newest.Key && fence >= newest.Value) Fences[task] = new KeyValuePair<long, long>(attempt, fence);
            while (_fencesInOrder.Count > KeptOutcomes) Fences.Remove(_fencesInOrder.Dequeue());
        }

        /// <summary>Splits <c>task.attempt</c>; an id of another shape is a task of its own with attempt 0.</summary>
        internal static void SplitId(string requestId, out string task, out long attempt)
        {
            var dot = requestId.LastIndexOf('.');
            attempt = 0;
            task = requestId;
            if (dot > 0 && long.TryParse(requestId.Substring(dot + 1), NumberStyles.None, CultureInfo.InvariantCulture, out attempt))
                task = requestId.Substring(0, dot);
        }
    }
}
