#!/usr/bin/env python3
"""Drains filled queues of the durable engine and of other embedded queues, in one run; prints JSON lines.

    cargo build --locked --release --manifest-path tests/bench/Cargo.toml --target-dir target/bench
    cargo build --locked --release --manifest-path tests/bench/queue-peers/Cargo.toml --target-dir target/bench-peers
    python3 tests/bench/queues.py [--quick]

Everything writes to a new file in one folder, in WAL mode with `synchronous = FULL`: what is done stays
done through a loss of power. Rounds alternate between the queues, so that a change of the machine's
load meets all of them; medians over the rounds. No-op jobs, one process, handlers run a second.

Settings: river 0.5.0 as shipped (a fetch every 100 ms) and tuned (every 2 ms, as its own benchmark sets);
apalis-sqlite 1.0.0 as shipped (ten jobs a fetch) and tuned (ten per worker). Python 3.11, Linux.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
OURS = TARGET / "bench" / "release" / "raincheck-queue"
PEERS = TARGET / "bench-peers" / "release" / "queue-peers"


def run(folder, *argv):
    """Runs one program in a new folder and returns the number that it prints."""
    with tempfile.TemporaryDirectory(dir=folder) as home:
        done = subprocess.run([*map(str, argv), home], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{argv[0]}: {done.stderr.strip()}")
    return float(done.stdout.split()[-1])


def drains(n_workers, n_jobs, seconds):
    """The queues to drain, by what they are called in the output."""
    ends = (n_workers, n_jobs, seconds)
    return {
        "raincheck": (OURS, "drain", "full", *ends),
        "river shipped": (PEERS, "river", "shipped", *ends),
        "river tuned": (PEERS, "river", "tuned", *ends),
        "apalis shipped": (PEERS, "apalis", "shipped", *ends),
        "apalis tuned": (PEERS, "apalis", "tuned", *ends),
    }


def medians(folder, programs, rounds):
    seen = {name: [] for name in programs}
    for _ in range(rounds):
        for name, argv in programs.items():
            seen[name].append(run(folder, *argv))
    return {name: statistics.median(rates) for name, rates in seen.items()}


def main():
    parser = argparse.ArgumentParser(description="Drains filled queues; prints JSON lines.")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it runs")
    parser.add_argument("--folder", help="where the databases go (default: the temporary folder)")
    options = parser.parse_args()
    rounds, n_jobs, seconds = (1, 2000, 2) if options.quick else (3, 20000, 5)
    for path, manifest in ((OURS, "tests/bench"), (PEERS, "tests/bench/queue-peers")):
        if not path.exists():
            sys.exit(f"{path} is missing; build it: cargo build --locked --release --manifest-path {manifest}/Cargo.toml "
                     f"--target-dir {path.parents[1]}")
    for n_workers in (1, 16):
        rates = medians(options.folder, drains(n_workers, n_jobs, seconds), rounds)
        best = max(rate for name, rate in rates.items() if name != "raincheck")
        print(json.dumps({"figure": "no-op jobs a second, FULL", "workers": n_workers, **{k: round(v) for k, v in rates.items()},
                          "times_the_best_peer": round(rates["raincheck"] / best, 1)}), flush=True)
    submits = {
        f"{durability} {n}": (OURS, "submit", durability, n, n_jobs * (1 if n == 1 else 3) // 2, seconds)
        for durability in ("full", "process")
        for n in (1, 64)
    }
    rates = medians(options.folder, submits, rounds)
    print(json.dumps({"figure": "submits a second at the engine's API", **{k: round(v) for k, v in rates.items()},
                      "full_64_over_1": round(rates["full 64"] / rates["full 1"], 1)}), flush=True)


if __name__ == "__main__":
    main()
