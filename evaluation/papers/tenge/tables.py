"""The README's tables of regions.json: `python -m evaluation.papers.tenge.tables` prints them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from . import regions
from .background import largest_table
from .recovery import Found, compared, ratio_of


def fig8() -> list[str]:
    """Return the largest background without loss, by burst and queue."""
    return lines(*largest_table(regions.read()["fig8"]["setups"]))


def fig10(hosts: bool, packet: int) -> list[str]:
    """Return ratio and times of figure 10 by queue, length and share of the burst."""
    setups = {key[2:]: item for key, item in regions.fig10_setups().items() if key[:2] == (hosts, packet)}
    setups = {key: item for key, item in setups.items() if key[0] in regions.LENGTHS}
    shares = sorted({share for _, share, _ in setups})
    kinds = sorted({(burst_s, queue) for burst_s, _, queue in setups}, key=lambda kind: (kind[0] != 2, kind))
    rows = []
    for burst_s, queue in kinds:
        found = [setups.get((burst_s, share, queue)) for share in shares]
        rows.append((f"{burst_s:g} s; {percent(queue)}", *map(cell, found)))
    return lines(("burst; queue", *(f"{percent(share)}" for share in shares)), rows)


def fig10_lengths() -> list[str]:
    """Return ratio and times of the paper's hosts at their own rates, by the length of the burst around 2 s."""
    setups = {key[2:]: item for key, item in regions.fig10_setups().items() if key[0]}
    share = round(regions.HOST_UDP, 4)
    lengths = sorted({burst_s for burst_s, _, _ in setups if 1.5 < burst_s < 2.5})
    rows = [
        (percent(queue), *(cell(setups.get((burst_s, share, queue))) for burst_s in lengths)) for queue in (0.03, 0.1)
    ]
    return lines(("queue", *(f"{burst_s:g} s" for burst_s in lengths)), rows)


def fig10_never() -> list[str]:
    """Return the ratio with a sender that notices lost retransmissions and one that does not, where the statement on
    them differs."""
    era = regions.fig10_setups()
    rows = []
    for key, item in sorted(regions.fig10_setups("never").items()):
        if key in era and found_in(era[key]) is not found_in(item):
            hosts, _, burst_s, share, queue = key
            sender = "the paper's hosts" if hosts else "fills the line"
            rows.append((f"{sender}; {burst_s:g} s; {percent(queue)}; {percent(share)}", shown(era[key]), shown(item)))
    return lines(("sender; burst; queue; share", "noticed", "not noticed"), rows)


def percent(share: float) -> str:
    """Return a share as the README writes it."""
    return f"{100 * share:.0f} %"


def lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table in Markdown."""
    from evaluation.markdown import table

    return table([*heads], [[*row] for row in rows]).splitlines()


def found_in(setup: Mapping[str, Any]) -> Found:
    """Return what a set-up says of the paper's statement."""
    return compared(setup["reno"], setup["highspeed"])


def shown(setup: Mapping[str, Any]) -> str:
    """Return the ratio: bold above 9, and named where seeds differ."""
    found, ratio = found_in(setup), ratio_of(setup["reno"], setup["highspeed"])
    text = f"{ratio:.0f}" if ratio >= 30 else f"{ratio:.1f}"
    return {Found.ABOVE: f"**{text}**", Found.BELOW: text, Found.UNDECIDED: f"{text} (both)"}[found]


def cell(setup: Mapping[str, Any] | None) -> str:
    """Return the ratio and both medians."""
    if setup is None:
        return ""
    if found_in(setup) is Found.NOTHING:
        return "nothing"
    reno, highspeed = (statistics.median(setup[name]) for name in ("reno", "highspeed"))
    return f"{shown(setup)}: {reno:.1f} / {highspeed:.2f}"


def tables() -> list[list[str]]:
    """Return all of them, in the order of the README."""
    packets = sorted({key[1] for key in regions.fig10_setups() if not key[0]}, reverse=True)
    return [fig8(), *(fig10(False, packet) for packet in packets), fig10(True, 9216), fig10_lengths(), fig10_never()]


if __name__ == "__main__":
    print("\n\n".join("\n".join(one) for one in tables()))
