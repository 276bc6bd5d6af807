"""Commands do not run files that lie in the current folder under the names of Python's or elephan's modules."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ELEPHAN = Path(sys.executable).with_name("elephan")
SCENARIO = """
[run]
duration = "300ms"
[path]
bandwidth = "50Mbit/s"
rtt = "4ms"
[[flow]]
name = "a"
congestion_control = "CONTROL"
"""
SHADOWS = ("elephan/__init__.py", "random.py", "json.py", "typing.py", "subprocess.py")


@pytest.fixture
def shadowed(tmp_path: Path) -> Path:
    """A folder with files that would be imported in place of the modules of their names."""
    for name in SHADOWS:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'raise SystemExit("{name} of the current folder was run")\n')
    (tmp_path / "s.toml").write_text(SCENARIO.replace("CONTROL", "reno"))
    return tmp_path


def command(folder: Path, *words: str) -> None:
    done = subprocess.run([ELEPHAN, *words], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_control_of_ones_own_is_simulated(shadowed: Path) -> None:
    own = (ROOT / "congestion" / "reno.c").read_text()
    (shadowed / "own.c").write_text(own)
    (shadowed / "s.toml").write_text(SCENARIO.replace("CONTROL", "own.c"))
    command(shadowed, "run", "s.toml", "--no-report", "--store", "none")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.looks_at_kernel
def test_a_path_comes_up_and_a_run_uses_the_kernel(shadowed: Path) -> None:
    command(shadowed, "run", "s.toml", "--on", "kernel", "--no-report", "--store", "none")
    up = subprocess.run([ELEPHAN, "path", "up", "s.toml"], cwd=shadowed, capture_output=True, text=True, timeout=120)
    assert up.returncode == 0, up.stdout + up.stderr
    path = re.search(r"\b[0-9a-f]{6,}\b|\bpath \d+\b", up.stdout)
    assert path is not None, up.stdout
    command(shadowed, "path", "down", path.group().removeprefix("path "))


def test_there_is_one_place_that_starts_python() -> None:
    starts = [
        str(file.relative_to(ROOT))
        for file in (ROOT / "elephan").rglob("*.py")
        if re.search(r"sys\.executable, *\"", file.read_text())
    ]
    assert starts == ["elephan/python_process.py"]
