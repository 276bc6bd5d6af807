"""Two hosts for all tests of this folder, and the command in their front's environment."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from elephan.errors import RunError
from elephan.hosts.agents import agent_files
from tests.hosts import testbed

PATH = 'bandwidth = "100Mbit/s"\nrtt = "32ms"\nqueue = "1bdp"'


def lacking() -> str | None:
    """Return what is missing for two hosts; None when nothing."""
    try:
        agent_files()
    except RunError as error:
        return str(error)
    return testbed.missing()


@contextmanager
def made(path: str, *, right_is_aarch64: bool = False) -> Iterator[testbed.Hosts]:
    """Two hosts on an emulated path with these lines of `[path]`; skips, with the reason, where they cannot be had."""
    problem = lacking()
    if problem is not None:
        pytest.skip(f"hosts: {problem}")
    # Not below pytest's folder, which each pytest that starts closes to the user without rights.
    with (
        tempfile.TemporaryDirectory(prefix="elephan-hosts-") as folder,
        testbed.hosts(Path(folder), path, right_is_aarch64=right_is_aarch64) as found,
    ):
        yield found


@pytest.fixture(scope="session")
def hosts() -> Iterator[testbed.Hosts]:
    """Two hosts, 100 Mbit/s and 32 ms apart."""
    with made(PATH) as found:
        yield found


@dataclass
class Said:
    """The end of a command that ran in this process."""

    returncode: int
    stdout: str
    stderr: str


Elephan = Callable[..., Said]


def here(capsys: pytest.CaptureFixture[str]) -> Elephan:
    """Return a function that runs the command in this process, which takes less time than another one."""
    from elephan.cli.main import call

    def run(*arguments: str | Path) -> Said:
        capsys.readouterr()
        code = call([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture
def elephan(
    hosts: testbed.Hosts, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Elephan:
    """Run elephan as the front of the two hosts."""
    for name in ("PATH", "ELEPHAN_HOSTS", "ELEPHAN_STORE"):
        monkeypatch.setenv(name, hosts.environment[name])
    return here(capsys)


@pytest.fixture
def elephan_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Elephan:
    """Run elephan with a book and a store in the test's folder, where nothing is."""
    monkeypatch.setenv("ELEPHAN_HOSTS", str(tmp_path / "conf" / "hosts.toml"))
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "store.sqlite"))
    return here(capsys)


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of elephan with this interpreter."""
    return [sys.executable, "-c", "from elephan.cli import main; main()", *map(str, arguments)]


def started(hosts: testbed.Hosts, words: list[str]) -> subprocess.Popen[str]:
    """Start a command as the front of the two hosts, in a process of its own."""
    return subprocess.Popen(
        words,
        env=hosts.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


@pytest.fixture
def nothing_stays(hosts: testbed.Hosts) -> Iterator[None]:
    """Hold that both hosts are as they were, but for the agent's cached file."""
    before = [end.sysctls() for end in hosts.ends]
    yield
    testbed.waited(lambda: not testbed.controls(), lambda: str(testbed.controls()))
    testbed.waited(lambda: not testbed.folders(), lambda: str(testbed.folders()))
    for end, sysctls in zip(hosts.ends, before, strict=True):
        testbed.waited(lambda end=end: not end.processes(), lambda end=end: str(end.processes()))
        changed = {name: value for name, value in end.sysctls().items() if sysctls.get(name) != value}
        assert not changed
        assert all("/.cache/elephan/agent-" in file for file in end.files()), end.files()
