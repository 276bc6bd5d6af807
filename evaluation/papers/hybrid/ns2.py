"""ns-2 2.35 itself (Debian's ns2, Agent/TCP/Linux) in cells of scenarios B and D, as ns2.csv.

    python -m evaluation.papers.hybrid.ns2                   # resumable: what is in the table is not run again
    python -m evaluation.papers.hybrid.ns2 --case b-500

`state-*` look for the paper's state without a move: the time from the queue's first overflow to 343 packets on the next
approach. The others move; rates are payload acknowledged, over the samples of 0.1 s that ns2_move.tcl prints.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from .controls import FOLDER, read_table, write_table

TABLE = FOLDER / "ns2.csv"
SCRIPT = FOLDER / "ns2_move.tcl"

STATE_PACKETS = 343
SECOND = 10
"""Samples of a second."""

B = {"beta": "1e9", "phi1": "2.488e9", "phi2": "2.488e9", "xi": "2.488e9", "limit_bps": "1e9", "rtt_s": "0.1"}
D = {"beta": "39.813e9", "phi1": "39.813e9", "phi2": "39.813e9", "xi": "10e9", "limit_bps": "10e9", "rtt_s": "0.01"}


@dataclass(frozen=True)
class Run:
    """A call of ns2_move.tcl."""

    case: str
    options: Mapping[str, str]

    @property
    def key(self) -> list[str]:
        """The columns that tell it from others."""
        asked = {"packet": "1500", "first_packets": "", "initial_ssthresh": "833", "move_s": ""} | dict(self.options)
        return [self.case, *(asked[name] for name in ("packet", "first_packets", "initial_ssthresh", "move_s"))]


def runs() -> Iterator[Run]:
    """Yield the calls, quick ones first."""
    line = B | {"initial_ssthresh": "8333", "seconds": "6"}
    yield Run("b", line)
    yield Run("b", line | {"packet": "1040", "initial_ssthresh": "12019"})
    yield Run("b-1000", line | {"first_packets": "1000"})
    yield Run("b-2000", line | {"first_packets": "2000", "initial_ssthresh": "100"})
    sawtooth = B | {"first_packets": "500", "deep_packets": "500", "initial_ssthresh": "100", "seconds": "6"}
    for move_s in np.linspace(12.9, 19.6, 8):
        yield Run("b-500", sawtooth | {"move_s": f"{move_s:.2f}"})
    for move_s in ("4.4", "7.2", "7.9"):
        yield Run("d", D | {"initial_ssthresh": "100", "move_s": move_s})
    for packet in ("1500", "1040"):
        search = {"initial_ssthresh": "1000000", "stay": "1", "move_s": "55", "seconds": "0.1"}
        yield Run(f"state-{packet}", D | search | {"packet": packet})


HEADS = (
    "case",
    "packet_bytes",
    "sender_queue_packets",
    "initial_ssthresh",
    "move_s",
    "first_second_mbps",
    "least_second_mbps",
    "duplicate_acks",
    "dropped_r3_200ms",
    "dropped_r3",
    "dropped_sender",
    "sent_again",
    "full_s",
    "state_s",
    "state_packets",
)


def measure(run: Run) -> list[str]:
    """Run ns-2 and return the line."""
    with tempfile.TemporaryDirectory() as place:
        times = Path(place) / "duplicates"
        # Times of ACKs that repeat the one before; a slow start that ends by a loss has some before the move.
        trace = f'|awk {{$1 == "r" && $5 == "ack" {{ if ($11 == last) print $2 > "{times}"; last = $11 }}}}'
        options = {**run.options} | ({} if run.case.startswith("state") else {"trace": trace})
        command = ["ns", str(SCRIPT), *(word for pair in options.items() for word in pair)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        duplicates_s = [float(line) for line in times.read_text().split()] if times.exists() else []
    samples = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    if run.case.startswith("state"):
        return [*run.key, *[""] * 7, *state(samples)]
    after = [sample for sample in samples if sample["time_s"] > 0]
    begin = next(sample for sample in reversed(samples) if sample["time_s"] <= 0)
    rates = np.array([sample["rate_bps"] for sample in after]) / 1e6
    seconds = np.convolve(rates, np.ones(SECOND) / SECOND, "valid")

    def counted_until(name: str, time_s: float) -> str:
        last = next((sample for sample in after if sample["time_s"] > time_s - 0.05), after[-1])
        return str(last[name] - begin[name])

    return [
        *run.key,
        f"{seconds[0]:.0f}",
        f"{seconds.min():.0f}",
        str(sum(time_s > begin["now_s"] for time_s in duplicates_s)),
        counted_until("dropped", 0.2),
        counted_until("dropped", 1e9),
        counted_until("dropped_first", 1e9),
        counted_until("again", 1e9),
        *[""] * 3,
    ]


def state(samples: Sequence[Mapping[str, float]]) -> list[str]:
    """Return when the queue was full after slow start, when it had 343 packets on the next approach, and that sample.

    The first drops end slow start; those more than a second later are of the full queue.
    """
    before = [0.0, *(sample["dropped"] for sample in samples)]
    dropping_s = [sample["now_s"] for sample, early in zip(samples, before, strict=False) if sample["dropped"] > early]
    full_s = next(late for early, late in pairwise(dropping_s) if late > early + 1)
    found = next(one for one in samples if one["now_s"] > full_s + 1 and one["queue"] >= STATE_PACKETS)
    return [f"{full_s:.1f}", f"{found['now_s']:.1f}", str(found["queue"])]


def main() -> None:
    """Run what is asked for and write the table, a line per run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", help="one case, such as b-500")
    options = parser.parse_args()
    rows = read_table(TABLE)
    known = [line[:5] for line in rows]
    for run in runs():
        if options.case in (None, run.case) and run.key not in known:
            rows.append(measure(run))
            write_table(TABLE, HEADS, rows)
            print(",".join(rows[-1]), flush=True)


if __name__ == "__main__":
    main()
