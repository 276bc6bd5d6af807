"""Writes docs/results/copy.md and its picture from the rows: targets, goodput, CPU time, who limited."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from elephan.papers.drawing import framed
from elephan.report.draw import Ink, rendered
from elephan.store.files import write_atomically
from evaluation.markdown import filled, spread, table
from evaluation.parts import RESULTS, circumstances
from evaluation.performance.copy.cells import Cell, Key, Line, Payload, Row, cells_of
from evaluation.performance.copy.judge import RESUME, Measured, targets
from evaluation.performance.copy.tools import TOOLS
from evaluation.runner import ROOT

PAGE = RESULTS / "copy.md"
PICTURE = ROOT / "docs" / "img" / "copy.png"
COMMAND = "python -m evaluation.performance.copy"
TURNS = 5
DRAWN = (
    "iperf3-8", "scp", "rsync", "rclone-8", "lftp-8", "elephan-cubic-8", "elephan-storage_friendly-8", "elephan-bbr-8",
    "elephan-quic-storage_friendly-8", "elephan-auto",
)  # fmt: skip
SHARED = 0.15
"""Share of the processors, taken by others, from which on the page says so (interrupts of the path take some)."""
COLOURS = 8
"""Curves that differ by colour (elephan.report.draw); further ones are dashed."""
LEAST_LOSS = 1e-6
"""Place of no loss on an axis of logarithms."""

PICTURED = "![Goodput against loss, of programs that copy one file](../img/copy.png)"

TEXT = """# How fast is a copy, beside what people use?

<!-- Written by `python -m evaluation.performance.copy`; do not edit. -->

{lead}

{picture}

{circumstances}

Data goes from a disk to the same disk over the [emulated path](../howto/emulated-path.md), a queue of one
bandwidth-delay product; elephan, ssh and their control connections take the path too. All programs run over elephan's
cubic, with windows up to 256 MiB, but where elephan's line names another control. The rate is that of a user: bytes of
the payload over the time of the whole command, start and sign-in included. The median of up to {turns} runs in turns,
over {runs} runs. elephan's time includes that everything is on the disk (fsync); the others leave that to the kernel,
which then took {sync} s. `>`: stopped at the limit, and the rate until then. **e**: the emulator took more than 75 % of
a core or lost packets itself; **m**: the machine's processors were taken by more than 95 %. There the number is a bound
of this machine. rclone and lftp fetch, since only so they have several streams of one file. {versions}.{others}

## Targets

{targets}

## Goodput

{goodput}

## CPU time

CPU seconds per GB of both ends, their kernel time included but for what the emulator's thread does in TCP's receiving.

{cpu}

