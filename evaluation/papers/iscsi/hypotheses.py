"""Hypotheses for what decides figures 7 to 13, one at a time and crossed, held against every statement of the claims.

    python -m evaluation.papers.iscsi.hypotheses            # runs what is missing, writes hypotheses.json
    python -m evaluation.papers.iscsi.hypotheses --page     # hypotheses.md from hypotheses.json

Runs of 300 s (figures 7 to 10) at 1, 2, 5 and 10 connections and of 600 s (11 to 13), five seeds each. hypotheses.json
has the numbers alone: what they say of the claims is judged when the page is made. Each run is stored when it ends.
`--trace FILE` adds the set-ups that replay a block trace, `--crossed` those of several changes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import elephan
from elephan.api import Results
from elephan.papers.claims import Claim, Order, Outcome, Paper, Runs, Value, read
from elephan.papers.evaluation import PaperResults
from elephan.papers.spread import Measured, Spread

from .burst import numbers as by_burst
from .cells import DEPTH, Cell, crossed, one_at_a_time, traced
from .connections import numbers as by_connections
from .demands import FOUND, STATEMENTS, Numbers, load, outcome
from .fairness import numbers as by_flow
from .session import CCS, title_of

FOLDER = Path(__file__).parent
PAGE = FOLDER / "hypotheses.md"

CONNECTIONS = (1, 2, 5, 10)

READERS: Mapping[str, Callable[[PaperResults], Mapping[str, Mapping[str, Measured]]]] = {
    "fig7.toml": by_connections,
    "fig11-13.toml": by_flow,
    "fig10.toml": by_burst,
}
"""Readers by scenario, in the order in which all set-ups are run."""


def run(cell: Cell, file: str, paper: Paper, store: str) -> dict[str, Numbers]:
    """Return a scenario's numbers under a set-up, by claim and quantity, a value per repetition."""
    runs = [(Runs(file=file), results) for results in _results(cell, file, store)]
    found = READERS[file](PaperResults(paper, runs))
    return {
        claim: {name: [float(f"{value:.5g}") for value in Spread.of(one).values] for name, one in measured.items()}
        for claim, measured in found.items()
    }


def _results(cell: Cell, file: str, store: str) -> Iterator[Results]:
    for settings in settings_of(cell, file):
        yield elephan.run(FOLDER / file, settings, store=store, workers=1)


def settings_of(cell: Cell, file: str) -> Iterator[dict[str, Any]]:
    """Yield the settings with which a scenario is run; several where the depth follows the connections."""
    beside = file == "fig11-13.toml"
    set_ = {key: value for key, value in cell.set.items() if beside or ".ftp." not in key}
    ccs = ("reno", "htcp", "bic") if beside else tuple(CCS)
    set_[f"sweep.flow.{'*' if beside else 'session'}.congestion_control"] = f"[{', '.join(map(cell.control, ccs))}]"
    if not beside:
        set_["run.duration"] = f"{cell.seconds}s"
    each = cell.depth_each
    if file != "fig7.toml":
        connections = 5 if file == "fig10.toml" else 1
        yield set_ | ({DEPTH: each * connections} if each else {})
    elif each is None:
        yield set_ | {"sweep.flow.session.connections": str(list(CONNECTIONS))}
    else:
        yield from (set_ | {"sweep.flow.session.connections": f"[{n}]", DEPTH: each * n} for n in CONNECTIONS)


def measure(cells: Sequence[Cell], store: str, say: Callable[[str], None]) -> None:
    """Run what is missing or was found under other settings, and keep each scenario as it ends."""
    paper = read(FOLDER)
    found = load()
    for file in READERS:
        for cell in cells:
            old = found.get(cell.name)
            if old is None or old["set-up"] != cell.key():
                old = found[cell.name] = {"set-up": cell.key(), "done": {}, "claims": {}}
            if file not in cell.figures or file in old["done"]:
                continue
            old["claims"] |= run(cell, file, paper, store)
            old["done"][file] = date.today().isoformat()
            FOUND.write_text(json.dumps(found, separators=(",", ":")).replace('},"', '},\n"') + "\n")
            say(f"{file}: {cell.name}")


WORDS = {Outcome.HOLDS: "yes", Outcome.BROKEN: "no", Outcome.NOT_DECIDED: "open"}


def statements(claim: Claim) -> list[Order | Value]:
    """Return what a claim states, and what is judged over all demands."""
    return [*claim.order, *STATEMENTS.get(claim.id, {}).values(), *claim.value]


