"""The reasons of an advice in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elephan.advise.candidate import Candidate
from elephan.advise.candidates import ordinary, text_of
from elephan.advise.facts import PathFacts
from elephan.units import duration, loss, pluralize, rate, share, size

WIDE = 1.3
"""Ratio of the ends of an interval from which on a measured rate is printed with it."""
CLEARLY = 1.1
"""Times of goodput from which on one candidate is said to be faster."""


def facts_text(facts: PathFacts) -> str:
    """Return a path in one sentence."""
    words = [f"The path carries {rate(facts.rate_bps)} with a round trip of {duration(facts.rtt_s)}"]
    words.append(_lost(facts))
    if not facts.is_queue_assumed:
        words.append(f"has a queue of {size(facts.queue_bytes)}")
    text = ", ".join(words[:-1]) + " and " + words[-1] + "."
    if facts.is_queue_assumed:
        bdp_bytes = facts.rate_bps * facts.rtt_s / 8
        low, high = facts.ranges.get("queue_bytes", (facts.queue_bytes, facts.queue_bytes))
        # The longest wait that was seen may be more than each part of the bandwidth-delay product that is usual.
        between = f"{size(low)} to {size(high)}" if high > low else "by the longest round trip that was seen"
        text += (
            f" Its queue was not measured: {size(facts.queue_bytes)} are assumed ({between}; the path holds "
            f"{size(bdp_bytes)}, its bandwidth-delay product)."
        )
    if facts.policer_rate_bps:
        low, high = facts.ranges.get("policer_rate_bps", (facts.policer_rate_bps,) * 2)
        wide = f" ({rate(low)} to {rate(high)})" if high > WIDE * low else ""
        text += f" A policer lets {rate(facts.policer_rate_bps)}{wide} through."
    if "competing_bps" not in (*facts.ranges, *facts.given) and facts.sources:
        text += " The traffic of others is not known."
    elif facts.competing_flows > 0:
        about = pluralize(max(1, round(facts.competing_flows)), "flow")
        text += f" Others take {rate(facts.competing_bps)}: about {about} that reduce their rate at a loss."
    elif facts.competing_bps > 0:
        by = " by the scenario" if "competing_bps" in facts.given else ""
        text += f" Others take {rate(facts.competing_bps)}{by} and do not reduce their rate."
    return text


def _lost(facts: PathFacts) -> str:
    by = " by the scenario" if "loss" in facts.given else ""
    if facts.loss > 0:
        together = f", {facts.loss_burst:.1f} together on average" if facts.loss_burst > 1.3 else ""
        rate_text = loss(facts.loss) if by else share(facts.loss)
        return f"loses {rate_text} of packets{by}{together}"
    if by:
        return f"loses no packet{by}"
    high = facts.ranges.get("loss", (0.0, 0.0))[1]
    return "lost no packet in the test" + (f" (a loss below {loss(high)} may not be seen)" if high > 0 else "")


def reasons_of(
    facts: PathFacts,
    chosen: Candidate,
    goodput_bps: float,
    harm: Mapping[str, float],
    table: Sequence[Mapping[str, Any]],
    keeps_limit: bool,
) -> list[str]:
    """Return the reasons, the path first."""
    reasons = [facts_text(facts)]
    # The goodput of a start is no candidate's beside that of a copy.
    table = [row for row in table if row.get("sample") != "start"]
    rows = {str(row["candidate"]): row for row in table}
    one = rows.get(text_of(ordinary(1)))
    if one is not None and goodput_bps > CLEARLY * one["goodput_bps"]:
        reasons.append(f"One ordinary stream would get {rate(one['goodput_bps'])}: {_why_slow(facts)}.")
    four = rows.get(text_of(ordinary(4)))
    if four is not None and four["candidate"] != text_of(chosen):
        if goodput_bps > CLEARLY * four["goodput_bps"]:
            reasons.append(f"Four ordinary streams would get {rate(four['goodput_bps'])}.")
        else:
            reasons.append(f"Four ordinary streams would get {rate(four['goodput_bps'])}, about the same.")
    faster = [
        row
        for row in table
        if row["goodput_bps"] > CLEARLY * goodput_bps and row["excess"] is not None and row["excess"] > 0
    ]
    if faster:
        best = faster[0]
        hurt = max(best["harm"], key=lambda name: best["harm"][name])
        reasons.append(
            f"{best['candidate']} would get {rate(best['goodput_bps'])}, but a {hurt} flow beside it would lose "
            f"{share(best['harm'][hurt])} of its goodput."
        )
    unsure = [
        row
        for row in table
        if row["goodput_bps"] > CLEARLY * goodput_bps
        and row["excess"] is not None
        and row["excess"] <= 0
        and not row["keeps_limit"]
    ]
    if unsure:
        reasons.append(
            f"{unsure[0]['candidate']} would get {rate(unsure[0]['goodput_bps'])}, but its harm varies too much over "
            f"{pluralize(unsure[0]['runs'], 'run')} to be sure that it keeps the limit."
        )
    lost = ", ".join(f"a {name} flow loses {share(max(0.0, value))}" for name, value in harm.items())
    if lost:
        reasons.append(f"Beside the proposed copy {lost} of its goodput.")
    if chosen.pacing_bps is not None:
        reasons.append(_why_paced(facts, chosen.pacing_bps))
    if not keeps_limit:
        reasons.append("No candidate keeps the limit: this candidate does the least harm.")
    for name, outcome in facts.sources.items():
        if outcome["refused"] and not outcome["estimates"]:
            reasons.append(f"Not measured: {name} ({outcome['refused']}); the advice assumes the usual range.")
    return reasons


def _why_slow(facts: PathFacts) -> str:
    if facts.loss > 0:
        return "each loss halves its window or nearly so, and a round trip later it grows by a little"
    if facts.competing_flows > 0:
        return "it shares the bottleneck with the flows that are present"
    if facts.policer_rate_bps:
        return "the policer's drops reduce its window"
    return "its window grows slowly to the bandwidth-delay product"


def _why_paced(facts: PathFacts, pacing_bps: float) -> str:
    if facts.policer_rate_bps and pacing_bps < facts.policer_rate_bps:
        return f"Its rate stays below the policer's {rate(facts.policer_rate_bps)}, so that nothing is dropped there."
    return "Its rate is bounded so that the queue stays short for others."
