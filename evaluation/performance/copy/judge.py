"""The targets of a copy's speed, each judged by the rows that there are: met, not met, not measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evaluation.performance.copy.cells import NO_PATH, Cell, Key, Line, Payload
from evaluation.performance.copy.tools import STREAMS, TOOLS

CLEAN_SHARE = 0.95
LOSSY = Line(0, 100, 1e-4)
"""Of any rate."""
LOSSY_SHARE, SCP_FACTOR, OTHERS_FACTOR = 0.85, 10, 2
HARD, HARD_MBPS = Line(300, 50, 1e-3), 200
SMALL_SHARE = 0.85
RESUME_S, RESUME_RTTS = 3.0, 2
PLAIN_FACTOR = 1.5
WIDE = ((1000, 1500), (2500, 9000))
"""Rate in Mbit/s and MTU in bytes that two cores are to carry."""
OTHERS = ("scp", "sftp", "rsync", "rclone-8", "lftp-8")
OURS = tuple(name for name, tool in TOOLS.items() if tool.ours and "plaintext" not in name)
RESUME = "elephan-resume"
"""Tool of the rows of resume.py; a row's seconds are those until the first new byte."""


@dataclass
class Target:
    """One target, and what each line says of it."""

    text: str
    found: list[tuple[bool, str]] = field(default_factory=list)
    """Held or not, and the numbers."""

    @property
    def verdict(self) -> str:
        """Return it in words."""
        if not self.found:
            return "not measured"
        held = sum(holds for holds, _ in self.found)
        if held == len(self.found):
            return "met"
        return "not met" if held == 0 else f"met in {held} of {len(self.found)}"

    @property
    def numbers(self) -> str:
        """Return the numbers, those that break it first."""
        ordered = sorted(self.found, key=lambda one: one[0])
        return "; ".join(text for _, text in ordered) or "–"


@dataclass
class Measured:
    """The cells, and what is looked up in them."""

    cells: Mapping[Key, Cell]

    @property
    def lines(self) -> list[Line]:
        """Return the lines with a path, in order."""
        found = {line for line, _, _ in self.cells if line.rate_mbps}
        return sorted(found, key=lambda line: (line.mtu_bytes, line.rate_mbps, line.rtt_ms, line.loss))

    def payloads(self, line: Line, kind: str) -> list[str]:
        """Return the payloads of a kind on a line, the largest first."""
        names = {payload for one, payload, _ in self.cells if one == line and Payload(payload).kind == kind}
        return sorted(names, key=lambda name: -Payload(name).bytes)

    def best(self, line: Line, payload: str, tools: Iterable[str]) -> tuple[str, Cell] | None:
        """Return the tool with the highest median goodput, and its cell; None where none ran."""
        there = [(tool, self.cells[line, payload, tool]) for tool in tools if (line, payload, tool) in self.cells]
        return max(there, key=lambda one: one[1].mbps, default=None)

    def pairs(
        self, mine: Sequence[str], others: Sequence[str], kind: str = "file"
    ) -> list[tuple[Line, str, tuple[str, Cell], tuple[str, Cell]]]:
        """Return each line with its largest payload, the best of some tools there and the best of others."""
        found = []
        for line in self.lines:
            for payload in self.payloads(line, kind):
                one, other = self.best(line, payload, mine), self.best(line, payload, others)
                if one is not None and other is not None:
                    found.append((line, payload, one, other))
                    break
        return found


def named(tool: str, cell: Cell) -> str:
    """Return a tool with its goodput and who limited it."""
    limits = f" ({' and '.join(cell.limits)} limited)" if cell.limits else ""
    return f"{TOOLS[tool].text} {cell.mbps:.4g}{limits}"


def targets(cells: Mapping[Key, Cell]) -> list[Target]:
    """Return all targets, judged."""
    measured = Measured(cells)
    return [judged(measured) for judged in _JUDGES]


def _clean(measured: Measured) -> Target:
    target = Target(f"no loss: at least {CLEAN_SHARE:.0%} of iperf3's rate in memory")
    for line, payload, ours, bound in measured.pairs(OURS, ("iperf3-1", "iperf3-8")):
        if line.loss == 0 and line.mtu_bytes == 1500:
            share = ours[1].mbps / bound[1].mbps
            target.found.append(
                (share >= CLEAN_SHARE, f"{line.text}, {payload}: {share:.1%} ({named(*ours)} of {bound[1].mbps:.4g})")
            )
    return target


def _lossy(text: str, holds: Callable[[Measured, Line, str, Cell], tuple[bool, str] | None]) -> Callable[
    [Measured], Target
]:
    def judge(measured: Measured) -> Target:
        target = Target(text)
        for line in measured.lines:
            if (line.rtt_ms, line.loss, line.mtu_bytes) != (LOSSY.rtt_ms, LOSSY.loss, 1500):
                continue
            for payload in measured.payloads(line, "file"):
                ours = measured.best(line, payload, OURS)
                said = None if ours is None else holds(measured, line, payload, ours[1])
                if ours is not None and said is not None:
                    target.found.append((said[0], f"{line.text}, {payload}: {said[1]} ({named(*ours)} Mbit/s)"))
                    break
        return target

    return judge


def _of_the_line(_: Measured, line: Line, __: str, cell: Cell) -> tuple[bool, str] | None:
    share = cell.mbps / line.rate_mbps
    return share >= LOSSY_SHARE, f"{share:.1%} of the line"


def _beside(tools: Sequence[str], factor: float) -> Callable[[Measured, Line, str, Cell], tuple[bool, str] | None]:
    def holds(measured: Measured, line: Line, payload: str, cell: Cell) -> tuple[bool, str] | None:
        other = measured.best(line, payload, tools)
        if other is None:
            return None
        ratio = cell.mbps / other[1].mbps
        return ratio >= factor, f"{ratio:.1f} times {named(*other)}"

    return holds


