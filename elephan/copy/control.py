"""Congestion control of a copy: of the sender's kernel, or registered there while the copy runs, or QUIC's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from elephan import run_lock
from elephan.congestion_control import find
from elephan.congestion_control.verify import lacks
from elephan.copy.request import CopyRequest
from elephan.copy.sides import Side
from elephan.errors import ElephanError, InputError, RunError
from elephan.hosts.agent import Agent, connected, ending
from elephan.hosts.facts import look
from elephan.kernel import namespaces
from elephan.kernel.control import object_of, values_of
from elephan.kernel.names import algorithm_of
from elephan.kernel.run_controls import in_kernel

HELD_S = 20.0
"""Time for an agent to register a control, s."""

RELEASE_CONG_CONTROL = (6, 10)
"""Linux of which BPF's `cong_control` takes the arguments that elephan's controls have (docs/design/bpf.md)."""


@dataclass
class Chosen:
    """A transport with its congestion control."""

    transport: dict[str, Any]
    """`TransportSpec` (crates/copy)."""
    control: str | None
    """Its name for people; None: the host's default."""
    by: str
    """"kernel", "bpf", "quic" or "default"."""
    notes: list[str] = field(default_factory=list)


def _parameters(request: CopyRequest) -> dict[str, int]:
    assert request.congestion_control is not None, "there is a control"
    if not request.parameters:
        return {}
    return values_of(request.congestion_control, [f"{name}={value}" for name, value in request.parameters.items()])


def check(request: CopyRequest) -> None:
    """Raise `InputError` for a control that there is not, or parameters that it does not have."""
    name = request.congestion_control
    if name is None:
        if request.parameters:
            raise InputError(f"--set {next(iter(request.parameters))}: parameters are a control's: name it by --cc")
        return
    if _is_elephans(name) or name.endswith(".c") or request.transport == "quic" or request.parameters:
        find(name)
        _parameters(request)


def _is_elephans(name: str) -> bool:
    from elephan.congestion_control import congestion_controls

    return any(cc.name == name for cc in congestion_controls())


def names_at(sender: Side) -> set[str]:
    """Return the controls of the sender's kernel that its user may choose. Raises `RunError`."""
    if sender.agent is None:
        return set(namespaces.available() if os.geteuid() == 0 else namespaces.allowed())
    told = sender.agent.ask("check")
    return set(told["congestion_controls"]["available" if told["uid"] == 0 else "allowed"])


def default_at(sender: Side) -> str | None:
    """Return the default control of the sender's kernel, by the name of its algorithm; None if it does not tell. Raises
    `RunError`.
    """
    if sender.agent is not None:
        told = sender.agent.ask("check")["congestion_controls"].get("default")
        return None if told is None else algorithm_of(str(told))
    try:
        return algorithm_of(namespaces.current()) or None
    except OSError:
        return None


def may_load(sender: Side) -> bool:
    """Return True if controls can be registered at the sender for a copy. Raises `InputError` and `RunError`."""
    if sender.host is None:
        return os.geteuid() == 0 and lacks() is None
    with connected(sender.host) as agent:
        return look(agent, samples=1).why_no_bpf is None


@contextmanager
def chosen(request: CopyRequest, sender: Side, token: str) -> Iterator[Chosen]:
    """Give the transport for as long as the context lasts. Raises `InputError` and `RunError`."""
    if request.transport == "quic":
        yield _quic(request)
        return
    window = {} if request.window_bytes is None else {"send_buffer_bytes": request.window_bytes}
    if request.window_bytes is not None:
        window["receive_buffer_bytes"] = request.window_bytes

    def tcp(name: str | None, control: str | None, by: str, *notes: str) -> Chosen:
        named = {} if name is None else {"congestion_control": name}
        return Chosen({"kind": "tcp", **named, **window}, control, by, list(notes))

    name = request.congestion_control
    if name is None:
        yield tcp(None, default_at(sender), "default")
        return
    is_own = name.endswith(".c") or bool(request.parameters)
    names = names_at(sender)
    if not is_own and name in names:
        yield tcp(name, name, "kernel")
        return
    if not is_own and not _is_elephans(name):
        raise InputError(
            f"--cc {name}: neither elephan's nor one that this user may choose at {sender.name}, which has "
            f"{', '.join(sorted(names))}"
        )
    parameters = _parameters(request)
    with _registered(name, parameters, sender, token) as (registered, why):
        if registered is not None:
            yield tcp(registered, name, "bpf")
        elif f"elephan_{find(name).name}" in names and not is_own:
            yield tcp(f"elephan_{find(name).name}", name, "kernel")
        else:
            yield tcp(
                None,
                default_at(sender),
                "default",
                f"{sender.name}: {find(name).name} cannot be loaded there ({why}): the copy uses the kernel's default "
                "instead; --transport quic runs it without rights",
            )


def _quic(request: CopyRequest) -> Chosen:
    name = request.congestion_control
    transport: dict[str, Any] = {"kind": "quic"}
    if request.window_bytes is not None:
        transport["window_bytes"] = request.window_bytes
    if name is not None:
        cc = find(name)
        transport |= {"source": cc.code} if cc.path else {"congestion_control": cc.name}
        transport["parameters"] = _parameters(request)
    return Chosen(transport, name or "cubic", "quic")


@contextmanager
def _registered(
    name: str, parameters: Mapping[str, int], sender: Side, token: str
) -> Iterator[tuple[str | None, str]]:
    """Give the kernel's name of the control while it is registered, or None and the reason that it cannot be."""
    if sender.agent is None:
        with _registered_here(name, parameters) as found:
            yield found
        return
    assert sender.host is not None, "an agent has a host"
    # With the rights that its user may have: the copy's own agent has none.
    with connected(sender.host) as agent, _held(agent, name, parameters, token) as found:
        yield found


@contextmanager
def _registered_here(name: str, parameters: Mapping[str, int]) -> Iterator[tuple[str | None, str]]:
    why = lacks() or (None if os.geteuid() == 0 else "needs root")
    if why is not None:
        yield None, why
        return
    run, lock = run_lock.acquire()
    try:
        with in_kernel(run, [(name, tuple(sorted(parameters.items())))]) as (registered,):
            yield registered, ""
    finally:
        with suppress(OSError):
            (run_lock.LOCKS / run).unlink()
        os.close(lock)


@contextmanager
def _held(agent: Agent, name: str, parameters: Mapping[str, int], token: str) -> Iterator[tuple[str | None, str]]:
    facts, cc = look(agent, samples=1), find(name)
    why = facts.why_no_bpf
    if why is None and "cong_control" in cc.hooks and facts.release < RELEASE_CONG_CONTROL:
        why = f"its Linux {facts.release[0]}.{facts.release[1]} takes no {cc.name} by BPF (6.10 does)"
    if why is not None:
        yield None, why
        return
    registered = f"elephan_h{token[:4]}00"
    plan = {
        "name": registered,
        "object": object_of(cc, cc.path or f"{cc.name}.c").hex(),
        "label": f"{cc.name}=copy {token[:4]}",
        "parameters": dict(parameters),
    }
    reply = agent.begin("hold", controls=[plan])
    with ending(agent.inbox, [reply]):
        if not agent.inbox.wait(lambda: reply.has_ended or reply.event("held") is not None, HELD_S):
            raise RunError(f"{agent.host.name}: its agent does not register {cc.name} within {HELD_S:g} s")
        if reply.event("held") is None:
            try:
                reply.result()
            except ElephanError as error:
                yield None, str(error)
                return
        yield registered, ""
