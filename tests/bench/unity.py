#!/usr/bin/env python3
"""Measures servers for the Unity Editor on stdio, with one client and one simulated editor; one JSON object a line.

    cargo build --locked --profile dist --package unity-mcp
    python3 -m venv target/peers/unity && target/peers/unity/bin/pip install mcpforunityserver==10.3.0
    python3 tests/bench/unity.py [--quick] [--rounds 5]

What is compared, as shipped:
  unity-mcp          its store in a file that survives a loss of power; the editor is the client of a WebSocket
  unity-mcp memory   the same with `--store memory`
  mcpforunityserver  10.3.0 from PyPI over stdio; the editor is a TCP server; left out when it is not there

The editor is this script, in a process of its own: it speaks both wires, answers every command at once, and counts
what it is sent and what it executes. The client writes and reads raw bytes and parses nothing inside the clock. The rounds
alternate between the servers, so that a change of the machine's load meets all of them; medians over the rounds.

  start        from spawn to the answer of `initialize`; `memory_mb` is what is resident then and after the calls
  round_trip   a call of `execute_menu_item` that waits for its result: client, server, editor and back
  socket       the same bytes from this process to the editor's and back, without a server: what no server can save
  editor_asks  messages that the editor gets for one call
  drops        calls during which the connection is lost once, after the editor has executed them: how often each was
               executed, and after what time its caller was answered
Python 3.11, standard library, Linux.
"""

import argparse
import base64
import hashlib
import hmac
import json
import multiprocessing
import os
import shutil
import socket
import statistics
import struct
import tempfile
import threading
import time
from pathlib import Path

from stdio import ROOT, TARGET, Server, machine, micro, quantile, show

PEER = ROOT / "target/peers/unity/bin/mcp-for-unity"
PROFILE = os.environ.get("RAINCHECK_BENCH_PROFILE", "dist")
NONCE = base64.urlsafe_b64encode(b"sixteen bytes ..").decode().rstrip("=")


class Counts:
    """What the editor saw, shared between processes."""

    def __init__(self):
        self.asked = multiprocessing.Value("q", 0)
        self.executed = multiprocessing.Value("q", 0)
        self.drop_next = multiprocessing.Value("b", 0)

    def ask(self):
        with self.asked.get_lock():
            self.asked.value += 1

    def execute(self):
        """Executes a command; whether the connection is lost before its result."""
        with self.executed.get_lock():
            self.executed.value += 1
        with self.drop_next.get_lock():
            drops, self.drop_next.value = bool(self.drop_next.value), 0
        return drops


