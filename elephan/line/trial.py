"""A trial, which is one stream of frames, and its outcome: the core's JSON as types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from elephan.line.mix import Mix

PAYLOADS = ("crpat", "cjpat", "prbs31", "zeros", "ones", "counter")
"""Payloads that the core knows."""
FRAMES_MAX = 10**18
"""Frames of a stream: the core counts in 64 bits."""
DRAIN_NS = 2 * 10**9
"""Wait for late frames (RFC 2544, 23: two seconds for residual frames)."""
RAMP_NS = 10**9
"""Time over which the rate rises to that of the trial."""


@dataclass(frozen=True)
class Trial:
    """One stream of frames at a rate. Either `duration_ns` or `frames` is given."""

    mix: Mix
    rate_bps: int
    """Rate of the line that frames with preamble and gap take, bit/s."""
    duration_ns: int | None = None
    frames: int | None = None
    """Frames of a burst."""
    payload: str = "crpat"
    ramp_ns: int = RAMP_NS
    """Rise from 1 % of the rate before the measured part; its frames are not counted."""
    series_ns: int | None = None
    """Interval of the series' rows."""
    drain_ns: int = DRAIN_NS
    pcp: int | None = None
    """Priority of the tag (802.1Q)."""

    def spec(self, to: str, stream: int) -> str:
        """Return the core's description of the stream."""
        return json.dumps(
            {
                "to": to,
                "sizes": [list(one) for one in self.mix.sizes],
                "rate_bps": self.rate_bps,
                "duration_ns": self.duration_ns,
                "frames": self.frames,
                "ramp_ns": self.ramp_ns,
                "payload": self.payload,
                "series_ns": self.series_ns,
                "drain_ns": self.drain_ns,
                "pcp": self.pcp,
                "stream": stream,
            }
        )


@dataclass(frozen=True)
class Sent:
    """Frames as the generator sent them."""

    frames: int
    bytes: int
    """Of MAC frames with their check sequence."""
    span_ns: int
    late_frames: int
    """Left more than 100 us after their time."""
    late_max_ns: int
    left_out_frames: int
    """Not sent, since the generator had no time for them."""
    interface_drops: int = 0
    """Dropped by the sender's interface in place of sent, as it says: no loss of the line."""
    no_carrier_frames: int = 0
    """Due while the interface had no carrier, and not sent: the line's fault."""


@dataclass(frozen=True)
class Latency:
    """One-way latency of the frames of a trial, ns, by the receiver's clock as estimated."""

    min: int
    mean: int
    p50: int
    p90: int
    p99: int
    p999: int
    max: int


@dataclass(frozen=True)
class Received:
    """Frames as the receiver counted them."""

    frames: int
    bytes: int
    span_ns: int
    lost: int
    duplicates: int
    reordered: int
    reorder_extent_max: int
    """Largest number of frames by which one came too late (RFC 4737, 4.2)."""
    loss_events: int
    """Gaps in the numbers."""
    longest_loss: int
    loss_lengths: tuple[tuple[int, int], ...]
    """Lower bound of a gap's frames, and the number of such gaps."""
    bit_errors: int
    errored_frames: int
    bits_checked: int
    bad_headers: int
    ring_drops: int
    """Dropped by the receiver's own kernel for want of room."""
    latency_ns: Latency | None
    ipdv_mean_ns: int | None
    """Mean difference of the latencies of two frames in sequence (RFC 3393), without sign."""
    interface_drops: int = 0
    """Dropped by the receiver's interface for want of room, as it says."""
    wrong_lengths: int = 0
    """Frames of a length other than their stamp says: cut short on the way. They are in `errored_frames`."""

    @property
    def drops(self) -> int:
        """Frames that the receiver dropped itself, this stream's or others'."""
        return self.ring_drops + self.interface_drops


@dataclass(frozen=True)
class Clock:
    """Offset of the receiver's clock, as estimated over the control frames."""

    offset_ns: int
    error_ns: int
    """Largest error that the offset may have, and so each latency."""


@dataclass(frozen=True)
class Row:
    """One interval of a series."""

    time_ns: int
    """End of it, from the start of the stream."""
    sent: int
    received: int
    lost: int
    bit_errors: int
    errored_frames: int
    late_frames: int
    left_out_frames: int
    latency_min_ns: int | None
    latency_mean_ns: int | None
    latency_max_ns: int | None
    is_answered: bool
    """False: the receiver's numbers for this interval did not come; those of the next one that did have them too."""
    no_carrier_frames: int = 0
    """Due while the interface had no carrier, and not sent."""

    @property
    def is_empty(self) -> bool:
        """True if nothing happened in it, as after the last frame."""
        return not (self.sent or self.received or self.lost or self.left_out_frames or self.no_carrier_frames)

    @staticmethod
    def of(row: Mapping[str, Any]) -> Row:
        """Return the core's row."""
        return Row(**_fields(Row, row))


