"""The agent at a path that root alone may change: installed by one login, used by another's line of sudoers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from elephan.hosts.boot import INSTALLED
from tests.hosts import testbed
from tests.hosts.conftest import Elephan

pytestmark = pytest.mark.usefixtures("nothing_stays")


def there(hosts: testbed.Hosts, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as root of the left host, whose /usr/local is its own."""
    return subprocess.run(
        ["nsenter", "-t", str(hosts.left.sshd.pid), "-m", "--", *words], capture_output=True, text=True, check=True
    )


@pytest.fixture(autouse=True)
def removed(hosts: testbed.Hosts) -> Iterator[None]:
    yield
    there(hosts, "rm", "-f", INSTALLED)


def rights(elephan: Elephan, name: str) -> int:
    """Return the user as whom the agent runs, and hold that root has its rights."""
    done = elephan("hosts", "check", name, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["capabilities"]["net_admin"] == (told["uid"] == 0)
    return int(told["uid"])


def test_an_installed_agent_runs_as_root_by_a_line_of_sudoers(hosts: testbed.Hosts, elephan: Elephan) -> None:
    assert rights(elephan, "operator-left") == testbed.USERS[testbed.OPERATOR]
    said = elephan("hosts", "check", "operator-left").stdout
    assert "elephan hosts install" in said and f"NOPASSWD: {INSTALLED}" in said
    for path in (hosts.left.home(testbed.OPERATOR) / ".cache" / "elephan").iterdir():
        path.unlink()
    done = elephan("hosts", "install", "sudo-left")
    assert done.returncode == 0 and INSTALLED in done.stdout, done.stderr
    for path, mode in ((INSTALLED, "755"), (INSTALLED.rpartition("/")[0], "755")):
        assert there(hosts, "stat", "-c", "%u %g %a", path).stdout.split() == ["0", "0", mode]
    assert rights(elephan, "operator-left") == 0
    # Of the same build: no second file is sent.
    assert list((hosts.left.home(testbed.OPERATOR) / ".cache" / "elephan").iterdir()) == []
    # A user without such a line has no more rights by it.
    assert rights(elephan, "user-left") == testbed.USERS[testbed.USER]


def test_an_installed_agent_of_another_build_is_not_used(hosts: testbed.Hosts, elephan: Elephan) -> None:
    assert elephan("hosts", "install", "left").returncode == 0
    there(hosts, "sh", "-c", f"printf x >>{INSTALLED}")
    assert rights(elephan, "operator-left") == testbed.USERS[testbed.OPERATOR]
    assert elephan("hosts", "install", "left").returncode == 0
    assert rights(elephan, "operator-left") == 0


def test_a_file_that_its_user_may_change_is_not_run_by_sudo(elephan: Elephan) -> None:
    """A line of sudoers for a file in the user's cache lets each program of that user become root."""
    assert rights(elephan, "owner-left") == testbed.USERS[testbed.OWNER]
    assert rights(elephan, "owner-left") == testbed.USERS[testbed.OWNER]


def test_who_may_not_install_is_told_who_may(hosts: testbed.Hosts, elephan: Elephan) -> None:
    for name in ("user-left", "operator-left"):
        done = elephan("hosts", "install", name)
        assert done.returncode == 2, done.stderr
        assert "log in as root" in done.stderr and len(done.stderr.strip().splitlines()) == 1
