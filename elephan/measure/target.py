"""The reflector of a path test: an address, or a host of the book, to which an agent goes for the test."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from elephan import user_files
from elephan.errors import InputError, RunError

if TYPE_CHECKING:
    from elephan.hosts.agent import Agent

KEY_BYTES = 32
"""Length of a key that is drawn for one test: that of SHA-256's output (RFC 2104, 3)."""
KEY_BYTES_MIN = 8
"""Length of the shortest key that is taken."""
LISTENING_S = 10.0
"""Time for an agent to listen, s."""


@dataclass(frozen=True)
class Target:
    """A reflector."""

    towards: str
    """`host:port`, as the core takes it."""
    key: bytes | None = None
    """HMAC key of both ends; None: none."""


def read_key(option: str, file: Path) -> bytes:
    """Return the key of a file: one line of hexadecimal digits. Raises `InputError`."""
    try:
        text = user_files.read_text(file, user_files.KEY, "ascii").strip()
    except UnicodeDecodeError:
        text = ""
    except OSError as error:
        raise InputError(f"{option} {file}: cannot be read: {error.strerror}") from error
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) < KEY_BYTES_MIN:
        raise InputError(
            f"{option} {file}: one line of {2 * KEY_BYTES_MIN} or more hexadecimal digits is needed, such as openssl "
            "rand -hex 32 writes"
        )
    return key


def is_host(towards: str) -> bool:
    """Return True for the name of a host in the book."""
    from elephan.hosts import Book

    return any(host.name == towards for host in Book.read())


@contextmanager
def reached(towards: str, key: bytes | None = None) -> Iterator[Target]:
    """Give the reflector that a text names: `host:port`, an address, or a host of the book, to which an agent goes that
    reflects until the context ends. Raises `InputError` and `RunError`.
    """
    if not is_host(towards):
        yield Target(towards, key)
        return
    if key is not None:
        raise InputError(f"{towards}: is a host of the book, whose agent has a key of its own: no key file is needed")
    with agent_reflector(towards) as target:
        yield target


@contextmanager
def agent_reflector(name: str) -> Iterator[Target]:
    """Give the reflector of an agent at a host of the book. Raises `InputError` and `RunError`."""
    from elephan.hosts import Book
    from elephan.hosts.agent import connected
    from elephan.hosts.facts import address_of

    with connected(Book.read().find(name)) as agent, reflecting_by(agent, lambda: address_of(agent)) as target:
        yield target


@contextmanager
def reflecting_by(agent: Agent, address: Callable[[], str]) -> Iterator[Target]:
    """Give the reflector of an agent, reached at an address that is asked for once it listens, until the context ends.
    Raises `RunError`.
    """
    from elephan.hosts.agent import ending

    host, key = agent.host, secrets.token_bytes(KEY_BYTES)
    reply = agent.begin("reflect", ports=host.ports, key=key.hex())
    with ending(agent.inbox, [reply]):
        if not agent.inbox.wait(lambda: reply.has_ended or reply.event("listening") is not None, LISTENING_S):
            raise RunError(f"{host.name}: its agent does not reflect within {LISTENING_S:g} s")
        listening = reply.event("listening")
        if listening is None:
            reply.result()
            raise RunError(f"{host.name}: its agent has ended the reflector")
        yield Target(f"{in_brackets(address())}:{listening['port']}", key)


def in_brackets(address: str) -> str:
    """Return an address as it stands before a port: one of IPv6 in brackets (RFC 3986, 3.2.2)."""
    return f"[{address}]" if ":" in address else address
