using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Net.WebSockets;
using System.Text;
using System.Threading;

namespace Raincheck.Core
{
    /// <summary>What the link asks of the bridge. Everything is called on the link's own threads.</summary>
    interface ILinkOwner
    {
        /// <summary>The first message; nothing private is in it.</summary>
        JsonObject Hello(string nonce);

        /// <summary>What is sent after the server has proved itself, the mac aside.</summary>
        JsonObject Auth();

        /// <summary>Both ends have proved themselves: messages may be sent once <paramref name="open"/> was called.</summary>
        void Connected(Action open);

        /// <summary>Whether this domain has a successor, and so may not connect any more.</summary>
        bool IsRetired();

        /// <summary>A message of the server.</summary>
        void Received(JsonObject message);

        /// <summary>Called about four times a second while connected.</summary>
        void Tick(long statusIntervalMs);
    }

    /// <summary>
    /// The connection to the server: finds it, connects, proves, receives on a thread of its own and sends from one
    /// queue on another, and begins again when the connection ends.
    /// </summary>
    sealed class Link : IDisposable
    {
        const int LookEveryMs = 250;
        const int HandshakeMs = 5000;
        const int SendMs = 15000;
        const int TickMs = 250;
        const long MaxQueued = 160L * 1024 * 1024;

        // Mono has no names for these.
        const int Unauthorised = 4401;
        const int Superseded = 4409;

        readonly ILinkOwner _owner;
        readonly IEditorHost _host;
        readonly EndpointFile _file;
        readonly Backoff _backoff;
        readonly ManualResetEvent _stop = new ManualResetEvent(false);
        readonly object _queueGate = new object();
        readonly Queue<KeyValuePair<string, string>> _queue = new Queue<KeyValuePair<string, string>>();
        readonly Thread _thread;
        long _queued;
        bool _sending;
        volatile ClientWebSocket _socket;
        volatile bool _ready;
        int _frameLimit = 1024 * 1024;
        long _statusIntervalMs = 5000;

        public readonly LinkStatus Status = new LinkStatus();

        public Link(ILinkOwner owner, IEditorHost host)
        {
            _owner = owner;
            _host = host;
            _file = new EndpointFile(host.ProjectPath);
            _backoff = new Backoff(host.ProcessId ^ Environment.TickCount);
            _thread = new Thread(Run) { IsBackground = true, Name = "Raincheck link" };
        }

        public bool Ready => _ready;

        public void Start() => _thread.Start();

        /// <summary>Puts a message into the queue; it is dropped while not connected, as what matters is replayed.</summary>
        public void Send(string requestId, string message)
        {
            lock (_queueGate)
            {
                if (!_ready) return;
                if (_queued + message.Length > MaxQueued)
                {
                    Status.Fault = "the server does not read what it is sent";
                    Abort();
                    return;
                }
                _queue.Enqueue(new KeyValuePair<string, string>(requestId, message));
                _queued += message.Length;
                Monitor.PulseAll(_queueGate);
            }
        }

        /// <summary>Waits until everything was sent, at most so long.</summary>
        public void Drain(int milliseconds)
        {
            var until = Environment.TickCount + milliseconds;
            lock (_queueGate)
            {
                while (_ready && (_queue.Count > 0 || _sending))
                {
                    var left = until - Environment.TickCount;
                    if (left <= 0 || !Monitor.Wait(_queueGate, left)) return;
                }
            }
        }

        /// <summary>Ends the connection and both threads. Returns within about a second, whatever the server does.</summary>
        public void Dispose()
        {
            Stop();
            if (_thread.IsAlive && Thread.CurrentThread != _thread) _thread.Join(1000);
            Status.State = LinkState.Off;
        }

        /// <summary>Ends the connection and lets the threads end by themselves.</summary>
        public void Stop()
        {
            _stop.Set();
            Abort();
        }

        void Abort()
        {
            _ready = false;
            try { _socket?.Abort(); }
            catch (ObjectDisposedException) { }
        }

        // ---- the connection ----------------------------------------------------------------------------------------

        void Run()
        {
            var refused = false;
            while (!_stop.WaitOne(0))
            {
                if (_file.Changed())
                {
                    refused = false;
                    _backoff.Reset();
                }
                var endpoint = _file.Current;
                Status.EndpointFile = _file.Place;
                Status.Port = endpoint?.Port ?? 0;
                if (endpoint == null || refused)
                {
                    Status.State = refused ? LinkState.Refused : LinkState.NoServer;
                    _stop.WaitOne(LookEveryMs);
                    continue;
                }
                if (_owner.IsRetired()) return;
                Status.State = LinkState.Connecting;
                var code = Once(endpoint);
                if (code == Superseded)
                {
                    Status.State = LinkState.Superseded;
                    Status.Fault = "another editor of this project is connected";
                    _host.Log(LogLevel.Warning, "another editor of this project took the connection over; this one stays away");
                    return;
                }
                refused = code == Unauthorised;
                if (!_stop.WaitOne(0)) Status.State = LinkState.Connecting;
                if (!refused) Rest();
            }
        }