def _hard(measured: Measured) -> Target:
    target = Target(f"{HARD.text}: {HARD_MBPS} Mbit/s")
    for payload in measured.payloads(HARD, "file")[:1]:
        if (ours := measured.best(HARD, payload, OURS)) is not None:
            target.found.append((ours[1].mbps >= HARD_MBPS, f"{payload}: {named(*ours)} Mbit/s"))
    return target


def _small(measured: Measured) -> Target:
    target = Target("small files: within 15 % of one big file, or of cp -r of the same tree")
    for line in measured.lines:
        big = [(name, best[1]) for name in measured.payloads(line, "file") if (best := measured.best(line, name, OURS))]
        for payload in measured.payloads(line, "small"):
            ours = measured.best(line, payload, OURS)
            if ours is None or not big:
                continue
            # The size nearest: the start of a command is a share of the time.
            size, one = min(big, key=lambda found: abs(Payload(found[0]).bytes - Payload(payload).bytes))
            disk = next((cell.mbps for (at, of, tool), cell in measured.cells.items()
                         if at.rate_mbps == 0 and of == payload and tool == "cp"), float("inf"))  # fmt: skip
            bound = min(one.mbps, disk)
            share = ours[1].mbps / bound
            target.found.append(
                (
                    share >= SMALL_SHARE,
                    f"{line.text}, {payload}: {share:.1%} ({named(*ours)} of {bound:.4g} Mbit/s, {size})",
                )
            )
    return target


def _resume(measured: Measured) -> Target:
    target = Target(f"resume after a kill: first new byte within {RESUME_S:g} s and two RTTs")
    for (line, payload, tool), cell in measured.cells.items():
        if tool.startswith(RESUME):
            most_s = RESUME_S + RESUME_RTTS * line.rtt_ms / 1e3
            seconds = sorted(row.seconds for row in cell.rows)
            middle = seconds[len(seconds) // 2]
            killed = tool.removeprefix(f"{RESUME}-")
            target.found.append((middle <= most_s, f"{line.text}, {payload}, {killed} killed: {middle:.2f} s"))
    return target


def _encrypted(measured: Measured) -> Target:
    target = Target("CPU time per GB of both ends, encrypted: at most scp's")
    for line, payload, ours, other in measured.pairs(("elephan-cubic-8", "elephan-cubic-1"), ("scp",)):
        if line.loss == 0:
            mine, theirs = ours[1].cpu_per_gb, other[1].cpu_per_gb
            target.found.append((mine <= theirs, f"{line.text}, {payload}: {mine:.2f} s, scp {theirs:.2f} s"))
    return target


def _plain(measured: Measured) -> Target:
    target = Target(f"CPU time per GB in plaintext: at most {PLAIN_FACTOR} times that of cp and b3sum")
    bounds = {of: cell for (line, of, tool), cell in measured.cells.items() if tool == "cp-b3sum"}
    for payload, bound in bounds.items():
        if (here := measured.cells.get((NO_PATH, payload, "elephan-local-plaintext"))) is not None:
            mine = here.cpu_per_gb
            text = f"over loopback, {payload}: {mine:.2f} s, cp and b3sum {bound.cpu_per_gb:.2f} s"
            target.found.append((mine <= PLAIN_FACTOR * bound.cpu_per_gb, text))
    for line in measured.lines:
        for payload in measured.payloads(line, "file"):
            ours = measured.best(line, payload, ("elephan-cubic-8-plaintext",))
            if ours is None or payload not in bounds or line.loss:
                continue
            mine, theirs = ours[1].cpu_per_gb, bounds[payload].cpu_per_gb
            path = measured.best(line, payload, ("iperf3-8",))
            beside = "" if path is None else f", iperf3 over this path {path[1].cpu_per_gb:.2f} s"
            text = f"{line.text}, {payload}: {mine:.2f} s, cp and b3sum {theirs:.2f} s{beside}"
            target.found.append((mine <= PLAIN_FACTOR * theirs, text))
    return target


def _wide(rate_mbps: int, mtu_bytes: int) -> Callable[[Measured], Target]:
    def judge(measured: Measured) -> Target:
        line_text = Line(rate_mbps, 10, 0, mtu_bytes).text.partition(",")[0]
        target = Target(f"{line_text} at {mtu_bytes} B, encrypted, both ends and the emulator on this machine")
        for line, payload, ours, bound in measured.pairs(OURS, ("iperf3-1", "iperf3-8")):
            if (line.rate_mbps, line.mtu_bytes, line.loss) == (rate_mbps, mtu_bytes, 0):
                share = ours[1].mbps / rate_mbps
                # Headers of Ethernet's payload take 3.5 % of 1500 bytes, 0.6 % of 9000.
                holds = share >= CLEAN_SHARE * (mtu_bytes - 52) / mtu_bytes
                text = f"{line.text}, {payload}: {named(*ours)} Mbit/s, iperf3 {bound[1].mbps:.4g}"
                target.found.append((holds, text))
        return target

    return judge


_JUDGES: tuple[Callable[[Measured], Target], ...] = (
    _clean,
    _lossy(f"loss 1e-4, 100 ms: at least {LOSSY_SHARE:.0%} of the line", _of_the_line),
    _lossy(f"there: at least {SCP_FACTOR} times scp", _beside(("scp",), SCP_FACTOR)),
    _lossy(
        f"there: at least {OTHERS_FACTOR} times the best of the others with {STREAMS} streams",
        _beside(("rclone-8", "lftp-8"), OTHERS_FACTOR),
    ),
    _hard,
    _small,
    _resume,
    _encrypted,
    _plain,
    *(_wide(*pair) for pair in WIDE),
)
