"""Bit error rate with its confidence.

An Ethernet card drops a frame with a wrong check sequence, so that most bit errors arrive as lost frames. Two numbers
are given: wrong bits of payloads that did arrive, and those with each lost frame taken for one more error. The second
is the line's, as long as nothing drops frames for want of room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from elephan.line.mix import Mix
from elephan.line.trial import Outcome, Verdict

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Bound:
    """Errors in a number of bits, and the rates between which the true one lies."""

    errors: int
    bits: int
    upper: float
    """The true rate is below it, with the confidence: exact for independent errors (Poisson)."""
    lower: float
    """The true rate is above it, with the confidence; 0 without errors."""

    @property
    def rate(self) -> float:
        """Errors per bit as counted."""
        return self.errors / self.bits if self.bits else 0.0


@dataclass(frozen=True)
class BitErrors:
    """Bit errors of a stream."""

    payload: Bound
    """Wrong bits of the payloads that arrived, a frame of a wrong length one more, in the bits that were compared."""
    line: Bound
    """Those and lost frames, one error each, in the bits of frames that arrived or were lost by the line."""
    limit: Verdict
    """`GENERATOR` does no harm: fewer bits were sent. With `RECEIVER` lost frames are not counted as errors."""
    target: float | None
    """Rate that the line must be below."""
    no_carrier_frames: int = 0
    """Due while the interface had no carrier: no bit of them was sent, and the line has failed."""

    @property
    def passed(self) -> bool | None:
        """True: below the target with the confidence; False: above it; None: too few bits to tell, or no target.

        False too for a line that had no carrier while frames were due.
        """
        if self.no_carrier_frames:
            return False
        if self.target is None:
            return None
        if self.line.upper <= self.target:
            return True
        return False if self.line.lower > self.target else None


def bound(errors: int, bits: int, confidence: float = CONFIDENCE) -> Bound:
    """Return the one-sided limits of a rate by `errors` in `bits`.

    The upper one is where `errors` or fewer happen with 1 - confidence: chi-square with 2 (errors + 1) degrees of
    freedom, halved (Garwood, Biometrika 28, 1936). Without errors it is -ln(1 - confidence) / bits, 3 / bits for 95 %.
    """
    if not bits:
        return Bound(errors, bits, math.inf, 0.0)
    if not errors:
        return Bound(0, bits, -math.log(1 - confidence) / bits, 0.0)
    # Imported here: it takes longer to load than a line without errors needs.
    from scipy import special

    upper = float(special.gammaincinv(errors + 1, confidence)) / bits
    return Bound(errors, bits, upper, float(special.gammaincinv(errors, 1 - confidence)) / bits)


def bits_for(target: float, errors: int = 0, confidence: float = CONFIDENCE) -> int:
    """Return the bits after which `errors` show a rate below `target`."""
    return math.ceil(bound(errors, 1, confidence).upper / target)


def span_ns_for(target: float, mix: Mix, rate_bps: int, errors: int = 0, confidence: float = CONFIDENCE) -> int:
    """Return the time that `bits_for` takes at a rate of the line, ns."""
    return -(-bits_for(target, errors, confidence) * 10**9 // max(1, mix.frame_bps(rate_bps)))


def bit_errors(outcomes: Sequence[Outcome], target: float | None = None, confidence: float = CONFIDENCE) -> BitErrors:
    """Return the bit errors of streams with the receiver's counts, taken together."""
    received = [one.received for one in outcomes if one.received is not None]
    counted = of_counts(
        sum(got.bit_errors + got.wrong_lengths for got in received),
        sum(got.bits_checked for got in received),
        # Frames with a wrong header are among the lost ones.
        sum(one.sent_lost for one in outcomes if one.received is not None),
        sum(proven_bits(one) for one in outcomes),
        confidence,
    )
    limited = [one.verdict for one in outcomes if one.verdict in (Verdict.GENERATOR, Verdict.RECEIVER)]
    no_carrier = sum(one.sent.no_carrier_frames for one in outcomes)
    return BitErrors(*counted, limited[-1] if limited else outcomes[-1].verdict, target, no_carrier)


def proven_bits(outcome: Outcome) -> int:
    """Return the bits of the frames that arrived or that the line lost.

    Nothing is known of those that an end dropped itself.
    """
    if outcome.received is None:
        return 0
    lost_bytes = outcome.sent_lost * outcome.sent.bytes // max(1, outcome.sent.frames)
    return min(outcome.sent.bytes, outcome.received.bytes + lost_bytes) * 8


def of_counts(
    wrong: int, checked_bits: int, lost_frames: int, bits: int, confidence: float = CONFIDENCE
) -> tuple[Bound, Bound]:
    """Return both bounds from counts."""
    return bound(wrong, checked_bits, confidence), bound(wrong + lost_frames, bits, confidence)
