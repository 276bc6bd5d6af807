"""A run leaves nothing: at its end, by an error, by a signal; after kill -9 one command removes the rest."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from elephan import run_lock
from elephan.kernel.run_controls import unload_stale
from elephan.path import testbed
from tests.kernel_backend.conftest import Elephan, begun, command, connected, left_of, sending

pytestmark = pytest.mark.usefixtures("host_stays_as_it_was")

SCENARIO = """\
[run]
duration = "60s"

[path]
bandwidth = "20Mbit/s"
rtt = "20ms"

[[flow]]
congestion_control = {cc}
"""
BOTH = (
    SCENARIO + '[[flow]]\ncongestion_control = { name = "storage_friendly", reduction = "1/8" }\ntimestamps = false\n'
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "long.toml"
    path.write_text(BOTH.replace("{cc}", '"reno"'), encoding="utf-8")
    return path


@pytest.fixture
def running(kernel: None, file: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Begin a run of a minute and wait until it sends; its process and its id."""
    with begun(file, 4) as both:
        yield both


def test_a_run_that_goes_on_has_its_own_of_everything(running: tuple[subprocess.Popen[str], str]) -> None:
    _, run = running
    left = left_of(run)
    assert [name for name in left if name.startswith("elephan-")] == [f"elephan-{run}-{n}" for n in range(4)]
    assert sorted(name for name in left if name.startswith("elephan_")) == [
        f"elephan_k{run[:4]}00",
        f"elephan_k{run[:4]}01",
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_and_all_that_it_made(
    running: tuple[subprocess.Popen[str], str], number: signal.Signals
) -> None:
    process, run = running
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "stopped: 0 of 1 run" in errors, errors
    assert left_of(run) == []


SLOW_IP = """\
#!/bin/sh
sleep 0.3
exec {ip} "$@"
"""


@pytest.mark.parametrize("what", ["run", "path shell"])
def test_a_terminals_control_c_in_the_middle_of_setting_up_ends_it_well(kernel: None, file: Path, what: str) -> None:
    # It goes to everything that the terminal's command has started, ip(8) included.
    tools = file.parent / "tools"
    tools.mkdir()
    (tools / "ip").write_text(SLOW_IP.format(ip=shutil.which("ip")), encoding="utf-8")
    (tools / "ip").chmod(0o755)
    lines = {
        "run": command("run", file, "--on", "kernel", "--store", "none", "--no-report"),
        "path shell": command("path", "shell", file, "--", "sleep", "100"),
    }
    before = {path.name for path in run_lock.LOCKS.glob("*")}
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        lines[what], stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment, cwd=file.parent
    )
    try:
        mine = ""
        while not mine:
            assert process.poll() is None
            # Its namespaces are made next, which takes ip(8) a while.
            mine = next((run for run, facts in run_lock.living().items() if facts["pid"] == process.pid), "")
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, errors
    assert left_of(mine) == [] and mine not in {path.name for path in run_lock.LOCKS.glob("*")} - before


SLOW_CLANG = """\
#!/bin/sh
case "$*" in *--version*) ;; *) touch {began}; sleep 1 ;; esac
exec {clang} "$@"
"""


def test_a_terminals_control_c_while_a_file_is_compiled_does_not_make_it_look_wrong(
    kernel: None, elephan: Elephan, tmp_path: Path
) -> None:
    names = ["clang", *(f"clang-{version}" for version in range(25, 10, -1))]
    clang = next((path for name in names if (path := shutil.which(name))), None)
    if clang is None:
        pytest.skip("there is no clang")
    began, slow = tmp_path / "began", tmp_path / "slow-clang"
    slow.write_text(SLOW_CLANG.format(began=began, clang=clang), encoding="utf-8")
    slow.chmod(0o755)
    assert elephan("cc", "new", str(tmp_path / "mine.c")).returncode == 0
    file = tmp_path / "own.toml"
    file.write_text(SCENARIO.replace("{cc}", '"./mine.c"'), encoding="utf-8")
    process = subprocess.Popen(
        command("run", file, "--on", "kernel", "--store", "none", "--no-report"),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"CLANG": str(slow)},
    )
    try:
        deadline_s = time.monotonic() + 60
        while not began.exists():
            assert process.poll() is None and time.monotonic() < deadline_s
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130 and "stopped: 0 of 1 run" in errors, errors


