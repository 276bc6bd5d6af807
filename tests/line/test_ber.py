"""Bit error rates and their confidence, against known values."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from elephan.line.methods.ber import bit_errors, bits_for, bound, span_ns_for
from elephan.line.mix import Mix
from elephan.line.trial import Trial, Verdict
from tests.line.model import Line


def test_no_error_in_n_bits_is_a_rate_below_3_in_n() -> None:
    found = bound(0, 10**12)
    assert found.upper == pytest.approx(2.9957e-12, rel=1e-4) and found.lower == 0 == found.rate
    assert bits_for(1e-12) == pytest.approx(2.9957e12, rel=1e-4)


@pytest.mark.parametrize(
    ("errors", "upper", "lower"),
    # Poisson limits at 95 %, one-sided (Garwood 1936): the table that most books print.
    [(1, 4.744, 0.0513), (2, 6.296, 0.355), (3, 7.754, 0.818), (5, 10.513, 1.970), (10, 16.962, 5.425)],
)
def test_the_limits_are_those_of_the_table(errors: int, upper: float, lower: float) -> None:
    found = bound(errors, 1)
    assert (found.upper, found.lower) == (pytest.approx(upper, abs=1e-3), pytest.approx(lower, abs=1e-3))
    # So many errors or fewer happen with 5 % at the upper limit, so many or more at the lower one.
    at_most = sum(math.exp(-found.upper) * found.upper**k / math.factorial(k) for k in range(errors + 1))
    at_least = 1 - sum(math.exp(-found.lower) * found.lower**k / math.factorial(k) for k in range(errors))
    assert (at_most, at_least) == (pytest.approx(0.05), pytest.approx(0.05))


def test_the_papers_bits_show_a_little_less_than_the_paper_says() -> None:
    """3.6572e14 bytes without a loss are "lower than 1e-15" in the paper; at 95 % they are below 1.02e-15."""
    assert bound(0, int(3.6572e14) * 8).upper == pytest.approx(1.024e-15, rel=1e-3)
    both = int(3.6572e14 + 3.9524e14) * 8
    assert bound(0, both).upper == pytest.approx(4.92e-16, rel=1e-3)


def test_the_time_for_a_rate() -> None:
    """1e-12 at 10 Gbit/s: 3e12 bits in about five minutes."""
    mix = Mix.of(1518)
    seconds = span_ns_for(1e-12, mix, 10**10) / 1e9
    assert seconds == pytest.approx(2.9957e12 / 1e10 * 1538 / 1518, rel=1e-4)
    assert span_ns_for(1e-12, mix, 10**10, errors=1) == pytest.approx(seconds * 1e9 * 4.744 / 2.9957, rel=1e-3)


def trial(seconds: int) -> Trial:
    return Trial(Mix.of(1518), 10**9, seconds * 10**9)


def test_a_clean_line_passes_when_enough_bits_were_sent() -> None:
    line = Line(10**9)
    assert bit_errors([line.run(trial(10))], 1e-9).passed is True
    # 1e10 bits cannot show 1e-12.
    assert bit_errors([line.run(trial(10))], 1e-12).passed is None
    assert bit_errors([line.run(trial(10))]).passed is None


def test_a_line_with_errors_fails() -> None:
    found = bit_errors([Line(10**9, bit_errors_per=10**8).run(trial(10))], 1e-9)
    assert found.passed is False and found.payload.rate == pytest.approx(1e-8, rel=0.02)


def test_a_lost_frame_is_an_error_and_a_frame_that_the_receiver_dropped_is_none() -> None:
    found = bit_errors([Line(10**9, lose_every=100_000).run(trial(10))])
    assert (found.payload.errors, found.line.errors) == (0, 8)
    found = bit_errors([Line(10**9, receiver_frames_per_s=80_000).run(trial(10))])
    assert found.line.errors == 0 and found.limit is Verdict.RECEIVER


def test_streams_are_taken_together() -> None:
    line = Line(10**9)
    one, two = bit_errors([line.run(trial(10))]).line, bit_errors([line.run(trial(10))] * 2).line
    assert two.bits == 2 * one.bits and two.upper == pytest.approx(one.upper / 2)


def test_without_bits_nothing_is_known() -> None:
    assert bound(0, 0).upper == math.inf and bound(0, 0).rate == 0


def test_frames_that_an_end_dropped_prove_nothing() -> None:
    """The kernel of the receiver has room for a frame in a hundred: no more bits than those are known to be good."""
    outcome = Line(10**9, receiver_frames_per_s=812).run(trial(10))
    assert outcome.received is not None
    found = bit_errors([outcome])
    assert found.line.errors == 0 and found.line.bits == outcome.received.bytes * 8 < outcome.sent.bytes
    dropped = bit_errors([Line(10**9, sender_drops=800_000).run(trial(10))])
    assert dropped.line.errors == 0 and dropped.line.bits == pytest.approx(12_743 * 1518 * 8, rel=1e-3)
    # A lost frame is an error in its own bits.
    lossy = Line(10**9, lose_every=100).run(trial(10))
    assert bit_errors([lossy]).line.bits == lossy.sent.bytes * 8


def test_a_frame_with_a_wrong_header_is_lost_and_counts_once() -> None:
    outcome = Line(10**9, lose_every=100_000).run(trial(10))
    assert outcome.received is not None and outcome.received.lost == 8
    wrong = replace(outcome, received=replace(outcome.received, bad_headers=8))
    assert bit_errors([wrong]).line.errors == 8


def test_a_frame_that_was_cut_short_is_an_error() -> None:
    found = bit_errors([Line(10**9, wrong_lengths=3).run(trial(10))])
    assert (found.payload.errors, found.line.errors) == (3, 3)


def test_a_line_that_had_no_carrier_fails_whatever_its_bits() -> None:
    outcome = Line(10**9).run(trial(10))
    without = replace(outcome, sent=replace(outcome.sent, no_carrier_frames=1))
    found = bit_errors([without], 1e-9)
    assert found.passed is False and found.line.errors == 0 and found.line.bits == outcome.sent.bytes * 8
