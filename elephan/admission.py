"""Bounded accept: the connections of a listener whose clients have not authenticated, or asked, yet.

As `crates/admission`: a new connection is always admitted, and at a limit displaces another of the address that has
most, drawn at random. An address with few connections loses none to an address with many, and a client behind the same
address as a flood has a fair chance.
"""

from __future__ import annotations

import ipaddress
import random
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Limits:
    """Limits of a listener."""

    total: int
    """Connections from all addresses."""
    per_address: int
    time_s: float
    """Time of a connection, s."""


class Pending(Generic[Key]):
    """Connections that wait, in order of arrival."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._entries: dict[Key, tuple[str, float]] = {}
        """Network and deadline."""
        self._counts: Counter[str] = Counter()
        self._random = random.SystemRandom()

    def __len__(self) -> int:
        return len(self._entries)

    def admit(self, now_s: float, key: Key, address: str, time_s: float | None = None) -> Key | None:
        """Admit a connection; return the one that it displaces, which the caller closes. `time_s`: another limit."""
        network = network_of(address)
        displaced = None
        if self._counts[network] >= self.limits.per_address:
            displaced = self._draw(network)
        elif len(self._entries) >= self.limits.total:
            most = max(self._counts.values())
            displaced = self._draw(self._random.choice([one for one, count in self._counts.items() if count == most]))
        self._entries[key] = network, now_s + (self.limits.time_s if time_s is None else time_s)
        self._counts[network] += 1
        return displaced

    def _draw(self, network: str) -> Key:
        drawn = self._random.choice([key for key, (of, _) in self._entries.items() if of == network])
        self.remove(drawn)
        return drawn

    def remove(self, key: Key) -> bool:
        """Remove a connection that has authenticated or closed. False: it was displaced, or its time was over."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        self._counts[entry[0]] -= 1
        if not self._counts[entry[0]]:
            del self._counts[entry[0]]
        return True

    def expire(self, now_s: float) -> list[Key]:
        """Remove and return the connections whose time is over; the caller closes them."""
        late = [key for key, (_, deadline_s) in self._entries.items() if deadline_s <= now_s]
        for key in late:
            self.remove(key)
        return late


def network_of(address: str) -> str:
    """Return what identifies a host: an IPv6 host has 2^64 addresses of its own (RFC 4291, 2.5.4)."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(found) >> 64 << 64))
