"""Congestion controls as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elephan import units
from elephan.congestion_control import CongestionControl, Parameter, header
from elephan.report import textplot

if TYPE_CHECKING:
    from rich.console import Console

    from elephan.congestion_control.verify import Step
    from elephan.loss_response.curves import Curves


def as_json(items: Sequence[dict[str, Any]]) -> str:
    """Return one JSON array."""
    import json

    return json.dumps(list(items), indent=1, ensure_ascii=False)


def described(cc: CongestionControl, curves: Curves | None = None) -> dict[str, Any]:
    """Return a congestion control as JSON: the texts of its file, and its simulation."""
    from dataclasses import asdict

    result = asdict(cc)
    by_variant = {parameter.name for parameter in cc.parameters if parameter.is_by_variant}
    del result["code"]
    for parameter in result["parameters"]:
        if parameter["name"] in by_variant:
            parameter["default"] = None
    result |= {"kernel": cc.kernel, "text": header.comment_of(cc.code)}
    if curves is not None:
        loss = curves.after_loss
        result["settings"] = list(curves.settings)
        result["after_loss"] = {
            "before_packets": loss.before,
            "kept_packets": loss.kept,
            "back_s": loss.back_s,
            "time_s": [round(float(value), 9) for value in loss.time_s],
            "window_packets": [float(value) for value in loss.window],
        }
        result["response"] = [
            {
                "loss": row.loss,
                "window_packets": row.window,
                "published_packets": row.published,
                "steady": row.steady,
                "fills_line": row.fills_line,
            }
            for row in curves.response
        ]
    return result


def with_unit(parameter: Parameter) -> str:
    """Return the default with its unit, where it has one."""
    unit = "" if parameter.is_by_variant else parameter.unit_text
    return f"{parameter.text(parameter.default)} {unit}".strip()


def print_list(congestion_controls: Sequence[CongestionControl], console: Console) -> None:
    """Print a few lines for each congestion control."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    for number, cc in enumerate(congestion_controls):
        if number:
            console.print()
        console.print(Text.assemble((cc.name, "bold"), f"  {cc.summary}"))
        values = (f"{item.name} = {with_unit(item)} ({item.range_text})" for item in cc.parameters)
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row("source", Text(cc.source))
        table.add_row("parameters", Text(", ".join(values) or "none"))
        table.add_row("runs in", Text(f"simulator; kernel: {cc.kernel}"))
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
    console.print(Text("\nelephan cc NAME shows one: equations, window after a loss, response to loss", style="dim"))


def print_one(cc: CongestionControl, curves: Curves | None, console: Console) -> None:
    """Print the texts of a congestion control's file, and its simulation."""
    from rich.text import Text

    console.print(Text.assemble((cc.name, "bold"), f"  {cc.summary}"))
    console.print(Text(f"source   {cc.source}", style="dim"))
    console.print(Text(f"runs in  simulator; kernel: {cc.kernel}", style="dim"))
    console.print(Text(f"hooks    {', '.join(cc.hooks)}", style="dim"))
    _print_parameters(cc, console)
    _print_header(cc, console)
    for problem in cc.warnings:
        console.print()
        console.print(Text(problem_text(cc.path or cc.name, problem), style="yellow"))
    if curves is not None:
        _print_after_loss(curves, console)
        _print_response(cc, curves, console)


