"""A gateway that runs until a signal ends it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.gateway import prometheus
from elephan.gateway.config import Config, address_text, addresses_file, wwn_text
from elephan.iscsi.control import control
from elephan.signals import termination_requested

LOOK_S = 0.2
"""Interval between reports of what happened, s."""
STOP_LOOK_S = 0.02
"""Interval between looks at a gateway that stops, s."""
STATUS_S = 1.0
"""Interval between lines of statistics, s."""
SESSION = (
    "peer",
    "local",
    "remote",
    "open",
    "queued_bytes",
    "sent_frames",
    "sent_bytes",
    "received_frames",
    "received_bytes",
)
"""Keys of a session, in the core's order."""
ISNS = ("server", "entity", "registered", "local_ports", "remote_ports", "answer_age_ns", "failures")
"""Keys of the way to a name server, in the core's order."""

_Port = tuple[int | None, int, int, int]
"""Address, name, node, features."""


def run(file: Path, config: Config, *, say: Callable[[str], None], emit: Callable[[str], None] | None = None) -> None:
    """Run a gateway until SIGINT, SIGTERM or SIGHUP, and let exchanges under way end then.

    `say` takes what happened, `emit` a line of statistics a second.
    Raises `InputError` where a file that it names holds what it may not, `RunError` where an interface, socket or file
    cannot be opened.
    """
    here = file.parent
    fabric, ethernet = config.fabric, config.ethernet
    with termination_requested() as wait_for_termination, ExitStack() as stack:
        try:
            gateway = native.FcGateway(
                fabric.name,
                fabric.domain,
                str(addresses_file(file, config)),
                None if ethernet is None else ethernet.interface,
                [(str(here / one.local), str(here / one.remote)) for one in config.socket],
                config.vlan_tag(),
                ethernet is not None and ethernet.pause,
                fabric.priority,
                fabric.fc_map,
                fabric.keep_alive,
                fabric.drain_timeout,
                _ip(file, config),
            )
        except ValueError as error:
            raise InputError(str(error)) from error
        except OSError as error:
            raise RunError(f"the gateway cannot start: {error}") from error
        stack.callback(gateway.stop)
        if config.statistics.prometheus is not None:
            place = stack.enter_context(prometheus.served(config.statistics.prometheus, gateway))
            say(f"statistics at http://{place}/metrics")
        if config.ip is not None:
            say(f"gateways connect to {gateway.address()}")
        ways = [one.local for one in config.socket] if ethernet is None else [ethernet.interface]
        say(f"fabric at {', '.join(ways)}")
        due_s = time.monotonic()
        while not wait_for_termination(LOOK_S):
            for line in gateway.drain_log():
                say(line)
            if not gateway.is_running():
                raise RunError("the gateway ended on its own; a fault of elephan")
            if emit is not None and time.monotonic() >= due_s:
                due_s += STATUS_S
                emit(status(gateway))
        gateway.begin_stop()
        while gateway.is_running():
            time.sleep(STOP_LOOK_S)
            for line in gateway.drain_log():
                say(line)
        gateway.stop()
        for line in gateway.drain_log():
            say(line)


_Isns = tuple[str, str, str | None, int | None, int, int]
"""Server, entity, control node, port for notifications, refresh and registration period in ns."""
_Ip = tuple[str, str | None, bool, tuple[str, str, str] | None, list[tuple[str, str, list[_Port]]], _Isns | None]
"""Address, congestion control, whether addresses are transparent, files of TLS, peers, name server."""


def _ip(file: Path, config: Config) -> _Ip | None:
    """Return the way to other gateways as the core takes it. Raises `InputError` for a congestion control that is not
    in this kernel."""
    ip = config.ip
    if ip is None:
        return None
    named, tls, here = ip.congestion_control, config.tls, file.parent
    return (
        address_text(ip.listen),
        None if named is None else control(named, f"{file}: ip.congestion_control:"),
        ip.mode == "transparent",
        None if tls is None else (str(here / tls.certificate), str(here / tls.key), str(here / tls.authority)),
        [
            (
                peer.name,
                address_text(peer.address),
                [(port.id, port.name, port.node or port.name, port.features()) for port in peer.port],
            )
            for peer in config.peer
        ],
        _isns(config),
    )


def _isns(config: Config) -> _Isns | None:
    """Return the way to a name server as the core takes it."""
    isns, fabric = config.isns, config.fabric.name
    if isns is None:
        return None
    return (
        address_text(isns.server),
        wwn_text(fabric) if isns.entity is None else isns.entity,
        # RFC 3980: an iSCSI name made of a world wide name.
        f"naa.{fabric:016x}" if isns.source == "control_node" else None,
        isns.scn_port,
        isns.refresh,
        isns.registration_period,
    )


def status(gateway: native.FcGateway) -> str:
    """Return the state of a gateway as a line of JSON."""
    keys = ("id", "port", "node", "remote", "scsi")
    ports = [dict(zip(keys, port, strict=True)) for port in gateway.ports()]
    peers = [{"name": name, "up": up, "isns": is_learnt} for name, up, is_learnt in gateway.peers()]
    isns = gateway.isns()
    sessions = [dict(zip(SESSION, session, strict=True)) for session in gateway.sessions()]
    exchanges = gateway.exchanges()
    return json.dumps(
        {
            "ports": ports,
            "peers": peers,
            "isns": None if isns is None else dict(zip(ISNS, isns, strict=True)),
            "sessions": sessions,
            "exchanges": exchanges,
            "counters": gateway.counters(),
        }
    )
