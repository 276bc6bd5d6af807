"""The program on libudt: it is built, carries data, and says what its reader reads."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from elephan.backends import programs
from elephan.errors import RunError
from evaluation.fidelity import udt_live
from tests.processes import until

SECONDS, WINDOW, MTU = "2", "1000000", "1500"


@pytest.fixture(scope="module")
def program() -> Path:
    lacking = programs.lacks("udt", programs.installed())
    if lacking:
        pytest.skip(lacking)
    return Path(programs.found("udt"))


def free_port() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def test_bytes_arrive_and_both_ends_report(program: Path, tmp_path: Path) -> None:
    port, out = free_port(), tmp_path / "received"
    words = [program, "receive", "127.0.0.1", port, "30", "100", WINDOW, MTU]
    with out.open("w") as file:
        receiver = subprocess.Popen(words, stdout=file)
    try:
        until(lambda: "listening" in out.read_text(), 60)
        send = [program, "send", "127.0.0.1", port, SECONDS, "100", WINDOW, MTU]
        sent = subprocess.run(send, capture_output=True, text=True, timeout=60, check=True).stdout
        assert receiver.wait(60) == 0, "it ends with the sender"
    finally:
        receiver.kill()
        receiver.wait()
    live = udt_live.read(out.read_text(), sent, [])
    assert live.goodput_bps > 0 and live.received == sorted(live.received)
    assert len(live.sent) > 1 and all(0 < one.window_packets <= 1_000_000 // 1472 for one in live.sent)
    assert all(one.period_us > 0 and one.rtt_s >= 0 for one in live.sent)


def test_a_wrong_command_line_is_refused_in_one_line(program: Path) -> None:
    for words in ([], ["fetch", "127.0.0.1", "1", "1", "1", "1", "1500"], ["send", "host", "1", "1", "1", "1", "1500"]):
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout


def test_a_receiver_that_said_nothing_is_an_error() -> None:
    with pytest.raises(RunError, match="reported nothing"):
        udt_live.read("listening\n", "", [])