class WebSocket:
    """A WebSocket of text messages, as the editor's client has it."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""
        self.sock.sendall(
            f"GET /unity HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self.rest:
            self.fill()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 101"), head

    def fill(self):
        data = self.sock.recv(1 << 16)
        if not data:
            raise ConnectionError
        self.rest += data

    def take(self, n):
        while len(self.rest) < n:
            self.fill()
        part, self.rest = self.rest[:n], self.rest[n:]
        return part

    def send(self, message, kind=1):
        data = message if isinstance(message, bytes) else json.dumps(message, separators=(",", ":")).encode()
        length = len(data)
        head = bytes([0x80 | kind]) + (
            bytes([0x80 | length]) if length < 126 else bytes([0xFE]) + struct.pack(">H", length) if length < 1 << 16
            else bytes([0xFF]) + struct.pack(">Q", length)
        )
        # A mask of zeros: the bytes stay as they are.
        self.sock.sendall(head + b"\0\0\0\0" + data)

    def recv(self):
        while True:
            first, length = self.take(2)
            if length == 126:
                (length,) = struct.unpack(">H", self.take(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self.take(8))
            data = self.take(length)
            if first & 15 == 1:
                return json.loads(data)
            if first & 15 == 9:
                self.send(data, 10)
            elif first & 15 == 8:
                raise ConnectionError


def mac(secret, text):
    key = base64.urlsafe_b64decode(secret + "=" * (-len(secret) % 4))
    return base64.urlsafe_b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode().rstrip("=")


def native(project, counts):
    """The editor for unity-mcp: keeps its results over a lost connection until they are acknowledged."""
    path = Path(project) / "Library/Raincheck/endpoint.json"
    finished, begun = {}, set()
    while True:
        try:
            endpoint = json.loads(path.read_text())
            ws = WebSocket(endpoint["port"])
            ws.send({
                "type": "hello", "protocol_version": 1, "plugin_version": "0.1.0", "unity_version": "2022.3.50f1", "project_name": "Bench",
                "editor_instance_id": "bench", "plugin_session_id": "bench", "pid": os.getpid(), "domain_epoch": 1, "nonce": NONCE,
            })
            hello = ws.recv()
            proof = f"{NONCE}|{hello['nonce']}|{endpoint['port']}"
            assert hello["mac"] == mac(endpoint["secret"], f"server|{proof}")
            ws.send({
                "type": "auth", "mac": mac(endpoint["secret"], f"client|{proof}"), "project_path": project, "state": "ready",
                "running": [], "finished_unacked": list(finished), "tools": [{"name": "execute_menu_item"}],
            })
            for result in list(finished.values()):
                ws.send(result)
            while True:
                message = ws.recv()
                if message["type"] == "result_ack":
                    finished.pop(message["request_id"], None)
                if message["type"] not in ("execute", "submit_job"):
                    continue
                counts.ask()
                request = message["request_id"]
                ws.send({"type": "accepted", "request_id": request})
                if request in begun:
                    continue
                begun.add(request)
                drops = counts.execute()
                finished[request] = {"type": "result", "request_id": request, "fence": message["fence"], "status": "ok", "result": {"done": True}}
                if drops:
                    raise ConnectionError
                ws.send(finished[request])
        except (OSError, ValueError, KeyError, ConnectionError):
            time.sleep(0.05)


def peers(folder, counts, port):
    """The editor for mcpforunityserver: a TCP server of frames, and the file that says where it listens."""
    listener = socket.create_server(("127.0.0.1", 0))
    port.value = listener.getsockname()[1]
    status = Path(folder) / "unity-mcp-status-bench0001.json"

    def heartbeat():
        while True:
            status.write_text(json.dumps({
                "unity_port": port.value, "reloading": False, "reason": "ready", "seq": 1, "project_path": f"{folder}/Bench/Assets",
                "project_name": "Bench", "unity_version": "2022.3.50f1", "last_heartbeat": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }))
            time.sleep(0.5)

    threading.Thread(target=heartbeat, daemon=True).start()
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=one_peer, args=(connection, counts), daemon=True).start()


def one_peer(connection, counts):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = connection.makefile("rb")
    try:
        connection.sendall(b"WELCOME UNITY-MCP 1 FRAMING=1\n")
        while head := stream.read(8):
            text = stream.read(struct.unpack(">Q", head)[0])
            kind = "ping" if text.strip() == b"ping" else json.loads(text).get("type")
            if kind != "ping":
                counts.ask()
            if kind == "execute_menu_item" and counts.execute():
                # The connection alone is lost, as in a reload of the editor's code.
                connection.shutdown(socket.SHUT_RDWR)
                return
            data = b'{"message":"pong"}' if kind == "ping" else ANSWERS.get(kind, b'{"success":true,"message":"done","data":{"done":true}}')
            answer = b'{"status":"success","result":' + data + b"}"
            connection.sendall(struct.pack(">Q", len(answer)) + answer)
    except OSError:
        pass
    finally:
        connection.close()


ANSWERS = {
    "get_tool_states": b'{"success":true,"message":"ok","data":{"tools":[],"groups":[]}}',
    "get_editor_state": b'{"success":true,"message":"ok","data":{"activity":{"phase":"idle"},"compilation":{},"tests":{}}}',
}


def echo(port):
    listener = socket.create_server(("127.0.0.1", 0))
    port.value = listener.getsockname()[1]
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := connection.recv(1 << 16):
        connection.sendall(data)


class Bench:
    """One server with its editor."""

    def __init__(self, name, home):
        self.name, self.counts = name, Counts()
        Path(home).mkdir()
        project = Path(home) / "Bench"
        for part in ("Assets", "ProjectSettings", "Packages"):
            (project / part).mkdir(parents=True)
        (project / "ProjectSettings/ProjectVersion.txt").write_text("m_EditorVersion: 2022.3.50f1\n")
        if name == "mcpforunityserver":
            port = multiprocessing.Value("i", 0)
            self.editor = multiprocessing.Process(target=peers, args=(str(home), self.counts, port), daemon=True)
            self.editor.start()
            while not port.value:
                time.sleep(0.01)
            time.sleep(0.7)
            os.environ.update(UNITY_MCP_STATUS_DIR=str(home), HOME=str(home), DISABLE_TELEMETRY="true", UNITY_MCP_DISABLE_TELEMETRY="true")
            argv = [str(PEER), "--transport", "stdio"]
            self.call = {"name": "execute_menu_item", "arguments": {"menu_path": "Bench/Item"}}
        else:
            self.editor = multiprocessing.Process(target=native, args=(str(project), self.counts), daemon=True)
            self.editor.start()
            argv = [str(TARGET / PROFILE / "unity-mcp"), "--project", str(project)]
            argv += ["--store", "memory"] if name.endswith("memory") else []
            self.call = {"name": "execute_menu_item", "arguments": {"path": "Bench/Item", "timeout": 20}}
        self.server = Server(argv, home)
        self.idle_mb = self.tree_mb()

    def tree_mb(self):
        """What the server and its children have resident, in MB."""
        pids, total = [self.server.process.pid], 0.0
        for pid in pids:
            for child in Path(f"/proc/{pid}/task").glob("*/children"):
                pids += [int(x) for x in child.read_text().split()]
            for one in Path(f"/proc/{pid}/status").read_text().splitlines():
                if one.startswith("VmRSS:"):
                    total += int(one.split()[1]) * 1024 / 1e6
        return round(total, 1)

    def warm_up(self):
        """Calls until the editor answers."""
        deadline = time.monotonic() + 60
        while True:
            before = self.counts.executed.value
            answer = self.server.request("tools/call", self.call)
            if self.counts.executed.value > before and not answer.get("isError"):
                return
            assert time.monotonic() < deadline, answer
            time.sleep(0.2)

    def drops(self, n):
        """Calls whose connection is lost once: executions and seconds of each."""
        executions, seconds, results = [], [], 0
        for _ in range(n):
            before = self.counts.executed.value
            self.counts.drop_next.value = 1
            began = time.perf_counter()
            answer = self.server.request("tools/call", self.call)
            seconds.append(time.perf_counter() - began)
            executions.append(self.counts.executed.value - before)
            results += b'done":true' in json.dumps(answer).replace(" ", "").replace("\\", "").encode()
            self.warm_up()
        return executions, seconds, results

    def end(self):
        self.server.end()
        self.editor.terminate()
        self.editor.join()


def socket_alone(n):
    port = multiprocessing.Value("i", 0)
    other = multiprocessing.Process(target=echo, args=(port,), daemon=True)
    other.start()
    while not port.value:
        time.sleep(0.01)
    with socket.create_connection(("127.0.0.1", port.value)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data, taken = b"x" * 300, []
        for _ in range(n):
            began = time.perf_counter()
            sock.sendall(data)
            got = 0
            while got < len(data):
                got += len(sock.recv(1 << 16))
            taken.append(time.perf_counter() - began)
    other.join()
    return sorted(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    n_calls, n_drops, rounds = (50, 1, 1) if options.quick else (400, 2, options.rounds)
    machine()
    names = ["unity-mcp", "unity-mcp memory"] + (["mcpforunityserver"] if PEER.exists() else [])
    if not PEER.exists():
        show("left_out", server="mcpforunityserver", why=f"{PEER} is not there")
    found = {name: {"start": [], "idle_mb": [], "mb": [], "p50": [], "p99": [], "asks": [], "executions": [], "drop_s": [], "kept": 0} for name in names}
    alone = []
    for n in range(rounds):
        for name in names[n % len(names) :] + names[: n % len(names)]:
            home = tempfile.mkdtemp(prefix="unity-bench-")
            try:
                bench, one = Bench(name, f"{home}/it"), found[name]
                one["start"].append(bench.server.ready)
                one["idle_mb"].append(bench.idle_mb)
                bench.warm_up()
                bench.server.times(20, "tools/call", bench.call)
                before = bench.counts.asked.value
                times = bench.server.times(n_calls, "tools/call", bench.call)
                one["asks"].append((bench.counts.asked.value - before) / n_calls)
                one["p50"].append(quantile(times, 0.5))
                one["p99"].append(quantile(times, 0.99))
                one["mb"].append(bench.tree_mb())
                executions, seconds, kept = bench.drops(n_drops)
                one["executions"] += executions
                one["drop_s"] += seconds
                one["kept"] += kept
                bench.end()
            finally:
                shutil.rmtree(home, ignore_errors=True)
        alone.append(quantile(socket_alone(n_calls), 0.5))
    median = statistics.median
    show("socket", p50_us=micro(median(alone)))
    for name, one in found.items():
        show("start", server=name, ms=round(median(one["start"]) * 1e3, 1), memory_mb=median(one["idle_mb"]), memory_after_calls_mb=median(one["mb"]))
        show("round_trip", server=name, p50_us=micro(median(one["p50"])), p99_us=micro(median(one["p99"])), rounds=rounds, calls=n_calls)
        show("editor_asks", server=name, per_call=median(one["asks"]))
        show("drops", server=name, n=len(one["executions"]), executions_per_call=median(one["executions"]), most=max(one["executions"]),
             answered_after_s=round(median(one["drop_s"]), 2), with_result=one["kept"])


if __name__ == "__main__":
    main()
