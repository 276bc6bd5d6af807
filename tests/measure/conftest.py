"""The command `measure` in this process, and reflectors as processes of their own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hosts.conftest import Elephan, here

KEY = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """A file with `KEY`."""
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    return file


@contextmanager
def reflecting(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `elephan measure reflect` at loopback, and give where it listens."""
    words = [sys.executable, "-c", "from elephan.cli import main; main()", "measure", "reflect", "127.0.0.1"]
    with subprocess.Popen(
        [*words, "--port", "0", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.match(r"reflecting at (\S+?),? ", said)
            assert found is not None, said
            yield found[1].rstrip(","), process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(10)


@pytest.fixture(scope="session")
def reflector() -> Iterator[str]:
    """Address of a reflector without a key."""
    with reflecting("--short-replies") as (towards, _):
        yield towards


@pytest.fixture
def elephan(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Elephan:
    """Run the command in this process, with an empty book of hosts."""
    monkeypatch.setenv("ELEPHAN_HOSTS", str(tmp_path / "hosts.toml"))
    return here(capsys)
