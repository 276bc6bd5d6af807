"""A few words per congestion control: why it stands where it does, and what it costs others.

Each rule looks at numbers alone, and speaks only when the whole 95 % interval of its number lies on one side of the
rule's threshold: what another seed might turn round is not said.
"""

from __future__ import annotations

from elephan import units
from elephan.compare.loss_window import RESPONSE, mean_window, reno_window
from elephan.compare.run_metrics import Measured, Number, Run, bounds

FULL = 0.9
"""Share of what passes from which it counts as filled: headers take 3.5 % of it, the start some more."""

ALL_OFFERED = 0.99
"""Part of the offered load from which all of it counts as carried."""

MANY_TIMEOUTS = 0.2
"""Part of the loss episodes that end in a time-out, from which that is what holds a congestion control down."""

LINE_LOSSES = 0.5
"""Packets that the line takes per loss episode, from which the line's losses are what holds a congestion control down:
a burst of drops is one episode, and so is a single packet that the line takes."""

MUCH_DROPPED = 0.01
"""Part of the packets sent that queues, or policers, drop, from which a note says so."""

LONG_QUEUE, SHORT_QUEUE = 0.5, 0.1
"""Mean queueing delay as a part of the least RTT: above the one it counts as long, below the other as short."""

FAIR_FROM, FAIR_TO = 0.8, 1.25
"""A congestion control counts as fair to a reno neighbour that keeps a part in this range of its rate beside reno."""

REPEATED = 1.5
"""Segments sent again per packet lost, from which a congestion control repeats in vain."""

REPEATED_LEAST = 100
"""Number of retransmissions below which there is no note on them."""

ONE_RUN = "one repetition: no phrase is significant"


def why(item: Measured, least_rtt_s: float | None, *, grows: bool = False) -> tuple[str, ...]:
    """Return the phrases of a congestion control: its limit, its queue and drops, its neighbour. `grows`: a backlog
    does, so that how long it took to drain says only how long the run was.
    """
    if not item.exact and len(item.runs) < 2:
        return (ONE_RUN,)
    found = [limit(item, grows=grows), queue(item, least_rtt_s), drops(item), repeats(item), neighbour(item)]
    return tuple(text for text in found if text)


def limit(item: Measured, *, grows: bool = False) -> str:
    """Name the limit of the goodput; "" where the numbers do not show it."""
    if _from(item, lambda run: _over(run.offered_share, ALL_OFFERED)):
        return "carries all that is offered"
    own = set(item.own_limits)
    if own and own != {""}:
        return "" if len(own) > 1 else f"limited by {own.pop()}"
    if _from(item, lambda run: run.filled - FULL):
        return "fills what the policer passes" if item.is_policed else "fills the line"
    if not _below(item, lambda run: run.filled - FULL):
        return ""
    if _below(item, lambda run: _over(run.load_share, FULL)):
        return _behind(item, grows=grows)
    if _from(item, lambda run: _over(run.window_share, FULL)):
        return "limited by its window"
    timeouts = item.mean(lambda run: run.timeouts) or 0.0
    if timeouts >= 1 and _from(item, lambda run: _over_episodes(run, run.timeouts, MANY_TIMEOUTS)):
        return f"waits for {units.count(timeouts)} time-out{'' if timeouts == 1 else 's'}"
    cause = _cause(item)
    return cause + _window(item) if cause else ""


def _behind(item: Measured, *, grows: bool) -> str:
    """Name the limit of the goodput below a load that does not fill the line; "" if that is not certain."""
    if not _below(item, lambda run: _over(run.offered_share, ALL_OFFERED)):
        return ""
    text = f"carries {units.share(item.mean(lambda run: run.offered_share))} of what is offered"
    if grows:
        return text
    drain_s = None if item.samples(lambda run: run.drain_s) is None else item.mean(lambda run: run.drain_s)
    return text + ("" if drain_s is None else f" by the run's end, the rest within {units.duration(drain_s)} after it")


def _cause(item: Measured) -> str:
    """Name the losses that limit the goodput, or the slow growth of the window, if that is certain; else ""."""
    if not item.is_greedy:
        return ""
    if any(not _lost(run) and run.filled < FULL for run in item.runs):
        # A queue that was long proves that the window did fill the path: something else reduced it.
        unfilled = all(_never_filled(run) for run in item.runs if not _lost(run))
        return "opens its window slowly" if unfilled else ""
    if not (_from(item, _above_least) and _below(item, _above_largest)):
        return ""
    by_line = item.mean(lambda run: run.line_drops) or 0.0
    by_itself = item.mean(lambda run: run.caused_drops) or 0.0
    if by_line and not by_itself:
        return "limited by the line's losses"
    if by_itself and not by_line:
        return "recovers slowly from the drops that it causes"
    if _from(item, lambda run: _over_episodes(run, run.line_drops, LINE_LOSSES)):
        return "limited by the line's losses"
    if _below(item, lambda run: _over_episodes(run, run.line_drops, LINE_LOSSES)):
        return "recovers slowly from the drops that it causes"
    return ""