def _print_parameters(cc: CongestionControl, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    if not cc.parameters:
        return
    console.print()
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for head in ("parameter", "default", "range", "unit", "what it is"):
        table.add_column(head)
    for parameter in cc.parameters:
        default, values = parameter.text(parameter.default), parameter.range_text
        table.add_row(parameter.name, default, values, parameter.unit_text, Text(parameter.doc))
    console.print(table)


def _print_header(cc: CongestionControl, console: Console) -> None:
    """Print the comment that opens the file: prose folded to the console, everything that was lined up as it is."""
    from rich.text import Text

    for number, paragraph in enumerate(header.paragraphs(cc.code)):
        if paragraph.apart or number == 0:
            console.print()
        if paragraph.verbatim:
            for line in paragraph.lines:
                console.print(Text(line), soft_wrap=True)
            continue
        text = Text(paragraph.text, style="bold" if number == 0 else "")
        text.stylize("bold", 0, len(paragraph.section))
        console.print(text)


def _print_after_loss(curves: Curves, console: Console) -> None:
    from rich.text import Text

    from elephan.loss_response.curves import RTT_S, WINDOW

    loss = curves.after_loss
    console.print(Text("\nWindow after one loss, simulated", style="bold"))
    console.print(Text(loss.sentence))
    drawn = textplot.line(
        [float(value) for value in loss.time_s],
        [float(value) for value in loss.window],
        "s after the loss",
        lambda value: units.count(None if value is None else round(value)),
        min(console.width, 90),
    )
    for line in drawn.splitlines():
        console.print(Text(line), soft_wrap=True)
    path = f"a window limited to {WINDOW} packets, {units.duration(RTT_S)}, no queue"
    setting = f"One flow, one packet lost, {path}, {curves.of_what}."
    console.print(Text(setting, style="dim"))


def _print_response(cc: CongestionControl, curves: Curves, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from elephan.loss_response.curves import RESPONSE_RTT_S
    from elephan.loss_response.published import RESPONSES

    console.print(Text("\nMean window under loss, packets", style="bold"))
    formula = None if cc.path or curves.settings else RESPONSES.get(cc.name)
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for head in ("loss", "simulated", *(["published"] if formula else []), ""):
        table.add_column(head, justify="right" if head else "left")
    for row in curves.response:
        note = "the line is full" if row.fills_line else "" if row.steady else "not steady within the run"
        published = [units.count(rounded(row.published))] if formula else []
        table.add_row(f"{row.loss:.0e}".replace("e-0", "e-"), units.count(rounded(row.window)), *published, note)
    console.print(table)
    said = f"Every 1/loss-th packet lost, {units.duration(RESPONSE_RTT_S)}, 10 Gbit/s, {curves.of_what}."
    if formula:
        said += f" Published: {formula.text} ({formula.source})."
    console.print(Text(said, style="dim"))


def print_use(lines: Sequence[str], console: Console) -> None:
    """Print how to put a congestion control into use."""
    from rich.text import Text

    console.print(Text("\nIn a kernel, as root", style="bold"))
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def rounded(packets: float | None) -> float | None:
    """Return a window to a tenth of a packet."""
    return None if packets is None else round(packets, 1)


def problem_text(file: str, problem: Mapping[str, Any]) -> str:
    """Return a problem as lines: place and what, the line's code, what would be right, the tool's own words."""
    line = f":{problem['line']}" if problem.get("line") else ""
    parts = [f"{file}{line}: {problem['what']}"]
    parts += [f"    {problem['code'].strip()}"] if problem.get("code", "").strip() else []
    parts += [f"  {problem['hint']}"] if problem.get("hint") else []
    parts += [f"  (the kernel: {problem['said']})"] if problem.get("said") else []
    return "\n".join(parts)


def step_as_dict(step: Step) -> dict[str, Any]:
    """Return a step as JSON holds it."""
    return {"step": step.name, "state": step.state, "text": step.text, "problems": list(step.problems)}


STYLES = {"passed": "green", "failed": "bold red", "not tried": "yellow"}


def print_check(file: str, steps: Sequence[Step], console: Console) -> None:
    """Print a line per step with its faults below it."""
    from rich.text import Text

    for step in steps:
        console.print(Text.assemble(f"{step.name:<10} ", (f"{step.state:<10} ", STYLES[step.state]), step.text))
        if step.state == "failed" and step.name != "kernel":
            continue
        for problem in step.problems:
            console.print(Text(problem_text(file, problem)), soft_wrap=True)