        // Waits for the next attempt, or until the endpoint changes.
        void Rest()
        {
            var left = _backoff.Next();
            while (left > 0)
            {
                var now = Math.Min(left, LookEveryMs);
                if (_stop.WaitOne(now)) return;
                left -= now;
                if (!_file.Changed()) continue;
                _backoff.Reset();
                return;
            }
        }

        // One connection from its beginning to its end; answers the code it was closed with, or 0.
        int Once(Endpoint endpoint)
        {
            Thread sender = null;
            using (var socket = new ClientWebSocket())
            {
                try
                {
                    socket.Options.KeepAliveInterval = TimeSpan.FromSeconds(10);
                    socket.Options.Proxy = null;
                    _socket = socket;
                    if (_stop.WaitOne(0)) return 0;
                    using (var limit = new CancellationTokenSource(HandshakeMs))
                    {
                        socket.ConnectAsync(endpoint.Address, limit.Token).GetAwaiter().GetResult();
                        if (!Handshake(socket, endpoint, limit.Token)) return Unauthorised;
                    }
                    sender = new Thread(() => SendAll(socket)) { IsBackground = true, Name = "Raincheck sender" };
                    BeReady(sender);
                    for (var text = Receive(socket, CancellationToken.None); text != null; text = Receive(socket, CancellationToken.None))
                        Take(text);
                    Answer(socket, sender);
                    return Closed(socket);
                }
                catch (Exception fault) when (IsOfTheSocket(fault))
                {
                    if (!_stop.WaitOne(0)) Status.Fault = Innermost(fault);
                    return Closed(socket);
                }
                catch (Exception fault)
                {
                    Status.Fault = Innermost(fault);
                    _host.Log(LogLevel.Error, "the connection ended by a fault of the package: " + fault);
                    return 0;
                }
                finally
                {
                    Abort();
                    lock (_queueGate)
                    {
                        _queue.Clear();
                        _queued = 0;
                        Monitor.PulseAll(_queueGate);
                    }
                    sender?.Join(1000);
                    _socket = null;
                    Status.ServerVersion = null;
                }
            }
        }

        void BeReady(Thread sender)
        {
            Status.State = LinkState.Connected;
            Status.Connections++;
            Status.Fault = null;
            _backoff.Reset();
            _owner.Connected(() => { lock (_queueGate) _ready = true; });
            sender.Start();
        }

        void Take(string text)
        {
            JsonObject message;
            try { message = Json.ParseObject(text); }
            catch (JsonException fault)
            {
                Send(null, Json.Write(Messages.Error(null, "ERR_INVALID_REQUEST", "this message is not JSON: " + fault.Message, Guarantee.NotExecuted)));
                return;
            }
            _owner.Received(message);
        }

        // Answers whether both ends have proved themselves.
        bool Handshake(ClientWebSocket socket, Endpoint endpoint, CancellationToken limit)
        {
            var nonce = Proof.Nonce();
            SendNow(socket, Json.Write(_owner.Hello(nonce)), limit);
            var proved = false;
            while (true)
            {
                var text = Receive(socket, limit);
                if (text == null)
                {
                    Status.Fault = Status.Fault ?? "the server closed the connection during the handshake";
                    if (Closed(socket) == Unauthorised) return false;
                    throw new WebSocketException("closed during the handshake");
                }
                var message = Json.ParseObject(text);
                switch (message.Text("type"))
                {
                    case "hello":
                        var theirs = message.Text("nonce");
                        var bytes = Proof.Bytes(theirs);
                        if (bytes == null || bytes.Length != 16 || theirs == nonce
                            || !Proof.Same(message.Text("mac"), Proof.Mac(endpoint.Secret, "server", nonce, theirs, endpoint.Port)))
                        {
                            Status.Fault = "the server could not prove that it wrote the endpoint file";
                            _host.Log(LogLevel.Warning, Status.Fault + " (" + Status.EndpointFile + "); nothing was sent to it");
                            return false;
                        }
                        proved = true;
                        Learn(message);
                        var auth = _owner.Auth();
                        auth["mac"] = Proof.Mac(endpoint.Secret, "client", nonce, theirs, endpoint.Port);
                        foreach (var part in Chunks.Cut("auth", Json.Write(auth), _frameLimit)) SendNow(socket, part, limit);
                        break;
                    case "capability":
                        if (proved) return true;
                        throw new WebSocketException("the server went on without proving itself");
                    case "error":
                        Status.Fault = message.Object("error")?.Text("message") ?? "the server refused the connection";
                        _host.Log(LogLevel.Warning, "the server refused the connection: " + Status.Fault);
                        break;
                }
            }
        }

