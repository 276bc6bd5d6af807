"""One attempt of a copy: both ends started, brought together, watched until they have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from elephan.copy import tunnel
from elephan.copy.ends import End, LocalEnd, RemoteEnd, has_ended, stopped
from elephan.copy.faults import FOLLOWS, CopyFailed, telling
from elephan.copy.request import CopyRequest
from elephan.copy.sides import LOOPBACK, Side, Sides, end_paths
from elephan.core import native

CONNECT_S = 10.0
"""Time for the ends to meet, s."""
CONNECT_FIRST_S = 5.0
"""The same where the other side may listen if they do not: a SYN goes out after 0, 1 and 3 s (RFC 6298)."""
CONNECT_BY_SSH_S = 30.0
"""The same where each connection is an ssh, with its own handshake."""
LISTEN_S = 10.0
"""Time for an end to listen, s."""
LOOK_S = 0.05
"""Time between two looks at what runs in this process, s."""
OTHER_END_S = 3.0
"""Time for the other end to say why it has ended, s."""

Tell = Callable[[dict[str, Any]], None]
Wait = Callable[[float | None], bool]


@dataclass
class Steered:
    """Ends of an attempt, for a loop that steers."""

    ends: list[End]

    def steer(self, change: Mapping[str, int]) -> None:
        """Hand a change to the sending end."""
        for end in self.ends:
            if end.role == "send":
                end.steer(change)


@dataclass
class Attempt:
    """One attempt, by whichever way its ends meet, and its result."""

    request: CopyRequest
    sides: Sides
    copy: str
    """Name of the copy at both ends."""
    transport: Mapping[str, Any]
    streams: int
    rate_bps: int | None
    tell: Tell
    wait: Wait
    on_progress: Callable[[dict[str, Any], Steered], None] = lambda _event, _steered: None
    """Called with each event `progress` of the sender."""
    has_connected: bool = False
    retries: int = 0
    path: dict[str, Any] = field(default_factory=dict)
    """Once connected: `listener`, `address`, `port`, `rtt_s`, `encryption`."""
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    """`EndReport` by role."""

    def run(self, listeners: list[Side]) -> Side:
        """Run it, with the first listener that the other side reaches; return that.

        Raises `CopyFailed`, `InputError` and `native.Stopped`.
        """
        tried = []
        for number, listener in enumerate(listeners):
            try:
                self._run(listener, is_last=number == len(listeners) - 1)
            except CopyFailed as fault:
                if self.has_connected or fault.kind not in ("peer", "port"):
                    raise
                tried.append(str(fault))
                if number == len(listeners) - 1:
                    raise CopyFailed("peer", self._nobody_meets(tried)) from None
            else:
                return listener
        raise AssertionError("there is a listener")

    def _nobody_meets(self, tried: list[str]) -> str:
        why = "; then ".join(dict.fromkeys(tried))
        source, destination = self.sides.source.name, self.sides.destination.name
        if self.request.is_local or self.request.over_ssh:
            return why
        return (
            f"no connection for data between {source} and {destination}: {why}: open a port (elephan hosts add ... "
            "--ports), or carry data through ssh: --over-ssh"
        )

    def _run(self, listener: Side, *, is_last: bool) -> None:
        connector = self.sides.destination if listener is self.sides.source else self.sides.source
        keys = dict(native.copy_keys())
        ends: list[End] = []
        try:
            connect_s = CONNECT_BY_SSH_S if self.request.over_ssh else CONNECT_S if is_last else CONNECT_FIRST_S
            shared = {"connect_s": connect_s}
            is_inside = self.request.over_ssh or self.request.is_local
            ports = None if is_inside or listener.host is None else listener.host.ports
            own = {"local": LOOPBACK} if is_inside else {}
            ends.append(
                self._start(
                    listener, keys, {"side": "listen", **({} if ports is None else {"ports": ports}), **own, **shared}
                )
            )
            listening = self._listening(ends)
            address = LOOPBACK if is_inside else self.sides.address(listener)
            with self._through(listener, listening["port"]) as (port, tunnelled):
                ends.append(self._start(connector, keys, {"side": "connect", "peer": address, "port": port, **shared}))
                self.path = {
                    "listener": listener.name,
                    "address": address,
                    "port": listening["port"],
                    "encryption": self._encryption(),
                }
                try:
                    self._watch(ends)
                except CopyFailed as fault:
                    if tunnelled is not None and tunnelled.fault is not None and not self.has_connected:
                        raise CopyFailed("peer", tunnelled.fault) from None
                    raise fault
        finally:
            stopped(ends, self._take)
            for end in ends:
                self._forward(end, ends)

    @contextmanager
    def _through(self, listener: Side, port: int) -> Iterator[tuple[int, tunnel.Tunnel | None]]:
        if not self.request.over_ssh:
            yield port, None
            return
        assert listener.host is not None, "the remote side listens"
        with tunnel.opened(listener.host, port) as through:
            yield through.port, through

    def _encryption(self) -> str:
        if self.request.over_ssh:
            return "ssh"
        if self.request.transport == "quic":
            return "TLS 1.3 (QUIC)"
        if self.request.is_local:
            return "none: within this machine"
        return "none: --plaintext" if self.request.plaintext else "TLS 1.3"

    def _start(self, side: Side, keys: Mapping[str, Any], connection: Mapping[str, Any]) -> End:
        request = self.request
        spec: dict[str, Any] = {
            "role": side.role,
            **connection,
            "transport": dict(self.transport),
            "streams": self.streams,
            "token": keys["token"],
            "copy": self.copy,
            "options": {**request.options, **({"verify_read": True} if request.verify == "read" else {})},
        }
        # Data within ssh, or within this machine, is not encrypted once more.
        if request.transport == "quic" or not (request.plaintext or request.over_ssh or request.is_local):
            key = {"key": keys["key"]} if connection["side"] == "listen" else {}
            spec["tls"] = {"certificate": keys["certificate"], **key}
        if self.rate_bps is not None:
            spec["rate_bps"] = self.rate_bps
        paths = end_paths(request)
        if side.role == "send":
            spec["sources"] = paths["source"]
        else:
            (spec["destination"],) = paths["destination"]
            if self.request.source_host == self.request.destination.host:
                spec["sources"] = paths["source"]
        return LocalEnd(spec, side.name) if side.agent is None else RemoteEnd(side.agent, spec)

    def _take(self, seconds: float) -> None:
        """Take what agents send, or wait."""
        if self.sides.agents():
            self.sides.inbox.take(seconds)
        else:
            time.sleep(seconds)

    def _listening(self, ends: list[End]) -> dict[str, Any]:
        deadline_s = time.monotonic() + LISTEN_S
        (end,) = ends
        while time.monotonic() < deadline_s:
            if self.wait(0):
                raise native.Stopped("stopped")
            for event in end.take():
                if event["event"] == "listening":
                    return event
                self.tell({**event, "end": end.role})
            if end.fault is not None:
                raise end.fault
            self._take(LOOK_S)
        raise CopyFailed("peer", f"{end.name}: does not listen within {LISTEN_S:g} s")

    def _watch(self, ends: list[End]) -> None:
        """Forward events until both ends have a report. Raises the fault that tells most."""
        since_s: float | None = None
        while True:
            if self.wait(0):
                raise native.Stopped("stopped")
            for end in ends:
                self._forward(end, ends)
            faults = [end.fault for end in ends if end.fault is not None]
            if all(end.report is not None for end in ends):
                break
            if faults:
                since_s = since_s or time.monotonic()
                is_known = any(fault.kind not in FOLLOWS for fault in faults)
                if is_known or all(map(has_ended, ends)) or time.monotonic() - since_s > OTHER_END_S:
                    raise telling(faults)
            self._take(LOOK_S)
        for end in ends:
            assert end.report is not None, "the loop has ended"
            self.reports[end.role] = end.report
        roots = {report["root"] for report in self.reports.values()}
        if len(roots) > 1:
            raise CopyFailed("protocol", f"the ends disagree about what was copied: roots {', '.join(sorted(roots))}")

    def _forward(self, end: End, ends: list[End]) -> None:
        for event in end.take():
            match event["event"]:
                case "connected":
                    if not self.has_connected:
                        self.path["rtt_s"] = event["rtt_s"]
                        self.path["streams"] = event["streams"]
                        self.tell({**event, **self.path})
                    self.has_connected = True
                case "progress":
                    if end.role == "send":
                        self.tell(event)
                        self.on_progress(event, Steered(ends))
                case "scanned":
                    if end.role == "send":
                        self.tell(event)
                case name:
                    self.retries += name == "retry"
                    self.tell({**event, "end": end.role})
