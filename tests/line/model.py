"""A line in closed form: a trial's outcome by its capacity, buffer, loss, bit errors and the limits of both ends."""

from __future__ import annotations

from dataclasses import dataclass, field

from elephan.line.trial import Clock, Latency, Outcome, Received, Row, Sent, Trial


@dataclass
class Line:
    """A line with a queue in front of it, or a policer, and two ends."""

    line_bps: int
    """Rate of the link at the sender."""
    capacity_bps: int | None = None
    """Rate that gets through, bit/s of the line; None: all of the link's."""
    buffer_frames: int = 0
    """Frames that wait in front of the slower part."""
    lose_every: int | None = None
    """One frame of so many is lost."""
    bit_errors_per: int | None = None
    """One bit of so many is wrong."""
    latency_ns: int = 1_000_000
    generator_bps: int | None = None
    """Rate up to which the generator keeps up; None: any."""
    receiver_frames_per_s: int | None = None
    """Frames that the receiver's kernel has room for; None: any number."""
    clock: Clock = Clock(0, 2_000)
    outage_rows: range = range(0)
    """Intervals of a series in which nothing arrives."""
    no_carrier_rows: range = range(0)
    """Intervals in which the interface has no carrier."""
    unanswered_rows: range = range(0)
    """Intervals of which the receiver does not tell at their end."""
    is_silent: bool = False
    """The receiver does not tell its counts at the end."""
    sender_drops: int = 0
    """Frames that the sender's interface drops."""
    wrong_lengths: int = 0
    """Frames that are cut short."""
    trials: list[Trial] = field(default_factory=list)
    """All trials so far."""

    def run(self, trial: Trial) -> Outcome:
        """Return the outcome of a trial."""
        self.trials.append(trial)
        rate_bps = min(trial.rate_bps, self.line_bps)
        mean_bytes = trial.mix.frame_bytes / trial.mix.weights
        if trial.frames is None:
            assert trial.duration_ns is not None
            frames, span_ns = trial.mix.frames(rate_bps, trial.duration_ns), trial.duration_ns
        else:
            frames = trial.frames
            span_ns = round(frames * 1e9 / trial.mix.frames_per_s(rate_bps))
        sent = frames
        if self.generator_bps is not None and rate_bps > self.generator_bps:
            sent = frames * self.generator_bps // rate_bps
        through = sent
        waits_ns = 0
        capacity_bps = self.capacity_bps
        if capacity_bps is not None and rate_bps > capacity_bps:
            carried = trial.mix.frames(capacity_bps, span_ns)
            through = min(sent, carried + self.buffer_frames)
            waits_ns = round(min(sent - carried, self.buffer_frames) * 1e9 / trial.mix.frames_per_s(capacity_bps))
        if self.lose_every is not None:
            through -= through // self.lose_every
        drops = 0
        if self.receiver_frames_per_s is not None:
            drops = max(0, through - self.receiver_frames_per_s * span_ns // 10**9)
        got = through - drops - self.sender_drops
        bits = int(got * mean_bytes * 8)
        errors = bits // self.bit_errors_per if self.bit_errors_per else 0
        series, lost_in_outage, no_carrier = self._series(trial, sent, sent - got)
        got -= lost_in_outage + no_carrier
        sent -= no_carrier
        mean_ns = self.latency_ns + waits_ns
        latency = Latency(self.latency_ns, mean_ns, mean_ns, mean_ns, mean_ns, mean_ns, mean_ns)
        lost = sent - got
        received = Received(
            frames=got,
            bytes=int(got * mean_bytes),
            span_ns=span_ns,
            lost=lost,
            duplicates=0,
            reordered=0,
            reorder_extent_max=0,
            loss_events=min(lost, 1),
            longest_loss=lost,
            loss_lengths=((lost, 1),) if lost else (),
            bit_errors=errors,
            errored_frames=errors + self.wrong_lengths,
            bits_checked=bits,
            bad_headers=0,
            ring_drops=drops,
            latency_ns=latency if got else None,
            ipdv_mean_ns=100,
            wrong_lengths=self.wrong_lengths,
        )
        left_out = frames - sent - no_carrier
        counted = Sent(sent, int(sent * mean_bytes), span_ns, 0, 0, left_out, self.sender_drops, no_carrier)
        if self.is_silent:
            return Outcome(counted, None, self.clock, "the receiver did not answer at the end", series)
        return Outcome(counted, received, self.clock, None, series)

    def _series(self, trial: Trial, sent: int, lost: int) -> tuple[tuple[Row, ...], int, int]:
        """Return the rows, and the frames that outages and a missing carrier take; real rows end a little late."""
        if trial.series_ns is None or trial.duration_ns is None:
            return (), 0, 0
        number = trial.duration_ns // trial.series_ns
        each, lost_each = sent // number, lost // number
        rows = []
        waiting = waiting_lost = outage = 0
        for index in range(number):
            without = each if index in self.no_carrier_rows else 0
            left = each - without
            gone = left if index in self.outage_rows else min(left, lost_each)
            outage += left if index in self.outage_rows else 0
            waiting, waiting_lost = waiting + left - gone, waiting_lost + gone
            is_last = index == number - 1
            at = trial.duration_ns if is_last else (index + 1) * trial.series_ns + 18 + 977 * index % 5000
            if index in self.unanswered_rows or (self.is_silent and is_last):
                rows.append(Row(at, left, 0, 0, 0, 0, 0, 0, None, None, None, False, without))
                continue
            latency = self.latency_ns if waiting else None
            rows.append(Row(at, left, waiting, waiting_lost, 0, 0, 0, 0, latency, latency, latency, True, without))
            waiting = waiting_lost = 0
        return tuple(rows), outage, sum(row.no_carrier_frames for row in rows)
