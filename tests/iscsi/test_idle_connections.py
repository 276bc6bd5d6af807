"""Connections that send nothing block no other initiator, and do not fill the target's log."""

from __future__ import annotations

import socket
import time

import pytest

from elephan.cli.main import call
from tests.iscsi.conftest import Target

IDLE = 256
"""As many as the target's places for connections that have logged in."""


def idle(target: Target, hosts: int) -> list[socket.socket]:
    """Open connections that send nothing, from so many addresses of the loopback."""
    host, port = target.url.split("/")[2].split(":")
    made = []
    for number in range(IDLE):
        source = (f"127.0.0.{2 + number % hosts}", 0)
        made.append(socket.create_connection((host, int(port)), timeout=10, source_address=source))
    return made


def load(target: Target) -> None:
    assert call(["iscsi", "bench", target.url, "--duration", "100ms", "--depth", "32", "--connections", "8"]) == 0


def test_who_holds_connections_without_logging_in_keeps_nobody_out(
    target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    from_one = idle(target, 1)
    load(target)
    assert "started anew" not in capsys.readouterr().out
    [one.close() for one in from_one]
    time.sleep(0.5)
    from_many = idle(target, 8)
    # Silent ones keep their places for a second.
    time.sleep(1.5)
    load(target)
    assert "started anew" not in capsys.readouterr().out
    [one.close() for one in from_many]


def test_lines_about_connections_come_once_a_second_at_most(target: Target) -> None:
    began = time.monotonic()
    [one.close() for one in idle(target, 1)]
    time.sleep(1)
    target.process.terminate()
    assert target.process.stderr is not None
    lines = target.process.stderr.read().splitlines()
    target.process.wait(20)
    assert len(lines) <= time.monotonic() - began + 2, lines
    left_out = sum(int(line.split("(")[-1].split(" more")[0]) for line in lines if " left out" in line)
    about = sum("left out" not in line or "(" in line for line in lines)
    assert about + left_out == IDLE
