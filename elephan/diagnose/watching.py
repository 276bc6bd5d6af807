"""Watches the connections of a selection (sock_diag(7)) and has each diagnosed by the core."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.kernel.names import algorithm_of

INTERVAL_NS = 20_000_000
"""Between two samples; longer where a sample takes the processor more than a twentieth of it."""
SECONDS_MOST = 3600.0
PORTS = range(1, 65536)


@dataclass(frozen=True)
class Selection:
    """Connections to be watched; each condition that is there holds."""

    port: int | None = None
    """At either end."""
    pid: int | None = None
    """A process that has the socket open."""
    peer: str | None = None
    """Address of the far end."""

    def __str__(self) -> str:
        parts = [("--port", self.port), ("--pid", self.pid), ("--peer", self.peer)]
        return " ".join(f"{option} {value}" for option, value in parts if value is not None)


@dataclass(frozen=True)
class Watched:
    """The flows that were seen."""

    flows: list[dict[str, Any]]
    """The diagnosis of each flow that carried something, in the form of crates/diagnosis/src/verdict.rs, with `local`,
    `remote`, `congestion_control` and `ended`; those of most bytes first."""
    connections: int
    """All of the selection: those that carried nothing, and both ends of one, too."""
    idle: int
    """Those that carried nothing."""
    samples: int
    cost_s: float
    """Processor time of the samples."""


def watch(
    selection: Selection,
    seconds: float,
    wait_for_termination: Callable[[float], object] = lambda _: False,
    namespace: str | None = None,
) -> Watched:
    """Watch for `seconds`, or until `wait_for_termination` says that a signal came; not a byte is sent.

    `namespace` is the file of a network namespace, None for this process' own. Raises `InputError` for a selection that
    is none or has no connection, `RunError` where this kernel does not tell.
    """
    _require(selection, seconds)
    try:
        text = native.watch_flows(
            int(seconds * 1e9),
            INTERVAL_NS,
            wait_for_termination,
            port=selection.port,
            peer=selection.peer,
            pid=selection.pid,
            namespace=namespace,
        )
    except FileNotFoundError:
        raise InputError(f"--pid {selection.pid}: no such process") from None
    except PermissionError:
        if selection.pid is None:
            raise RunError("this user may not ask for sockets (sock_diag)") from None
        raise InputError(
            f"--pid {selection.pid}: only root and its own user may see its files: use sudo, or --port"
        ) from None
    except OSError as error:
        raise RunError(f"the kernel does not report its sockets (sock_diag): {error}") from error
    seen = json.loads(text)
    if not seen["flows"]:
        raise InputError(_nobody(selection))
    for flow in seen["flows"]:
        # A run's own name of a control (elephan_k85d700) says nothing, neither to the rules nor to people.
        flow["congestion_control"] = algorithm_of(flow["congestion_control"])
    flows = json.loads(native.diagnose_flows(json.dumps({"flows": seen["flows"]})))
    # Of a connection within this machine both ends are seen, and the sender's is told.
    told = {end for flow in flows for end in ((flow["local"], flow["remote"]), (flow["remote"], flow["local"]))}
    return Watched(
        flows=flows,
        connections=len(seen["flows"]),
        idle=sum((flow["local"], flow["remote"]) not in told for flow in seen["flows"]),
        samples=seen["looks"],
        cost_s=seen["cost_ns"] / 1e9,
    )


def _require(selection: Selection, seconds: float) -> None:
    if not 0.1 <= seconds <= SECONDS_MOST:
        raise InputError(f"--seconds {seconds:g}: from 0.1 to {SECONDS_MOST:g}")
    if selection.port is not None and selection.port not in PORTS:
        raise InputError(f"--port {selection.port}: from 1 to 65535")
    if selection.pid is not None and selection.pid < 1:
        raise InputError(f"--pid {selection.pid}: the number of a process, from 1 on")
    if selection.peer is not None:
        try:
            ipaddress.ip_address(selection.peer)
        except ValueError:
            raise InputError(f'--peer {selection.peer}: an IP address, such as "192.0.2.7" or "2001:db8::7"') from None


def _nobody(selection: Selection) -> str:
    where = "in this network namespace (ip netns exec NAME elephan diagnose sees another)"
    if selection.pid is not None and not os.path.exists(f"/proc/{selection.pid}"):
        return f"--pid {selection.pid}: it ended, and had no TCP connection {where}"
    text = str(selection)
    return f"{text}: no TCP connection {where}" if text else f"no TCP connection {where}"
