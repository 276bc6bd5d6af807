"""Limits of a line test that its reader has to know."""

from __future__ import annotations

from dataclasses import dataclass

from elephan.line.trial import Outcome, Verdict
from elephan.units import count, duration, pluralize


@dataclass
class Notes:
    """Faults of both ends over all trials."""

    trials: int = 0
    generator_trials: int = 0
    left_out: int = 0
    receiver_trials: int = 0
    drops: int = 0
    sender_drops: int = 0
    no_carrier: int = 0
    lost_trials: int = 0
    wrong_lengths: int = 0
    late: int = 0
    late_max_ns: int = 0
    has_clock: bool = True

    def add(self, outcome: Outcome) -> None:
        """Take a trial."""
        self.trials += 1
        self.generator_trials += bool(outcome.sent.left_out_frames)
        self.left_out += outcome.sent.left_out_frames
        self.sender_drops += outcome.sent.interface_drops
        self.no_carrier += outcome.sent.no_carrier_frames
        self.lost_trials += bool(outcome.line_lost)
        self.late += outcome.sent.late_frames
        self.late_max_ns = max(self.late_max_ns, outcome.sent.late_max_ns if outcome.sent.late_frames else 0)
        if outcome.received is not None:
            self.receiver_trials += outcome.verdict is Verdict.RECEIVER
            self.drops += outcome.received.drops
            self.wrong_lengths += outcome.received.wrong_lengths
            self.has_clock &= outcome.clock is not None or outcome.received.latency_ns is None

    def lines(self) -> list[str]:
        """Return them as sentences."""
        found = []
        if self.left_out:
            trials = pluralize(self.generator_trials, "trial")
            found.append(
                f"The generator could not send {count(self.left_out)} frames in their time, in {trials} of "
                f"{self.trials}, and left them out: the load was lower than asked for."
            )
        if self.drops:
            found.append(
                f"The receiver itself dropped {count(self.drops)} frames for want of room: the line has not lost those."
            )
        if self.sender_drops:
            found.append(
                f"The sender's own interface dropped {count(self.sender_drops)} frames in place of sending them: the "
                "line has not lost those."
            )
        if self.no_carrier:
            found.append(
                f"{count(self.no_carrier)} frames were due while the interface had no carrier, and were not sent: they "
                "count as lost."
            )
        if self.wrong_lengths:
            found.append(f"{count(self.wrong_lengths)} frames arrived with a length other than they were sent with.")
        if self.late:
            found.append(
                f"{count(self.late)} frames left late, by up to {duration(self.late_max_ns / 1e9)}: frames behind a "
                "late one are nearer to each other than asked for."
            )
        if not self.has_clock:
            found.append("The clocks of both ends were not compared: the error of one-way latencies is not known.")
        return found
