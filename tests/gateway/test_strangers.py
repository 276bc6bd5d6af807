"""Programs at a peer's own address, and at that of a name server: none of them keeps the peer or the server out."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.gateway.sites import PATIENCE_S, Running, Sites, name_of
from tests.gateway.test_tls import FILES, authority, certificate
from tests.processes import free_port

pytestmark = pytest.mark.looks_at_kernel

STRANGERS = 600
AGAIN = 4
"""Connections that are made again in each round of 0.2 s."""
IFCP = b"\x02\x01\xfd\xfe" + bytes(4) + b"\x00\x00\x00\x00"
"""Beginning of a frame (RFC 3643, 3.1): protocol iFCP and version 1, both once more as complements."""
CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200))
CHANGE, CHANGE_ANSWER = 0x0008, 0x8008
"""Functions of iSNS (RFC 4171, 4.1.3): State Change Notification and its response."""
FROM_SERVER = 0x4000 | 0x0800 | 0x0400
"""Flags (5.1.4): sent by the server, last and first PDU."""
NODE_NAME = 32


@contextmanager
def strangers(connect: Callable[[], socket.socket], beginning: bytes) -> Iterator[list[int]]:
    """Keep connections open: a half is silent, the other sends a byte now and then; of those that end some are made
    again each second.

    Gives a list whose length is the number of connections that were made.
    """
    made: list[int] = []
    over, all_there = threading.Event(), threading.Event()

    def work() -> None:
        there: list[tuple[socket.socket, int, int]] = []
        while not over.is_set():
            most = AGAIN if all_there.is_set() else STRANGERS
            for _ in range(min(most, STRANGERS - len(there))):
                try:
                    one = connect()
                    one.setblocking(False)
                except OSError:
                    break
                made.append(1)
                there.append((one, len(made), 0))
            all_there.set()
            left = []
            for one, number, sent in there:
                try:
                    if number % 2 and sent < len(beginning):
                        sent += one.send(beginning[sent : sent + 1])
                    if not one.recv(100):
                        raise ConnectionResetError
                except BlockingIOError:
                    left.append((one, number, sent))
                except OSError:
                    one.close()
                else:
                    left.append((one, number, sent))
            there = left
            over.wait(0.2)
        for one, _, _ in there:
            one.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert all_there.wait(PATIENCE_S)
        yield made
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_half_open_connections_at_a_peers_address_keep_the_peer_out_of_nothing(
    tmp_path: Path, is_encrypted: bool
) -> None:
    if is_encrypted:
        authority(tmp_path, "authority")
        for site in (1, 2):
            certificate(tmp_path, str(site), f"127.0.0.{site}")
    sites = Sites(tmp_path, tables=lambda site: FILES.format(site, "authority") if is_encrypted else "")
    try:
        # The peer comes back while strangers have its address.
        sites.gateways[2].end()
        listener = sites.listener(1)

        def connect() -> socket.socket:
            return socket.create_connection(sites.address(1), PATIENCE_S, source_address=("127.0.0.2", 0))

        with strangers(connect, CLIENT_HELLO if is_encrypted else IFCP) as made:
            sites.start(2)
            answers = sites.json(2, "ping", name_of(1), "-c", "5")["answers"]
            load = sites.json(2, "load", name_of(1), "--rate", "20Mbit/s", "--duration", "1s")
            count = len(made)
        assert len(answers) == 5
        assert load["sent"]["result"]["frames"] == load["sent"]["frames"] > 0
        assert count >= STRANGERS
        listener.end()
    finally:
        sites.close()


def notified(port: int, number: int) -> bytes:
    """Send a notification as a name server does, and return the head of what comes back."""
    name = b"iqn.2026-11.example:here\0"
    name += bytes(-len(name) % 4)
    attribute = struct.pack(">II", NODE_NAME, len(name)) + name
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as server:
        server.sendall(struct.pack(">HHHHHH", 1, CHANGE, len(attribute), FROM_SERVER, number, 0) + attribute)
        server.settimeout(PATIENCE_S)
        return server.recv(12)


def test_strangers_at_a_name_servers_address_keep_no_notification_away(tmp_path: Path) -> None:
    port, changes = free_port(), free_port()
    (tmp_path / "1.toml").write_text(
        '[fabric]\nname = "10:00:00:00:00:00:00:01"\n[[socket]]\nlocal = "1.gateway"\nremote = "1.node"\n'
        f'[ip]\nlisten = "127.0.0.1:{port}"\n[isns]\nserver = "127.0.0.1:{free_port()}"\nentity = "here"\n'
        f"scn_port = {changes}\n"
    )
    gateway = Running("gateway", "run", str(tmp_path / "1.toml"))
    try:
        gateway.until_said("fabric at ")
        head = struct.pack(">HHHHHH", 1, CHANGE, 64, FROM_SERVER, 1, 0)
        with strangers(lambda: socket.create_connection(("127.0.0.1", changes), PATIENCE_S), head) as made:
            began_s = time.monotonic()
            for number in range(20):
                # Strangers may displace one that has sent nothing yet; a server sends again.
                for _ in range(5):
                    try:
                        answer = notified(changes, number)
                    except ConnectionResetError:
                        answer = b""
                    if answer:
                        break
                version, function, _, _, transaction, _ = struct.unpack(">HHHHHH", answer)
                assert (version, function, transaction) == (1, CHANGE_ANSWER, number)
            assert time.monotonic() - began_s < PATIENCE_S
            assert len(made) >= STRANGERS
    finally:
        code, _ = gateway.end()
    assert code == 0, gateway.said


def test_a_notification_that_does_not_end_is_closed_and_a_servers_idle_connection_stays(tmp_path: Path) -> None:
    port, changes = free_port(), free_port()
    (tmp_path / "1.toml").write_text(
        '[fabric]\nname = "10:00:00:00:00:00:00:01"\n[[socket]]\nlocal = "1.gateway"\nremote = "1.node"\n'
        f'[ip]\nlisten = "127.0.0.1:{port}"\n[isns]\nserver = "127.0.0.1:{free_port()}"\nentity = "here"\n'
        f"scn_port = {changes}\n"
    )
    gateway = Running("gateway", "run", str(tmp_path / "1.toml"))
    try:
        gateway.until_said("fabric at ")
        head = struct.pack(">HHHHHH", 1, CHANGE, 0, FROM_SERVER, 7, 0)
        with (
            socket.create_connection(("127.0.0.1", changes), PATIENCE_S) as server,
            socket.create_connection(("127.0.0.1", changes), PATIENCE_S) as dripping,
            socket.create_connection(("127.0.0.1", changes), PATIENCE_S) as silent,
        ):
            server.sendall(head)
            assert server.recv(100)
            began_s = time.monotonic()
            open_ones = {"dripping": dripping, "silent": silent}
            # A message of 64 bytes, of which one comes each second.
            for byte in struct.pack(">HHHHHH", 1, CHANGE, 64, FROM_SERVER, 8, 0) + bytes(64):
                for name, one in list(open_ones.items()):
                    one.setblocking(False)
                    try:
                        if name == "dripping":
                            one.send(bytes([byte]))
                        assert not one.recv(100)
                    except BlockingIOError:
                        continue
                    except OSError:
                        pass
                    del open_ones[name]
                if not open_ones:
                    break
                time.sleep(1)
            assert time.monotonic() - began_s < 20
            server.sendall(head)
            assert server.recv(100)[2:4] == struct.pack(">H", CHANGE_ANSWER)
    finally:
        code, _ = gateway.end()
    assert code == 0, gateway.said
