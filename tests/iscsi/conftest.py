"""A target as a process of its own, and the file that it serves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

NAME = "iqn.2026-01.example:disk"
BYTES = 64 << 20


class Target:
    """A target as a process of its own."""

    def __init__(self, image: Path, *options: str) -> None:
        """Start it and wait until it listens."""
        command = [sys.executable, "-c", "from elephan.cli import main; main()", "iscsi", "target"]
        command += ["--lun", str(image), "--portal", "127.0.0.1:0", "--name", NAME, *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.url = ""
        self.said: list[str] = []
        for line in self.process.stderr:
            if line.startswith("iscsi://"):
                self.url = line.strip()
                break
            self.said.append(line.strip())
        assert self.url, "the target did not start"

    def kill(self, number: int = signal.SIGKILL) -> int:
        """End it with a signal; its exit code."""
        self.process.send_signal(number)
        try:
            return self.process.wait(20)
        finally:
            if self.process.stderr is not None:
                self.process.stderr.close()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Return a file of zeros."""
    path = tmp_path / "lun.img"
    path.touch()
    os.truncate(path, BYTES)
    return path


@pytest.fixture
def target(image: Path) -> Iterator[Target]:
    """Start a target that goes with the test."""
    running = Target(image)
    yield running
    if running.process.poll() is None:
        running.kill()
