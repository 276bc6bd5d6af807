"""`elephan kernel`: variants side by side carry data in a private network namespace, and nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from elephan.congestion_control import find, verify
from elephan.errors import InputError
from elephan.kernel import MARK, clean, control, load, loaded, namespaces, runs, unload
from tests.processes import until

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from elephan.cli import main; main()", "kernel"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}

CARRY = """
import socket, subprocess, sys, threading
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server = socket.create_server(("127.0.0.1", 0))
got = []
def take():
    peer, _ = server.accept()
    total = 0
    while part := peer.recv(1 << 16):
        total += len(part)
    got.append(total)
taker = threading.Thread(target=take)
taker.start()
client = socket.socket()
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
client.connect(server.getsockname())
client.sendall(bytes(20_000_000))
shown = subprocess.run(["ss", "-tin", "dport", "=", str(server.getsockname()[1])], capture_output=True, text=True)
used = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode()
client.close()
taker.join()
print(used, got[0], sys.argv[1] in shown.stdout)
"""

Run = Callable[..., str]
Elephan = Callable[..., subprocess.CompletedProcess[str]]


def ours() -> set[str]:
    return {name for name in namespaces.available() if name.startswith(MARK)}


def test_two_variants_carry_data_and_go(kernel: None, in_namespace: Run) -> None:
    before, pins = ours(), sorted(Path("/sys/fs/bpf").rglob("*"))
    names = [
        load("storage_friendly=qa_four", ["reduction=1/4"])[0],
        load("storage_friendly=qa_two", ["reduction=1/2"])[0],
    ]
    assert names == ["elephan_qa_four", "elephan_qa_two"]
    assert set(names) <= {one.name for one in loaded() if one.registered}
    assert ours() >= before | set(names)
    for name in names:
        assert in_namespace(CARRY, name).split() == [name, "20000000", "True"]
    with pytest.raises(InputError, match="loaded already"):
        load("reno=qa_two")
    with pytest.raises(InputError, match="is how runs name theirs: take another variant"):
        load("reno=kbeef01")
    for name in names:
        assert [one.name for one in unload(name).unloaded] == [name]
    assert not ours() & set(names)
    assert sorted(Path("/sys/fs/bpf").rglob("*")) == pins
    with pytest.raises(InputError, match="is not loaded"):
        unload("qa_two")


def test_killed_at_any_time_nothing_is_hidden_and_clean_takes_it(
    kernel_alone: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.c"
    file.write_text(find("bbr").code)
    work = tmp_path / "tmp"
    work.mkdir()
    environment = ENVIRONMENT | {"TMPDIR": str(work)}
    # A user's own file is compiled twice first, the longest part; a built-in control is loaded at once.
    whole_s = {}
    for what in (file, "bbr"):
        began_s = time.monotonic()
        subprocess.run([*COMMAND, "load", f"{what}=qk_all"], env=environment, check=True, stdout=subprocess.DEVNULL)
        whole_s[what] = time.monotonic() - began_s
        unload("qk_all")
    for number, (what, share) in enumerate(
        (what, share) for what in (file, "bbr") for share in (0.03, 0.2, 0.35, 0.5, 0.65, 0.8, 1.1)
    ):
        child = subprocess.Popen(
            [*COMMAND, "load", f"{what}=qk{number}"],
            env=environment,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(share * whole_s[what])
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        # The kernel lets go of what a killed process held a moment after it.
        until(lambda: {one.name for one in loaded() if one.registered} == ours())
    subprocess.run([*COMMAND, "load", "reno=qk_last"], env=environment, check=True, stdout=subprocess.DEVNULL)
    # Of a compiler that was killed while it worked, and one that works.
    dead = subprocess.Popen(["true"])
    dead.wait()
    (left := work / f"elephan-cc-{dead.pid}-0").mkdir()
    (left / "algorithm.c").touch()
    (working := work / f"elephan-cc-{os.getpid()}-0").mkdir()
    (work / "elephan-cc-other").mkdir()
    # Those without a process in their name: long ago, and now.
    (old := work / "elephan-parity-a1b2c3_4").mkdir()
    os.utime(old, (0, 0))
    (new := work / "elephan-bpf-a1b2c3_4").mkdir()
    # Only this test's: controls loaded before it are spared.
    monkeypatch.setattr(control, "loaded", lambda: [one for one in loaded() if one.map_id not in kernel_alone])
    monkeypatch.setattr(tempfile, "tempdir", str(work))
    removed = clean()
    assert "elephan_qk_last" in {one.name for one in removed.unloaded}
    assert left in removed.folders and old in removed.folders
    assert sorted(work.iterdir()) == sorted([working, work / "elephan-cc-other", new])
    # A control that is not registered any more goes as soon as no processor is in it.
    assert not {one.map_id for one in loaded() if one.registered and not runs.lives(one.name)} - kernel_alone
    assert not [name for name in ours() if name.startswith("elephan_qk")]


def test_clean_as_a_command(
    kernel_alone: set[int], elephan: Elephan, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from elephan.cli.main import call

    assert elephan("load", "reno=qk_one").returncode == 0 and elephan("load", "reno=qk_two").returncode == 0
    # Only this test's: a machine may have controls loaded, and those of a killed run must not fail a test of another.
    monkeypatch.setattr(control, "loaded", lambda: [one for one in loaded() if one.map_id not in kernel_alone])
    assert call(["kernel", "clean"]) == 0
    assert {"unloaded elephan_qk_one", "unloaded elephan_qk_two"} <= set(capsys.readouterr().out.splitlines())
    assert not {one.map_id for one in loaded() if one.registered and not runs.lives(one.name)} - kernel_alone


def test_without_root_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from elephan.cli.main import call

    monkeypatch.setattr(verify, "effective_capabilities", lambda: 0)
    assert call(["kernel", "load", "reno=qa_none"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and "root" in error and error.count("\n") == 1
    assert call(["kernel", "check"]) == 2
    said = capsys.readouterr().out
    assert "CAP_NET_ADMIN" in said and "still works: simulation" in said
    assert call(["kernel", "load", "reno", "--set", "nonsense=1"]) == 2
    assert call(["kernel", "load", "reno=Upper"]) == 2
    # An empty variable of a script gives this.
    capsys.readouterr()
    assert call(["kernel", "load", "reno="]) == 2
    assert "write reno, or reno=mine" in capsys.readouterr().err
