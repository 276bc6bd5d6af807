"""Congestion controls of a user's that fault or never return: the command says which hook, of which flow, and when.

Each is a real C file, run by the real command in a process of its own, which must outlive it.
"""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elephan import api
from elephan.control_process import ControlFault
from elephan.core import native

ROOT = Path(__file__).parents[2]

X86 = platform.machine() == "x86_64"

CONTROL = """#include "cc.h"

CC_NO_PARAMS;

struct mine {
	u64 acks;
};
CC_STATE(struct mine);

OUTSIDE

static u32 mine_ssthresh(struct cc_sock *sk)
{
	return (u32)cc_max(cc_snd_cwnd(sk) / 2, 2);
}

static void mine_cong_avoid(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	INSIDE
	cc_reno_cong_avoid(sk, acked);
}

CC_ALGORITHM(mine, "for the test", "this file",
	(ssthresh, mine_ssthresh),
	(cong_avoid, mine_cong_avoid),
	(undo_cwnd, cc_undo_cwnd));
"""

SCENARIO = """
[run]
duration = "2s"

[path]
bandwidth = "20Mbit/s"
rtt = "20ms"
loss = 1e-3

[[flow]]
name = "copy"
congestion_control = "./mine.c"
"""

RECURSION = """
static u32 deeper(volatile u32 *above, u32 depth)
{
	volatile u32 here[64];

	here[depth % 64] = above[0];
	return deeper(here, depth + 1) + here[depth % 64];
}
"""

FAULTS = {
    "null": ("", "*(volatile u32 *)0 = 1;", r"accesses memory that is not its own, at address 0x0 \(SIGSEGV\)"),
    "wild": ("", "*(volatile u32 *)0x123456789000UL = 1;", "not its own, at address 0x123456789000"),
    "text": ("", "*(volatile u32 *)(void *)mine_ssthresh = 1;", "accesses memory that is not its own"),
    "recursion": (RECURSION, "volatile u32 first[1] = { 0 }; acked += deeper(first, 0);", "overflows the stack"),
    "frame": ("", "volatile u8 large[1 << 30]; large[0] = 1;", "overflows the stack"),
    "endless": ("", "for (;;);", "has not returned after 5 s"),
    "behind the state": ("", "((volatile u64 *)cc_state(sk))[13] = 1;", "writes outside of its state"),
    "before the state": ("", "((volatile u64 *)cc_state(sk))[-1] = 1;", "writes outside of its state"),
    "behind the sender": ("", "((volatile u64 *)cc_state(sk))[14] = 1;", "accesses memory behind its state"),
    "trap": ("", "__builtin_trap();", "reaches code that cannot be executed"),
}
if X86:
    FAULTS["division"] = ("", "acked += 100 / cc_lost(sk);", r"divides by 0; cc_div\(n, d\) gives 0 there")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "results.sqlite"))
    (tmp_path / "own.toml").write_text(SCENARIO)
    return tmp_path


def write(folder: Path, outside: str = "", inside: str = "", name: str = "mine.c") -> None:
    (folder / name).write_text(CONTROL.replace("OUTSIDE", outside).replace("INSIDE", inside))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from elephan.cli import main; main()", *arguments]


def elephan(*arguments: str, timeout_s: float = 90) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, timeout=timeout_s)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_in_a_hook_is_an_error_with_hook_flow_and_time(folder: Path, kind: str) -> None:
    outside, inside, said = FAULTS[kind]
    write(folder, outside, inside)
    done = elephan("run", "own.toml", "--no-report")
    assert (done.returncode, done.stdout) == (2, ""), done
    # A run that takes long, on a loaded machine, says how far it is.
    lines = [line for line in done.stderr.splitlines() if not re.match(r"\d+ of 1 run", line)]
    assert len(lines) == 1, done.stderr
    # The first ACK after the handshake of 20 ms and a round trip.
    found = re.fullmatch(r"error: \S*mine\.c: hook cong_avoid of flow copy at (\d+\.\d{6}) s: (.*)", lines[0])
    assert found, done.stderr
    assert 0.02 < float(found[1]) < 0.1
    assert re.search(said, found[2]), done.stderr
    if kind == "division":
        assert re.search(r"look at \S*mine\.c:20", found[2])


@pytest.mark.parametrize("hook", ["cc", "compare"])
def test_other_commands_say_the_same(folder: Path, hook: str) -> None:
    write(folder, inside="*(volatile u32 *)0 = 1;")
    (folder / "path.toml").write_text(SCENARIO.replace('congestion_control = "./mine.c"\n', ""))
    words = ["cc", "./mine.c"] if hook == "cc" else ["compare", "path.toml", "--cc", "./mine.c"]
    done = elephan(*words)
    assert done.returncode == 2, done
    assert re.search(r"error: .*mine\.c: hook cong_avoid of flow .* at \d+\.\d+ s: accesses memory", done.stderr)


def test_runs_that_had_ended_are_stored_and_the_others_of_a_sweep_are_named(folder: Path) -> None:
    write(folder, inside="if (cc_mss_cache(sk) < 1000) *(volatile u32 *)0 = 1;")
    sweep = ["--set", 'sweep.path.mtu=["1500B", "600B"]', "--workers", "1"]
    done = elephan("run", "own.toml", "--no-report", *sweep)
    assert done.returncode == 2 and "run 2 of 2: " in done.stderr, done
    listed = elephan("results", "list", "--json")
    assert len(json.loads(listed.stdout)) == 1


