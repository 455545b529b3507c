#!/usr/bin/env python3
"""Measures servers on stdio with one client, in one run; prints one JSON object a line.

    cargo build --locked --profile dist --package raincheck-cli
    cargo build --locked --release --manifest-path tests/bench/Cargo.toml --target-dir target/bench
    python3 tests/bench/stdio.py [--quick]

What is compared:
  bare       rmcp and one tool that answers at once (its non-blocking pipe transport)
  embedded   the same tool as a closure in a Raincheck server: each call is a task
  raincheck  the binary, whose tools are programs, with its tasks in memory

The client writes and reads raw bytes and parses nothing inside the clock. Rounds alternate between
the servers, so that a change of the machine's load meets all of them; medians over the rounds.
Python 3.11, standard library, Linux.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
CONFIG = """
[lanes.endless]
concurrency = 1
queue_limit = 1000000
[tools.endless]
description = "Sleeps"
command = ["sleep", "3600"]
lane = "endless"
wait_s = 0
[tools.nothing]
description = "Ends at once"
command = ["true"]
wait_s = 30
"""
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "raincheck-bench", "version": "1"},
}


class Server:
    """One server and its two pipes."""

    def __init__(self, argv, home):
        self.began = time.perf_counter()
        state = {"RAINCHECK_STATE_DIR": f"{home}/state", "RAINCHECK_RUNTIME_DIR": f"{home}/run"}
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0, env=os.environ | state
        )
        self.inward, self.outward = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.rest = b""
        self.next_id = 0
        self.request("initialize", INITIALIZE)
        self.ready = time.perf_counter() - self.began
        self.write(line({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def write(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self.inward, view) :]

    def read_line(self):
        """The next line, without parsing it."""
        while b"\n" not in self.rest:
            data = os.read(self.outward, 1 << 20)
            assert data, "the server is gone"
            self.rest += data
        first, self.rest = self.rest.split(b"\n", 1)
        return first

    def prepare(self, method, params):
        self.next_id += 1
        return line({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})

    def request(self, method, params):
        self.write(self.prepare(method, params))
        while True:
            answer = json.loads(self.read_line())
            if "id" in answer:
                assert "result" in answer, answer
                return answer["result"]

    def call(self, tool, arguments):
        return json.loads(self.request("tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"])

    def times(self, n, method, params):
        """The times of n requests, one after the other, in seconds."""
        lines = [self.prepare(method, params) for _ in range(n)]
        taken = []
        for one in lines:
            began = time.perf_counter()
            self.write(one)
            answer = self.read_line()
            taken.append(time.perf_counter() - began)
            assert b'"result"' in answer and b'"isError":true' not in answer, answer
        return sorted(taken)

    def memory_mb(self):
        for one in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if one.startswith("VmRSS:"):
                return round(int(one.split()[1]) * 1024 / 1e6, 1)

    def end(self):
        began = time.perf_counter()
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()
        return time.perf_counter() - began


def line(message):
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def show(figure, **values):
    print(json.dumps({"figure": figure, **values}), flush=True)


def quantile(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def micro(seconds):
    return round(seconds * 1e6, 1)


def machine():
    model = [x.split(":")[1].strip() for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("model name")]
    show(
        "machine",
        cpu=model[0] if model else "?",
        cores=os.cpu_count(),
        system=platform.platform(),
        python=platform.python_version(),
        load=os.getloadavg()[0],
        date=time.strftime("%Y-%m-%d"),
    )


def start_up(servers, home, n):
    taken = {name: [] for name in servers}
    ends = {name: [] for name in servers}
    for _ in range(n):
        for name, argv in servers.items():
            server = Server(argv, home)
            taken[name].append(server.ready)
            ends[name].append(server.end())
    for name in servers:
        show("spawn to initialize", server=name, n=n, median_ms=round(statistics.median(taken[name]) * 1e3, 2))
        show("end of stdin to exit, idle", server=name, n=n, median_ms=round(statistics.median(ends[name]) * 1e3, 2))


def calls(servers, home, rounds, n):
    """The time of one small request; `echo` where there is one, a status read on the binary."""
    running = {name: Server(argv, home) for name, argv in servers.items()}
    task = running["raincheck"].call("endless", {})["task_id"]
    echo = ("tools/call", {"name": "echo", "arguments": {"m": "x"}})
    kinds = {
        ("bare", "echo"): echo,
        ("embedded", "echo"): echo,
        ("embedded, file", "echo"): echo,
        ("raincheck", "get_task_status"): ("tools/call", {"name": "get_task_status", "arguments": {"task_id": task}}),
        ("bare", "ping"): ("ping", {}),
        ("embedded", "ping"): ("ping", {}),
        ("raincheck", "ping"): ("ping", {}),
    }
    seen = {kind: [] for kind in kinds}
    for kind, request in kinds.items():
        running[kind[0]].times(200, *request)
    for _ in range(rounds):
        for kind, request in kinds.items():
            taken = running[kind[0]].times(n, *request)
            seen[kind].append((quantile(taken, 0.5), quantile(taken, 0.99)))
    median = {}
    for kind, pairs in seen.items():
        p50, p99 = (statistics.median(one) for one in zip(*pairs))
        median[kind] = p50
        show("one request", server=kind[0], request=kind[1], rounds=rounds, n=n, p50_us=micro(p50), p99_us=micro(p99))
    for name in ("embedded", "embedded, file"):
        added = median[name, "echo"] - median["bare", "echo"]
        show("added by Raincheck to an inline call", server=name, p50_us=micro(added))
    for server in running.values():
        server.end()


def results(servers, home, n):
    """From submit to result: a closure in memory, and a program that ends at once."""
    for name, tool in (("embedded", "echo"), ("raincheck", "nothing")):
        server = Server(servers[name], home)
        taken = []
        for _ in range(n):
            began = time.perf_counter()
            task = server.call("submit_task", {"tool_name": tool, "inputs": {}})["task_id"]
            ended = server.call("get_task_result", {"task_id": task, "wait_s": 30})
            taken.append(time.perf_counter() - began)
            assert ended["state"] == "succeeded", ended
        taken.sort()
        show("submit to result", server=name, n=n, p50_us=micro(quantile(taken, 0.5)), p99_us=micro(quantile(taken, 0.99)))
        server.end()
    taken = []
    for _ in range(n):
        began = time.perf_counter()
        subprocess.run(["true"], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        taken.append(time.perf_counter() - began)
    show("the same program started by this client", n=n, p50_us=micro(quantile(sorted(taken), 0.5)))


def idle(argv, home, n):
    """Memory of a server that has opened its store and its listener and has nothing to do."""
    stores = {"memory": "memory", "file": f"{home}/idle/store.db"}
    seen = {kind: [] for kind in stores}
    for _ in range(n):
        for kind, store in stores.items():
            server = Server([*argv, "--store", store], home)
            server.call("list_tasks", {})
            time.sleep(1)
            seen[kind].append(server.memory_mb())
            server.end()
    for kind, taken in seen.items():
        show("resident memory, idle", server="raincheck", store=kind, n=n, mb=statistics.median(taken))


def crowd(argv, home, live, burst):
    """Memory with many live tasks, and a burst of submits without waiting for answers."""
    server = Server(argv, home)
    n_live = 0
    for n in (live, burst):
        lines = [
            server.prepare("tools/call", {"name": "submit_task", "arguments": {"tool_name": "endless", "inputs": {"n": i}}})
            for i in range(n)
        ]
        began = time.perf_counter()
        writer = threading.Thread(target=lambda: [server.write(one) for one in lines])
        writer.start()
        refused = sum(b'"isError":true' in server.read_line() for _ in range(n))
        taken = time.perf_counter() - began
        writer.join()
        show("burst of submits", n=n, refused=refused, seconds=round(taken, 2), per_second=round(n / taken))
        n_live += n - refused
        show("resident memory, with live tasks", server="raincheck", live=n_live, mb=server.memory_mb())
        taken = server.times(200, "tools/call", {"name": "list_tasks", "arguments": {"limit": 50}})
        show("list of 50 among them", p50_us=micro(quantile(taken, 0.5)), p99_us=micro(quantile(taken, 0.99)))
    show("end of stdin to exit, busy", ms=round(server.end() * 1e3, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, to see that it works")
    parser.add_argument("--raincheck", default=TARGET / "dist/raincheck", type=Path)
    parser.add_argument("--bench-target", default=TARGET / "bench", type=Path, help="where tests/bench was built")
    args = parser.parse_args()
    share = 10 if args.quick else 1
    with tempfile.TemporaryDirectory(prefix="raincheck-bench-") as home:
        config = Path(home, "raincheck.toml")
        config.write_text(CONFIG)
        bare = args.bench_target / "release/bare-rmcp"
        serve = [args.raincheck, "serve", "--config", config]
        servers = {
            "bare": [bare, "pipes"],
            "embedded": [args.bench_target / "release/embedded-echo"],
            "embedded, file": [args.bench_target / "release/embedded-echo", Path(home, "embedded.db")],
            "raincheck": [*serve, "--store", "memory"],
        }
        missing = [str(argv[0]) for argv in servers.values() if not argv[0].exists()]
        if missing:
            sys.exit(f"not built: {', '.join(missing)}; the commands are at the top of {__file__}")
        machine()
        start_up(servers, home, 20 // share)
        calls(servers, home, 5, 5000 // share)
        results(servers, home, 500 // share)
        idle(serve, home, 9)
        crowd(servers["raincheck"], home, 10_000 // share, 100_000 // share)


if __name__ == "__main__":
    main()
