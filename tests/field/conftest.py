"""The field for all tests of this folder: made once, and for each test as its file has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.field import network
from tests.hosts.testbed import waited

WHOLE = os.environ.get("ELEPHAN_FIELD") == "whole"
"""Set by `make field`: longer periods, more trials, and the tests that need them."""
whole = pytest.mark.whole
REFLECTOR, IPERF = 8620, 5201
"""Ports at site b."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, without `make field`, the tests that take minutes."""
    if WHOLE:
        return
    left_out = [item for item in items if item.get_closest_marker("whole") is not None]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def made() -> Iterator[network.Field]:
    """Both sites, with a reflector and an iperf3 server at b."""
    problem = network.missing()
    if problem is not None:
        pytest.skip(f"the field {problem}")
    with ExitStack() as stack:
        field = stack.enter_context(network.field_of_two_sites())
        reflect = ("measure", "reflect", "--port", str(REFLECTOR), "--short-replies")
        stack.enter_context(field.started(*reflect, site=field.b))
        stack.enter_context(field.program("iperf3", "-s", "-p", str(IPERF), site=field.b))

        def listens() -> bool:
            said = subprocess.run(field.b.within("ss", "-HlntuO"), capture_output=True, text=True, check=True).stdout
            return f":{REFLECTOR} " in said and f":{IPERF} " in said

        waited(listens)
        yield field


@pytest.fixture
def field(made: network.Field) -> Iterator[network.Field]:
    """Give the path as its file has it, and give it back so."""
    yield made
    made.as_usual()


@pytest.fixture
def folder(made: network.Field, request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty folder that both sites have, open to the users there."""
    path = made.folder / f"test-{request.node.name.partition('[')[0][:60]}-{time.monotonic_ns()}"
    path.mkdir()
    yield path
    shutil.rmtree(path, ignore_errors=True)
