"""Refusals of the path tests in plain words: whether the hosts or the path are the cause, and what to do next."""

from __future__ import annotations

SENDER = "the sending host is the cause, not the path"
LOAD = "end other work on it and measure again, or measure from another host (--from)"
RECEIVER = "the receiving host is the cause, not the path"
PATH = "the path is the cause"
REACH = "measure loss (`elephan measure loss`), and the size that passes (`elephan measure mtu`)"
KNOWN = "give the capacity if it is known (--set capacity_bps=300000000)"

CAUSES = (
    ("the sender did not keep up", f"{SENDER}: it was too slow or too busy to send at that rate. Next: {LOAD}"),
    ("the sender kept the rate of only", f"{SENDER}: it was too slow or too busy to send at that rate. Next: {LOAD}"),
    ("the sender sent no packet", f"{SENDER}. Next: {LOAD}"),
    ("the sender stopped within a burst", f"{SENDER}. Next: {LOAD}"),
    ("this host is too busy", f"{SENDER}. Next: {LOAD}"),
    (
        "none passed undisturbed, and no dispersion is frequent",
        "other traffic fills the path, or one of the two hosts is busy: the gaps between packets change from group to "
        f"group. Next: end other work on both hosts and measure again; {KNOWN}",
    ),
    (
        "the receiver coalesces interrupts",
        f"{RECEIVER}, unless several links of the path are full: it reports packets in batches. Next: `ethtool -C` "
        f"there with rx-usecs 0, or another host; {KNOWN}",
    ),
    ("no packet arrived", f"{PATH}, or the reflector has ended: none of the train's packets passed. Next: {REACH}"),
    ("packets arrived", f"{PATH}: it lost most packets of a train. Next: {REACH}"),
    ("groups arrived", f"{PATH}: it lost most packets of a train. Next: {REACH}"),
    (
        "packets were lost: too few arrived",
        f"{PATH}: it loses a large part of every train. Next: measure while others send less",
    ),
)
"""Part of a refusal of crates/path-test, and its cause with what to do; the first that fits counts."""


def advice_on(refused: str) -> str:
    """Return the cause of a refusal and what to do next, to be put behind it; empty for one that says so itself."""
    for part, text in CAUSES:
        if part in refused:
            return f". That is: {text}"
    return ""
