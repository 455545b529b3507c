#!/usr/bin/env python3
"""Filters on two answers of 10 MB: ours against the jq command, gojq, and the jq of PyPI, in one run.

    python3 tests/bench/filters.py

gojq comes from Debian's archive, and jq's binding from PyPI, into target/tools/filters; nothing is installed in the system. The
jq command is the one of the machine. Each round runs every filter by every engine once, so that all see the same machine;
what is printed are medians, one JSON object for a filter. On a busy machine run it with priority: chrt -f 50 python3 …

The commands are measured whole, as a server would start them. Of the binding, what counts is reading the file and running the
filter, without the start of Python.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "target" / "tools" / "filters"
BINDING = "jq==1.13.0"


def gojq():
    """Returns the path of gojq."""
    program = TOOLS / "gojq" / "usr" / "bin" / "gojq"
    if not program.exists():
        folder = TOOLS / "gojq"
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-qq", "gojq"], cwd=folder, check=True)
        package = next(folder.glob("gojq_*.deb"))
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    return program


def python_with_binding():
    """Returns the path of a Python that has the binding."""
    folder = TOOLS / "python"
    program = folder / "bin" / "python"
    if not program.exists():
        venv.create(folder, with_pip=True)
        pip = [program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", BINDING]
        subprocess.run(pip, check=True)
    return program


def peer(filter_text, path):
    """Runs a filter by the binding: its outputs go to stdout, its time in milliseconds to stderr."""
    import jq  # Only this Python has it.

    began = time.perf_counter()
    with open(path, encoding="utf-8") as file:
        outputs = jq.compile(filter_text).input_text(file.read()).text()
    taken = time.perf_counter() - began
    print(outputs)
    print(taken * 1000, file=sys.stderr)


def main():
    peers = {
        "jq": ["jq", "-c"],
        "gojq": [str(gojq()), "-c"],
        "PyPI jq": [str(python_with_binding()), __file__, "--peer"],
    }
    bench = ["cargo", "bench", "--quiet", "--package", "raincheck-cache", "--bench", "filters"]
    environment = {**os.environ, "RAINCHECK_BENCH_PEERS": json.dumps(peers)}
    sys.exit(subprocess.run(bench, cwd=ROOT, env=environment).returncode)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(*sys.argv[2:4])
    else:
        main()
