#!/usr/bin/env python3
"""Records `raincheck demo` as docs/demo.svg, an animation that any browser plays.

    cargo build --release --bin raincheck
    python3 docs/record.py

Runs the demo, notes when each line came, and draws the lines at those times. Nothing is edited but the
length of lines: what does not fit is cut and ends with an ellipsis. Python 3.11, standard library.
"""

import subprocess
import sys
import time
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLUMNS, ROWS = 108, 30
WIDTH, HEIGHT, MARGIN = 7.83, 18, 16
#: How long the last picture stands before the recording begins anew.
HOLD = 5.0

STYLE = """
svg { background: #10151c; border-radius: 8px }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #b6c2cf; white-space: pre }
.prompt { fill: #7ee787 } .head { fill: #ffffff; font-weight: bold } .ask { fill: #79c0ff } .good { fill: #7ee787 }
.answer { fill: #e3e9f0 } .l { animation-duration: %(total).2fs; animation-iteration-count: infinite; animation-timing-function: step-end }
#roll { animation: roll %(total).2fs step-end infinite }
@media (prefers-reduced-motion: reduce) { .l, #roll { animation: none } #roll { transform: translateY(%(end)dpx) } }
"""


def record(program):
    """Every line that the demo printed, with the second at which it came."""
    began = time.monotonic()
    run = subprocess.Popen([program, "demo"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = [(time.monotonic() - began, line.rstrip("\n")) for line in run.stdout]
    if run.wait() != 0:
        sys.exit(f"the demo ended with {run.returncode}")
    while lines and not lines[0][1]:
        lines.pop(0)
    return [(0.0, "$ raincheck demo"), (0.0, ""), *lines]


def kind(line):
    """The class of a line, by how the demo begins it."""
    begins = {"$ ": "prompt", "  →": "ask", "  ←": "answer", "  ✓": "good"}
    found = [name for start, name in begins.items() if line.startswith(start)]
    return found[0] if found else "head" if line and not line.startswith(" ") else ""


def draw(lines):
    total = lines[-1][0] + HOLD
    last = max(0, len(lines) - ROWS)
    frames, texts, rolls = [], [], ["0% { transform: translateY(0px) }"]
    for number, (at, line) in enumerate(lines):
        shown = line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…"
        percent = 100 * at / total
        if number >= ROWS:
            rolls.append(f"{percent:.2f}% {{ transform: translateY({-(number - ROWS + 1) * HEIGHT}px) }}")
        if not shown:
            continue
        if percent > 0:
            frames.append(f"@keyframes k{number} {{ 0% {{ opacity: 0 }} {percent:.2f}% {{ opacity: 1 }} }}")
        name = f' style="animation-name: k{number}"' if percent > 0 else ""
        y = MARGIN + HEIGHT * (number + 1) - 5
        texts.append(f'<text class="l {kind(line)}" x="{MARGIN}" y="{y}"{name}>{escape(shown)}</text>')
    style = STYLE % {"total": total, "end": -last * HEIGHT}
    width, height = round(2 * MARGIN + COLUMNS * WIDTH), 2 * MARGIN + ROWS * HEIGHT
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        "<title>raincheck demo: a long call, a failure, a killed server, a cancelled run</title>",
        f"<style>{style}{chr(10).join(frames)}",
        f"@keyframes roll {{ {' '.join(rolls)} }}</style>",
        f'<clipPath id="window"><rect x="0" y="{MARGIN}" width="{width}" height="{ROWS * HEIGHT}"/></clipPath>',
        '<g clip-path="url(#window)"><g id="roll">',
        *texts,
        "</g></g>",
        "</svg>",
        "",
    ])


def main():
    program = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/raincheck")
    if not program.exists():
        sys.exit(f"{program} is missing; build it: cargo build --release --bin raincheck")
    lines = record(program)
    (ROOT / "docs/demo.svg").write_text(draw(lines), encoding="utf-8")
    print(f"docs/demo.svg: {len(lines)} lines, {lines[-1][0]:.1f} s")


if __name__ == "__main__":
    main()
