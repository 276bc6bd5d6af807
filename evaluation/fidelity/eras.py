"""Segments that ns-2's senders of 2002 to 2006 send when a few packets are lost, for the tests of crates/tcp.

    python -m evaluation.fidelity.eras          # says what differs from crates/tcp/tests/ns2/golden.txt
    python -m evaluation.fidelity.eras --write  # records it anew

One line for each sender and pattern: sender, pattern, numbers of the lost packets, and ms:segment for each packet sent.
The comparison with elephan's endpoint is crates/tcp/tests/ns2.rs:

    cargo test -p tcp --test tcp-tests ns2 -- --nocapture
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "crates" / "tcp" / "tests" / "ns2"
SEGMENTS = 100
WINDOW = 20
FIRST = 40
"""A packet in the middle of a full window, which the flow has from the 30th on."""

AGENTS = ("FullTcp", "FullTcp/Sack", "Reno", "Newreno", "Sack1", "Linux")
PATTERNS = {
    "none": [],
    "one": [FIRST],
    "two": [FIRST, FIRST + 1],
    "two apart": [FIRST, FIRST + 5],
    "three apart": [FIRST, FIRST + 4, FIRST + 8],
    "four apart": [FIRST, FIRST + 3, FIRST + 6, FIRST + 9],
    "burst of six": list(range(FIRST, FIRST + 6)),
    "half a window": list(range(FIRST, FIRST + 10)),
    "the last": [SEGMENTS],
    "the first": [1],
}


def sent(agent: str, drops: list[int]) -> list[tuple[float, int]]:
    """Return seconds and number (from 1) of each data packet that ns-2's `agent` sends."""
    with tempfile.TemporaryDirectory(prefix="elephan-") as folder:
        trace = Path(folder) / "trace"
        command = ["ns", FOLDER / "drops.tcl", agent, str(SEGMENTS), str(WINDOW), *map(str, drops)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "TRACE": str(trace)})
        lines = [line.split() for line in trace.read_text().splitlines()]
    packets = [(float(line[1]), int(line[5]), int(line[10])) for line in lines if line[0] == "+"]
    if agent.startswith("FullTcp"):
        return [(time, (seq - 1) // 1000 + 1) for time, size, seq in packets if size >= 1000]
    return [(time, seq + 1) for time, _, seq in packets]


def patterns(agent: str) -> dict[str, list[int]]:
    """Return the patterns of losses, those with lost copies included."""
    copy = next(n for n, (_, segment) in enumerate(sent(agent, [FIRST]), 1) if n > FIRST and segment == FIRST)
    again = [n for n, (_, segment) in enumerate(sent(agent, [FIRST, copy]), 1) if n > copy and segment == FIRST]
    return PATTERNS | {"a copy": [FIRST, copy], "two copies": [FIRST, copy, *again[:1]]}


def recorded() -> str:
    """Return the golden file's text as ns-2 gives it."""
    lines = []
    for agent in AGENTS:
        for name, drops in patterns(agent).items():
            packets = sent(agent, drops)
            start = packets[0][0]
            words = [f"{(time - start) * 1000:.0f}:{segment}" for time, segment in packets]
            lines.append(f"{agent}|{name}|{' '.join(map(str, drops))}|{' '.join(words)}")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    golden, text = FOLDER / "golden.txt", recorded()
    if arguments.write:
        golden.write_text(text)
        return 0
    before = golden.read_text().splitlines()
    changed = [line for line in text.splitlines() if line not in before]
    print("\n".join(changed) if changed else "as recorded")
    return 1 if changed else 0


if __name__ == "__main__":
    raise SystemExit(main())
