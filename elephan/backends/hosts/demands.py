"""Demands of a run on its two hosts: socket options, sysctls and congestion controls, and what their rights allow.

A demand that is not met is refused, or noted where the host's own setting stands in for it. Either line names the
command by which an administrator would meet it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan import units
from elephan.backends.hosts import program_demands
from elephan.backends.hosts.layout import EMULATED, Layout
from elephan.backends.kernel.mapping import LARGEST_BUFFER, Machine, Refused, notes_of, require_of, socket_of
from elephan.congestion_control import CongestionControl, find
from elephan.errors import InputError
from elephan.hosts.facts import Facts
from elephan.kernel.control import object_of
from elephan.kernel.deployment import READ, SEND_PER_WINDOW, WRITE, deployment_of
from elephan.kernel.names import DIGITS, kernel_name
from elephan.kernel.run_controls import Control
from elephan.kernel.socket_buffers import INT_MAX, buffer_for
from elephan.run_spec.route import header_bytes
from elephan.run_spec.types import FlowSpec, RunSpec

SAME = {"tcp_ecn": ({"0", "2"},)}
"""By sysctl: sets of values that are the same between two hosts that both have one of them. ECN by 2 is never asked
for, and only given (Linux's ip-sysctl)."""

UNPACED = 10
"""Packets of a connection that no pacing rate delays (tcp_update_skb_after_send in net/ipv4/tcp_output.c)."""

MOST_CONTROLS = len(DIGITS) ** 2
"""Controls of one run: the number has two places in a name."""


@dataclass(frozen=True)
class Demands:
    """Everything that the two agents are asked for."""

    flows: tuple[dict[str, Any], ...]
    """Options of each flow's sockets, as docs/design/agent.md has them, without the port."""
    controls: tuple[dict[str, Any], ...]
    """Congestion controls that the sender registers for the run."""
    sysctls: dict[str, dict[str, str]]
    """By host: sysctls that the run sets, and restores."""
    limit_bps: int | None
    """Part of --rate-limit that each connection has, and each program."""
    notes: tuple[str, ...]
    """Differences from the scenario, each with what would remove it."""


def demands_of(
    spec: RunSpec, layout: Layout, sender: Facts, receiver: Facts, token: str, rate_limit_bps: int | None = None
) -> Demands:
    """Return the demands of a run. `token` makes the controls' names its own. Raises `InputError`."""
    notes: dict[str, None] = {}
    for flow in spec["flows"]:
        for facts in (sender, receiver):
            try:
                require_of(flow["transport"], _machine(facts))
            except Refused as error:
                raise InputError(f"{facts.name}: flow {flow['name']}: {error}") from error
        notes.update(dict.fromkeys(notes_of(flow["transport"])))
    sysctls = {}
    for host in (sender, receiver):
        sysctls[host.name], more = _sysctls(layout, host)
        notes.update(dict.fromkeys(more))
    names, made, more = _controls(layout, sender, token)
    notes.update(dict.fromkeys(more))
    # A limit is that of the run: each connection has its part.
    limit = None if rate_limit_bps is None else _limit_of_each(rate_limit_bps, spec["flows"])
    controls = [names[control] for control in layout.control_of]
    of_programs, more = program_demands.sysctls_of(spec["flows"], controls, sender, receiver)
    notes.update(dict.fromkeys(more))
    for host in (sender, receiver):
        sysctls[host.name] |= of_programs[host.name]
    if limit is not None and any(flow["workload"]["kind"] == "program" for flow in spec["flows"]):
        notes["--rate-limit: each program bounds its data by its own option, on average; no packet is paced"] = None
    flows: list[dict[str, Any]] = []
    for flow, control in zip(spec["flows"], layout.control_of, strict=True):
        if flow["workload"]["kind"] == "program":
            flows.append({"congestion_control": names[control]})
            continue
        options, more = _socket(flow, sender, receiver)
        notes.update(dict.fromkeys(more))
        bounds = [bound for bound in (limit, options["max_pacing_bps"]) if bound is not None]
        bound = min(bounds, default=None)
        flows.append({"congestion_control": names[control], **options, "max_pacing_bps": bound})
    return Demands(tuple(flows), tuple(made), sysctls, limit, tuple(notes))


def _limit_of_each(limit_bps: int, flows: Sequence[FlowSpec]) -> int:
    """Return a connection's part of a limit. Raises `InputError` for one that their starts exceed for 1 s."""
    least_bps = sum(UNPACED * 8 * flow["transport"]["mtu_bytes"] for flow in flows)
    if limit_bps < least_bps:
        raise InputError(
            f"--rate-limit {units.rate(limit_bps)}: Linux paces none of the first {UNPACED} packets of a connection, "
            f"and those of {units.pluralize(len(flows), 'connection')} would take more than 1 s: "
            f"{units.rate(least_bps)} or more, or fewer connections"
        )
    return limit_bps // len(flows)


def _machine(facts: Facts) -> Machine:
    return Machine(facts.release, frozenset(facts.sysctls))


def _sysctls(layout: Layout, host: Facts) -> tuple[dict[str, str], list[str]]:
    """Return the sysctls to be set on a host, and notes on those that stay away from elephan's defaults.

    One that is right already is among them, so that no other run changes it meanwhile.
    """
    wanted = {}
    for name, value in layout.required.items():
        there = host.sysctls.get(name)
        if there is not None and _is_same(name, there, value):
            wanted[f"net.ipv4.{name}"] = there
            continue
        if not host.may_set:
            raise InputError(
                f"{host.name}: needs net.ipv4.{name} = {value} (it is {host.sysctls.get(name, 'not told')}), for which "
                f"an administrator there types: sudo sysctl -w net.ipv4.{name}={shlex.quote(value)}"
            )
        wanted[f"net.ipv4.{name}"] = value
    notes = [
        f"{host.name}: net.ipv4.{name} is {host.sysctls[name]}, where elephan's default is {value}"
        for name, value in layout.usual.items()
        if name in host.sysctls and not _is_same(name, host.sysctls[name], value)
    ]
    return wanted, notes


def _is_same(name: str, one: str | None, other: str) -> bool:
    return one == other or any({one, other} <= same for same in SAME.get(name, ()))


def _controls(layout: Layout, sender: Facts, token: str) -> tuple[list[str], list[dict[str, Any]], list[str]]:
    """Return the name of each control on the sender, those that it registers, and notes."""
    if len(layout.controls) > MOST_CONTROLS:
        raise InputError(f"{len(layout.controls)} congestion controls in one run: a host takes {MOST_CONTROLS}")
    names: list[str] = []
    made: list[dict[str, Any]] = []
    notes: list[str] = []
    for number, (algorithm, values) in enumerate(layout.controls):
        cc = find(algorithm)
        why = sender.why_no_bpf
        if why is None and "cong_control" in cc.hooks and sender.release < (6, 10):
            why = f"its Linux {sender.release[0]}.{sender.release[1]} takes no {cc.name} by BPF (6.10 does)"
        if why is None:
            name = f"elephan_h{token[:4]}{DIGITS[number // len(DIGITS)]}{DIGITS[number % len(DIGITS)]}"
            made.append(
                {
                    "name": name,
                    "object": _object(cc),
                    "label": f"{cc.name}=run {token[:4]}",
                    "parameters": dict(values),
                }
            )
            names.append(name)
        else:
            name, note = _of_the_host((algorithm, values), sender, why)
            names.append(name)
            notes.append(note)
    return names, made, notes


_objects: dict[tuple[str, str], str] = {}
"""Objects as hexadecimal digits, by a control's name and code: clang takes a second where elephan has none made."""


def _object(cc: CongestionControl) -> str:
    """Return the BPF object of a control as hexadecimal digits. Raises `InputError`."""
    key = (cc.name, cc.code)
    if key not in _objects:
        _objects[key] = object_of(cc, cc.path or f"{cc.name}.c").hex()
    return _objects[key]


def _of_the_host(control: Control, sender: Facts, why: str) -> tuple[str, str]:
    """Return a control that the sender has already in place of one that cannot be loaded, and a note.

    Raises `InputError` when there is none, with the administrator's command.
    """
    algorithm, values = control
    cc = find(algorithm)
    defaults = {parameter.name: parameter.default for parameter in cc.parameters}
    changed = {name: value for name, value in values if defaults[name] != value}
    loaded = kernel_name(cc.name)
    if cc.path is None and not changed and loaded in sender.controls:
        return loaded, f"{sender.name}: {loaded}, which an administrator has loaded, as {cc.name}"
    # Linux's module is a variant of ours in bic, highspeed and scalable: not what the defaults are.
    if cc.path is None and changed == cc.as_linux:
        if cc.name in sender.controls:
            return cc.name, f"{sender.name}: the kernel's own {cc.name}, because elephan's cannot be loaded: {why}"
        available = sender.told["congestion_controls"]["available"]
        if cc.name in available:
            allowed = " ".join([*sender.told["congestion_controls"]["allowed"], cc.name])
            raise InputError(
                f"{sender.name}: {cc.name} is not for every user there: an administrator types: sudo sysctl -w "
                f"net.ipv4.tcp_allowed_congestion_control={shlex.quote(allowed)}"
            )
    command = deployment_of(cc, dict(values)).load
    raise InputError(
        f"{sender.name}: cannot load {Path(algorithm).name}: {why}: log in as root, or as a user whom sudo asks no "
        f"password; or an administrator types there: sudo {command}"
    )


def _socket(flow: FlowSpec, sender: Facts, receiver: Facts) -> tuple[dict[str, Any], list[str]]:
    """Return the options of a flow's sockets, and notes on windows that a host does not allow."""
    transport = flow["transport"]
    options = socket_of(transport)
    window = transport["window_bytes"]
    notes = []
    buffer = options["receive_buffer_bytes"]
    if buffer is not None and not receiver.may_set and (receiver.limit("rmem_max") or 0) < buffer:
        # The kernel's own tuning goes further than what a user may set.
        options["receive_buffer_bytes"] = buffer = None
    if buffer is None:
        most = (receiver.limit("tcp_rmem") or READ)[2]
        need = min(buffer_for(window, transport["mtu_bytes"], header_bytes(transport)), INT_MAX)
        if most < need:
            offered = window * most // need
            notes.append(
                f"{receiver.name}: offers a window of at most about {units.size(offered)}, and the scenario has "
                f"{units.size(window)}; sudo sysctl -w net.ipv4.tcp_rmem='{READ[0]} {READ[1]} {need}' there allows it"
            )
    wanted = options["send_buffer_bytes"]
    if wanted is not None:
        if not sender.may_set and (sender.limit("wmem_max") or 0) < wanted:
            raise InputError(
                f"{sender.name}: send_buffer = {units.exact_size(transport['send_buffer_bytes'])} is more than a user "
                f"may have: an administrator there types: sudo sysctl -w net.core.wmem_max={wanted}; or {EMULATED}"
            )
        return options, notes
    most, need = (sender.limit("tcp_wmem") or WRITE)[2], min(SEND_PER_WINDOW * window, INT_MAX)
    if most < need:
        if sender.may_set:
            # The kernel doubles it.
            options["send_buffer_bytes"] = min(window, LARGEST_BUFFER)
        else:
            notes.append(
                f"{sender.name}: keeps at most about {units.size(most / SEND_PER_WINDOW)} in flight, and the scenario "
                f"has a window of {units.size(window)}; sudo sysctl -w net.ipv4.tcp_wmem='{WRITE[0]} {WRITE[1]} "
                f"{need}' there allows it"
            )
    return options, notes
