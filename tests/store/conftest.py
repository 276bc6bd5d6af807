"""Servers of databases, each started once for all tests of this folder that one process runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.store.servers import Server, program, server


@pytest.fixture(scope="session")
def server_of() -> Iterator[Callable[[str], Server]]:
    """Give the server of a kind, started when it is first asked for."""
    running: dict[str, Server] = {}
    with ExitStack() as stack:

        def of(kind: str) -> Server:
            if program(kind) is None:
                pytest.skip(f"{kind} is not installed: scripts/packages.sh test")
            if kind not in running:
                running[kind] = stack.enter_context(server(kind))
            return running[kind]

        yield of
