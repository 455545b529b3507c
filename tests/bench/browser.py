#!/usr/bin/env python3
"""Measures browser servers on stdio with one client and one simulated extension; one JSON object a line.

    cargo build --locked --profile dist --package browser-mcp
    npm install --prefix target/peers --ignore-scripts gasoline-mcp@0.7.9
    python3 tests/bench/browser.py [--quick] [--rounds 5]

What is compared, as shipped:
  browser-mcp   its store in a file, which survives a crash of the process
  gasoline      gasoline-mcp 0.7.9 from npm: a bridge process and a daemon, in memory; left out when it is not there.
                It refuses more than 500 calls a minute, so it is paced: a call waits, outside the clock, for its turn

The extension is this script, in a process of its own: it holds one poll, and answers every command at once.
The client writes and reads raw bytes and parses nothing inside the clock. The rounds alternate between the
servers, so that a change of the machine's load meets both; medians over the rounds.

  submit_*       a call that only submits (wait_ms 0, `background`), from the line written to the line read:
                 with a browser that answers, with none, with one that is busy, with one that takes nothing
  round_trip     a call that waits for its result: client, server, extension and back
  after_a_pause  the same, half a second after the last command: what a poll that is not held costs
Python 3.11, standard library, Linux.
"""

import argparse
import collections
import http.client
import json
import multiprocessing
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from stdio import ROOT, TARGET, Server, machine, micro, quantile, show

GASOLINE = ROOT / "target/peers/node_modules/@brennhill/gasoline-linux-x64/bin/gasoline"
#: A tab holds 32 commands in line: a flood goes to many.
TABS = 30
PROFILE = os.environ.get("RAINCHECK_BENCH_PROFILE", "dist")


class Pace:
    """Lets no more than so many calls through in any minute."""

    def __init__(self, calls_a_minute):
        self.made = collections.deque(maxlen=calls_a_minute)

    def wait(self):
        if len(self.made) == self.made.maxlen:
            time.sleep(max(0.0, self.made[0] + 60 - time.monotonic()))
        self.made.append(time.monotonic())


class Browser:
    """browser-mcp and what its extension needs to know."""

    name = "browser-mcp"
    pause = 0.002

    def __init__(self, home):
        self.server = Server([TARGET / PROFILE / "browser-mcp"], home)
        self.server.call("observe", {"what": "health"})
        endpoint = Path(home, "run/browser/endpoint.json")
        until(endpoint.exists)
        self.endpoint = json.loads(endpoint.read_text())

    def turn(self):
        pass

    def extension(self, mode):
        return start(browser_extension, self.endpoint["port"], self.endpoint["secret"], mode)

    def submit(self, n):
        arguments = {"action": "execute_js", "script": "1", "wait_ms": 0, "tab_id": 1 + n % TABS}
        return {"name": "interact", "arguments": arguments}

    def wait(self, n):
        arguments = {"action": "execute_js", "script": "1", "wait_ms": 9000, "tab_id": 1 + n % TABS}
        return {"name": "interact", "arguments": arguments}

    def clear(self):
        self.server.request("tools/call", {"name": "cancel", "arguments": {"all": True}})

    def memory_mb(self):
        return self.server.memory_mb()

    def end(self):
        self.server.end()


class Gasoline:
    """Gasoline's bridge; its daemon outlives it and is ended by the pid that it wrote down."""

    name = "gasoline"
    #: It refuses the sixteenth command in line, and its extension looks five times a second.
    pause = 0.05

    def __init__(self, home):
        self.home, self.port = home, free_port()
        #: Its limit is 500; what it counts beside the calls is not known.
        self.pace = Pace(450)
        argv = [GASOLINE, "--parallel", "--port", str(self.port), "--state-dir", home]
        os.environ["HOME"], before = home, os.environ["HOME"]
        self.server = Server(argv, home)
        os.environ["HOME"] = before
        self.pid_file = Path(home, f"run/gasoline-{self.port}.pid")
        until(self.pid_file.exists)
        self.pid = int(self.pid_file.read_text().split()[0])

    def turn(self):
        self.pace.wait()

    def extension(self, mode):
        return start(gasoline_extension, self.port, mode)

    def submit(self, n):
        return {"name": "interact", "arguments": {"what": "execute_js", "script": "1", "background": True}}

    def wait(self, n):
        return {"name": "interact", "arguments": {"what": "execute_js", "script": "1"}}

    def clear(self):
        pass

    def memory_mb(self):
        daemon = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        rss = next(int(x.split()[1]) for x in daemon if x.startswith("VmRSS:"))
        return round(self.server.memory_mb() + rss * 1024 / 1e6, 1)

    def end(self):
        # The bridge does not end with its standard input, nor the daemon with the bridge.
        self.server.process.terminate()
        self.server.end()
        os.kill(self.pid, signal.SIGTERM)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(is_there, seconds=10):
    deadline = time.monotonic() + seconds
    while not is_there():
        assert time.monotonic() < deadline, "the server did not come up"
        time.sleep(0.01)


