"""Figure 10 with losses in runs: one connection, by the length of a run, alone and through whole gateways.

    python -m evaluation.papers.dsan.runs
    python -m evaluation.papers.dsan.runs --table

The first writes runs.json beside this file, a set-up per line. One that is there is not run again: a call that was
stopped goes on where it was. The second prints the README's table.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import elephan
from elephan.papers.catalogue import find
from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, megabytes_per_s, part, repetitions
from elephan.papers.spread import Spread
from elephan.record import Record
from elephan.report.draw import Ink

from .frames import payload
from .variants import COLOURS, VARIANTS, variant

FOLDER = Path(__file__).parent
FILE = FOLDER / "runs.json"
CLAIM = "dsan.fig10"
COMMAND = "python -m evaluation.papers.dsan.runs"
SEEDS = 5
LOSS = 1e-3
"""The paper's rate: of packets, or of events."""

NEAR = 0.2
"""Relative deviation up to which a value counts as the paper's, as in claims.toml."""

LENGTHS = (1, 2, 4, 8, 12, 16, 24, 32, 64)

ALONE = {"alone": "era", "never": "never"}
"""Set-ups without gateways, and whether SACK notices that a retransmission was lost."""

GATEWAY_LENGTHS = (12, 16, 4, 64)
"""Fewer: a run through gateways costs ten times as much."""

PLACES = {
    "alone": "TCP alone, SACK",
    "never": "TCP alone, SACK that notices no lost retransmission",
    "gateways": "one pair through gateways, SACK",
    "gateways, newreno": "one pair through gateways, NewReno",
}


SHORT = {"alone": "SACK", "never": 'SACK, "never"'}
"""Titles in the figure. Gateways have few lengths and no events: the table has them."""


@dataclass(frozen=True)
class Setup:
    """A set-up with one connection."""

    place: str
    rate_of: str
    """packets: 1e-3 of them are lost; events: a run begins at 1e-3 of them."""
    run: int

    @property
    def begins(self) -> float:
        """Return the probability that a run begins."""
        return LOSS if self.rate_of == "events" else round(LOSS / self.run, 12)

    def measured(self) -> dict[str, list[float]]:
        """Return the goodput of the four controls for each seed, MB/s."""
        changes: dict[str, Any] = {"run.repetitions": SEEDS}
        loss = f"[{{ run = {self.run}, begins = {self.begins:.12f} }}]"
        if self.place in ALONE:
            changes |= {"sweep.path.loss": loss, "flow.lost_retransmissions": ALONE[self.place]}
            results = elephan.run(FOLDER / "fig10-runs.toml", changes, store="none", workers=1)
        else:
            changes |= {"sweep.link.loss": loss, "run.duration": "40s", "measure.warmup": "10s"}
            changes["flow.recovery"] = "newreno" if "newreno" in self.place else "sack"
            results = elephan.run(FOLDER / "gateways-fig10.toml", changes, store="none", workers=1)
        return carried(list(results))


def carried(records: Sequence[Record]) -> dict[str, list[float]]:
    """Return what the four controls carried by seed, MB/s: the goodput of TCP, through gateways the frames' payload."""
    found: dict[str, list[float]] = {}
    for group in repetitions(records):
        for record in group:
            gateway = record.spec["flows"][0]["workload"]["kind"] == "fc"
            value = payload(record) if gateway else megabytes_per_s(record.metrics.get("goodput_bps"))
            found.setdefault(variant(record), []).append(round(value, 2))
    return found


def setups() -> Iterator[Setup]:
    """Return all of them, those at the paper's rate of packets first."""
    yield Setup("alone", "packets", 12)
    yield from (Setup("gateways, newreno", "packets", run) for run in (12, 16))
    yield from (Setup("alone", "packets", run) for run in (4, 64, *LENGTHS))
    yield from (Setup("alone", "events", run) for run in (12, 4, 64))
    yield Setup("gateways", "packets", 12)
    for rate_of in ("packets", "events"):
        for place in ALONE:
            yield from (Setup(place, rate_of, run) for run in LENGTHS)
        for run in GATEWAY_LENGTHS:
            yield from (Setup(place, rate_of, run) for place in PLACES if place not in ALONE)


def read() -> dict[str, Any]:
    """Return what runs.json has."""
    return dict(json.loads(FILE.read_text())) if FILE.exists() else {"setups": []}


@part("fig10-runs.toml")
def runs(results: PaperResults) -> Evaluation:
    """Goodput of the four controls by the length of a run, and what of the paper's statements each set-up has."""
    paper = {name: results.paper.claim(CLAIM).paper_value(name) for name in VARIANTS}
    found: dict[tuple[int, bool], list[Record]] = {}
    for record in results.of("fig10-runs.toml"):
        loss = record.spec["links"][record.spec["flows"][0]["route"][0]]["loss"]
        assert loss["kind"] == "runs"
        found.setdefault((loss["length"], loss["begins_e12"] == round(LOSS * 1e12)), []).append(record)
    # A run of one packet is the same by packets and by events.
    rows = [
        _row(f"{run} {'of 1e-3 events' if events else 'of 1e-3 packets'}", carried(records), paper)
        for (run, events), records in found.items()
    ]
    return Evaluation({}, [_figure(paper)], [_table("Losses in runs, here", rows, paper), _kept_table(paper)])


STATEMENTS = (("standard", "avoidance_off"), ("avoidance_off", "eighth"), ("eighth", "both"))
"""The paper's order, by two."""


