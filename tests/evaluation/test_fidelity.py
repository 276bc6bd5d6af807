"""A quick part of `make fidelity`: the same cases, the same tolerances (evaluation/fidelity/reference.toml), fewer of
them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from elephan import _native
from evaluation.fidelity import cases, judge
from evaluation.performance.dumbbell import Dumbbell, run_spec
from evaluation.performance.engines import Unavailable, ns2_version
from evaluation.runner import Runner

REFERENCE = cases.load()
RUNNER = Runner(None)
QUICK_LOSS = 1e-4
"""Least loss of the formulas' grid that is run here: below it a point takes tens of millions of packets."""
QUICK_SEEDS = 5


def assert_all(rows: list[judge.Row]) -> None:
    """Fail with every comparison that is out of its tolerance."""
    assert rows, "nothing was compared"
    broken = [str(row) for row in rows if not row.holds]
    assert not broken, "\n".join(broken)


def test_reno_follows_mathis_and_padhye() -> None:
    selected = [case for case in cases.formula_cases(REFERENCE) if case.loss >= QUICK_LOSS]
    assert_all([row for pair in judge.formula_rows(RUNNER, selected) for row in pair])


def test_a_window_limited_flow_gets_window_over_rtt() -> None:
    assert_all(judge.window_rows(RUNNER, REFERENCE, list(cases.window_cases(REFERENCE))))


def test_the_sawtooth_has_its_period() -> None:
    assert_all(judge.sawtooth_rows(RUNNER, REFERENCE, list(cases.sawtooth_cases(REFERENCE))))


@pytest.mark.parametrize("cc", [cc["name"] for cc in REFERENCE["kernel"]["congestion_control"]])
def test_goodput_is_the_kernels(cc: str) -> None:
    selected = [case for case in cases.kernel_cases(REFERENCE, QUICK_SEEDS) if case.cc == cc]
    assert_all(judge.kernel_rows(RUNNER, REFERENCE, selected))


def test_renos_overshoot_is_the_kernels() -> None:
    selected = [case for case in cases.price_cases(REFERENCE) if case.tolerance is not None and case.jitter_us <= 60]
    assert_all([price.row for price in judge.prices(RUNNER, selected) if price.row is not None])


def test_goodput_is_that_of_ns2() -> None:
    try:
        ns2_version()
    except Unavailable as missing:
        pytest.skip(str(missing))
    quick = [case for case in cases.ns2_cases(REFERENCE, seeds=3) if case.rtt_ms <= 40 and case.loss == 1e-3]
    assert len(quick) >= 8
    assert_all(judge.ns2_rows(RUNNER, quick))


def test_the_same_seed_gives_the_same_run_on_every_thread() -> None:
    bell = Dumbbell(
        rate_bps=200_000_000,
        rtt_ns=20_000_000,
        duration_ns=5_000_000_000,
        flows=3,
        loss_e12=10**8,
        series_ns=10_000_000,
    )
    spec = json.dumps(run_spec(bell))

    def run(_: int) -> tuple[dict, list, list, dict]:
        result = _native.simulate(spec, None, 1.0)
        series = {name: column.tobytes() for name, column in result.flow_series.items()}
        return dict(result.metrics), list(result.flows), list(result.links), series

    alone = run(0)
    with ThreadPoolExecutor(2) as pool:
        assert all(beside == alone for beside in pool.map(run, range(4)))


def test_another_seed_gives_another_run() -> None:
    bells = [
        Dumbbell(rate_bps=200_000_000, rtt_ns=20_000_000, duration_ns=5_000_000_000, loss_e12=10**9, seed=seed)
        for seed in (1, 2)
    ]
    first, second = (_native.simulate(json.dumps(run_spec(bell)), None, 1.0).metrics for bell in bells)
    assert first["delivered_bytes"] != second["delivered_bytes"]
