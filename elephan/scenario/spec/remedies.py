"""A move's remedies as the core takes them: delays worked out, queues named."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from elephan.scenario.remedy import Equalise, Hold, Tolerate, Trim
from elephan.scenario.spec.network import Network

#: ns per second.
_NS_PER_S = 10**9


def remedy_spec(
    network: Network, remedies: Sequence[Hold | Equalise | Trim | Tolerate], old: list[int], new: list[int]
) -> dict[str, Any]:
    """What `remedies` are for data that goes from the way `old` to the way `new`, lists of lines."""
    spec: dict[str, Any] = {"gate": None, "trim": None, "tolerate": None}
    before, old_rest, new_rest = parted(old, new)
    for remedy in remedies:
        difference = remedy.delay_difference
        if difference is None:
            difference = difference_ns(network, old_rest, new_rest)
        difference = int(difference * (1 + Fraction(remedy.error)))
        if isinstance(remedy, Hold | Equalise):
            waiting = {"own": old_rest[:1], "way": old_rest, "none": []}[remedy.queue]
            spec["gate"] = {
                "delay_ns": difference,
                "queues": [{"link": link, "rate_bps": network.lines[link].rate_bps} for link in waiting],
                "share_ppm": int(remedy.share * 10**6) if isinstance(remedy, Equalise) else None,
                **_release(network, remedy, new_rest or new, new[len(before) :]),
                "limit_bytes": remedy.buffer,
            }
        elif isinstance(remedy, Trim):
            lead = sum(network.lines[line].delay_ns for line in before) if remedy.lead is None else remedy.lead
            spec["trim"] = {
                "delay_ns": difference,
                "keep_ppm": None if remedy.keep is None else int(remedy.keep * 10**6),
                "lead_ns": lead,
                "restore_ns": remedy.restore,
            }
        else:
            late = difference if remedy.by == "degree" else 0
            spec["tolerate"] = {"delay_ns": late, "duration_ns": remedy.duration}
    return spec


def _release(network: Network, remedy: Hold | Equalise, parts: list[int], onward: list[int]) -> dict[str, int]:
    """How fast a gate lets go at most and for which line; `parts` begins with the one beyond it, `onward` is the way to
    the receiver."""
    release = remedy.release if isinstance(remedy, Hold) else "line"
    if isinstance(release, int):
        return {"rate_bps": release, "line": parts[0]}
    lines = onward if release == "way" and onward else parts[:1]
    # Of equal ones the last: others may share it.
    slowest = min(reversed(lines), key=lambda line: network.lines[line].rate_bps)
    return {"rate_bps": network.lines[slowest].rate_bps, "line": slowest}


def parted(old: list[int], new: list[int]) -> tuple[list[int], list[int], list[int]]:
    """The lines that two ways begin with, and what each has until they meet again for good."""
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    before, old, new = old[:same], old[same:], new[same:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return before, old, new


def difference_ns(network: Network, old: list[int], new: list[int]) -> int:
    """By how much a full packet takes longer over the lines `old` than over `new`; 0 when it does not."""

    def one_way(lines: list[int]) -> int:
        return sum(
            network.lines[line].delay_ns
            + -(-network.lines[line].mtu_bytes * 8 * _NS_PER_S // network.lines[line].rate_bps)
            for line in lines
        )

    return max(0, one_way(old) - one_way(new))
