using System;
using System.Diagnostics;
using System.Threading;

namespace Raincheck.Core
{
    /// <summary>What the editor is doing, and whether its main thread answers.</summary>
    /// <remarks>
    /// The state is told by the main thread. That the main thread stands still is noticed from another one: it is asked
    /// for a sign of life, and after <see cref="BlockedAfterMs"/> without one the state reads <c>blocked</c>.
    /// </remarks>
    public sealed class EditorStatus
    {
        /// <summary>How long the main thread may take to answer before it counts as blocked.</summary>
        public const long BlockedAfterMs = 3000;
        const long AskAfterMs = 1000;

        readonly IEditorHost _host;
        readonly object _gate = new object();
        readonly Func<long> _nowMs;
        string _state = "ready";
        bool? _focused;
        string _dialog;
        bool _blocked;
        long _seq;
        long _pumpedMs;
        long _askedMs = -1;
        long _sentMs;
        int _inStep;

        internal EditorStatus(IEditorHost host, Func<long> nowMs = null)
        {
            var clock = Stopwatch.StartNew();
            _host = host;
            _nowMs = nowMs ?? (() => clock.ElapsedMilliseconds);
        }

        /// <summary>The state as the server hears it.</summary>
        public string State { get { lock (_gate) return _blocked ? "blocked" : _state; } }

        /// <summary>Whether the editor has the focus; <c>null</c> when that is not known.</summary>
        public bool? Focused { get { lock (_gate) return _focused; } }

        /// <summary>The title of the dialog that holds the main thread; <c>null</c> when there is none.</summary>
        public string Dialog { get { lock (_gate) return _dialog; } }

        /// <summary>How long the main thread has been silent, in milliseconds.</summary>
        public long MainThreadLagMs { get { lock (_gate) return _nowMs() - _pumpedMs; } }

        /// <summary>Notes the state; answers whether it is another one.</summary>
        internal bool Set(string state, bool? focused)
        {
            lock (_gate)
            {
                var changed = state != _state || (focused != null && focused != _focused);
                _state = state;
                _focused = focused ?? _focused;
                return changed;
            }
        }

        /// <summary>Notes a sign of life; answers whether the main thread had counted as blocked.</summary>
        internal bool Pumped()
        {
            lock (_gate)
            {
                _pumpedMs = _nowMs();
                _askedMs = -1;
                var was = _blocked;
                _blocked = false;
                _dialog = null;
                return was;
            }
        }

        internal void EnterStep() => Interlocked.Exchange(ref _inStep, 1);

        internal void LeaveStep() => Interlocked.Exchange(ref _inStep, 0);

        internal void BeginConnection()
        {
            lock (_gate) _seq = 0;
        }

        /// <summary>Looks at the main thread; answers whether the status is to be sent now.</summary>
        internal bool Tick(long intervalMs)
        {
            var ask = false;
            var due = false;
            lock (_gate)
            {
                var now = _nowMs();
                due = now - _sentMs >= intervalMs;
                if (now - _pumpedMs > AskAfterMs && _askedMs < 0)
                {
                    _askedMs = now;
                    ask = true;
                }
                var silent = _askedMs >= 0 && now - _askedMs >= BlockedAfterMs;
                if (silent && !_blocked && IsInteractive()) due |= Block();
            }
            if (ask) _host.WakeMainThread();
            return due;
        }

        // A compile or an import holds the main thread by rights, and says so itself; a tool that works does too,
        // unless a dialog is what it waits for.
        bool IsInteractive() => _state == "ready" || _state == "playing" || _state == "paused" || _state == "running_tests";

        bool Block()
        {
            _dialog = _host.DialogTitle();
            if (_dialog == null && Volatile.Read(ref _inStep) == 1) return false;
            _blocked = true;
            return true;
        }

        internal JsonObject ToMessage()
        {
            lock (_gate)
            {
                _sentMs = _nowMs();
                var message = new JsonObject { { "type", "editor_status" }, { "state", _blocked ? "blocked" : _state }, { "seq", ++_seq } };
                message.AddIfPresent("focused", _focused);
                message["main_thread_lag_ms"] = _sentMs - _pumpedMs;
                return message.AddIfPresent("dialog", _dialog);
            }
        }

        internal JsonObject ToPong()
        {
            lock (_gate)
                return new JsonObject
                {
                    { "type", "pong" },
                    { "editor_state", _blocked ? "blocked" : _state },
                    { "main_thread_lag_ms", _nowMs() - _pumpedMs },
                };
        }
    }
}
