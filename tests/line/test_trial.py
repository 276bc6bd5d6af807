"""Verdicts on one trial, and trials that are repeated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from elephan.line.methods.retry import patient
from elephan.line.mix import Mix
from elephan.line.trial import Outcome, Received, Trial, Verdict
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