def holding(measured: Mapping[str, Sequence[float]], paper: Mapping[str, float]) -> tuple[int, int]:
    """Return how many of the four values are within 20 % of the paper's, and how many of its three orders hold."""
    spreads = {name: Spread.of(measured[name]) for name in VARIANTS}
    near = sum(abs(spreads[name].median / paper[name] - 1) <= NEAR for name in VARIANTS)
    return near, sum(spreads[left].is_below(spreads[right]) for left, right in STATEMENTS)


def _row(name: str, measured: Mapping[str, Sequence[float]], paper: Mapping[str, float]) -> tuple[str, ...]:
    near, orders = holding(measured, paper)
    return (name, *(_shown(measured[variant]) for variant in VARIANTS), f"{near} of 4", f"{orders} of 3")


def _shown(values: Sequence[float]) -> str:
    spread = Spread.of(values)
    return f"{spread.median:.1f} ({spread.low:.1f} to {spread.high:.1f})"


def _table(title: str, rows: Sequence[tuple[str, ...]], paper: Mapping[str, float], caption: str = "") -> Table:
    first = ("the paper", *(f"{paper[name]:g}" for name in VARIANTS), "", "")
    heads = ("run, packets", *VARIANTS.values(), "values within 20 %", "its orders that hold")
    said = "MB/s, median of five seeds and their range; an order holds where ranges are apart. "
    return Table(CLAIM, title, heads, (first, *rows), said + caption)


def _kept_table(paper: Mapping[str, float]) -> Table:
    kept = read()
    rows = [
        _row(f"{PLACES[item['place']]}: {item['run']} of 1e-3 {item['rate_of']}", item, paper)
        for item in kept["setups"]
    ]
    return _table("Losses in runs, all set-ups", rows, paper, f"{kept['command']}, {kept['date']}.")


def lines(rate_of: str = "packets") -> list[str]:
    """Return the README's table, by place and length: set-ups whose sender notices lost retransmissions, at lengths
    that were run through gateways too."""
    from evaluation.markdown import table

    paper = {name: find("dsan").claim(CLAIM).paper_value(name) for name in VARIANTS}
    places = list(PLACES)
    kept = [item for item in read()["setups"] if item["rate_of"] == rate_of and item["place"] != "never"]
    kept = [item for item in kept if item["run"] in (1, *GATEWAY_LENGTHS)]
    kept.sort(key=lambda item: (places.index(item["place"]), item["run"]))
    rows = [_row(f"{PLACES[item['place']]}; {item['run']}", item, paper) for item in kept]
    heads = ("set-up; packets in a run", *VARIANTS.values(), "values", "orders")
    first = ("the paper", *(f"{paper[name]:g}" for name in VARIANTS), "", "")
    return table([*heads], [[*row] for row in (first, *rows)]).splitlines()


def _figure(paper: Mapping[str, float]) -> Figure:
    kept = read()
    shown = list(SHORT)

    def draw(drawing: Any, ink: Ink) -> None:
        rows = drawing.subplots(2, len(shown), sharex=True, sharey=True, squeeze=False)
        for column, (place, title) in enumerate((key, SHORT[key]) for key in shown):
            for row, rate_of in enumerate(("packets", "events")):
                axes = rows[row][column]
                framed(axes, ink, "packets in a run" if row else "", f"{title}: MB/s, 1e-3 of {rate_of}")
                found = [item for item in kept["setups"] if (item["place"], item["rate_of"]) == (place, rate_of)]
                found.sort(key=lambda item: int(item["run"]))
                for name, label in VARIANTS.items():
                    colour = ink.curve(COLOURS[name])
                    spreads = [Spread.of(item[name]) for item in found]
                    xs = [item["run"] for item in found]
                    low, high = [one.low for one in spreads], [one.high for one in spreads]
                    axes.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)
                    axes.plot(xs, [one.median for one in spreads], "o-", color=colour, markersize=3, label=label)
                    axes.axhline(paper[name], color=colour, linewidth=1.0, linestyle=(0, (2, 2)), alpha=0.8)
                axes.set_xscale("log", base=2)
                axes.set_yscale("log")
                axes.set_ylim(0.02, 130)
                axes.set_xticks([1, 4, 16, 64], ["1", "4", "16", "64"])
                axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        legend(drawing, ink, rows[0][0])

    return Figure(
        "fig10-runs",
        CLAIM,
        "Figure 10: losses in runs, one connection",
        "Goodput by the length of a run, median and range of five seeds; dashed the paper's numbers in the controls' "
        "colours. Above 1e-3 of the packets are lost, below 1e-3 of them begin a run. A sender of \"never\" does not "
        f"notice that a retransmission was lost. {kept['command']}, {kept['date']}.",
        draw,
        (7.4, 4.6),
    )


def main() -> None:
    """Run the set-ups that are not there yet, or print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", action="store_true")
    if parser.parse_args().table:
        print("\n".join(lines()))
        return
    for setup in setups():
        if any(asdict(setup).items() <= other.items() for other in read()["setups"]):
            continue
        found = asdict(setup) | setup.measured()
        kept = [*read()["setups"], found]
        text = ",\n  ".join(json.dumps(item) for item in kept)
        head = f'"command": "{COMMAND}", "date": "{datetime.date.today().isoformat()}"'
        FILE.write_text(f'{{{head}, "setups": [\n  {text}\n]}}\n')
        print(kept[-1], flush=True)


if __name__ == "__main__":
    main()
