"""A target that runs until a signal ends it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.iscsi.control import control
from elephan.iscsi.url import check_secrets, portal
from elephan.signals import termination_requested

if TYPE_CHECKING:
    from elephan._native import IscsiServer, _Settings

LOOK_S = 0.2
"""Interval between reports of connections that ended, s."""
LOGOUT_S = 3
"""Time for initiators to log out when the target ends, s."""
MEMORY_BYTES = 256 << 20
"""Default memory of a target for its initiators, bytes."""
CONNECTIONS_MAX = 256
"""Connections that may be logged in."""
CONNECTIONS_PER_ADDRESS = CONNECTIONS_MAX // 4
"""Of them from one address, so that no initiator keeps the others out."""
COMMAND_WINDOW_MAX = 4096
"""Commands of a session; as of the key `command_window` of workload `iscsi`."""
NAME = re.compile(r"(iqn\.\d{4}-\d{2}\.[a-z0-9.-]+(:\S*)?|eui\.[0-9A-Fa-f]{16}|naa\.[0-9A-Fa-f]{16,32})")


def serve(
    luns: Sequence[Path],
    *,
    name: str,
    portals: Sequence[str],
    say: Callable[[str], None],
    read_only: bool = False,
    shared: bool = False,
    block_bytes: int = 512,
    chap: tuple[str, str] | None = None,
    mutual: tuple[str, str] | None = None,
    settings: _Settings | None = None,
    max_connections: int = CONNECTIONS_MAX,
    connections_per_address: int = CONNECTIONS_PER_ADDRESS,
    command_window: int = 128,
    memory_bytes: int = MEMORY_BYTES,
    congestion_control: str | None = None,
) -> None:
    """Serve files until SIGINT, SIGTERM or SIGHUP. Raises `InputError` or, if the kernel refuses something, `RunError`.
    """
    if not NAME.fullmatch(name) or len(name.encode()) > 223:
        raise InputError(f"--name {name}: an iSCSI name is needed, such as iqn.2026-01.example:disk")
    if block_bytes not in (512, 4096):
        raise InputError(f"--block {block_bytes}: 512 or 4096 is needed")
    if not 1 <= connections_per_address <= max_connections:
        raise InputError(f"--connections-per-address {connections_per_address}: 1 to {max_connections} is needed")
    if not 1 <= command_window <= COMMAND_WINDOW_MAX:
        raise InputError(f"--command-window {command_window}: 1 to {COMMAND_WINDOW_MAX} is needed")
    own: _Settings = settings or {}
    least, first_burst, wanted = native.iscsi_memory(max_connections, memory_bytes, command_window, own)
    if memory_bytes < least:
        raise InputError(f"--memory: {memory_bytes} bytes; at least {least} are needed ({-(-least >> 20)}MiB)")
    if len(luns) > 256:
        raise InputError(f"--lun: {len(luns)} of them, at most 256")
    check_secrets(chap, mutual)
    whole = [_whole_bytes(lun, read_only, block_bytes) for lun in luns]
    congestion = None if congestion_control is None else control(congestion_control)
    with termination_requested() as wait_for_termination:
        files = [(str(lun), read_only, shared, block_bytes) for lun in luns]
        addresses = [portal(text) for text in portals]
        try:
            server = native.IscsiServer(
                name,
                files,
                addresses,
                chap,
                mutual,
                own,
                max_connections,
                connections_per_address,
                command_window,
                memory_bytes,
                congestion,
            )
        except BlockingIOError as error:
            raise InputError(f"--lun {error}") from error
        except OSError as error:
            raise RunError(f"the target cannot start: {error}") from error
        where = server.addresses()
        for number, (lun, (bytes_, rest)) in enumerate(zip(luns, whole, strict=True)):
            cut = f", its first {bytes_} bytes: the {rest} behind are no whole block" if rest else ""
            say(f"LUN {number}: {lun}{', read only' if read_only else ''}{cut}")
        if first_burst < wanted:
            say(
                f"memory: {command_window} commands of a session have room for {first_burst} bytes each that come "
                f"unasked: FirstBurstLength is at most that, not {wanted} (--memory)"
            )
        for address in where:
            say(f"iscsi://{address}/{name}/0")
        while not wait_for_termination(LOOK_S):
            _report(server, say)
        server.request_logout(LOGOUT_S)
        waited = 0.0
        while server.counts()[1] and waited < LOGOUT_S:
            time.sleep(LOOK_S)
            waited += LOOK_S
        server.stop()
        _report(server, say)


def _whole_bytes(lun: Path, read_only: bool, block_bytes: int) -> tuple[int, int]:
    """Return how many bytes of a file or block device are whole blocks, and how many are not. Raises `InputError`."""
    if not lun.exists():
        raise InputError(f"--lun {lun}: there is no such file (truncate -s 1G {lun} makes one)")
    if not (lun.is_file() or lun.is_block_device()):
        raise InputError(f"--lun {lun}: a file or block device is needed")
    try:
        # A block device has no size of its own; its end is one.
        with lun.open("rb" if read_only else "r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        hint = "" if read_only else " (--read-only serves what cannot be written)"
        raise InputError(f"--lun {lun}: {error.strerror}{hint}") from error
    if size < block_bytes:
        raise InputError(
            f"--lun {lun}: {size} bytes long; a block of {block_bytes} is needed (truncate -s 1G {lun} makes more)"
        )
    return size - size % block_bytes, size % block_bytes


def _report(server: IscsiServer, say: Callable[[str], None]) -> None:
    for line in server.drain_log():
        say(line)
