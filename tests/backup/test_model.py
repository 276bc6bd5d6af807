"""The model of backup jobs, with seeds that stay the same: `python -m tests.backup.model` searches with others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.copy.model import tracer
from tests.processes import quick

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(900)
@pytest.mark.skipif(os.geteuid() != 0, reason="the model mounts file systems")
@pytest.mark.skipif(tracer.missing() is not None, reason=str(tracer.missing()))
def test_versions_and_restores_are_those_of_the_model() -> None:
    words = [sys.executable, "-m", "tests.backup.model", "--first", "3800", "--sequences", "4", "--length", "25"]
    done = subprocess.run(words, cwd=ROOT, env=quick(), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout and "killed" in done.stdout
