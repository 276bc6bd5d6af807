"""The page's section on the kernel backend: one table per congestion control, differences with their reasons."""

from __future__ import annotations

import textwrap
from typing import Any

from elephan.report.units import pluralize
from evaluation.fidelity import page
from evaluation.fidelity.backend import measured
from evaluation.fidelity.backend.judge import Beside
from evaluation.fidelity.backend.script import Difference, lost
from evaluation.performance.markdown import LINE_LENGTH, table

PICTURE = "![cwnd over time, Linux and the simulator, one plot per congestion control](../img/backend-windows.png)"


def section(
    reference: dict[str, Any], runs: dict[str, dict[str, Any]], rows: list[Beside], scripts: list[Difference]
) -> str:
    """Return the section's text, without its heading."""
    if not rows:
        return "Not measured yet: `make backend`, as root."
    backend = reference["backend"]
    used = [run for run in runs.values() if measured.honoured(run)]
    dates = sorted({run["date"] for run in used})
    versions = ", ".join(sorted({run["version"] for run in used}))
    marked = len(runs) - len(used)
    text = (
        f"The same specifications over the TCP of {measured.kernels(used)} with elephan's own C files: `make backend` "
        f"measures (last on {dates[-1]}, elephan {versions}), `make fidelity` simulates the same seeds, so that the "
        f"same packets of a flow are lost. {backend['rate_mbps']} Mbit/s, queue of one bandwidth-delay product, "
        f"independent loss, {page.numbers(backend['seconds'])} s for RTTs of {page.numbers(backend['rtt_ms'])} ms; "
        f"medians of {_seeds(rows)}. Allowed: {page.between(backend['tolerance_line'])} where both are above 90 % of the line, "
        f"{page.between(backend['tolerance_loss'])} else. The kernel's goodput, Mbit/s, and in brackets the "
        "simulator's over it. "
        + (
            f"Left out: {pluralize(marked, 'run')} that the emulator did not honour."
            if marked
            else "The emulator honoured every run."
        )
    )
    alone = [row for row in rows if row.share is None]
    fair = [row for row in rows if row.share is not None]
    parts = [text, _goodputs(alone)]
    if fair:
        pair = backend["fairness"]
        parts.append(
            f"Beside one Reno flow on the same line ({pair['rtt_ms']} ms, loss {pair['loss']:g}, {pair['seconds']} s), "
            "the control's part of what both get. Phases decide which flow a full queue drops, so the simulator's "
            f"hosts answer up to {pair['jitter_us'] / 1000:g} ms late. By phases: least and most with hosts that "
            f"answer up to {page.numbers(pair['phases_us'])} us late. "
            f"Allowed: {page.between(backend['tolerance_share'])}."
        )
        cells = [
            [
                row.row.name[0],
                f"{row.row.reference:.0%}",
                f"{row.row.measured:.0%}",
                f"{row.phases[0]:.0%} to {row.phases[1]:.0%}" if row.phases else "",
                page.ratio(row.row),
            ]
            for row in fair
        ]
        parts.append(table(["congestion control", "kernel", "elephan", "by phases", "ratio"], cells))
    parts.append(differences(backend))
    if scripts:
        parts += [_script_text(backend["script"]), _script_table(scripts), PICTURE]
    return "\n\n".join(part for part in parts if part)


def _seeds(rows: list[Beside]) -> str:
    least, most = min(row.seeds for row in rows), max(row.seeds for row in rows)
    return pluralize(most, "seed") if least == most else f"{least} to {most} seeds"


def _goodputs(rows: list[Beside]) -> str:
    """A line for each congestion control, RTT and number of flows, a column for each loss rate: the kernel's goodput,
    the ratio."""
    losses = list(dict.fromkeys(row.row.name[2] for row in rows))
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        cc, rtt, loss, flows = row.row.name
        flows = flows.split()[0]
        cell = f"{page.mbps(row.row.reference)} ({page.ratio(row.row)})"
        lines.setdefault((cc, rtt, flows), {})[loss] = cell
    cells = [[*line, *(by_loss.get(loss, "") for loss in losses)] for line, by_loss in lines.items()]
    return table(["congestion control", "RTT", "flows", *(f"loss {loss}" for loss in losses)], cells)


def _script_text(script: dict[str, Any]) -> str:
    numbers = ", ".join(str(number) for number in lost(script)[:4])
    return (
        f"### Windows over time\n\nOne flow over {script['rtt_ms']} ms and a queue that never fills, for "
        f"{script['seconds']} s: packets {numbers} and so on of the line are lost. Errors of ssthresh after each "
        f"reduction and of cwnd every {script['series_ms']} ms are means, as parts of the kernel's."
    )


def _script_table(scripts: list[Difference]) -> str:
    cells = [
        [
            one.cc,
            str(len(one.kernel.reductions)),
            str(len(one.ours.reductions)),
            f"{one.ssthresh:.1%}" if one.kernel.reductions and one.ours.reductions else "",
            f"{one.cwnd:.1%}",
        ]
        for one in scripts
    ]
    head = ["congestion control", "reductions, kernel", "reductions, elephan", "error of ssthresh", "error of cwnd"]
    return table(head, cells)


def differences(backend: dict[str, Any]) -> str:
    """Return the cells with bounds of their own, and why."""
    lines = []
    for own in backend.get("difference", []):
        where = [", ".join(own["congestion_control"])]
        if "rtt_ms" in own:
            where.append(f"at {page.numbers(own['rtt_ms'])} ms")
        if "loss" in own:
            where.append(f"at loss {page.numbers(own['loss'])}")
        if "flows" in own:
            where.append(f"with {page.numbers(own['flows'])} flows")
        if own.get("rival"):
            where.append("beside Reno")
        text = f"- **{' '.join(where)}** ({own['low']:g} to {own['high']:g}): {own['why']}"
        lines.append(textwrap.fill(text, LINE_LENGTH, subsequent_indent="  ", break_long_words=False))
    return "\n".join(lines)
