"""Demands of programs on their hosts: a program's sockets are its own, so each option is the whole host's for the run.

They are the sysctls from which Linux takes a socket's congestion control and buffers; only the largest buffer is
changed, up to which the kernel's tuning goes. A demand that a host's rights do not allow is refused where it is a
congestion control, and noted where it is a window.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from elephan import units
from elephan.backends.hosts.layout import EMULATED
from elephan.backends.kernel.mapping import pacing_problem, socket_of
from elephan.errors import InputError
from elephan.hosts.facts import Facts
from elephan.kernel.deployment import READ, SEND_PER_WINDOW, WRITE
from elephan.kernel.socket_buffers import INT_MAX, buffer_for
from elephan.run_spec.route import header_bytes
from elephan.run_spec.types import FlowSpec, TransportSpec

WHOLE_HOST = "for all connections that begin there during the run: a program's sockets are its own"


def sysctls_of(
    flows: Sequence[FlowSpec], names: Sequence[str], sender: Facts, receiver: Facts
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return the sysctls of each host for the flows that programs carry, and notes.

    `names` has the congestion control of each flow as the sender's kernel knows it. Raises `InputError`.
    """
    wanted: dict[str, dict[str, str]] = {sender.name: {}, receiver.name: {}}
    notes: list[str] = []
    owner: dict[tuple[str, str], str] = {}
    for flow, name in zip(flows, names, strict=True):
        if flow["workload"]["kind"] != "program":
            continue
        transport = flow["transport"]
        if (problem := pacing_problem(transport)) is not None:
            raise InputError(f"flow {flow['name']}: {problem}: leave it out, or take --rate-limit")
        asked = [
            (sender, "tcp_congestion_control", _control(flow, name, sender)),
            (sender, "tcp_wmem", _send(transport, sender, notes)),
            (receiver, "tcp_rmem", _receive(transport, receiver, notes)),
            (sender, "tcp_rto_max_ms", _rto_max(flow, sender)),
        ]
        for host, sysctl, value in asked:
            if value is None:
                continue
            first = owner.setdefault((host.name, sysctl), flow["name"])
            if wanted[host.name].setdefault(f"net.ipv4.{sysctl}", value) != value:
                raise InputError(
                    f"flow {flow['name']}: its program and that of flow {first} ask for different net.ipv4.{sysctl} on "
                    f"{host.name}, which has one for all: let them agree; {EMULATED}"
                )
    for host in (sender, receiver):
        # One that is right already is asked for, too, so that no other run changes it meanwhile.
        changed = {key: value for key, value in wanted[host.name].items() if _now(host, key) != value}
        notes += [f"{host.name}: {key} = {value} {WHOLE_HOST}" for key, value in _shown(changed)]
    return wanted, list(dict.fromkeys(notes))


def _shown(sysctls: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return sysctls for a note: the name of a control that is made for the run is another one each time."""
    return [
        (key, "the flow's" if value.startswith("elephan_h") and key.endswith("_control") else value)
        for key, value in sysctls.items()
    ]


def _now(host: Facts, key: str) -> str | None:
    name = key.removeprefix("net.ipv4.")
    if name == "tcp_congestion_control":
        return str(host.told["congestion_controls"].get("default"))
    limit = host.limit(name)
    return " ".join(map(str, limit)) if isinstance(limit, list) else host.sysctls.get(name)


def _control(flow: FlowSpec, name: str, sender: Facts) -> str:
    default = sender.told["congestion_controls"].get("default")
    if name != default and not sender.may_set:
        raise InputError(
            f"{sender.name}: flow {flow['name']}: a program takes the host's default congestion control, which is "
            f"{default}: an administrator there types: sudo sysctl -w net.ipv4.tcp_congestion_control={name}"
        )
    return name


def _send(transport: TransportSpec, sender: Facts, notes: list[str]) -> str | None:
    asked = socket_of(transport)["send_buffer_bytes"]
    least, usual, most = sender.limit("tcp_wmem") or WRITE
    need = min(SEND_PER_WINDOW * transport["window_bytes"], INT_MAX) if asked is None else min(2 * asked, INT_MAX)
    if most == need or (asked is None and most > need):
        return None
    value = f"{least} {min(usual, need)} {need}"
    if sender.may_set:
        return value
    kept = units.size(most / SEND_PER_WINDOW)
    window = units.size(transport["window_bytes"])
    notes.append(
        f"{sender.name}: its programs keep at most about {kept} in flight, and the scenario has a window of {window}; "
        f"sudo sysctl -w net.ipv4.tcp_wmem={shlex.quote(value)} there sets it"
    )
    return None


def _receive(transport: TransportSpec, receiver: Facts, notes: list[str]) -> str | None:
    window = transport["window_bytes"]
    least, usual, most = receiver.limit("tcp_rmem") or READ
    need = min(buffer_for(window, transport["mtu_bytes"], header_bytes(transport)), INT_MAX)
    if most == need:
        return None
    value = f"{least} {min(usual, need)} {need}"
    if receiver.may_set:
        return value
    offered = units.size(window * most // need)
    notes.append(
        f"{receiver.name}: its programs offer a window of at most about {offered}, and the scenario has "
        f"{units.size(window)}; sudo sysctl -w net.ipv4.tcp_rmem={shlex.quote(value)} there sets it"
    )
    return None


def _rto_max(flow: FlowSpec, sender: Facts) -> str | None:
    longest_ms = socket_of(flow["transport"])["rto_max_ms"]
    if longest_ms is None:
        return None
    if not sender.may_set:
        raise InputError(
            f"{sender.name}: flow {flow['name']}: rto_max of a program is the host's: an administrator there types: "
            f"sudo sysctl -w net.ipv4.tcp_rto_max_ms={longest_ms}"
        )
    return str(longest_ms)
