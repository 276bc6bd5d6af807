"""The introduction's network, and the paper's further work, through whole gateways."""

from __future__ import annotations

from collections.abc import Sequence

from elephan import units
from elephan.papers.evaluation import Evaluation, PaperResults, Table, part
from elephan.papers.spread import Measured
from elephan.record import Record

from .frames import payload, stalled_share
from .loss import loss_of, mean
from .setups import Goodput
from .variants import VARIANTS, variant

AVERAGE_LOSS = 0.16
"""The introduction's loss rate."""


def _cc(record: Record) -> str:
    """Return the name of a record's congestion control: of the paper's four the key in `VARIANTS`."""
    name = str(record.spec["flows"][0]["transport"]["congestion_control"])
    return variant(record) if name == "storage_friendly" else name


@part("gateways-intro.toml")
def introduction(results: PaperResults) -> Evaluation:
    """Payload on an OC-3 line of 67 ms by loss."""
    groups: dict[tuple[str, float], list[Record]] = {}
    for record in results.of("gateways-intro.toml"):
        groups.setdefault((_cc(record), loss_of(record)), []).append(record)
    losses = sorted({loss for _, loss in groups})
    measured = {f"{name}_{_rate(loss)}": [*map(payload, records)] for (name, loss), records in groups.items()}
    names = dict.fromkeys(name for name, _ in groups)
    rows = [(VARIANTS.get(name, name), *(_text(groups[name, loss]) for loss in losses)) for name in names]
    table = Table(
        "dsan.intro",
        "An OC-3 line of 67 ms, by loss",
        ("payload, MB/s", *(f"loss {_rate(loss)}" for loss in losses)),
        tuple(rows),
        "One pair that offers 16 MB/s; RACK-TLP, window 8 MB; mean and range of three seeds.",
    )
    return Evaluation({"dsan.intro": measured}, [], [table])


def _rate(loss: float) -> str:
    return f"{loss:g}" if loss >= 0.1 else f"{loss:.0e}".replace("e-0", "e-")


def _text(records: Sequence[Record]) -> str:
    runs = Goodput(tuple(payload(record) for record in records))
    return runs.text if runs.mean >= 1 else f"{runs.mean:.3f} ({min(runs.runs):.3f} to {max(runs.runs):.3f})"


def _longest_s(record: Record) -> float:
    """Return the longest frame latency of the warm-up, s; NaN where no frame arrived."""
    found = record.metrics.get("startup_latency_max_s")
    return float("nan") if found is None else found


@part("gateways-reordering.toml", "gateways-start.toml")
def further_work(results: PaperResults) -> Evaluation:
    """Payload under reordering by loss recovery; wait of frames in slow start by initial window."""
    reordered: dict[str, list[Record]] = {}
    for record in results.of("gateways-reordering.toml"):
        reordered.setdefault(record.spec["flows"][0]["transport"]["recovery"], []).append(record)
    started = {
        int(record.spec["flows"][0]["transport"]["initial_cwnd"]): record
        for record in results.of("gateways-start.toml")
    }
    measured: dict[str, Measured] = {
        f"reordered_{name}": [*map(payload, records)] for name, records in reordered.items()
    }
    measured |= {f"start_{cwnd}": _longest_s(record) for cwnd, record in started.items()}
    rows = [
        (f"reordering, {name}", _text(records), f"{100 * mean(records, stalled_share):.0f} %", "")
        for name, records in reordered.items()
    ]
    rows += [
        (
            f"initial window of {units.pluralize(cwnd, 'segment')}",
            f"{payload(record):.1f}",
            f"{100 * stalled_share(record):.0f} %",
            units.duration(_longest_s(record)),
        )
        for cwnd, record in sorted(started.items())
    ]
    table = Table(
        "dsan.further",
        "Reordering and the initial window",
        ("", "payload, MB/s", "port without credit", "longest frame latency at the start"),
        tuple(rows),
        "Reordering: 1 Gbit/s, 25 ms, each packet up to 1 ms later, none lost, three seeds. Initial window: 67 ms, "
        "half of a 1GFC port's rate.",
    )
    return Evaluation({"dsan.further": measured}, [], [table])
