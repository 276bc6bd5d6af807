"""Scenarios drawn at random give the same records in every way of running them. `make soak` goes on with more seeds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.__main__ import ROOT, Failed, soak, with_assertions
from tests.soak.draw import drawn


@pytest.fixture(scope="module")
def program() -> Path:
    """The core's digest program with debug assertions, by cargo where scripts/check.py has not compiled it before."""
    if compiled := os.environ.get("ELEPHAN_DIGEST"):
        return Path(compiled)
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not on the PATH: https://rustup.rs")
    return with_assertions()


@pytest.mark.search
@pytest.mark.parametrize("seed", range(2, 6))
def test_a_drawn_scenario_is_the_same_in_every_way_of_running_it(seed: int, program: Path) -> None:
    assert soak(seed, program) > 0


def test_a_seed_gives_the_same_scenario_in_every_process() -> None:
    command = [sys.executable, "-m", "tests.soak", "--seed", "7", "--print"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == drawn(7)


def test_a_core_that_fails_is_a_failure() -> None:
    with pytest.raises(Failed, match="with debug assertions"):
        soak(2, Path(shutil.which("false") or "/bin/false"))
