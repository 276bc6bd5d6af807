"""The page's section on the kernel backend: one table per congestion control, differences with their reasons."""

from __future__ import annotations

from typing import Any

from elephan.units import pluralize
from evaluation.fidelity import page
from evaluation.fidelity.backend import measured
from evaluation.fidelity.backend.judge import Beside
from evaluation.fidelity.backend.script import Difference, lost
from evaluation.fidelity.judge import Row
from evaluation.markdown import fill, table

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
        f"measures (last on {dates[-1]}, elephan {versions}), `make fidelity` simulates the same seeds, which lose the "
        f"same packets. {backend['rate_mbps']} Mbit/s, queue of one bandwidth-delay product, independent loss, "
        f"{page.numbers(backend['seconds'])} s for RTTs of {page.numbers(backend['rtt_ms'])} ms; medians of "
        f"{_seeds(rows)}. Least and most of the simulator's goodput over the kernel's, over RTTs and 1 and 4 flows; "
        "[cell by cell](fidelity-backend.csv). Allowed: "
        f"{page.between(backend['tolerance_line'])} where both are above 90 % of the line, "
        f"{page.between(backend['tolerance_loss'])} else. "
        + (
            f"Left out: {pluralize(marked, 'run')} that the emulator did not honour."
            if marked
            else "The emulator honoured every run."
        )
    )
    alone = [row for row in rows if row.share is None]
    fair = [row for row in rows if row.share is not None]
    parts = [text, _ratios(alone)]
    if fair:
        pair = backend["fairness"]
        parts.append(
            f"Beside one Reno flow on the same line ({pair['rtt_ms']} ms, loss {pair['loss']:g}, {pair['seconds']} s), "
            "the control's part of what both get. Phases decide which flow a full queue drops: the simulator's hosts "
            f"answer up to {pair['jitter_us'] / 1000:g} ms late; by phases: least and most with "
            f"{page.numbers(pair['phases_us'])} us. "
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
        parts += [_script_text(backend["script"]), _script_errors(scripts), PICTURE]
    return "\n\n".join(part for part in parts if part)


def _seeds(rows: list[Beside]) -> str:
    least, most = min(row.seeds for row in rows), max(row.seeds for row in rows)
    return pluralize(most, "seed") if least == most else f"{least} to {most} seeds"


def _ratios(rows: list[Beside]) -> str:
    """Return a line for each congestion control and a column for each loss rate: least and most of the ratios."""
    cells: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        cc, _, loss, _ = row.row.name
        cells.setdefault(cc, {}).setdefault(loss.removeprefix("loss "), []).append(row.row)
    losses = list(dict.fromkeys(loss for by_loss in cells.values() for loss in by_loss))
    lines = [[cc, *(_range(by_loss.get(loss, [])) for loss in losses)] for cc, by_loss in cells.items()]
    return table(["congestion control", *(f"loss {loss}" for loss in losses)], lines)


def _range(rows: list[Row]) -> str:
    """Return least and most of the ratios, one number where they are the same."""
    ordered = sorted(rows, key=lambda row: row.ratio)
    ends = dict.fromkeys(page.ratio(row) for row in (ordered[:1] + ordered[-1:]))
    return " to ".join(ends)


def write_cells(rows: list[Beside]) -> None:
    """Write the kernel's goodput and the ratio, cell by cell."""
    lines = []
    for row in rows:
        if row.share is None:
            cc, rtt, loss, flows = row.row.name
            labels = (cc, rtt.removeprefix("RTT ").removesuffix(" ms"), flows.split()[0], loss.removeprefix("loss "))
            lines.append([*labels, page.mbps(row.row.reference), f"{row.row.ratio:.2f}"])
    page.write_csv("backend", ["congestion_control", "rtt_ms", "flows", "loss", "kernel_mbps", "ratio"], lines)


def _script_text(script: dict[str, Any]) -> str:
    numbers = ", ".join(str(number) for number in lost(script)[:4])
    return (
        f"### Windows over time\n\nOne flow over {script['rtt_ms']} ms, {script['seconds']} s, a queue that never "
        f"fills: packets {numbers} and so on of the line are lost. cwnd is compared every {script['series_ms']} ms, "
        "ssthresh after each reduction ([reductions and both errors](fidelity-windows.csv)), as parts of the kernel's."
    )


def _script_errors(scripts: list[Difference]) -> str:
    """Return the error of cwnd of every congestion control, the least first."""
    errors = sorted((one.cwnd, one.cc) for one in scripts)
    return "Mean error of cwnd: " + ", ".join(f"{cc} {error:.1%}" for error, cc in errors) + "."


def write_windows(scripts: list[Difference]) -> None:
    """Write reductions and errors of every congestion control."""
    lines = [
        [
            one.cc,
            str(len(one.kernel.reductions)),
            str(len(one.ours.reductions)),
            f"{one.ssthresh:.1%}" if one.kernel.reductions and one.ours.reductions else "",
            f"{one.cwnd:.1%}",
        ]
        for one in scripts
    ]
    head = ["congestion_control", "kernel_reductions", "elephan_reductions", "ssthresh_error", "cwnd_error"]
    page.write_csv("windows", head, lines)


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
        lines.append(fill(text, "  "))
    return "\n".join(lines)
