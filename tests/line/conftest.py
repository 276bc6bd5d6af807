"""Fixtures of line tests."""

from __future__ import annotations

import pytest

from elephan.core import native
from elephan.line import safety
from tests.line.model import Line
from tests.line.stand_in import Port


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-in in the place of the core's port, on a line of 1 Gbit/s."""
    monkeypatch.setattr(native, "LinePort", Port, raising=False)
    monkeypatch.setattr(Port, "line", Line(10**9))
    monkeypatch.setattr(safety, "check", lambda interface, force: f"52:54:00:00:00:{len(interface):02x}")
