"""The command with a store and a state folder of its own, on this machine."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from elephan.cli.console import console
from tests.hosts.conftest import Said, here
from tests.processes import quick

Backup = Callable[..., Said]


@dataclass
class Site:
    """Sources, destination, file and store of a test."""

    folder: Path

    @property
    def source(self) -> Path:
        """The source's folder."""
        return self.folder / "data"

    @property
    def destination(self) -> Path:
        """Folder of the versions."""
        return self.folder / "disk" / "copies"

    @property
    def file(self) -> Path:
        """The backup's file."""
        return self.folder / "dr.toml"

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file of the source."""
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def job(self, *lines: str, kind: str = "incremental", top: str = "") -> None:
        """Write the backup's file, with one job."""
        self.file.write_text(
            f'name = "dr"\n{top}\n[[job]]\nname = "records"\nkind = "{kind}"\nsources = ["{self.source}/"]\n'
            f'destination = "{self.destination}"\n' + "\n".join(lines) + "\n"
        )

    def versions(self) -> list[Path]:
        """The versions that are there, oldest first."""
        return sorted(self.destination.glob("version-*"))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give a source with a few files, and a disk for versions."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "store.sqlite"))
    monkeypatch.setenv("ELEPHAN_HOSTS", str(tmp_path / "hosts.toml"))
    found = Site(tmp_path)
    found.write("a.txt", "first")
    found.write("sub/b.txt", "kept")
    found.destination.parent.mkdir()
    return found


@pytest.fixture
def backup(site: Site, capsys: pytest.CaptureFixture[str]) -> Backup:
    """Run `elephan backup FILE` in this process."""
    run = here(capsys)

    def command(*arguments: object) -> Said:
        # It holds the stdout of the call before.
        console.cache_clear()
        return run("backup", site.file, *map(str, arguments))

    return command


@pytest.fixture
def daemon(site: Site) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start `elephan backup FILE run` in a process of its own; what still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        words = [sys.executable, "-c", "from elephan.cli import main; main()", "backup", str(site.file), "run"]
        process = subprocess.Popen(
            words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=quick()
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()