{resume}
"""


def write(rows: Sequence[Row]) -> None:
    """Write page and picture from all rows."""
    cells = cells_of(rows, TURNS)
    write_atomically(PAGE, text_of(cells).encode())
    ink = Ink(themed=False)
    if Measured(cells).lines:
        PICTURE.write_bytes(rendered(lambda all_: draw(all_, ink, cells), ink, "png", (7.4, 4.2)))
    print(PAGE.relative_to(ROOT))


def text_of(cells: Mapping[Key, Cell]) -> str:
    """Return the page."""
    measured, judged = Measured(cells), targets(cells)
    rows = [row for cell in cells.values() for row in cell.rows]
    met = sum(target.verdict == "met" for target in judged)
    open_ = sum(target.verdict == "not measured" for target in judged)
    lead = f"{met} of {len(judged)} targets are met, {open_} are not measured; the rest is told below with its numbers."
    versions = {(TOOLS[row.tool].command, row.version) for row in rows if row.version}
    synced = [row.sync_s for row in rows if row.complete and row.tool in TOOLS and not TOOLS[row.tool].ours] or [0.0]
    return filled(
        TEXT.format(
            lead=lead,
            picture=PICTURED if measured.lines else "No program is measured yet.",
            circumstances=circumstances(COMMAND),
            turns=TURNS,
            runs=len(rows),
            sync=spread(synced, ".1f"),
            others=others(rows),
            versions=", ".join(f"{name} {version}" for name, version in sorted(versions)) or "No versions",
            targets=table(
                ["target", "verdict", "numbers, Mbit/s where no unit stands"],
                [[target.text, target.verdict, target.numbers] for target in judged],
            ),
            goodput="\n\n".join(of_payloads(cells, marked)),
            cpu="\n\n".join(of_payloads(cells, cpu)),
            resume=resumed(cells),
        )
    )


def others(rows: Sequence[Row]) -> str:
    """Return what the reader must know of a machine that did other work too; "" of one that did not."""
    shares = [row.others(os.cpu_count() or 1) for row in rows if row.busy]
    middle = median(shares) if shares else 0.0
    if middle < SHARED:
        return ""
    return (
        f" The machine did other work meanwhile: in the median {middle:.0%} of its processors' time went neither to "
        "the ends nor to the emulator's thread."
    )


def marked(cell: Cell) -> str:
    """Return a goodput with its marks."""
    marks = "".join(name[0] for name in cell.limits)
    return f"{'' if cell.complete else '>'}{cell.mbps:.4g}{f' **{marks}**' if marks else ''}"


def cpu(cell: Cell) -> str:
    """Return a CPU time per GB; of a copy that was stopped early it is no number."""
    return f"{cell.cpu_per_gb:.2f}" if cell.complete else "–"


def of_payloads(cells: Mapping[Key, Cell], text: Callable[[Cell], str]) -> list[str]:
    """Return a heading for each payload, and a table for each rate and RTT: a row per tool, a column per loss."""
    measured, found = Measured(cells), []
    names = sorted({key[1] for key in cells}, key=lambda name: (Payload(name).kind, Payload(name).bytes))
    for name in names:
        payload = Payload(name).text
        found.append(f"### {payload[0].upper()}{payload[1:]}")
        fields: dict[str, list[Line]] = {}
        for line in measured.lines:
            if any(key[:2] == (line, name) and key[2] in TOOLS for key in cells):
                fields.setdefault(line.without_loss, []).append(line)
        for field, lines in fields.items():
            rows = [
                [tool.text, *(text(cells[key]) if (key := (line, name, tool.name)) in cells else "" for line in lines)]
                for tool in TOOLS.values()
                if any((line, name, tool.name) in cells for line in lines)
            ]
            found.append(table([field, *(f"loss {line.loss:g}" for line in lines)], rows))
        disk = [(tool, cell) for (line, of, tool), cell in cells.items() if of == name and not line.rate_mbps]
        if disk:
            found.append(f"{'; '.join(f'{TOOLS[tool].text}: {text(cell)}' for tool, cell in disk)}.")
    return found


def resumed(cells: Mapping[Key, Cell]) -> str:
    """Return the table of copies that were killed and went on."""
    rows = [
        [
            f"{tool.removeprefix(f'{RESUME}-')} killed, {line.text}, {Payload(payload).text}",
            spread([row.seconds for row in cell.rows], ".2f"),
            spread([row.extra["start_s"] for row in cell.rows], ".2f"),
            spread([row.extra["sent_again_bytes"] / 1e6 for row in cell.rows], ".1f"),
        ]
        for (line, payload, tool), cell in cells.items()
        if tool.startswith(RESUME)
    ]
    if not rows:
        return "Resume was not measured."
    heads = ["", "first new byte, s", "of that before both ends had met, s", "durable bytes sent again, MB"]
    return f"## Resume\n\n{table(heads, rows)}"


def loss_text(value: float, _: object) -> str:
    """Return the text of a loss at its place on the axis."""
    return "0" if value <= LEAST_LOSS else f"{value:.0e}"


def drawn_payload(cells: Mapping[Key, Cell], lines: Sequence[Line]) -> str:
    """Return the payload of one file of which most cells are on these lines, the largest of several."""
    names = [name for line, name, tool in cells if line in lines and tool in DRAWN and Payload(name).kind == "file"]
    return max(names, key=lambda name: (names.count(name), Payload(name).bytes), default="")


def draw(drawing: Any, ink: Ink, cells: Mapping[Key, Cell]) -> None:
    """Draw goodput against loss: a field for each line's rate and RTT that has most cells, four at most."""
    measured = Measured(cells)
    fields: dict[tuple[int, float], list[Line]] = {}
    for line in measured.lines:
        if line.mtu_bytes == 1500 and measured.payloads(line, "file"):
            fields.setdefault((line.rate_mbps, line.rtt_ms), []).append(line)
    # A line with one loss is no curve, unless there is nothing else.
    curves = {one: lines for one, lines in fields.items() if len(lines) > 1} or fields
    shown = sorted(sorted(curves, key=lambda one: -len(curves[one]))[:4])
    if not shown:
        return
    for place, axes in enumerate(drawing.subplots(1, len(shown), sharey=True, squeeze=False)[0]):
        rate_mbps, rtt_ms = shown[place]
        title = Line(rate_mbps, rtt_ms, 0).without_loss
        payload = drawn_payload(cells, fields[shown[place]])
        framed(axes, ink, f"loss; {title}, {payload}", "Mbit/s" if place == 0 else "")
        for number, tool in enumerate(DRAWN):
            points = []
            for line in fields[shown[place]]:
                if (cell := cells.get((line, payload, tool))) is not None:
                    points.append((max(line.loss, LEAST_LOSS), cell.mbps))
            if points:
                axes.plot(
                    *zip(*points, strict=True), "o-" if number < COLOURS else "s--",
                    color=ink.curve(number % COLOURS), markersize=4, linewidth=1.4,
                    label=TOOLS[tool].text,
                )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis, form in ((axes.yaxis, lambda value, _: f"{value:g}"), (axes.xaxis, loss_text)):
            axis.set_major_formatter(form)
            axis.set_minor_formatter(lambda value, _: "")
        if place == 0:
            axes.legend(frameon=False, fontsize=7, labelcolor=ink.text, loc="lower left")