        void Learn(JsonObject hello)
        {
            Status.ServerVersion = hello.Text("server_version");
            _statusIntervalMs = Math.Max(500, Math.Min(hello.Integer("editor_status_interval_ms") ?? 5000, 10000));
            var most = hello.Integer("max_message_bytes") ?? 1024 * 1024;
            _frameLimit = (int)Math.Max(4096, Math.Min(most, 1024 * 1024));
        }

        // ---- frames ------------------------------------------------------------------------------------------------

        readonly byte[] _buffer = new byte[64 * 1024];

        // One whole message, however many frames it came in; null when the server closed.
        string Receive(ClientWebSocket socket, CancellationToken limit)
        {
            using (var whole = new MemoryStream())
            {
                while (true)
                {
                    var part = socket.ReceiveAsync(new ArraySegment<byte>(_buffer), limit).GetAwaiter().GetResult();
                    if (part.MessageType == WebSocketMessageType.Close) return null;
                    if (part.EndOfMessage && whole.Length == 0) return Encoding.UTF8.GetString(_buffer, 0, part.Count);
                    whole.Write(_buffer, 0, part.Count);
                    if (whole.Length > Chunks.MaxMessage) throw new WebSocketException("the server sent a message longer than 64 MiB");
                    if (part.EndOfMessage) return Encoding.UTF8.GetString(whole.GetBuffer(), 0, (int)whole.Length);
                }
            }
        }

        void SendAll(ClientWebSocket socket)
        {
            var ticked = Environment.TickCount;
            try
            {
                while (_ready && socket == _socket)
                {
                    var next = Next();
                    if (Environment.TickCount - ticked >= TickMs)
                    {
                        ticked = Environment.TickCount;
                        _owner.Tick(_statusIntervalMs);
                    }
                    if (next.Value == null) continue;
                    foreach (var part in Chunks.Cut(next.Key, next.Value, _frameLimit))
                        using (var limit = new CancellationTokenSource(SendMs)) SendNow(socket, part, limit.Token);
                    lock (_queueGate)
                    {
                        _sending = false;
                        Monitor.PulseAll(_queueGate);
                    }
                }
            }
            catch (Exception fault)
            {
                if (!_stop.WaitOne(0)) Status.Fault = Innermost(fault);
                if (!IsOfTheSocket(fault)) _host.Log(LogLevel.Error, "sending ended by a fault of the package: " + fault);
                Abort();
            }
            finally { _sending = false; }
        }

        KeyValuePair<string, string> Next()
        {
            lock (_queueGate)
            {
                if (_queue.Count == 0) Monitor.Wait(_queueGate, TickMs);
                if (_queue.Count == 0) return default;
                var next = _queue.Dequeue();
                _queued -= next.Value.Length;
                _sending = true;
                return next;
            }
        }

        static void SendNow(ClientWebSocket socket, string text, CancellationToken limit) =>
            socket.SendAsync(new ArraySegment<byte>(Encoding.UTF8.GetBytes(text)), WebSocketMessageType.Text, true, limit).GetAwaiter().GetResult();

        // The server has closed: nothing more is sent but the answer to that.
        void Answer(ClientWebSocket socket, Thread sender)
        {
            _ready = false;
            lock (_queueGate) Monitor.PulseAll(_queueGate);
            if (!sender.Join(1000)) return;
            var code = socket.CloseStatus ?? WebSocketCloseStatus.NormalClosure;
            using (var limit = new CancellationTokenSource(1000))
                socket.CloseOutputAsync((int)code >= 3000 ? code : WebSocketCloseStatus.NormalClosure, "", limit.Token).GetAwaiter().GetResult();
        }

        int Closed(ClientWebSocket socket)
        {
            if (socket.CloseStatus == null) return 0;
            var code = (int)socket.CloseStatus.Value;
            if (!string.IsNullOrEmpty(socket.CloseStatusDescription))
                Status.Fault = socket.CloseStatusDescription + " (" + code.ToString(CultureInfo.InvariantCulture) + ")";
            return code;
        }

        static bool IsOfTheSocket(Exception fault) =>
            fault is WebSocketException || fault is OperationCanceledException || fault is IOException || fault is ObjectDisposedException
            || fault is InvalidOperationException || fault is JsonException;

        static string Innermost(Exception fault)
        {
            while (fault.InnerException != null) fault = fault.InnerException;
            return fault.Message;
        }
    }
}
