"""The transfers between two hosts that tell what packets cost them."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elephan.errors import RunError
from elephan.hosts.agent import Agent, AgentError, Inbox, Reply, ending, together
from elephan.hosts.book import Host
from elephan.hosts.cost import Measured, Sample, side
from elephan.hosts.facts import Facts, look, own_address, path_addresses

PARTS = (1, 2, 3, 4)
"""Packet sizes, in quarters of the path's MTU: two would lie on any line."""

ROUNDS = 2
"""Transfers of each size: what drifts meanwhile is not taken for an effect of the size."""

IDLE_MS, WARM_UP_MS = 300, 300
"""Time before a transfer in which others' work is seen, and least time from its begin to the window, for slow start."""

WARM_UP_ROUND_TRIPS = 20
"""Least warm-up in round trips: slow start doubles from 10 packets, and 2^20 times that is no window."""

TRIAL_MS = 100
"""Window of the first transfer, which tells the round-trip time and counts for nothing else."""

PATIENCE_S = 30.0
"""Time beyond its own that a transfer may take, s."""


@dataclass(frozen=True)
class Plan:
    """Times and bounds of the transfers."""

    window_ms: int
    """Time that is measured in each."""
    rate_limit_bps: int | None = None

    @property
    def transfers(self) -> int:
        """Number of them, in both directions."""
        return 2 * ROUNDS * len(PARTS)

    @property
    def seconds(self) -> float:
        """Time that all of them take where round trips are short, s."""
        return self.transfers * (IDLE_MS + WARM_UP_MS + self.window_ms) / 1e3


@dataclass(frozen=True)
class _End:
    agent: Agent
    facts: Facts
    address: str
    """At which the other one reaches it."""
    local: str
    """Its own on the way to the other one."""
    way: Mapping[str, Any]


def measure(hosts: Sequence[Host], plan: Plan, progress: Callable[[int], None] = lambda done: None) -> list[Measured]:
    """Return what packets cost two hosts; `progress` hears of each transfer that ended. Raises `InputError` and
    `RunError`. Each host has carried data to the other, and is as it was.
    """
    inbox = Inbox()
    agents = together(list(hosts), inbox)
    try:
        addresses = path_addresses(agents)
        ends = [_end(agent, addresses[number], addresses[1 - number]) for number, agent in enumerate(agents)]
        trial, _ = _transfer(inbox, ends[0], ends[1], _size(ends, PARTS[-1]), plan, WARM_UP_MS, TRIAL_MS)
        warm_up_ms = max(WARM_UP_MS, round(WARM_UP_ROUND_TRIPS * 1e3 * trial.get("rtt_min_s", 0.0)))
        found: dict[tuple[int, str], list[Sample]] = {}
        done = 0
        for _ in range(ROUNDS):
            for part in PARTS:
                for sends in (0, 1):
                    sender, receiver = ends[sends], ends[1 - sends]
                    size = _size(ends, part)
                    sent, received = _transfer(inbox, sender, receiver, size, plan, warm_up_ms, plan.window_ms)
                    found.setdefault((sends, "send"), []).append(Sample.of(sent, sent))
                    found.setdefault((1 - sends, "receive"), []).append(Sample.of(received, sent))
                    done += 1
                    progress(done)
    finally:
        for agent in agents:
            agent.close()
    return [_measured(ends[number], number, found) for number in (0, 1)]


def _end(agent: Agent, address: str, other: str) -> _End:
    facts = look(agent, other, 1)
    return _End(agent, facts, address, own_address(facts, other), facts.way(other))


def _measured(end: _End, number: int, found: Mapping[tuple[int, str], list[Sample]]) -> Measured:
    other = 1 - number
    return Measured(
        name=end.agent.host.name,
        offloads=tuple(name for name, is_on in end.way.get("offloads", {}).items() if is_on),
        coalescing=end.way.get("coalescing", {}),
        ring_packets=end.way.get("ring_packets"),
        send=side("send", found[number, "send"], found[other, "receive"]),
        receive=side("receive", found[number, "receive"], found[other, "send"]),
    )


def _size(ends: Sequence[_End], part: int) -> int:
    """Return the size of packets, bytes."""
    known: list[int] = [end.way[key] for end in ends for key in ("route_mtu", "mtu_bytes") if key in end.way]
    if not known:
        raise RunError(f"{ends[0].agent.host.name}: does not tell the MTU of its interface")
    # Loopback has 65,536; no IP packet does.
    return min([*known, 65_535]) * part // PARTS[-1]


def _transfer(
    inbox: Inbox, sender: _End, receiver: _End, packet_bytes: int, plan: Plan, warm_up_ms: int, window_ms: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the answers of the sending and the receiving agent."""
    headers = 40 if ipaddress.ip_address(receiver.address).version == 4 else 60
    common = {
        "idle_ms": IDLE_MS,
        "warm_up_ms": warm_up_ms,
        "window_ms": window_ms,
        "token": secrets.token_hex(16),
    }
    patience_s = PATIENCE_S + (IDLE_MS + warm_up_ms + window_ms) / 1e3
    replies: list[Reply] = []
    with ending(inbox, replies):
        listens = receiver.agent.begin(
            "cost",
            role="receive",
            local=receiver.local,
            peer=sender.address,
            ports=list(receiver.agent.host.ports or (0, 0)),
            max_segment_bytes=packet_bytes - headers,
            **common,
        )
        replies.append(listens)
        _until(inbox, replies, lambda: listens.event("listening") is not None, patience_s)
        listening = listens.event("listening")
        assert listening is not None, "it was waited for"
        sends = sender.agent.begin(
            "cost",
            role="send",
            local=sender.local,
            peer=receiver.address,
            port=listening["port"],
            max_pacing_bps=plan.rate_limit_bps,
            **common,
        )
        replies.append(sends)
        _until(inbox, replies, lambda: all(reply.has_ended for reply in replies), patience_s)
    return sends.result(), listens.result()


def _until(inbox: Inbox, replies: list[Reply], seen: Callable[[], bool], patience_s: float) -> None:
    """Take frames until `seen` holds. Raises the error of the first request that failed, the sender's before others:
    it is that which connects.
    """
    if not inbox.wait(lambda: seen() or any(reply.error for reply in replies), patience_s):
        name = replies[-1].agent.host.name
        raise RunError(f"{name}: no end of a transfer within {patience_s:g} s")
    errors = [reply.error for reply in reversed(replies) if reply.error is not None]
    errors.sort(key=lambda error: isinstance(error, AgentError) and error.kind in ("peer", "stopped"))
    if errors:
        raise errors[0]
