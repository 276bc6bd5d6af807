"""Facts about a host, as its agent tells them, and the rights that a run has there."""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elephan.errors import InputError
from elephan.hosts.agent import Agent
from elephan.hosts.book import data_address

CLOCK_SAMPLES = 5
"""Questions for a host's time; the one with the shortest round trip counts (as in NTP, RFC 5905, 10)."""


@dataclass(frozen=True)
class Facts:
    """One host at one moment."""

    name: str
    told: Mapping[str, Any]
    """The agent's answer to `check`, as docs/design/agent.md has it."""
    address: str
    """Address of its end of the path."""
    clock_offset_s: float
    """Its time of day less this machine's."""
    clock_error_s: float
    """Bound of that offset's error: half of the shortest round trip over the channel."""

    @property
    def release(self) -> tuple[int, int]:
        """First two numbers of the kernel's release."""
        found = re.match(r"(\d+)\.(\d+)", str(self.told.get("kernel", "")))
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @property
    def sysctls(self) -> Mapping[str, str]:
        """Values under net.ipv4, by name without that."""
        return {name.removeprefix("net.ipv4."): value for name, value in self.told.get("sysctls", {}).items()}

    @property
    def may_set(self) -> bool:
        """True if sockets may have any buffers, and sysctls may be set."""
        return bool(self.told["capabilities"]["net_admin"])

    @property
    def why_no_bpf(self) -> str | None:
        """Return the reason that no congestion control can be loaded; None when one can."""
        if not self.told.get("btf"):
            return "its kernel has no BTF (CONFIG_DEBUG_INFO_BTF)"
        capabilities = self.told["capabilities"]
        if not (capabilities["net_admin"] and capabilities["bpf"]):
            return "needs root there"
        return None

    @property
    def controls(self) -> frozenset[str]:
        """Congestion controls that the run's sockets may choose."""
        names = self.told["congestion_controls"]
        return frozenset(names["available"] if self.may_set else names["allowed"])

    def limit(self, name: str) -> Any:
        """Return a limit of the kernel's buffers, None where it is not told."""
        return self.told.get("limits", {}).get(name)

    def way(self, towards: str) -> Mapping[str, Any]:
        """Return its route to an address; empty where there was no such question."""
        return next((way for way in self.told.get("routes", ()) if way["towards"] == towards), {})


def address_of(agent: Agent) -> str:
    """Return the address of a host's end of the path: the book's, else that at which SSH reached it.

    Raises `InputError` when neither is known, or other hosts cannot reach that.
    """
    found = agent.host.address or agent.session.server_address
    if found is None:
        raise InputError(
            f"{agent.host.name}: ssh does not report the address at which it was reached: remove it, and add it with "
            "--address"
        )
    return data_address(agent.host.name, found)


def path_addresses(agents: Sequence[Agent]) -> list[str]:
    """Return the addresses of both ends of the path between two hosts. Raises `InputError` when they are of two
    families, or one is not known, and `RunError`.
    """
    addresses = [address_of(agent) for agent in agents]
    addresses = [_not_itself(agents, addresses, number) for number in range(len(agents))]
    if len({ipaddress.ip_address(address).version for address in addresses}) > 1:
        left, right = (agent.host.name for agent in agents)
        raise InputError(
            f"{left} is reached at {addresses[0]} and {right} at {addresses[1]}: give both an address of the same "
            "family, by elephan hosts add ... --address"
        )
    return addresses


def _not_itself(agents: Sequence[Agent], addresses: Sequence[str], number: int) -> str:
    """Return a host's address; where ssh reached it at a loopback one, as on the front's own machine, and the other is
    elsewhere, its own on the way to the other.
    """
    address, other = addresses[number], addresses[1 - number]
    if (
        agents[number].host.address is not None
        or not ipaddress.ip_address(address).is_loopback
        or ipaddress.ip_address(other).is_loopback
    ):
        return address
    return own_address(look(agents[number], other, 1), other)


def own_address(facts: Facts, towards: str) -> str:
    """Return the address that a host's kernel takes on the way to another: behind a translator (NAT) it is another one
    than that at which the host is reached. Raises `InputError` when there is no way.
    """
    way = facts.way(towards)
    if "error" in way:
        raise InputError(f"{facts.name}: no route to {towards}: {way['error']}")
    return str(way.get("source", facts.address))


def look(agent: Agent, towards: str | None = None, samples: int = CLOCK_SAMPLES) -> Facts:
    """Ask a host for all of it; `towards` is the other host's address. Raises `RunError` and `InputError`."""
    best: tuple[float, float] | None = None
    told: dict[str, Any] = {}
    for number in range(samples):
        keys: dict[str, Any] = {"folder": "."}
        if number == 0 and towards is not None:
            keys["towards"] = [towards]
        began_s, began_ns = time.monotonic(), time.time_ns()
        answer = agent.ask("check", **keys)
        round_trip_s = time.monotonic() - began_s
        offset_s = (answer["clock"]["time_ns"] - began_ns) / 1e9 - round_trip_s / 2
        if best is None or round_trip_s < best[0]:
            best = (round_trip_s, offset_s)
        told = told or answer
    assert best is not None, "it was asked at least once"
    return Facts(agent.host.name, told, address_of(agent), best[1], best[0] / 2)
