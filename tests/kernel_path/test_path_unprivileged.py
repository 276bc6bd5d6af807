"""`elephan path shell` without root: in a user namespace, where the machine lets users have one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elephan.cli import unprivileged as entry
from elephan.cli.main import call
from elephan.errors import InputError
from elephan.path import testbed, unprivileged

AS_NOBODY = """\
set -e
mount -t tmpfs none /dev/net
mknod -m {mode} /dev/net/tun c 10 200
if [ -n "{closed}" ]; then
    mkdir -p {aside}
    mount --rbind {python} {aside}
    mount -t tmpfs -o mode=755 none {closed}
    mkdir -p {python}
    mount --rbind {aside} {python}
fi
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
"""
"""In a mount namespace: the device with a mode, and Python where it lies but open to all."""

REPOSITORY = Path(__file__).parents[2]


def closed(folder: Path) -> Path | None:
    """Return the outermost folder above `folder` that is closed to other users."""
    return next((one for one in reversed([folder, *folder.parents]) if not one.stat().st_mode & 1), None)


def as_nobody(folder: Path, *command: str, mode: int = 666) -> subprocess.CompletedProcess[str]:
    """Run a command as a user without any rights."""
    problem = testbed.missing()
    if problem is not None:
        pytest.skip(f"the path {problem}")
    for tool in ("unshare", "setpriv"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if closed(REPOSITORY) is not None:
        pytest.skip(f"{REPOSITORY} is not for other users")
    python = Path(sys.base_prefix).resolve()
    script = AS_NOBODY.format(mode=mode, closed=closed(python) or "", python=python, aside=folder / "python")
    elephan = [sys.executable, "-c", "from elephan.cli import main; main()"]
    words = ["unshare", "--mount", "sh", "-c", script, "sh", *elephan, *command]
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=REPOSITORY,
        env=os.environ | {"HOME": "/tmp"},
    )


@pytest.fixture
def file() -> Path:
    # Not a temporary file, whose folder other users may not read.
    return REPOSITORY / "examples" / "bulk.toml"


def test_a_user_has_a_path_in_namespaces_of_their_own(file: Path, tmp_path: Path) -> None:
    spaces = set(testbed.NAMESPACES.iterdir()) if testbed.NAMESPACES.is_dir() else set()
    script = (
        "id -u; cat /proc/self/uid_map; echo path $PYTHONPATH; ls /run/netns; ls /run; "
        f'{sys.executable} -c "import os, socket, time; b = time.monotonic(); '
        "e = socket.socket().connect_ex((os.environ['ELEPHAN_PATH_FAR'], 9)); print(e, time.monotonic() - b)\"; exit 7"
    )
    done = as_nobody(tmp_path, "path", "shell", "--set", "path.rtt=40ms", str(file), "--", "sh", "-c", script)
    assert done.returncode == 7, done.stderr
    user, mapped, path, near, far, *run, answer = done.stdout.splitlines()
    assert path == f"path {os.environ.get('PYTHONPATH', '')}".strip()
    assert user == "0" and mapped.split() == ["0", "65534", "1"]
    assert near.startswith("elephan-") and (near[-2:], far[-2:]) == ("-0", "-1")
    # The machine's own, with a path's two beside it.
    assert set(run) >= {path.name for path in Path("/run").iterdir() if path.name not in unprivileged.OWN}
    code, took_s = answer.split()
    # Refused, over the path: there is no listener.
    assert int(code) == 111 and 0.04 <= float(took_s) < 2
    assert "path.forward: 1 packets" in done.stderr
    # The scenario's cubic cannot be loaded from there, and the command runs all the same.
    assert "since elephan's cannot be loaded (needs root outside of a user namespace" in done.stderr or (
        "and not cubic, which cannot be loaded (needs root outside of a user namespace" in done.stderr
    )
    made = (set(testbed.NAMESPACES.iterdir()) if testbed.NAMESPACES.is_dir() else set()) - spaces
    assert not {near, far} & {path.name for path in made}


def test_a_user_without_the_device_hears_it_in_one_line(file: Path, tmp_path: Path) -> None:
    done = as_nobody(tmp_path, "path", "shell", str(file), "--", "true", mode=600)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "needs root, or /dev/net/tun for this user" in done.stderr and "Permission denied" in done.stderr


def test_what_else_is_done_needs_root(file: Path, tmp_path: Path) -> None:
    for line in (["path", "up", str(file)], ["run", str(file), "--on", "kernel", "--store", "none", "--no-report"]):
        done = as_nobody(tmp_path, *line)
        assert done.returncode == 2 and "needs root" in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_where_users_get_no_namespace_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> None:
        raise PermissionError(1, "unshare: Operation not permitted")

    monkeypatch.setattr(unprivileged, "enter", refused)
    assert entry.main(["any.toml"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "no user namespace: unshare: Operation not permitted" in error


def test_a_machine_without_the_device_is_said_before_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unprivileged, "TUN", "/dev/net/none")
    with pytest.raises(InputError, match="needs root, or /dev/net/none"):
        unprivileged.become("elephan.cli.unprivileged", [])


def test_root_of_a_user_namespace_loads_nothing_and_hears_why(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    elephan = [sys.executable, "-c", "from elephan.cli import main; main()"]
    for line in (["kernel", "check"], ["kernel", "load", "reno=never"]):
        words = ["unshare", "--user", "--map-root-user", *elephan, *line]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, cwd=REPOSITORY)
        assert done.returncode == 2, done.stderr
        assert "needs root outside of a user namespace" in done.stdout + done.stderr


def test_root_does_without(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    monkeypatch.setattr(unprivileged, "become", lambda *arguments: pytest.fail("it is root already"))
    assert call(["path", "shell", "none.toml", "--", "true"]) == 2
    assert "none.toml" in capsys.readouterr().err
