"""Other users at a copy's port: the command ends with exit code 0 and the right bytes, whatever they send."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.copy.conftest import Copy, events, started
from tests.hosts import testbed

BYTES = 20_000_000
RATE = "40Mbit/s"
"""The copy runs for four seconds, so that strangers also connect while it sends."""

ATTACK = r"""
import os, socket, sys, time

protocol = sys.argv[1]
listening = "0A" if protocol == "tcp" else "07"
# Nothing, no TLS, a ClientHello that does not end, an alert, a wrong token.
hellos = [b"", b"G" * 300, b"\x16\x03\x01\x3e\x80\x01\x00\x3e\x7c", b"\x15\x03\x03\x00\x02\x02\x28", os.urandom(45)]

def ports():
    # Every user of a machine sees them.
    tables = [open(f"/proc/net/{name}").read().splitlines()[1:] for name in (protocol, protocol + "6")]
    rows = [line.split() for table in tables for line in table]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == listening}

own = ports()
print("ready", flush=True)
made, opened, until = 0, [], time.monotonic() + 120
while time.monotonic() < until:
    for port in ports() - own:
        for _ in range(100):
            made += 1
            try:
                if protocol == "udp":
                    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                        stranger.sendto(b"\xc3\x00\x00\x00\x01\x08" + os.urandom(1194), ("127.0.0.1", port))
                    continue
                stranger = socket.create_connection(("127.0.0.1", port), timeout=1)
                stranger.sendall(hellos[made % len(hellos)])
                opened.append(stranger)
            except OSError:
                pass
            if len(opened) > 500:
                opened.pop(0).close()
    print(made, flush=True)
"""


@contextmanager
def attacked(protocol: str, namespace: str | None = None) -> Iterator[list[int]]:
    """Attack each port that a machine opens, as user nobody there; at the end give the number of attempts."""
    inside = [] if namespace is None else ["ip", "netns", "exec", namespace]
    words = [*inside, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    process = subprocess.Popen([*words, sys.executable, "-c", ATTACK, protocol], stdout=subprocess.PIPE, text=True)
    made: list[int] = []
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield made
    finally:
        process.kill()
        assert process.stdout is not None
        made += [int(line) for line in process.stdout.read().split()][-1:]
        process.stdout.close()
        process.wait()


def file_of(folder: Path) -> Path:
    file = folder / "file"
    file.write_bytes(random.Random(1).randbytes(BYTES))
    return file


def same(one: Path, other: Path) -> None:
    assert hashlib.sha256(one.read_bytes()).digest() == hashlib.sha256(other.read_bytes()).digest()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become user nobody")
@pytest.mark.parametrize(("transport", "protocol"), [("tcp", "tcp"), ("quic", "udp")])
def test_user_nobody_on_this_machine_ends_no_copy(
    copy_alone: Copy, tmp_path: Path, transport: str, protocol: str
) -> None:
    source, there = file_of(tmp_path), tmp_path / "there"
    with attacked(protocol) as made:
        done = copy_alone(source, there, "--transport", transport, "--rate", RATE, "--json")
    assert done.returncode == 0, done.stderr
    same(source, there)
    assert made[0] > 1000
    receipt = events(done.stdout)[-1]["receipt"]
    assert len(receipt["attempts"]) == 1
    if protocol == "tcp":
        assert any("without its token" in note for note in receipt["notes"]), receipt["notes"]


@pytest.mark.parametrize("more", [[], ["--transport", "quic"], ["--plaintext"], ["--over-ssh", "--streams", "2"]])
def test_user_nobody_on_the_remote_host_ends_no_copy(
    hosts: testbed.Hosts, copy: Copy, tmp_path: Path, more: list[str]
) -> None:
    source = file_of(tmp_path)
    there = hosts.left.home() / f"strangers{len(more)}{more[-1:] == ['quic']}"
    with attacked("udp" if "quic" in more else "tcp", hosts.left.namespace) as made:
        running = started(hosts, source, f"near-left:{there}", "--rate", RATE, "--retry-for", "1h", "--json", *more)
        out, error = running.communicate(timeout=120)
    assert running.returncode == 0, error
    same(source, there)
    assert made[0] > 500
    assert len(events(out)[-1]["receipt"]["attempts"]) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become user nobody")
def test_user_nobody_starts_no_ssh_at_the_port_of_a_tunnel(hosts: testbed.Hosts, copy: Copy, tmp_path: Path) -> None:
    source, there = file_of(tmp_path), hosts.left.home() / "tunnel"
    with attacked("tcp") as made:
        done = copy(source, f"near-left:{there}", "--over-ssh", "--streams", "2", "--rate", RATE, "--json")
    assert done.returncode == 0, done.stderr
    same(source, there)
    assert made[0] > 500


def test_a_copy_without_strangers_has_no_note_on_them(hosts: testbed.Hosts, copy: Copy, tmp_path: Path) -> None:
    """Streams of the other end that are under way when all is done are no strangers."""
    source = tmp_path / "small"
    source.write_bytes(b"1")
    for number in range(5):
        done = copy(source, f"near-left:{hosts.left.home() / f'small{number}'}", "--streams", "64", "--json")
        assert done.returncode == 0, done.stderr
        assert not any("token" in note for note in events(done.stdout)[-1]["receipt"]["notes"])
