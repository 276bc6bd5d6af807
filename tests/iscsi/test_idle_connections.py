"""Connections that send nothing block no other initiator, and do not fill the target's log."""

from __future__ import annotations

import socket
import time
from pathlib import Path

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
    assert "logged in again" not in capsys.readouterr().out
    [one.close() for one in from_one]
    time.sleep(0.5)
    from_many = idle(target, 8)
    # Silent ones keep their places for a second.
    time.sleep(1.5)
    load(target)
    assert "logged in again" not in capsys.readouterr().out
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


def login(target: Target, source: str, number: int) -> tuple[socket.socket, int]:
    """Log in a session of its own by one PDU (RFC 7143, 11.12); return its connection, and the status (11.13.5)."""
    host, port = target.url.split("/")[2].split(":")
    connection = socket.create_connection((host, int(port)), timeout=10, source_address=(source, 0))
    name = target.url.split("/")[3]
    keys = (f"InitiatorName=iqn.2026-01.example:i{number}", f"TargetName={name}", "SessionType=Normal")
    data = "".join(f"{key}\0" for key in keys).encode()
    header = bytearray(48)
    # Immediate login request; from the operational stage to full feature phase; ISID of random form.
    header[0], header[1], header[8] = 0x43, 0x87, 0x80
    header[5:8] = len(data).to_bytes(3, "big")
    header[9:14] = number.to_bytes(5, "big")
    connection.sendall(header + data + bytes(-len(data) % 4))
    answer = b""
    while len(answer) < 48 and (part := connection.recv(48 - len(answer))):
        answer += part
    return connection, int.from_bytes(answer[36:38], "big")


OUT_OF_RESOURCES = 0x0302


def test_idle_sessions_of_an_initiator_leave_room_for_others(image: Path, target: Target) -> None:
    sessions = [login(target, "127.0.0.2", number) for number in range(IDLE)]
    assert [status for _, status in sessions] == [0] * 64 + [OUT_OF_RESOURCES] * (IDLE - 64)
    load(target)
    [connection.close() for connection, _ in sessions]
    target.kill()
    more = Target(image, "--connections-per-address", "3")
    try:
        sessions = [login(more, "127.0.0.2", number) for number in range(5)]
        assert [status for _, status in sessions] == [0] * 3 + [OUT_OF_RESOURCES] * 2
        # A place is free again once its session has gone.
        sessions[0][0].close()
        until_s = time.monotonic() + 10
        while login(more, "127.0.0.2", 9)[1] != 0:
            assert time.monotonic() < until_s
        [connection.close() for connection, _ in sessions]
    finally:
        more.kill()
    assert call(["iscsi", "target", "--lun", str(image), "--connections-per-address", "300"]) == 2