def test_a_terminal_that_is_closed_ends_the_run_and_all_that_it_made(kernel: None, file: Path) -> None:
    near, far = pty.openpty()
    process = subprocess.Popen(
        command("run", file, "--on", "kernel", "--store", "none", "--no-report"),
        stdin=far,
        stdout=far,
        stderr=far,
        # The terminal becomes its own, and is closed under it.
        preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)),
    )
    os.close(far)
    try:
        run = sending(file, 4, connected)
        # The bars are drawn from a second on.
        deadline_s = time.monotonic() + 20
        while not select.select([near], [], [], 0.1)[0]:
            assert time.monotonic() < deadline_s
        os.close(near)
        assert process.wait(timeout=30) != 0
    finally:
        process.kill()
        process.wait()
    assert left_of(run) == []


def test_after_a_kill_one_command_removes_what_is_left(
    running: tuple[subprocess.Popen[str], str], elephan: Elephan
) -> None:
    process, run = running
    stranger = subprocess.Popen(["ip", "netns", "exec", f"elephan-{run}-0", "sleep", "1000"])
    try:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        # With the process went its devices and threads; what carries a name stays.
        devices = subprocess.run(
            ["ip", "-n", f"elephan-{run}-0", "-br", "link"], capture_output=True, text=True, check=True
        ).stdout
        assert [line.split()[0] for line in devices.splitlines()] == ["lo"]
        assert len(left_of(run)) == 4 + 1 + 2
        done = elephan("path", "clean")
        assert done.returncode == 0 and f"unloaded elephan_k{run[:4]}00" in done.stdout, done.stdout + done.stderr
        assert left_of(run) == []
        assert stranger.wait(timeout=10) != 0
    finally:
        stranger.kill()
        stranger.wait()


def test_what_lives_is_left_alone(running: tuple[subprocess.Popen[str], str]) -> None:
    process, run = running
    before = left_of(run)
    testbed.clean()
    unload_stale()
    assert left_of(run) == before and process.poll() is None


def test_a_control_that_the_kernel_does_not_take_leaves_nothing(elephan: Elephan, tmp_path: Path) -> None:
    # Compiles natively, and reads where the verifier cannot know that it may.
    made = elephan("cc", "new", str(tmp_path / "mine.c"))
    assert made.returncode == 0, made.stderr
    code = (tmp_path / "mine.c").read_text(encoding="utf-8")
    (tmp_path / "mine.c").write_text(code + "\n#ifdef __bpf__\n#error no kernel form\n#endif\n", encoding="utf-8")
    file = tmp_path / "own.toml"
    file.write_text(SCENARIO.replace("{cc}", '"./mine.c"'), encoding="utf-8")
    before = {path.name for path in run_lock.LOCKS.iterdir()}
    done = elephan("run", file, "--on", "kernel", "--no-report")
    assert done.returncode == 2 and "no kernel form" in done.stderr, done.stderr
    mine = [run for run, facts in run_lock.living().items() if facts.get("of") == str(file)]
    assert not mine
    gone = {path.name for path in run_lock.LOCKS.iterdir()} - before - set(run_lock.living())
    assert not gone


@pytest.mark.parametrize("on", ["kernel", "sim,kernel"])
@pytest.mark.parametrize(
    ("rights", "word"),
    [
        (["--reuid=65534", "--regid=65534", "--clear-groups"], "needs root"),
        (["--bounding-set=-all", "--inh-caps=-all"], "needs CAP_"),
    ],
)
def test_without_rights_there_is_one_line_before_anything_is_made(
    kernel: None, on: str, rights: list[str], word: str
) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    before = {path.name for path in run_lock.LOCKS.glob("*")}
    root = Path(__file__).parents[2]
    # Not a temporary file, which other users may not read.
    line = command("run", root / "examples" / "replicate-oltp.toml", "--on", on, "--store", "none", "--no-report")
    done = subprocess.run(
        ["setpriv", *rights, *line], capture_output=True, text=True, timeout=60, check=False, cwd=root
    )
    if "Permission denied" in done.stderr and sys.executable in done.stderr:
        pytest.skip("this interpreter is not for other users")
    assert done.returncode == 2 and word in done.stderr and "--on sim" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and not done.stdout
    assert {path.name for path in run_lock.LOCKS.glob("*")} - before <= set(run_lock.living())
