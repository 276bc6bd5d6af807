"""An advice for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elephan.advise.advice import Advice, Band
from elephan.advise.candidates import text_of
from elephan.advise.forecast import BOUNDS
from elephan.units import duration, duration_range, is_useless, pluralize, rate, share, size

ROWS = 40


def lines(advice: Advice, *, with_table: bool = False) -> list[str]:
    """Return the proposal, its forecast, its harm and its reasons, a line each."""
    low, middle, high = advice.goodput_bps
    shortest, expected, longest = advice.seconds
    found = [f"proposed: {text_of(advice.candidate)}"]
    share_text = "90 %" if advice.not_steady is None else "bounds"
    found.append(f"goodput: {rate(middle)} ({rate(low)} to {rate(high)}, {share_text})")
    wide = "; too wide to plan by: the goodput of a first copy narrows it" if is_useless(shortest, longest) else ""
    found.append(f"time: {duration(expected)} ({duration_range(shortest, longest)}){wide}")
    if advice.not_steady is not None:
        found.append(
            f"note: the simulated part is too short to tell ({advice.not_steady}): the bounds are {BOUNDS}"
        )
    harms = ", ".join(f"a {name} flow loses {_harm(band)}" for name, band in advice.harm.items())
    found.append(f"harm: {harms}")
    if advice.is_harm_of_start:
        found.append(
            f"note: harm is that of the first {duration(advice.simulated['copy_s'])}, too short for the flows to lose "
            "packets twice; a longer copy may do more or less"
        )
    found.append(f"limit: {advice.limit_text}")
    if not advice.keeps_limit:
        found.append("warning: no candidate keeps the limit")
    found += [f"- {reason}" for reason in advice.reasons]
    found.append(simulated(advice))
    if with_table:
        found += ["", *_table(advice)]
    return found


def simulated(advice: Advice) -> str:
    """Return what was simulated, and if the time was too short for all of it."""
    of = advice.simulated
    late = "; the time ran out before all were made" if of["is_late"] else ""
    part = "all" if of["is_complete"] else size(of["long_run_bytes"])
    return (
        f"simulated: {pluralize(of['candidates'], 'candidate')} in {pluralize(of['runs'], 'run')} of "
        f"{duration(of['copy_s'])}, {part} of the proposed copy, in {duration(of['seconds'])}{late}"
    )


def _harm(band: Band) -> str:
    low, middle, high = band
    return f"{share(middle)} ({share(low)} to {share(high)})"


def _keeps(row: Mapping[str, Any]) -> str:
    if row["keeps_limit"]:
        return "kept"
    return f"+{share(row['excess'])}" if row["excess"] > 0 else "not sure"


SAMPLES = {"copy": "", "part": "of {}", "start": "start only, {}"}
"""Words for the simulated part that a row's goodput is of: the copy until it is steady, a run, or the start alone."""


def _table(advice: Advice) -> list[str]:
    rows = [["candidate", "goodput", "sample", "reno loses", "cubic loses", "limit"]]
    lasts = duration(advice.simulated["copy_s"])
    for row in advice.table[:ROWS]:
        harm = row["harm"]
        of = ("", "") if harm is None else tuple(share(max(0.0, harm[name])) for name in ("reno", "cubic"))
        keeps = "" if row["excess"] is None else _keeps(row)
        sample = SAMPLES[row.get("sample", "copy")].format(lasts)
        rows.append([row["candidate"], rate(row["goodput_bps"]), sample, *of, keeps])
    if not any(row[2] for row in rows[1:]):
        rows = [[*row[:2], *row[3:]] for row in rows]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    found = []
    for first, *others, last in rows:
        numbers = (f"{text:>{width}}" for text, width in zip(others, wide[1:-1], strict=True))
        found.append("  ".join([f"{first:<{wide[0]}}", *numbers, last]).rstrip())
    return found