def _never_filled(run: Run) -> bool:
    """Return True if no packet waited for half a round trip: slow start queues half of a window that does not yet fill
    the path (two packets for each one acknowledged)."""
    return run.rtt_max_s is not None and run.rtt_min_s is not None and run.rtt_max_s < 1.5 * run.rtt_min_s


def _over_responses(run: Run) -> tuple[float, float] | None:
    """Return the mean window of a connection above the least that its loss episodes explain, and above the largest."""
    if not run.recoveries or not run.sent_segments or not run.rtt_mean_s or run.window_packets is None:
        return None
    window, lost = run.window_packets / run.connections, run.recoveries / run.sent_segments
    return window - reno_window(lost) / RESPONSE, window - RESPONSE * mean_window(lost, run.rtt_mean_s)


def _above_least(run: Run) -> float | None:
    found = _over_responses(run)
    return None if found is None else found[0]


def _above_largest(run: Run) -> float | None:
    found = _over_responses(run)
    return None if found is None else found[1]


def _window(item: Measured) -> str:
    window = item.mean(lambda run: run.window_packets)
    if window is None or not _below(item, lambda run: _over(run.window_packets, FULL * item.path_packets)):
        return ""
    held = units.count(round(window))
    return f": a mean window of {held} packets, the path holds {units.count(round(item.path_packets))}"


def queue(item: Measured, least_rtt_s: float | None) -> str:
    """Describe the queue if it is long or short."""
    if not least_rtt_s:
        return ""

    def waits(part: float) -> Number:
        return lambda run: _over(run.rtt_mean_s, least_rtt_s * (1 + part))

    if _from(item, waits(LONG_QUEUE)):
        mean_s = (item.mean(lambda run: run.rtt_mean_s) or 0.0) - least_rtt_s
        return f"a long queue, {units.duration(mean_s)} on average"
    if _below(item, waits(SHORT_QUEUE)) and _from(item, lambda run: run.filled - FULL / 2):
        return "next to no queue"
    return ""


def drops(item: Measured) -> str:
    """Describe the part of its own packets that it has dropped, and where."""
    for number, text in (
        (_at_policers, "exceeds the policer: {} of its packets dropped there"),
        (_in_queues, "overflows queues: {} of its packets dropped there"),
    ):
        if _from(item, lambda run, number=number: number(run) - MUCH_DROPPED):  # type: ignore[misc]
            return text.format(units.share(item.mean(number)))
    if not item.mean(lambda run: run.caused_drops) and _from(item, lambda run: run.filled - FULL / 2):
        return "causes no loss"
    return ""


def _in_queues(run: Run) -> float:
    return (run.caused_drops - run.policer_drops) / run.sent_segments if run.sent_segments else 0.0


def _at_policers(run: Run) -> float:
    return run.policer_drops / run.sent_segments if run.sent_segments else 0.0


def repeats(item: Measured) -> str:
    """Describe retransmissions if they are far more than the losses."""
    again = item.mean(lambda run: run.retransmitted_segments) or 0.0
    if again >= REPEATED_LEAST and _above(item, lambda run: run.retransmitted_segments - REPEATED * _lost(run)):
        return f"sends {units.count(again)} segments again for {units.count(item.mean(_lost))} lost"
    return ""


def _lost(run: Run) -> float:
    return run.caused_drops + run.line_drops


def neighbour(item: Measured) -> str:
    """Describe its effect on a reno flow beside it."""
    kept = item.neighbour_kept
    low, high = bounds(kept)
    if kept is None:
        return ""
    if high < FAIR_FROM:
        return f"leaves a reno neighbour {units.share(kept.mean)} of its share"
    if low > FAIR_TO:
        return "gives way to a reno neighbour"
    return "fair to a reno neighbour" if low >= FAIR_FROM and high <= FAIR_TO else ""


def harms(item: Measured) -> bool:
    """Return True if it certainly drops many packets, or takes a reno neighbour's share."""
    if _from(item, lambda run: _in_queues(run) + _at_policers(run) - MUCH_DROPPED):
        return True
    return bounds(item.neighbour_kept)[1] < FAIR_FROM


def spares(item: Measured) -> bool:
    """Return True if it certainly drops few packets, and leaves a reno neighbour its share."""
    few = _below(item, lambda run: _in_queues(run) + _at_policers(run) - MUCH_DROPPED)
    kept = item.neighbour_kept
    return few and (kept is None or bounds(kept)[0] >= FAIR_FROM)


def _over(value: float | None, threshold: float) -> float | None:
    return None if value is None else value - threshold


def _over_episodes(run: Run, count: float, part: float) -> float | None:
    return None if run.recoveries is None else count - part * run.recoveries


def _from(item: Measured, number: Number) -> bool:
    """Return True if a number is 0 or more for certain."""
    return item.samples(number) is not None and bounds(item.estimate(number))[0] >= 0


def _above(item: Measured, number: Number) -> bool:
    """Return True if a number is more than 0 for certain."""
    return item.samples(number) is not None and bounds(item.estimate(number))[0] > 0


def _below(item: Measured, number: Number) -> bool:
    """Return True if a number is less than 0 for certain."""
    return item.samples(number) is not None and bounds(item.estimate(number))[1] < 0
