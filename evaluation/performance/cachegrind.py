"""Cost of a run for the processor, by cachegrind: instructions, and reads and writes that miss a cache.

These counts do not depend on what else the machine does, and a simulated run takes the same ones every time.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.performance.engines import output_of

FIRST_DATA_CACHE = "49152,12,64"
"""Bytes, ways and line of the first cache for data that is simulated."""
SECOND_CACHE = "1048576,16,64"
"""The same of the cache behind it, for data and instructions: what misses it comes from further away."""


@dataclass(frozen=True)
class Counts:
    """Of one run, or of one packet."""

    instructions: float
    first_misses: float
    second_misses: float

    def per_packet(self, shorter: Counts, packets: int) -> Counts:
        """Return what each of `packets` costs that this run has more than a shorter one."""
        return Counts(
            (self.instructions - shorter.instructions) / packets,
            (self.first_misses - shorter.first_misses) / packets,
            (self.second_misses - shorter.second_misses) / packets,
        )


def counted(program: Path, spec: dict[str, Any]) -> tuple[Counts, int]:
    """Return counts of a run of the bench program, and its delivered packets."""
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "spec.json", Path(folder) / "out"
        file.write_text(json.dumps(spec), encoding="utf-8")
        caches = [f"--D1={FIRST_DATA_CACHE}", f"--LL={SECOND_CACHE}"]
        tool = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={out}", *caches]
        line = json.loads(output_of([*tool, str(program), str(file)]))
        return counts_of(out.read_text(encoding="utf-8")), line["delivered_packets"]


def counts_of(text: str) -> Counts:
    """Return the totals of a cachegrind file; a `RuntimeError` when it has none."""
    names = re.search(r"^events: (.+)$", text, re.MULTILINE)
    totals = re.search(r"^summary: (.+)$", text, re.MULTILINE)
    if names is None or totals is None:
        raise RuntimeError("cachegrind wrote no summary")
    of = dict(zip(names[1].split(), map(int, totals[1].split()), strict=True))
    return Counts(of["Ir"], of["D1mr"] + of["D1mw"], of["DLmr"] + of["DLmw"])
