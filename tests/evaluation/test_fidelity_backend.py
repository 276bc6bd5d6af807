"""The kernel backend in docs/results/fidelity.md: cells, stored values of a run, judgement of two backends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elephan.store import Series
from evaluation.fidelity import cases as reference_cases
from evaluation.fidelity.backend import cases, judge, measured, page, script
from evaluation.fidelity.judge import job
from evaluation.runner import Runner

REFERENCE = reference_cases.load()
RUNNER = Runner(None)


@pytest.fixture(scope="module")
def cell() -> cases.Cell:
    """A cell that takes no time: Reno at much loss."""
    return next(c for c in cases.cells(REFERENCE) if c.name == ("reno", "10 ms", "0.01", "1 flow"))


def as_measured(cell: cases.Cell, factor: float, faults: list[str] | None = None) -> dict[str, dict[str, Any]]:
    """Runs that a kernel might have given whose goodput is the simulator's times `factor`."""
    runs = {}
    for spec in cell.specs[:3]:
        (record,) = RUNNER.run([job(spec)])
        key = cases.key_of(spec)
        runs[key] = {
            "key": key,
            "cell": list(cell.name),
            "seed": spec["seed"],
            "metrics": {"goodput_bps": record.metrics["goodput_bps"] * factor},
            "flow_goodput_bps": [flow["goodput_bps"] * factor for flow in record.flows],
            "faults": faults or [],
            "kernel": "Linux 0.0",
            "version": "0",
            "date": "2000-01-01",
        }
    return runs


def test_every_cell_has_its_seeds_and_its_own_runs() -> None:
    every = [cases.key_of(spec) for cell in cases.cells(REFERENCE) for spec in cell.specs]
    backend = REFERENCE["backend"]
    paths = len(backend["rtt_ms"]) * len(backend["loss"]) * len(backend["flows"]) + 1
    assert len(every) == len(set(every)) == backend["seeds"] * len(backend["congestion_control"]) * paths


def test_a_rival_is_reno_and_the_rest_is_the_cc() -> None:
    rivals = [cell for cell in cases.cells(REFERENCE) if cell.rival]
    assert {cell.cc for cell in rivals} == {cc["name"] for cc in REFERENCE["backend"]["congestion_control"]}
    for cell in rivals:
        first, second = (flow["transport"]["congestion_control"] for flow in cell.specs[0]["flows"])
        assert second == "reno"
        assert first == next(
            s["congestion_control"] for s in REFERENCE["backend"]["congestion_control"] if s["name"] == cell.cc
        )


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (1.08, True), (1.25, False), (0.8, False)])
def test_a_kernel_that_differs_is_judged_so(cell: cases.Cell, factor: float, holds: bool) -> None:
    (beside,) = judge.rows(RUNNER, REFERENCE, as_measured(cell, factor))
    assert beside.seeds == 3
    assert not beside.line_decides
    assert beside.row.ratio == pytest.approx(1 / factor)
    assert beside.row.holds == holds


def test_a_run_that_was_not_honoured_says_nothing(cell: cases.Cell) -> None:
    runs = as_measured(cell, 1.0, faults=["EMULATOR: late"])
    assert judge.rows(RUNNER, REFERENCE, runs) == []
    runs = as_measured(cell, 1.0) | dict(list(runs.items())[:1])
    (beside,) = judge.rows(RUNNER, REFERENCE, runs)
    assert beside.seeds == 2
    assert "Left out: 1 run that the emulator did not honour" in page.section(REFERENCE, runs, [beside], [])


def test_the_page_says_what_is_not_measured() -> None:
    assert "Not measured yet" in page.section(REFERENCE, {}, [], [])


def test_a_run_measured_again_counts_as_it_was_last(tmp_path: Path) -> None:
    file = tmp_path / "measured.jsonl"
    assert measured.load(file) == {}
    measured.append({"key": "a", "seed": 1}, file)
    measured.append({"key": "b", "seed": 1}, file)
    measured.append({"key": "a", "seed": 2}, file)
    assert {key: run["seed"] for key, run in measured.load(file).items()} == {"a": 2, "b": 1}
    assert len(file.read_text().splitlines()) == 3


def series(time_s: list[float], cwnd: list[int], ssthresh: list[float]) -> Series:
    """Return the series of one flow."""
    columns = {"time_s": time_s, "cwnd_packets": cwnd, "ssthresh_packets": ssthresh}
    return Series.from_columns({name: np.array(values) for name, values in columns.items()}, {})


def test_windows_are_compared_reduction_by_reduction_and_sample_by_sample() -> None:
    never = float("nan")
    spec = {"duration_ns": 60_000_000, "measure": {"series_interval_ns": 10_000_000}}
    # The first late by little, the fourth not taken.
    times = [0.0101, 0.02, 0.03, 0.05, 0.06]
    kernel = script.windows(spec, series(times, [10, 20, 30, 15, 16], [never, never, never, 15, 15]))
    assert kernel == script.Windows((10, 20, 30, 30, 15, 16), (15,))
    times = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    ours = script.windows(spec, series(times, [10, 20, 30, 30, 12, 13], [never, never, never, 12, 12, 12]))
    difference = script.Difference("reno", kernel, ours)
    assert difference.ssthresh == pytest.approx(3 / 15)
    assert difference.cwnd == pytest.approx((3 + 3) / (10 + 20 + 30 + 30 + 15 + 16))


def test_the_script_loses_what_it_says_and_nothing_else() -> None:
    spec = script.specs(REFERENCE)["reno"]
    results = RUNNER.run([job(spec)])
    (record,) = results
    table = REFERENCE["backend"]["script"]
    delivered = record.links[0]["delivered_packets"] + record.links[0]["dropped_by_loss"]
    expected = len([number for number in script.lost(table) if number <= delivered])
    assert record.links[0]["dropped_by_loss"] == expected > 10
    assert record.metrics["dropped_packets"] == expected
    found = script.windows(spec, results.series_of(record))
    # Two reductions in a row may lead to the same ssthresh.
    assert expected - 3 <= len(found.reductions) <= expected


def test_what_is_kept_is_of_cells_that_are_still_compared() -> None:
    known = {cases.key_of(spec) for cell in cases.cells(REFERENCE) for spec in cell.specs}
    known |= {cases.key_of(spec) for spec in script.specs(REFERENCE).values()}
    for line in measured.FILE.read_text().splitlines() if measured.FILE.exists() else []:
        run = json.loads(line)
        assert run["key"] in known, f"{run['cell']} seed {run['seed']} is compared no more: take the line out"
