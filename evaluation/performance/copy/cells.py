"""Cells of the comparison, and the rows that are measured in them: one line of JSON each, stored when its run ends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from elephan.errors import InputError

MEASURED = Path(__file__).with_name("measured.jsonl")
"""Committed: a matrix takes a night."""
MB, GB = 10**6, 10**9
FILE_BYTES = (20_000, 40_000)
"""Of a small file."""
SMALL_FILES = 100_000
DEVICE_BYTES = 10 * GB
CHANGED_SHARE = 0.02
"""Of a device, beside what the destination has."""


@dataclass(frozen=True)
class Line:
    """An emulated path. Rate 0: no path, both ends are one file system."""

    rate_mbps: int
    rtt_ms: float
    loss: float
    mtu_bytes: int = 1500

    @property
    def path(self) -> str:
        """Return it as lines of `[path]` of a scenario."""
        return (
            f'bandwidth = "{self.rate_mbps}Mbit/s"\nrtt = "{self.rtt_ms:g}ms"\nqueue = "1bdp"\nloss = {self.loss:g}\n'
            f'mtu = "{self.mtu_bytes}B"\n'
        )

    @property
    def text(self) -> str:
        """Return it for a reader."""
        return f"{self.without_loss}, loss {self.loss:g}" if self.rate_mbps else "no path"

    @property
    def without_loss(self) -> str:
        """Return rate, RTT and an MTU that is not Ethernet's."""
        rate = f"{self.rate_mbps / 1000:g} Gbit/s" if self.rate_mbps >= 1000 else f"{self.rate_mbps} Mbit/s"
        jumbo = "" if self.mtu_bytes == 1500 else f", {self.mtu_bytes} B"
        return f"{rate}, {self.rtt_ms:g} ms{jumbo}"


NO_PATH = Line(0, 0, 0)


@dataclass(frozen=True)
class Payload:
    """Files, or a device, that a program copies."""

    name: str
    """As an option has it: 1GB, small, small:5000, device, device:1GB."""

    def __post_init__(self) -> None:
        """Raise `InputError` unless the name is one."""
        if not re.fullmatch(r"\d+[MG]B|small(:\d+)?|device(:\d+[MG]B)?", self.name):
            raise InputError(f"--payload {self.name}: give a size as 1GB, small[:FILES] or device[:SIZE]")

    @property
    def kind(self) -> str:
        """Return file, small or device."""
        head = self.name.partition(":")[0]
        return head if head in ("small", "device") else "file"

    @property
    def files(self) -> int:
        """Return the number of files."""
        return int(self.name.partition(":")[2] or SMALL_FILES) if self.kind == "small" else 1

    @property
    def bytes(self) -> int:
        """Return their bytes; of small files the mean."""
        if self.kind == "small":
            return self.files * sum(FILE_BYTES) // 2
        size = self.name.partition(":")[2] if self.kind == "device" else self.name
        return int(size[:-2]) * {"M": MB, "G": GB}[size[-2]] if size else DEVICE_BYTES

    @property
    def text(self) -> str:
        """Return it for a reader."""
        size = f"{self.bytes / GB:g} GB"
        if self.kind == "small":
            return f"{self.files:,} files of 20 to 40 KB"
        return f"one file of {size}" if self.kind == "file" else f"device of {size}, 2 % changed"


@dataclass
class Row:
    """One run of one program in one cell."""

    line: Line
    payload: str
    tool: str
    turn: int
    seconds: float
    """From the start of the command to its end."""
    bytes: int
    """Of the payload that were at the destination then."""
    complete: bool
    """False: it was stopped at the limit, and the rate is that until then."""
    cpu_near_s: float = 0.0
    """CPU time of the end whose command it is, all its processes."""
    cpu_far_s: float = 0.0
    sync_s: float = 0.0
    """Time that the destination's file system took afterwards to have all on its disk."""
    own_s: float | None = None
    """Time that the program itself tells for the transfer, without its start; None where it tells none."""
    emulator_cpu: float = 0.0
    """Share of a core that the emulator took."""
    late_p99_ms: float | None = None
    own_drops: int = 0
    busy: float = 0.0
    """Share of the machine's processors that was taken."""
    faults: list[str] = field(default_factory=list)
    build: str = ""
    """Digest of elephan's programs; "" for the others."""
    version: str = ""
    date: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def goodput_mbps(self) -> float:
        """Return the rate of the payload from the start of the command."""
        return self.bytes * 8 / self.seconds / 1e6

    @property
    def cpu_per_gb(self) -> float:
        """Return the CPU time of both ends per GB, s."""
        return (self.cpu_near_s + self.cpu_far_s) / max(self.bytes / GB, 1e-9)

    def others(self, processors: int) -> float:
        """Return the share of the processors that neither the ends nor the emulator took; interrupts are in it."""
        taken = (self.cpu_near_s + self.cpu_far_s) / max(self.seconds, 1e-9) + self.emulator_cpu
        return max(self.busy - taken / processors, 0.0)

    @property
    def limits(self) -> list[str]:
        """Return who beside path and program limited it: the emulator, the machine."""
        found = []
        if self.own_drops or self.emulator_cpu > EMULATOR_CPU or self.faults:
            found.append("emulator")
        if self.busy > BUSY:
            found.append("machine")
        return found


EMULATOR_CPU = 0.75
"""SCHED_DEADLINE gives the emulator 80 % of a core (docs/design/kernel-backend.md)."""
BUSY = 0.95


def rows_in(file: Path) -> list[Row]:
    """Return the rows of a file, in order; a line that was cut off at its end is left out."""
    found = []
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            one = json.loads(text)
        except json.JSONDecodeError:
            continue
        found.append(Row(Line(**one.pop("line")), **one))
    return found


def append(file: Path, row: Row) -> None:
    """Store a row."""
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(asdict(row)) + "\n")


@dataclass
class Cell:
    """All rows of one program on one line with one payload."""

    rows: list[Row]

    @property
    def mbps(self) -> float:
        """Return the median of the goodput, Mbit/s."""
        return median(row.goodput_mbps for row in self.rows)

    @property
    def own_mbps(self) -> float:
        """Return the median of the goodput by the program's own clock, where it has one."""
        return median(row.bytes * 8 / (row.own_s or row.seconds) / 1e6 for row in self.rows)

    @property
    def cpu_per_gb(self) -> float:
        """Return the median of the CPU time of both ends per GB, s."""
        return median(row.cpu_per_gb for row in self.rows)

    @property
    def limits(self) -> list[str]:
        """Return who beside path and program limited most of its runs."""
        names = {name for row in self.rows for name in row.limits}
        return sorted(name for name in names if 2 * sum(name in row.limits for row in self.rows) >= len(self.rows))

    @property
    def complete(self) -> bool:
        """Return True if no run was stopped at the limit."""
        return all(row.complete for row in self.rows)


Key = tuple[Line, str, str]
"""Line, payload, tool."""


def cells_of(rows: Iterable[Row], turns: int) -> dict[Key, Cell]:
    """Return the cells, each with its newest `turns` rows of its newest build."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault((row.line, row.payload, row.tool), []).append(row)
    return {key: Cell([row for row in each if row.build == each[-1].build][-turns:]) for key, each in found.items()}


def done(rows: Sequence[Row], key: Key, build: str) -> int:
    """Return how many rows of this build a cell has."""
    return sum((row.line, row.payload, row.tool) == key and row.build == build for row in rows)
