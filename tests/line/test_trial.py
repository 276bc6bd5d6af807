"""Verdicts on one trial, and trials that are repeated."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from elephan.line.methods.retry import patient
from elephan.line.mix import Mix
from elephan.line.trial import Outcome, Received, Row, Trial, Verdict
from tests.line.model import Line

TRIAL = Trial(Mix.of(1518), 10**9, 10**9)
CLEAN = Line(10**9).run(TRIAL)


def received(**changes: int) -> Outcome:
    assert isinstance(CLEAN.received, Received)
    return replace(CLEAN, received=replace(CLEAN.received, **changes))


def test_frames_that_the_receiver_dropped_are_not_the_lines() -> None:
    assert received(lost=7, ring_drops=7).verdict is Verdict.RECEIVER
    assert received(lost=7, interface_drops=7).verdict is Verdict.RECEIVER
    # The receiver dropped frames of others: every frame of the stream is there.
    assert received(ring_drops=7).verdict is Verdict.PASSED
    # It cannot have dropped more of the stream than it has dropped.
    more = received(lost=7, ring_drops=3, interface_drops=2)
    assert (more.verdict, more.line_lost) == (Verdict.LOST, 2)
    assert more.loss_ratio == pytest.approx(2 / CLEAN.sent.frames)


def test_a_trial_counts_up_to_the_frames_that_the_generator_may_leave_out() -> None:
    one_in_a_thousand = replace(CLEAN, sent=replace(CLEAN.sent, left_out_frames=CLEAN.sent.frames // 999))
    assert one_in_a_thousand.verdict is Verdict.GENERATOR
    assert replace(one_in_a_thousand, allowed_ppm=1002).verdict is Verdict.PASSED
    assert replace(one_in_a_thousand, allowed_ppm=990).verdict is Verdict.GENERATOR
    lost = replace(received(lost=1), sent=one_in_a_thousand.sent, allowed_ppm=1002)
    assert lost.verdict is Verdict.LOST


def test_without_a_report_every_frame_is_lost() -> None:
    silent = replace(CLEAN, received=None)
    assert silent.lost == silent.line_lost == CLEAN.sent.frames and silent.verdict is Verdict.LOST
    assert silent.frame_bps == 0


def test_a_limited_trial_is_repeated_until_it_is_none() -> None:
    limited = replace(CLEAN, sent=replace(CLEAN.sent, left_out_frames=1))
    outcomes = [limited, limited, CLEAN, CLEAN]
    retried: list[Outcome] = []
    run = patient(lambda trial: outcomes.pop(0), 3, on_retry=lambda trial, outcome: retried.append(outcome))
    assert run(TRIAL).verdict is Verdict.PASSED and len(retried) == 2 and len(outcomes) == 1
    outcomes = [limited, limited, limited, CLEAN]
    assert run(TRIAL).verdict is Verdict.GENERATOR and len(outcomes) == 1
    # A loss is no limit of an end.
    outcomes = [received(lost=1), CLEAN]
    assert run(TRIAL).verdict is Verdict.LOST and len(outcomes) == 1
    outcomes = [limited, CLEAN]
    assert patient(lambda trial: outcomes.pop(0), allowed_ppm=1000)(TRIAL).verdict is Verdict.PASSED
    assert len(outcomes) == 1


def test_a_loss_comes_before_the_generators_limit() -> None:
    """A generator that left frames out loaded the line less than asked for: that hides no loss."""
    short = replace(CLEAN.sent, left_out_frames=CLEAN.sent.frames)
    assert replace(received(lost=1), sent=short).verdict is Verdict.LOST
    assert replace(CLEAN, sent=short).verdict is Verdict.GENERATOR


def test_frames_that_found_no_carrier_are_lost() -> None:
    without = replace(CLEAN, sent=replace(CLEAN.sent, no_carrier_frames=CLEAN.sent.frames))
    assert without.verdict is Verdict.LOST and without.loss_ratio == 0.5
    assert (without.lost, without.line_lost, without.sent_lost) == (CLEAN.sent.frames, CLEAN.sent.frames, 0)


def test_frames_that_the_senders_interface_dropped_are_not_the_lines() -> None:
    dropped = replace(received(lost=5), sent=replace(CLEAN.sent, interface_drops=5))
    assert (dropped.line_lost, dropped.verdict) == (0, Verdict.GENERATOR)
    both = replace(received(lost=9, ring_drops=3), sent=replace(CLEAN.sent, interface_drops=5))
    assert (both.line_lost, both.verdict) == (1, Verdict.LOST)


def test_counts_that_a_core_does_not_know_are_zero() -> None:
    whole = CLEAN.as_json()
    for name in ("no_carrier_frames", "interface_drops"):
        assert whole["sent"].pop(name) == 0
    whole["sent"]["hold_max_ns"] = 7
    assert Outcome.from_json(json.dumps(whole)) == CLEAN
    row = asdict(Row(1, 0, 0, 0, 0, 0, 0, 0, None, None, None, True, 3))
    assert not Row.of(row).is_empty
    del row["no_carrier_frames"]
    assert Row.of(row).is_empty