def page(found: Mapping[str, Any]) -> str:
    """Return the tables: a row per set-up, a column per statement."""
    from evaluation.markdown import filled

    paper = read(FOLDER)
    latest = max(day for one in found.values() for day in one["done"].values())
    parts = [INTRO.format(date=latest)]
    several = {cell.name for cell in crossed()}
    for claim in EXTRA:
        parts.append(f"## {claim}: {paper.claim(claim).title}")
        parts += _tables(paper.claim(claim), {name: one for name, one in found.items() if name not in several})
    rows = {name: one for name, one in found.items() if name in several}
    for claim in ("iscsi.fig7", "iscsi.fig8") if rows else ():
        parts.append(f"## {claim}, crossed")
        parts.append(CROSSED)
        parts += _tables(paper.claim(claim), rows)
    return filled("\n\n".join(parts))


def _tables(claim: Claim, found: Mapping[str, Any]) -> Iterator[str]:
    from evaluation.markdown import table

    measured = {name: one["claims"] for name, one in found.items()}
    rows: dict[str, Numbers] = {name: claims[claim.id] for name, claims in measured.items() if claim.id in claims}
    if not rows:
        return
    stated = statements(claim)
    yield table(["", "statement"], [[str(number), one.label] for number, one in enumerate(stated, 1)])
    body = []
    for name, numbers in rows.items():
        outcomes = [WORDS[outcome(one, numbers)] for one in stated]
        body.append([name, *outcomes, *(show(numbers) for show in EXTRA[claim.id].values())])
    yield table(["set-up", *map(str, range(1, len(stated) + 1)), *EXTRA[claim.id]], body)


def _best(connections: int) -> Callable[[Numbers], str]:
    """Return who carries most with so many connections, with the median; "or" names those whose ranges overlap."""

    def show(numbers: Numbers) -> str:
        found = {cc: Spread(tuple(numbers[f"{cc}_{connections}"])) for cc in CCS}
        ranked = sorted(CCS, key=lambda cc: -found[cc].median)
        first = found[ranked[0]]
        near = [title_of(cc) for cc in ranked if not found[cc].is_below(first)]
        named = " or ".join(near) if len(near) < len(CCS) else "all"
        return f"{named} {first.median:.2f}"

    return show


def _numbers(*names: str, form: str = "{:.0f}") -> Callable[[Numbers], str]:
    return lambda numbers: ", ".join(form.format(Spread(tuple(numbers[name])).median) for name in names)


def _windows(cc: str) -> Callable[[Numbers], str]:
    return _numbers(f"{cc}_session", f"{cc}_ftp")


EXTRA: Mapping[str, Mapping[str, Callable[[Numbers], str]]] = {
    "iscsi.fig7": {f"best with {n}, MB/s": _best(n) for n in CONNECTIONS}
    | {"mean with 1, 2, 5, 10": _numbers("mean_1", "mean_2", "mean_5", "mean_10", form="{:.2f}")},
    "iscsi.fig8": {"drops: Reno, BIC, H-TCP, HSTCP, Scalable": _numbers(*CCS)},
    "iscsi.fig9-10": {
        "MB/s: Reno, BIC, H-TCP, HSTCP, Scalable": _numbers(*CCS, form="{:.2f}"),
        "mean at 4, 16, 64, 256 KiB, 4 MiB": _numbers(
            "at_4k", "at_16k", "at_64k", "at_256k", "at_4096k", form="{:.2f}"
        ),
    },
    "iscsi.fig11-13": {f"{title_of(cc)}: iSCSI, FTP": _windows(cc) for cc in ("reno", "htcp", "bic")},
}
"""Columns beside the statements: what was measured, medians."""

INTRO = """# Set-ups of the paper's figures 7 to 13, and the statements that hold in each

Made by `python -m evaluation.papers.iscsi.hypotheses`, {date}; do not edit. [README](README.md) says what follows.

A row is a set-up: that of the figures with one thing changed. A column is a statement of claims.toml. yes: it holds in
the ranges of five seeds; no: they are in another order, apart as well, or the median is outside the tolerance; open:
the ranges overlap. Runs of 300 s at 1, 2, 5 and 10 connections (figures 7 and 8) and by
MaxBurstLength (figures 9 and 10), of 600 s (11 to 13)."""

CROSSED = """Windows, recovery, least time-out, requests and congestion controls, all with all: runs of 150 s."""


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--store", default="out/iscsi-hypotheses.sqlite", help="where each run is kept when it ends")
    parser.add_argument("--trace", type=Path, help="block trace to replay, HP's hp-ajw-1week.srt")
    parser.add_argument("--crossed", action="store_true", help="the crossed set-ups, too")
    parser.add_argument("--page", action="store_true", help="write the page of what was found and run nothing")
    args = parser.parse_args()
    if not args.page:
        cells = [*one_at_a_time(), *(traced(args.trace) if args.trace else ()), *(crossed() if args.crossed else ())]
        measure(cells, args.store, lambda line: print(line, file=sys.stderr, flush=True))
    PAGE.write_text(page(load()))


if __name__ == "__main__":
    main()