def start(extension, *arguments):
    """Starts an extension in a process of its own, and returns once it has polled."""
    ready = multiprocessing.Event()
    process = multiprocessing.Process(target=extension, args=(*arguments, ready), daemon=True)
    process.start()
    assert ready.wait(10), "the extension cannot poll"
    return process


class Link:
    """One connection that is kept."""

    def __init__(self, port, headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.headers = headers

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, data, self.headers)
        response = self.connection.getresponse()
        answer = response.read()
        assert response.status == 200, (response.status, answer)
        return json.loads(answer)


def browser_extension(port, secret, mode, ready):
    headers = {
        "Authorization": f"Bearer {secret}",
        "X-Worker-Id": "bench",
        "X-Boot-Id": mode,
        "X-Raincheck-Protocol": "1",
        "Content-Type": "application/json",
    }
    polls, posts = Link(port, headers), Link(port, headers)
    polls.ask("GET", "/pending-queries?wait_ms=0")
    ready.set()
    while True:
        for entry in polls.ask("GET", "/pending-queries?wait_ms=25000"):
            if entry["type"] != "browser_action" or mode == "hung":
                continue
            item = {name: entry[name] for name in ("correlation_id", "attempt", "fence")}
            verdict = posts.ask("POST", "/query-result", {**item, "status": "accepted"})
            if mode == "answers" and verdict["results"][0]["accepted"]:
                posts.ask("POST", "/query-result", {**item, "status": "complete", "result": 1, "engine": "bench"})


def gasoline_extension(port, mode, ready):
    link = Link(port, {"X-Gasoline-Client": "gasoline-extension/0.7.9", "Content-Type": "application/json"})
    seen = {"pilot_enabled": True, "tracking_enabled": True, "tracked_tab_id": 1, "tracked_tab_url": "http://bench.test/"}
    seen |= {"tracked_tab_title": "bench", "capture_logs": True, "capture_network": True, "capture_websocket": True, "capture_actions": True}
    results = []
    while True:
        body = {"ext_session_id": "bench", "extension_version": "0.7.9", "settings": seen, "command_results": results}
        if results:
            body["last_command_ack"] = results[-1]["id"]
        answer = link.ask("POST", "/sync", body)
        ready.set()
        done = {"status": "complete", "result": {"success": True, "result": 1}}
        commands = answer.get("commands") or [] if mode == "answers" else []
        results = [{"id": one["id"], "correlation_id": one.get("correlation_id"), **done} for one in commands]
        if not results:
            # As its own extension does.
            time.sleep(answer["next_poll_ms"] / 1000)


def times(rig, make, n, pause=0.0):
    taken = []
    for i in range(n):
        if pause:
            time.sleep(pause)
        rig.turn()
        taken.extend(rig.server.times(1, "tools/call", make(i)))
    return sorted(taken)


def one_round(kind, n):
    home = tempfile.mkdtemp(prefix="raincheck-bench-")
    rig, found = kind(home), {}
    try:
        found["spawn_to_initialize_ms"] = round(rig.server.ready * 1000, 1)
        found["memory_mb"] = rig.memory_mb()
        extension = rig.extension("answers")
        times(rig, rig.wait, 20)
        for figure, make, many, pause in [
            ("submit_answering", rig.submit, n, rig.pause),
            ("round_trip", rig.wait, n, 0),
            ("after_a_pause", rig.wait, max(4, n // 40), 0.5),
        ]:
            found[figure] = times(rig, make, many, pause)
        extension.kill()
        extension.join()
        if kind is Browser:
            for mode in ("busy", "hung", "absent"):
                rig.clear()
                held = None if mode == "absent" else rig.extension(mode)
                if held is None:
                    time.sleep(3.5)
                # Within the lines of the tabs.
                found[f"submit_{mode}"] = times(rig, rig.submit, min(n, TABS * 30))
                if held is not None:
                    held.kill()
                    held.join()
        return found
    finally:
        rig.end()
        shutil.rmtree(home, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=600)
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it runs")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.calls = 1, 60
    machine()
    kinds = [Browser] + ([Gasoline] if GASOLINE.exists() else [])
    rounds = {kind.name: [] for kind in kinds}
    for _ in range(options.rounds):
        for kind in kinds:
            rounds[kind.name].append(one_round(kind, options.calls))
    for name, found in rounds.items():
        for figure in found[0]:
            values = [one[figure] for one in found]
            if isinstance(values[0], list):
                p50 = statistics.median(quantile(one, 0.5) for one in values)
                p99 = statistics.median(quantile(one, 0.99) for one in values)
                show(figure, server=name, p50_us=micro(p50), p99_us=micro(p99), n=len(values[0]), rounds=len(values))
            else:
                show(figure, server=name, median=statistics.median(values), rounds=len(values))


if __name__ == "__main__":
    main()
