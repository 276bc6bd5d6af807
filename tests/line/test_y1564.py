"""Service activation against a line in closed form with a policer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from elephan.line.methods import y1564
from elephan.line.methods.y1564 import Plan, Service, availability
from elephan.line.mix import Mix
from elephan.line.trial import Clock, Row
from tests.line.model import Line

GIGABIT = 10**9
MIX = Mix.of(512)
SERVICE = Service(100_000_000, MIX, 50_000_000)
PLAN = Plan(step_ns=10**9, performance_ns=60 * 10**9)


def policed(frame_bps: int, **more: object) -> Line:
    return replace(Line(GIGABIT, MIX.line_bps(frame_bps)), **more)  # type: ignore[arg-type]


def passed(line: Line, service: Service = SERVICE) -> dict[str, bool | None]:
    return {step.name: step.passed for step in y1564.measure(line.run, service, PLAN)}


def test_a_service_as_agreed_passes_every_step() -> None:
    line = policed(150_000_000)
    assert passed(line) == {
        "CIR 25 %": True,
        "CIR 50 %": True,
        "CIR 75 %": True,
        "CIR 100 %": True,
        "CIR + EIR": True,
        "policing": True,
        "performance": True,
    }
    sent_bps = [MIX.frame_bps(trial.rate_bps) for trial in line.trials]
    assert sent_bps == pytest.approx([25e6, 50e6, 75e6, 100e6, 150e6, 162.5e6, 100e6], rel=1e-6)
    assert [trial.duration_ns for trial in line.trials] == [10**9] * 6 + [60 * 10**9]


def test_a_service_below_its_committed_rate_fails_without_a_performance_test() -> None:
    found = passed(policed(90_000_000))
    assert found["CIR 75 %"] is True and found["CIR 100 %"] is False and "performance" not in found


def test_a_service_that_is_not_policed_fails_the_policing_step_alone() -> None:
    found = passed(Line(GIGABIT))
    assert [name for name, met in found.items() if met is False] == ["policing"]


def test_without_an_excess_rate_125_per_cent_are_sent() -> None:
    line = policed(100_000_000)
    assert passed(line, replace(SERVICE, eir_bps=0))["policing"] is True
    assert MIX.frame_bps(line.trials[4].rate_bps) == pytest.approx(125e6, rel=1e-6)


def test_a_line_without_room_for_more_has_no_policing_step() -> None:
    whole = replace(SERVICE, cir_bps=MIX.frame_bps(GIGABIT), eir_bps=0)
    steps = list(y1564.measure(Line(GIGABIT).run, whole, replace(PLAN, line_bps=GIGABIT)))
    assert [step.name for step in steps][-2:] == ["CIR 100 %", "performance"] and all(step.passed for step in steps)


def test_the_clocks_error_leaves_a_delay_undecided() -> None:
    agreed = replace(SERVICE, delay_ns=1_000_500)
    # 1 ms of the line, and clocks that are known to 2 us, to 100 ns, or not at all.
    assert passed(policed(150_000_000), agreed)["CIR 25 %"] is None
    assert passed(policed(150_000_000, clock=Clock(0, 100)), agreed)["CIR 25 %"] is True
    assert passed(policed(150_000_000, latency_ns=2_000_000), agreed)["CIR 25 %"] is False
    assert passed(policed(150_000_000, clock=None), agreed)["CIR 25 %"] is None


def test_a_variation_beyond_the_agreed_one_fails() -> None:
    assert passed(policed(150_000_000), replace(SERVICE, variation_ns=1000))["CIR 100 %"] is True
    # A queue of 100 frames of 512 B at the policer's rate: 2.7 ms.
    queued = policed(90_000_000, buffer_frames=100)
    steps = {step.name: step for step in y1564.measure(queued.run, replace(SERVICE, variation_ns=1000), PLAN)}
    assert {check.name: check.passed for check in steps["CIR 100 %"].checks}["frame delay variation"] is False


def test_a_generator_that_cannot_keep_up_decides_nothing() -> None:
    found = passed(policed(150_000_000, generator_bps=MIX.line_bps(60_000_000)))
    assert (found["CIR 50 %"], found["CIR 75 %"], found["CIR 100 %"], found["policing"]) == (True, None, None, None)


def test_an_outage_costs_availability() -> None:
    agreed = replace(SERVICE, availability=0.9, loss_ratio=1.0)
    assert passed(policed(150_000_000, outage_rows=range(20, 29)), agreed)["performance"] is True
    assert passed(policed(150_000_000, outage_rows=range(20, 30)), agreed)["performance"] is False


def rows(pattern: str) -> list[Row]:
    """Return seconds: "." is good, "x" severely errored, "?" not answered."""
    counts = {".": (100, 100, True), "x": (100, 49, True), "?": (100, 0, False)}
    return [
        Row(index, sent, got, sent - got, 0, 0, 0, 0, None, None, None, answered)
        for index, (sent, got, answered) in enumerate(counts[letter] for letter in pattern)
    ]


@pytest.mark.parametrize(
    ("pattern", "unavailable"),
    [
        ("." * 30, 0),
        # Nine severely errored seconds are errored and available; ten are neither.
        ("." * 10 + "x" * 9 + "." * 11, 0),
        ("." * 10 + "x" * 10 + "." * 10, 10),
        # Nine good seconds do not end unavailable time.
        ("x" * 10 + "." * 9 + "x" + "." * 10, 20),
        ("." * 10 + "?" * 15, 15),
        ("x" * 10 + "." * 5, 15),
    ],
)
def test_ten_seconds_change_the_state(pattern: str, unavailable: int) -> None:
    assert availability(rows(pattern)) == pytest.approx(1 - unavailable / len(pattern))


def test_without_seconds_nothing_is_known() -> None:
    assert availability([]) is None


@pytest.mark.parametrize(
    ("eir_bps", "tolerance", "sent_bps"),
    [
        # A quarter of a small excess rate more would be below the tolerance.
        (4_000_000, 0.01, 130e6),
        (19_000_000, 0.01, 148.75e6),
        (20_000_000, 0.01, 125e6),
        # 125 % of the excess rate are not clear of a tolerance of 10 %, 125 % of both are.
        (50_000_000, 0.1, 187.5e6),
        (50_000_000, 0.3, None),
    ],
)
def test_policing_sends_a_rate_that_can_fail(eir_bps: int, tolerance: float, sent_bps: float | None) -> None:
    service = replace(SERVICE, eir_bps=eir_bps, tolerance=tolerance)
    assert y1564.policing_bps(service) == sent_bps
    # A line without a policer.
    assert passed(Line(GIGABIT), service).get("policing") is (None if sent_bps is None else False)


def test_a_loss_above_the_agreed_ratio_fails_whatever_the_generator_left_out() -> None:
    line = Line(GIGABIT, generator_bps=MIX.line_bps(20_000_000), lose_every=100)
    assert passed(line, replace(SERVICE, loss_ratio=0.001))["CIR 25 %"] is False
    # Below it the lower load decides nothing.
    assert passed(line, replace(SERVICE, loss_ratio=0.1))["CIR 25 %"] is None


def test_seconds_without_a_carrier_are_severely_errored() -> None:
    without = [replace(row, sent=0, received=0, lost=0, no_carrier_frames=100) for row in rows("." * 10)]
    assert availability([*rows("." * 10), *without]) == pytest.approx(0.5)
    agreed = replace(SERVICE, availability=0.9, loss_ratio=1.0)
    line = policed(150_000_000, no_carrier_rows=range(20, 30))
    assert passed(line, agreed)["performance"] is False
    # Nine are short of unavailable time; the loss ratio has them all the same.
    found = list(y1564.measure(policed(150_000_000, no_carrier_rows=range(20, 29)).run, agreed, PLAN))[-1]
    checks = {check.name: check for check in found.checks}
    assert checks["availability"].passed and checks["frame loss ratio"].value == pytest.approx(9 / 60, rel=1e-3)
