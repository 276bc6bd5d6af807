"""One of the two hosts in a run."""

from __future__ import annotations

from dataclasses import dataclass

from elephan.hosts.agent import Agent
from elephan.hosts.facts import Facts


@dataclass(frozen=True)
class End:
    """A host, the agent there, and what is known of it."""

    agent: Agent
    facts: Facts
    """Its `address` is that at which the other host reaches it."""
    local: str
    """Its own address on the way to the other host: another one than `facts.address` behind a translator (NAT)."""
