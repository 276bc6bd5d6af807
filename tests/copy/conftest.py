"""The command with a state folder of its own, alone or as the front of two hosts."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hosts import testbed
from tests.hosts.conftest import Said, here, made
from tests.processes import quick

PATH = 'bandwidth = "200Mbit/s"\nrtt = "10ms"\nqueue = "1bdp"'

Copy = Callable[..., Said]
Mount = Callable[..., Path]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of this test's receipts and journals."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder / "elephan"


@pytest.fixture
def copy_alone(state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Copy:
    """Run `elephan copy` on this machine, without any host."""
    monkeypatch.setenv("ELEPHAN_HOSTS", str(state.parent / "hosts.toml"))
    run = here(capsys)
    return lambda *arguments: run("copy", *arguments)


@pytest.fixture(scope="session")
def hosts() -> Iterator[testbed.Hosts]:
    """Two hosts, 200 Mbit/s and 10 ms apart; the front reaches each by a path of its own."""
    with made(PATH) as found:
        yield found


@pytest.fixture
def copy(
    hosts: testbed.Hosts, state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Copy:
    """Run `elephan copy` as the front of the two hosts."""
    monkeypatch.setenv("PATH", hosts.environment["PATH"])
    monkeypatch.setenv("ELEPHAN_HOSTS", str(book(hosts)))
    run = here(capsys)
    return lambda *arguments: run("copy", *arguments)


def book(hosts: testbed.Hosts) -> Path:
    """Return a book in which hosts have the addresses at which the front reaches them, `near-...`, beside those of the
    path between them.
    """
    file = hosts.folder / "copy-hosts.toml"
    users = (("left", "root"), ("user", testbed.USER), ("sudo", testbed.SUDOER))
    near = "".join(f'[near-{name}]\nssh = "{user}@left"\n' for name, user in users)
    file.write_text((hosts.folder / "hosts.toml").read_text() + near)
    return file


def started(hosts: testbed.Hosts, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start `elephan copy` as the front of the two hosts, in a process of its own."""
    words = [sys.executable, "-c", "from elephan.cli import main; main()", "copy", *map(str, arguments)]
    own = {"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"], "ELEPHAN_HOSTS": str(book(hosts))}
    environment = {**quick(hosts.environment), **own}
    return subprocess.Popen(
        words,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def events(text: str) -> list[dict[str, Any]]:
    """Return the events of `--json`."""
    return [json.loads(line) for line in text.splitlines()]


def tree(folder: Path, seed: int = 1) -> Path:
    """Make a small tree with one of each: empty, small and larger files, a hole, links, an empty folder."""
    draw = random.Random(seed)
    (folder / "sub" / "empty").mkdir(parents=True)
    for number, size in enumerate((0, 1, 4095, 70_000, 1_500_000)):
        (folder / "sub" / f"file {number}").write_bytes(draw.randbytes(size))
    with (folder / "hole").open("wb") as file:
        file.seek(2_000_000)
        file.write(b"end")
    (folder / "link").symlink_to("sub/file 1")
    (folder / "hard").hardlink_to(folder / "sub" / "file 3")
    os.utime(folder / "sub" / "file 1", ns=(1, 1_234_567_890_123_456_789))
    (folder / "sub" / "file 2").chmod(0o640)
    return folder


def same(one: Path, other: Path) -> None:
    """Hold that two trees are equal: names, kinds, content, modes, times to the ns."""
    listed = [sorted(path.relative_to(root) for path in root.rglob("*")) for root in (one, other)]
    assert listed[0] == listed[1]
    for name in listed[0]:
        left, right = one / name, other / name
        stats = [path.lstat() for path in (left, right)]
        assert stats[0].st_mode == stats[1].st_mode, name
        assert stats[0].st_mtime_ns == stats[1].st_mtime_ns, name
        assert stats[0].st_nlink == stats[1].st_nlink, name
        if left.is_symlink():
            assert os.readlink(left) == os.readlink(right)
        elif left.is_file():
            assert left.read_bytes() == right.read_bytes(), name


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mount a file system in memory at a folder that is made; all are unmounted at the end."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    mounted: list[Path] = []

    def at(path: Path, options: str = "size=16m") -> Path:
        path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "elephan-test", path], check=True)
        mounted.append(path)
        return path

    yield at
    for path in reversed(mounted):
        subprocess.run(["umount", path], check=True)