def test_a_library_user_has_an_exception_and_goes_on(folder: Path) -> None:
    write(folder, inside="*(volatile u32 *)0 = 1;")
    with pytest.raises(ControlFault, match=r"hook cong_avoid of flow copy at 0\.\d{6} s"):
        api.run("own.toml", store="none")
    write(folder)
    assert len(api.run("own.toml", store="none")) == 1


def test_an_own_copy_of_a_built_in_control_has_its_results_to_the_bit(folder: Path) -> None:
    for name in ("cubic", "bbr"):
        text = (ROOT / "congestion" / f"{name}.c").read_text(encoding="utf-8")
        (folder / f"own_{name}.c").write_text(text)
        own, built_in = (
            api.run("own.toml", {"flow.congestion_control": control, "measure.series": "10ms"}, store="none")
            for control in (f"./own_{name}.c", name)
        )
        assert own[0].series == built_in[0].series and own[0].series.flow_rows > 100
        assert _numbers(own[0].metrics) == _numbers(built_in[0].metrics)


def _numbers(metrics: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in metrics.items() if not name.endswith("cpu_s")}


def test_a_signal_ends_a_command_whose_hook_never_returns(folder: Path) -> None:
    write(folder, inside="for (;;);")
    with subprocess.Popen(command("run", "own.toml", "--no-report"), stderr=subprocess.PIPE, text=True) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        until_s = time.monotonic() + 60
        while not _cpu_s(children):
            assert time.monotonic() < until_s and running.poll() is None
            time.sleep(0.05)
        began_s = time.monotonic()
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    # Less than the time that a hook is given.
    assert time.monotonic() - began_s < 5


def _cpu_s(children: Path) -> bool:
    """Return True if a child is busy: it is in the hook, since the run before it takes some milliseconds."""
    threads = children.parent.parent
    of_all = [child for task in threads.iterdir() for child in (task / "children").read_text().split()]
    for child in of_all:
        fields = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
        if int(fields[11]) / os.sysconf("SC_CLK_TCK") > 1.5:
            return True
    return False


def test_the_child_ends_with_a_parent_that_is_killed(folder: Path) -> None:
    write(folder, inside="for (;;);")
    with subprocess.Popen(command("run", "own.toml", "--no-report"), stderr=subprocess.DEVNULL) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        until_s = time.monotonic() + 60
        while not _cpu_s(children):
            assert time.monotonic() < until_s and running.poll() is None
            time.sleep(0.05)
        of_all = [
            child for task in children.parent.parent.iterdir() for child in (task / "children").read_text().split()
        ]
        running.kill()
    until_s = time.monotonic() + 3
    while any(_lives(child) for child in of_all):
        assert time.monotonic() < until_s, of_all
        time.sleep(0.05)


def _lives(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("#include </dev/zero>", "there is no header /dev/zero"),
        ('#include "fifo"', "there is no header fifo"),
        ("#in\\\nclude <stdlib.h>", "there is no header stdlib.h"),
        ('__asm__(".incbin \\"/dev/zero\\"");', "does not compile"),
        ("__attribute__((constructor)) static void first(void) { for (;;); }", "runs when it is loaded"),
    ],
)
def test_a_compilation_without_an_end_is_refused(folder: Path, line: str, said: str) -> None:
    os.mkfifo(folder / "fifo")
    write(folder, outside=line)
    for words in (["cc", "check", "./mine.c"], ["run", "own.toml"]):
        began_s = time.monotonic()
        done = elephan(*words)
        assert done.returncode == 2, done
        assert "mine.c" in done.stderr and said in done.stderr, done.stderr
        assert time.monotonic() - began_s < 60


def test_a_copy_over_quic_ends_with_the_same_error_and_a_sound_control_finishes_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    (folder / "source").mkdir()
    (folder / "source" / "file").write_bytes(os.urandom(20_000_000))
    words = ["copy", "--transport", "quic", "--cc", "./mine.c", "source/", "destination"]
    # After some data, so that parts of the file are there.
    write(folder, inside="if (cc_delivered(sk) > 100) *(volatile u32 *)0 = 1;")
    done = elephan(*words)
    assert done.returncode == 2, done
    assert re.search(
        r"^error: congestion control mine: hook cong_avoid of a QUIC connection at \d+\.\d{6} s: accesses memory "
        r"that is not its own, at address 0x0 \(SIGSEGV\)$",
        done.stderr,
        re.MULTILINE,
    ), done.stderr
    write(folder)
    done = elephan(*words)
    assert done.returncode == 0, done
    assert (folder / "destination" / "file").read_bytes() == (folder / "source" / "file").read_bytes()
    assert [entry.name for entry in (folder / "destination").iterdir()] == ["file"]


def test_replayed_and_synthetic_calls_are_guarded_too(folder: Path) -> None:
    from elephan import control_process

    write(folder, inside="*(volatile u32 *)0 = 1;")
    with pytest.raises(ControlFault, match="hook cong_avoid at"):
        control_process.synthetic_calls(str(folder / "mine.c"), {}, 1, 1000)
    write(folder)
    calls = control_process.synthetic_calls(str(folder / "mine.c"), {}, 1, 1000)
    assert calls == native.synthetic_calls(str(folder / "mine.c"), {}, 1, 1000)
