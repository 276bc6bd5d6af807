"""Two hosts for all tests of this folder, and the command in their front's environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from elephan.errors import RunError
from elephan.hosts.agents import agent_files
from tests.hosts import testbed

Elephan = Callable[..., subprocess.CompletedProcess[str]]

PATH = 'bandwidth = "100Mbit/s"\nrtt = "32ms"\nloss = 1e-4\nqueue = "1bdp"'


def lacking() -> str | None:
    """Return what is missing for two hosts; None when nothing."""
    try:
        agent_files()
    except RunError as error:
        return str(error)
    return testbed.missing()


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[testbed.Hosts]:
    """Two hosts, 100 Mbit/s and 32 ms apart, with a packet in 10,000 lost."""
    problem = lacking()
    if problem is not None:
        pytest.skip(f"hosts: {problem}")
    with testbed.hosts(tmp_path_factory.mktemp("hosts"), PATH) as made:
        yield made


@pytest.fixture
def elephan(hosts: testbed.Hosts) -> Elephan:
    """Run elephan to its end as the front of the two hosts."""

    def run(*arguments: str | Path, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=hosts.environment,
            stdin=subprocess.DEVNULL,
        )

    return run


@dataclass
class Said:
    """The end of a command that ran in this process."""

    returncode: int
    stdout: str
    stderr: str


Here = Callable[..., Said]


@pytest.fixture
def elephan_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Run the command in this process, which takes less time, with a book and a store in the test's folder."""
    from elephan.cli.main import call

    monkeypatch.setenv("ELEPHAN_HOSTS", str(tmp_path / "conf" / "hosts.toml"))
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "store.sqlite"))

    def run(*arguments: str | Path) -> Said:
        capsys.readouterr()
        code = call([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of elephan with this interpreter."""
    return [sys.executable, "-c", "from elephan.cli import main; main()", *map(str, arguments)]


@pytest.fixture
def nothing_stays(hosts: testbed.Hosts) -> Iterator[None]:
    """Hold that both hosts are as they were, but for the agent's cached file."""
    before = [end.sysctls() for end in hosts.ends]
    yield
    for end, sysctls in zip(hosts.ends, before, strict=True):
        testbed.waited(lambda end=end: not end.processes(), lambda end=end: str(end.processes()))
        changed = {name: value for name, value in end.sysctls().items() if sysctls.get(name) != value}
        assert not changed
        assert all("/.cache/elephan/agent-" in file for file in end.files()), end.files()
