"""The command as a function, in a folder with a store of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from elephan.cli.main import call

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with a store of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "results.sqlite"))
    return tmp_path


@pytest.fixture
def elephan(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command; return exit code, stdout, stderr."""
    from elephan.cli.console import console

    def run(*arguments: str) -> tuple[int, str, str]:
        console.cache_clear()
        code = call(list(arguments))
        done = capsys.readouterr()
        return code, done.out, done.err

    return run
