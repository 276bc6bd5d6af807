"""Both sides of a copy: this machine, or a host with an agent that runs as the user."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from elephan.copy.faults import LOST, CopyFailed
from elephan.copy.request import CopyRequest
from elephan.core import version
from elephan.errors import ElephanError, InputError
from elephan.hosts import Book, Host
from elephan.hosts.agent import Agent, Inbox, together
from elephan.hosts.book import DESTINATION, data_address
from elephan.hosts.facts import address_of, path_addresses

LOOPBACK = "127.0.0.1"


def host_of(name: str) -> Host:
    """Return the host of the book, or one that ssh(1) knows by this destination. Raises `InputError`."""
    found = next((host for host in Book.read() if host.name == name), None)
    if found is not None:
        return found
    if not DESTINATION.fullmatch(name):
        raise InputError(f'"{name}": a host of `elephan hosts`, or a destination of ssh such as user@host')
    return Host(name, name)


def path_there(path: str) -> str:
    """Return a path as an agent takes it, whose working folder is its user's home. Raises `InputError`."""
    if path == "~":
        return "./"
    if path.startswith("~/"):
        return path[2:] or "./"
    if path.startswith("~"):
        raise InputError(f"{path}: an absolute path, or one from your own home there")
    # As with rsync, a folder that is named by a dot stands for what is in it.
    return f"{path}/" if path in (".", "..") or path.endswith(("/.", "/..")) else path


def path_here(path: str) -> str:
    """Return an absolute path of this machine; a slash at its end stays."""
    absolute = os.path.abspath(path)
    return f"{absolute.rstrip('/')}/" if path.endswith(("/", "/.", "/..")) or path in (".", "..") else absolute


def end_paths(request: CopyRequest) -> dict[str, list[str]]:
    """Return the paths of both sides as their ends take them. Raises `InputError`."""
    source = path_here if request.source_host is None else path_there
    destination = path_here if request.destination.host is None else path_there
    return {
        "source": [source(place.path) for place in request.sources],
        "destination": [destination(request.destination.path)],
    }


@dataclass(frozen=True)
class Side:
    """One side."""

    role: str
    """"send" or "receive"."""
    host: Host | None
    agent: Agent | None

    @property
    def name(self) -> str:
        """For messages."""
        return "this machine" if self.host is None else self.host.name

    def about(self) -> dict[str, Any]:
        """Return what a receipt says of it."""
        if self.agent is None:
            return {
                "name": None,
                "hostname": platform.node(),
                "kernel": platform.release(),
                "elephan": version(),
                "user": os.geteuid(),
            }
        told = self.agent.ask("check")
        return {
            "name": self.agent.host.name,
            "ssh": self.agent.host.destination,
            "hostname": told.get("hostname"),
            "kernel": told.get("kernel"),
            "elephan": self.agent.hello.get("version"),
            "user": told.get("uid"),
        }


@dataclass(frozen=True)
class Sides:
    """Both, with the inbox of their agents."""

    source: Side
    destination: Side
    inbox: Inbox

    def agents(self) -> list[Agent]:
        """Return the agents that there are."""
        return [side.agent for side in (self.source, self.destination) if side.agent is not None]

    def address(self, listener: Side) -> str:
        """Return the address at which the other side reaches `listener`. Raises `InputError`."""
        other = self.destination if listener is self.source else self.source
        if listener.agent is None and other.agent is None:
            return LOOPBACK
        if listener.agent is None:
            assert other.agent is not None, "one of them is remote"
            found = other.agent.session.client_address
            if found is None:
                raise InputError(f"{other.name}: ssh does not report the address from which it is reached")
            return data_address(other.name, found)
        if other.agent is None:
            return address_of(listener.agent)
        return path_addresses([listener.agent, other.agent])[0]


@contextmanager
def opened(request: CopyRequest) -> Iterator[Sides]:
    """Give both sides, with agents at once where there are hosts, until the context ends. Raises `InputError`, and
    `CopyFailed` for a host that cannot be reached.
    """
    names = {name: host_of(name) for name in (request.source_host, request.destination.host) if name is not None}
    inbox = Inbox()
    wanted = [
        (role, None if name is None else names[name])
        for role, name in (("send", request.source_host), ("receive", request.destination.host))
    ]
    try:
        agents = together([host for _, host in wanted if host is not None], inbox, as_user=True)
    except InputError:
        raise
    except ElephanError as error:
        raise CopyFailed(LOST, str(error)) from error
    left = iter(agents)
    source, destination = (Side(role, host, None if host is None else next(left)) for role, host in wanted)
    try:
        yield Sides(source, destination, inbox)
    finally:
        for agent in agents:
            agent.close()
