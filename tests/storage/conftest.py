"""Fixtures for traces and disks."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_stdout() -> None:
    """Let the console take this test's stdout, not that of the test before."""
    from elephan.cli.console import console

    console.cache_clear()
