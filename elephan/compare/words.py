"""A few words per stack: why it stands where it does, and what it costs others. Each rule looks at numbers alone."""

from __future__ import annotations

from elephan.compare.rank import Measured
from elephan.report import units

FULL = 0.9
"""Share of the line from which it counts as filled: headers take 3.5 % of it, the start some more."""

ALL_OFFERED = 0.99
"""Part of what was offered from which all of it counts as carried."""

MANY_TIMEOUTS = 0.2
"""Part of the loss episodes that end in a time-out, from which that is what holds a stack down."""

MUCH_DROPPED = 0.01
"""Part of the packets sent that its own queues drop, from which that is said."""

LONG_QUEUE, SHORT_QUEUE = 0.5, 0.1
"""Mean queueing delay as a part of the least RTT: from the one on it is said to be long, below the other short."""

FAIR_FROM, FAIR_TO = 0.8, 1.25
"""What a reno neighbour keeps, as a part of what it gets beside reno, within which a stack counts as fair to it."""

REPEATED = 1.5
"""Segments sent again per packet lost, from which a stack repeats in vain."""


def why(item: Measured, queue_s: float | None, least_rtt_s: float | None) -> tuple[str, ...]:
    """Return the phrases of a stack: its limit, its queue and drops, its neighbour."""
    found = [limit(item), queue(item, queue_s, least_rtt_s), drops(item), repeats(item), neighbour(item)]
    return tuple(text for text in found if text)


def limit(item: Measured) -> str:
    """Say what holds the goodput where it is."""
    if item.offered_share is not None and item.offered_share >= ALL_OFFERED:
        return "carries all that is offered"
    if item.line_share >= FULL:
        return "fills the line"
    episodes = item.recoveries
    if episodes is not None and item.timeouts >= 1 and item.timeouts >= MANY_TIMEOUTS * episodes:
        return f"waits for {units.count(item.timeouts)} time-out{'' if item.timeouts == 1 else 's'}"
    window = ""
    if item.window_packets is not None and item.window_packets < FULL * item.path_packets:
        held = units.count(round(item.window_packets))
        window = f": a mean window of {held} packets, the path holds {units.count(round(item.path_packets))}"
    # A burst of drops is one episode, and so is a single packet that the line takes.
    if item.line_drops and (episodes is None or item.line_drops >= episodes / 2):
        return f"held down by the line's losses{window}"
    if item.caused_drops:
        return f"slow to come back from the drops it causes{window}"
    return f"slow to open its window{window}"


def queue(item: Measured, queue_s: float | None, least_rtt_s: float | None) -> str:
    """Say how long the queue is, where that is worth a word."""
    if queue_s is None or not least_rtt_s:
        return ""
    if queue_s >= LONG_QUEUE * least_rtt_s:
        return f"a long queue, {units.duration(queue_s)} on average"
    if queue_s < SHORT_QUEUE * least_rtt_s and item.line_share >= FULL / 2:
        return "next to no queue"
    return ""


def drops(item: Measured) -> str:
    """Say what part of its own packets it has dropped."""
    share = item.caused_drops / item.sent_segments if item.sent_segments else 0.0
    if share >= MUCH_DROPPED:
        return f"overruns queues: {units.share(share)} of its packets dropped there"
    if not item.caused_drops and item.line_share >= FULL / 2:
        return "causes no loss"
    return ""


def repeats(item: Measured) -> str:
    """Say when far more is sent again than was lost."""
    lost = item.caused_drops + item.line_drops
    if item.retransmitted_segments >= 100 and item.retransmitted_segments > REPEATED * lost:
        return f"sends {units.count(item.retransmitted_segments)} segments again for {units.count(lost)} lost"
    return ""


def neighbour(item: Measured) -> str:
    """Say how it treats a reno flow beside it."""
    kept = item.neighbour_kept
    if kept is None:
        return ""
    if kept < FAIR_FROM:
        return f"leaves a reno neighbour {units.share(kept)} of its share"
    if kept > FAIR_TO:
        return "gives way to a reno neighbour"
    return "fair to a reno neighbour"
