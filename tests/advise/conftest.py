"""The command in this process, and a lossy path as a scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from elephan.advise import advice
from tests.hosts.conftest import Elephan, here

LOSSY = """\
[run]
duration = "30s"
[path]
bandwidth = "40Mbit/s"
rtt = "40ms"
loss = 3e-3
queue = "0.5bdp"
[[flow]]
workload = { kind = "bulk", bytes = "1kB" }
"""


@pytest.fixture(autouse=True)
def short_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole copies of an advice are simulated for a tenth of the time that the command takes."""
    monkeypatch.setattr(advice, "FORECAST_PART", advice.FORECAST_PART / 10)
    monkeypatch.setattr(advice, "LONG_PART", advice.LONG_PART / 10)


@pytest.fixture
def lossy(tmp_path: Path) -> Path:
    """A scenario whose one flow ends at once: its path is idle."""
    file = tmp_path / "lossy.toml"
    file.write_text(LOSSY, encoding="utf-8")
    return file


@pytest.fixture
def elephan(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Elephan:
    """Run the command in this process, with an empty book of hosts."""
    monkeypatch.setenv("ELEPHAN_HOSTS", str(tmp_path / "hosts.toml"))
    return here(capsys)
