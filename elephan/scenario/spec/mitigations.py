"""A move's mitigations as the core takes them: delays worked out, queues named."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypedDict

from elephan.run_spec.types import MitigationSpec
from elephan.scenario.mitigation import CwndReduction, DelayEqualization, HoldBuffer, ReorderingTolerance
from elephan.scenario.spec.network import Network

#: ns per second.
_NS_PER_S = 10**9


def mitigation_spec(
    network: Network,
    mitigations: Sequence[HoldBuffer | DelayEqualization | CwndReduction | ReorderingTolerance],
    old: list[int],
    new: list[int],
) -> MitigationSpec:
    """Return the specification of `mitigations` for data that moves from the path `old` to the path `new`, lists of
    lines.
    """
    spec: MitigationSpec = {"hold_buffer": None, "cwnd_reduction": None, "reordering_tolerance": None}
    before, old_rest, new_rest = parted(old, new)
    for mitigation in mitigations:
        difference = mitigation.delay_difference
        if difference is None:
            difference = difference_ns(network, old_rest, new_rest)
        difference = int(difference * (1 + Fraction(mitigation.error)))
        if isinstance(mitigation, HoldBuffer | DelayEqualization):
            waiting = {"own": old_rest[:1], "path": old_rest, "none": []}[mitigation.queue]
            spec["hold_buffer"] = {
                "delay_ns": difference,
                "queues": [{"link": link, "rate_bps": network.lines[link].rate_bps} for link in waiting],
                "share_ppm": int(mitigation.share * 10**6) if isinstance(mitigation, DelayEqualization) else None,
                **_release(network, mitigation, new_rest or new, new[len(before) :]),
                "limit_bytes": mitigation.buffer,
            }
        elif isinstance(mitigation, CwndReduction):
            lead = sum(network.lines[line].delay_ns for line in before) if mitigation.lead is None else mitigation.lead
            spec["cwnd_reduction"] = {
                "delay_ns": difference,
                "cwnd_fraction_ppm": None
                if mitigation.cwnd_fraction is None
                else int(mitigation.cwnd_fraction * 10**6),
                "lead_ns": lead,
                "restore_ns": mitigation.restore,
            }
        else:
            late = difference if mitigation.by == "dupthresh" else 0
            spec["reordering_tolerance"] = {"delay_ns": late, "duration_ns": mitigation.duration}
    return spec


class _Release(TypedDict):
    rate_bps: int
    line: int


def _release(
    network: Network, mitigation: HoldBuffer | DelayEqualization, parts: list[int], onward: list[int]
) -> _Release:
    """Return the highest release rate of a hold buffer and its line; `parts` begins with the line after the buffer,
    `onward` is the path to the receiver.
    """
    release = mitigation.release if isinstance(mitigation, HoldBuffer) else "line"
    if isinstance(release, int):
        return {"rate_bps": release, "line": parts[0]}
    lines = onward if release == "bottleneck" and onward else parts[:1]
    # Of equal ones the last: others may share it.
    slowest = min(reversed(lines), key=lambda line: network.lines[line].rate_bps)
    return {"rate_bps": network.lines[slowest].rate_bps, "line": slowest}


def parted(old: list[int], new: list[int]) -> tuple[list[int], list[int], list[int]]:
    """The lines that two routes share at the beginning, and the rest of each until they meet again for good."""
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