class Verdict(Enum):
    """Statement that one trial allows about the line."""

    PASSED = "passed"
    """Every frame left in its time, and every one arrived."""
    LOST = "line lost frames"
    GENERATOR = "generator's limit"
    """The sender left frames out or dropped what was lost: the trial says nothing of the line at this rate."""
    RECEIVER = "receiver's limit"
    """The receiver dropped as many frames as were lost: the line may have lost none of them."""


@dataclass(frozen=True)
class Outcome:
    """Counts of both ends."""

    sent: Sent
    received: Received | None
    """None: the receiver gave no report."""
    clock: Clock | None
    ended: str | None = None
    """Reason of an early end."""
    series: tuple[Row, ...] = ()
    allowed_ppm: int = 0
    """Frames that the generator may leave out in a trial that counts, in millionths."""

    @staticmethod
    def from_json(text: str, series: tuple[Row, ...] = ()) -> Outcome:
        """Return the outcome that the core gives as JSON."""
        given = json.loads(text)
        got, clock = given["received"], given["clock"]
        if clock is not None:
            # Estimates that there were no control frames for.
            clock = None if clock["offset_ns"] is None else Clock(clock["offset_ns"], clock["error_ns"])
        sent = Sent(**_fields(Sent, given["sent"]))
        return Outcome(sent, None if got is None else received_of(got), clock, given["ended"], series)

    def as_json(self) -> dict[str, Any]:
        """Return it as an object, the core's form, with the series if there is one."""
        whole = asdict(self)
        if not self.series:
            del whole["series"]
        del whole["allowed_ppm"]
        return whole

    @property
    def due(self) -> int:
        """Frames that the line should have carried: those sent, and those that found no carrier."""
        return self.sent.frames + self.sent.no_carrier_frames

    @property
    def lost(self) -> int:
        """Frames that were due and did not arrive; all of them where there is no report."""
        return self.due if self.received is None else self.received.lost + self.sent.no_carrier_frames

    @property
    def sent_lost(self) -> int:
        """Frames that left and were lost, without as many as the ends say that they dropped themselves.

        The ends' drops may be of other frames: the line lost at least so many.
        """
        if self.received is None:
            return self.sent.frames
        return max(0, self.received.lost - self.received.drops - self.sent.interface_drops)

    @property
    def line_lost(self) -> int:
        """Frames of `lost` that no end has dropped itself: the line lost at least so many."""
        return self.sent_lost + self.sent.no_carrier_frames

    @property
    def loss_ratio(self) -> float:
        """Frames that the line lost of those due."""
        return self.line_lost / self.due if self.due else 0.0

    @property
    def is_short(self) -> bool:
        """True if the generator left more frames out than it may: the load was lower than asked for."""
        asked = self.due + self.sent.left_out_frames
        return self.sent.left_out_frames * 10**6 > self.allowed_ppm * asked

    @property
    def verdict(self) -> Verdict:
        """Statement about the line; a loss comes first: a lower load than asked for is no excuse for it."""
        if self.line_lost:
            return Verdict.LOST
        if self.is_short:
            return Verdict.GENERATOR
        if not self.lost:
            return Verdict.PASSED
        return Verdict.GENERATOR if self.received is None or self.received.drops < self.lost else Verdict.RECEIVER

    @property
    def frame_bps(self) -> int:
        """Rate of the frames that arrived (layer 2), over the time in which they were sent."""
        if self.received is None or not self.sent.span_ns:
            return 0
        return self.received.bytes * 8 * 10**9 // self.sent.span_ns


def received_of(got: Mapping[str, Any]) -> Received:
    """Return the core's counts of a receiver."""
    fields = _fields(Received, got)
    latency = got["latency_ns"]
    fields["latency_ns"] = None if latency is None else Latency(**_fields(Latency, latency))
    fields["loss_lengths"] = tuple((low, number) for low, number in got["loss_lengths"])
    return Received(**fields)


def _fields(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a type's fields that are there; the core may say more."""
    return {name: given[name] for name in kind.__dataclass_fields__ if name in given}  # type: ignore[attr-defined]
