#!/usr/bin/env python3
"""How long a short program takes as a tool, against starting it directly.

    cargo build --release --package raincheck-cli
    python3 tests/bench/programs.py [BINARY]

Each round starts the program once with posix_spawn and waits for it, and once by a tool call of a running server, so that
both see the same machine. What is compared is the median.

With the store in memory the difference is what the server and the supervisor cost. With a file the call also waits until
its acceptance and its end are on the disk, and until the start of the program is noted there. What as many syncs cost on
this disk alone is measured in the same rounds and printed beside it. On a busy machine run it with priority: chrt -f 10 python3 …
"""

import json
import os
import subprocess
import sys
import tempfile
import time

ROUNDS = 300
PROGRAM = "/bin/true"
CONFIG = f'[tools.short]\ndescription = "Ends at once"\ncommand = ["{PROGRAM}"]\nwait_s = 30\n'


def direct():
    began = time.perf_counter()
    pid = os.posix_spawn(PROGRAM, [PROGRAM], {})
    os.waitpid(pid, 0)
    return time.perf_counter() - began


# A call waits for the commits of its lease and of its end, and for the folder in which its start is noted.
N_COMMITS, N_FOLDERS = 2, 1


def syncs(folder):
    """Returns how long the syncs take that a call in a file waits for, with nothing else around them."""
    log = os.open(os.path.join(folder, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    names = os.open(folder, os.O_RDONLY)
    began = time.perf_counter()
    for _ in range(N_COMMITS):
        os.write(log, bytes(16384))
        os.fdatasync(log)
    for _ in range(N_FOLDERS):
        os.close(os.open(os.path.join(folder, f"begun-{began}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.fsync(names)
    took = time.perf_counter() - began
    os.close(log)
    os.close(names)
    return took


class Server:
    def __init__(self, binary, folder, store):
        config = os.path.join(folder, "raincheck.toml")
        with open(config, "w") as file:
            file.write(CONFIG)
        command = [binary, "serve", "--config", config, "--store", store, "--state-dir", os.path.join(folder, "state")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.n_requests = 0
        self.request("initialize", client)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.n_requests += 1
        self.send({"jsonrpc": "2.0", "id": self.n_requests, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.n_requests:
                return answer["result"]

    def run(self):
        began = time.perf_counter()
        result = self.request("tools/call", {"name": "short", "arguments": {}})
        took = time.perf_counter() - began
        assert not result.get("isError"), result
        return took

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def percentile(spans, share):
    return sorted(spans)[int(len(spans) * share)] * 1e3


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else "target/release/raincheck"
    for name in ("memory", "file"):
        with tempfile.TemporaryDirectory() as folder:
            server = Server(binary, folder, "memory" if name == "memory" else os.path.join(folder, "store.db"))
            for _ in range(20):
                server.run()
            rounds = [(direct(), server.run(), syncs(folder)) for _ in range(ROUNDS)]
            server.close()
        started, called, synced = zip(*rounds)
        ratio = percentile(called, 0.5) / percentile(started, 0.5)
        print(f"store {name}: direct p50 {percentile(started, 0.5):.2f} ms, p95 {percentile(started, 0.95):.2f} ms; "
              f"as a tool p50 {percentile(called, 0.5):.2f} ms, p95 {percentile(called, 0.95):.2f} ms; {ratio:.2f} times")
        if name == "file":
            alone = percentile(synced, 0.5)
            rest = (percentile(called, 0.5) - alone) / percentile(started, 0.5)
            print(f"  of that {N_COMMITS + N_FOLDERS} syncs alone: p50 {alone:.2f} ms; without them {rest:.2f} times")


if __name__ == "__main__":
    main()
