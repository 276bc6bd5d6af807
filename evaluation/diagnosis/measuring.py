"""The flows of a draw over emulated paths, watched while they run; what was seen, beside what the path did."""

from __future__ import annotations

import contextlib
import json
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from elephan.core import native
from elephan.network_namespace import within
from elephan.path.report import Report
from elephan.path.session import Opened, open_path
from elephan.path.testbed import Host, address
from elephan.record import canonical_json
from elephan.scenario import load
from evaluation.diagnosis.cases import TICK_S, WATCHED_S, Case

PORT = 5001
BATCH_BPS = 700_000_000
"""Sum of the rates of flows that run at once."""
BATCH_CASES = 6
INTERVAL_NS = 20_000_000
"""Between two samples, as `elephan diagnose` takes them."""
HELD_UP_S, HELD_UP = 0.002, 0.1
"""What the emulator may hold packets up: a time, or a part of the path's RTT."""
LATE_READS = 0.05
"""Part of the samples in which a receiver may be late."""
DROPS = 0.002
"""Part of the packets of an application that its bursts may lose."""
BLOCK = bytes(1 << 18)
SYSCTLS = {"tcp_rmem": "4096 131072 134217728", "tcp_wmem": "4096 16384 134217728"}
"""Windows that no case means to be the limit."""
SO_MAX_PACING_RATE = 47
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
TCP_WINDOW_CLAMP = 10


@dataclass
class Seen:
    """A case and what was measured."""

    case: Case
    sender: dict[str, Any]
    """Of its end: as `native.watch_flows` returns it."""
    receiver: dict[str, Any]
    received_bps: float
    """What the far applications read while the flows were watched."""
    link: dict[str, int]
    """Counters of the path's forward link, of the same time."""
    held_up_s: float
    """Time that the emulator let one packet in a hundred wait, by its own fault."""
    watched_s: float = WATCHED_S

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Seen:
        """Return what `asdict` made of one."""
        case = dict(stored["case"])
        case["policer"] = tuple(case["policer"]) if case["policer"] else None
        return cls(**{**stored, "case": Case(**case)})

    def was_held_up(self) -> bool:
        """Return True if the emulator delayed packets by more than the path's own times allow."""
        return self.held_up_s > max(HELD_UP_S, HELD_UP * self.case.rtt_s)

    def came_about(self) -> str | None:
        """Return why the case's limit was not the flow's, from counters that the diagnosis has not; None if it was."""
        case, share = self.case, self.received_bps / self.case.rate_bps
        drops, losses, policed = (self.link[f"dropped_by_{by}"] for by in ("queue", "loss", "policer"))
        carried_bps = self.link["delivered_bytes"] * 8 / self.watched_s
        if self.was_held_up():
            return f"the emulator held packets up by {self.held_up_s * 1e3:.1f} ms"
        if case.limit == "queue":
            return None if share > 0.8 else f"the line was used to {share:.0%} only"
        if case.limit == "policer":
            assert case.policer is not None
            used = self.received_bps / case.policer[0]
            # BBR paces at a policer's rate for a while, once it has found one.
            if not policed and not (case.congestion_control == "bbr" and used > 0.8):
                return "the policer dropped nothing"
            return None if used > 0.5 else f"{used:.0%} of the policer's rate only"
        if share > 0.85:
            return f"the line was used to {share:.0%}"
        if case.limit == "loss":
            if not losses:
                return "nothing was lost"
            return None if drops <= losses / 10 else f"the queue dropped {drops}, and {losses} were lost"
        if case.limit == "application":
            assert case.write_bps is not None
            written = self.received_bps / case.write_bps
            if drops > self.link["delivered_packets"] * DROPS:
                return f"its own bursts overflowed the queue, which dropped {drops}"
            return None if written > 0.9 else f"{written:.0%} of what the application writes arrived"
        if case.limit == "receiving_application" and carried_bps > 1.15 * self.received_bps + 1e5:
            return "the receiver's buffer was not full yet"
        if case.limit == "receive_window" and (late := self._late_reads()) > LATE_READS:
            return f"its receiver was late to read, in {late:.0%} of samples"
        return f"the queue dropped {drops}" if drops else None

    def _late_reads(self) -> float:
        """Return the share of the receiving end's samples with half of the window or more unread."""
        samples = [sample for flow in self.receiver["flows"] for sample in flow["samples"]]
        late = [one for one in samples if one["unread_bytes"] > one["rcv_wnd_bytes"]]
        return len(late) / max(len(samples), 1)


def batches(cases: Sequence[Case]) -> list[list[Case]]:
    """Return groups that run at once, those that take longest together."""
    found: list[list[Case]] = []
    for case in sorted(cases, key=lambda one: -one.warm_up_s):
        for batch in found:
            if len(batch) < BATCH_CASES and sum(one.expected_bps for one in [*batch, case]) <= BATCH_BPS:
                batch.append(case)
                break
        else:
            found.append([case])
    return found


def run(batch: Sequence[Case], watched_s: float = WATCHED_S) -> list[Seen]:
    """Run the flows of a batch at once, each over a path of its own, and watch each."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "paths.toml"
        file.write_text(_scenario(batch))
        (point,) = load(file, []).points_looked_at()
        spec = point.to_spec()
    hosts = [Host(address(number), number, sysctls=SYSCTLS) for number in range(2 * len(batch))]
    with open_path(hosts, spec, {"what": "diagnosis", "of": "evaluation"}) as path:
        assert isinstance(path, Opened), "the scenario asks for no other emulator"
        routes = []
        for number in range(len(batch)):
            routes.append({"from": 2 * number, "to": 2 * number + 1, "links": [2 * number]})
            routes.append({"from": 2 * number + 1, "to": 2 * number, "links": [2 * number + 1]})
        plan = {"hosts": path.place.plan(), "flows": [], "routes": routes, "emulator": {}}
        path.emulator.start(canonical_json(dict(spec)), canonical_json(plan))
        ends = [path.place.files[2 * number : 2 * number + 2] for number in range(len(batch))]

        def counted(number: int) -> dict[str, int]:
            snapshot = path.emulator.snapshot()
            assert snapshot is not None, "it was started"
            return {name: int(str(value)) for name, value in snapshot["links"][2 * number].items()}

        pairs = [
            _Pair(case, Path(near), Path(far), address(2 * number + 1), partial(counted, number), watched_s)
            for number, (case, (near, far)) in enumerate(zip(batch, ends, strict=True))
        ]
        threads = [threading.Thread(target=pair.go) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        report = path.stop(spec)
    for pair in pairs:
        if pair.error is not None:
            raise pair.error
    assert isinstance(report, Report), "of the same emulator"
    held_up_s = max(report.core["late_p99_ns"] or 0, report.core["waited_p99_ns"] or 0) / 1e9
    return [Seen(pair.case, *pair.seen, pair.received_bps, pair.link, held_up_s, watched_s) for pair in pairs]


def _scenario(batch: Sequence[Case]) -> str:
    lines = ["[run]", 'duration = "1h"']
    for number, case in enumerate(batch):
        a, b = f"a{number}", f"b{number}"
        lines += ["[[node]]", f'name = "{a}"', "[[node]]", f'name = "{b}"']
        lines += ["[[link]]", f'from = "{a}"', f'to = "{b}"', f'bandwidth = "{case.rate_bps}bit/s"']
        lines += [
            f'delay = "{case.rtt_s / 2 * 1e9:.0f}ns"',
            f'queue = "{case.queue_bytes}B"',
            f"loss = {case.loss:.12f}",
        ]
        if case.policer is not None:
            rate, burst = case.policer
            lines.append(f'policer = {{ rate = "{rate}bit/s", burst = "{burst}B" }}')
        lines += ['reverse = { loss = 0.0, bandwidth = "1Gbit/s", queue = "100MB" }']
        lines += ["[[flow]]", f'from = "{a}"', f'to = "{b}"']
    return "\n".join(lines)


class _Pair:
    """The two ends of a case's path."""

    def __init__(
        self,
        case: Case,
        near: Path,
        far: Path,
        far_address: str,
        counted: Callable[[], dict[str, int]],
        watched_s: float,
    ) -> None:
        self.case, self.near, self.far, self.far_address = case, near, far, far_address
        self.watched_s = watched_s
        self.link: dict[str, int] = {}
        self._counted = counted
        self.seen: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        self.received_bps = 0.0
        self.error: Exception | None = None
        self._received = 0
        self._ends: list[socket.socket] = []
        self._over = threading.Event()

    def go(self) -> None:
        """Connect, warm up, watch, end."""
        try:
            self._go()
        except Exception as error:  # raised again by the thread that waits
            self.error = error

    def _go(self) -> None:
        case = self.case
        listener = within(self.far, self._listen)
        with contextlib.ExitStack() as stack:
            stack.callback(listener.close)
            threads = []
            watchers = []
            if case.limit == "start_up":
                watchers = self._watchers()
                time.sleep(0.1)
            for _ in range(case.flows):
                near = within(self.near, self._socket)
                near.connect((self.far_address, PORT))
                far, _ = listener.accept()
                stack.callback(far.close)
                stack.callback(near.close)
                threads.append(threading.Thread(target=self._write, args=(near,)))
                threads.append(threading.Thread(target=self._read, args=(far,)))
            for thread in threads:
                thread.start()
            if not watchers:
                time.sleep(case.warm_up_s)
                watchers = self._watchers()
            began, received, before = time.monotonic(), self._received, self._counted()
            for watcher in watchers:
                watcher.join()
            self.received_bps = (self._received - received) * 8 / (time.monotonic() - began)
            self.link = {name: value - before[name] for name, value in self._counted().items()}
            self._over.set()
            self._cut(threads)

    def _cut(self, threads: Sequence[threading.Thread]) -> None:
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()

    def _watchers(self) -> list[threading.Thread]:
        results: list[dict[str, Any]] = [{}, {}]
        self.seen = (results[0], results[1])

        def watch(place: int, file: Path) -> None:
            # A short flow is watched until it is over: what comes after it is no part of it.
            stop = lambda seconds: self._over.is_set()  # noqa: E731
            text = native.watch_flows(int(self.watched_s * 1e9), INTERVAL_NS, stop, port=PORT, namespace=str(file))
            results[place].update(json.loads(text))

        threads = [threading.Thread(target=watch, args=(i, file)) for i, file in enumerate((self.near, self.far))]
        for thread in threads:
            thread.start()
        return threads

    def _listen(self) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self.case.receive_buffer_bytes is not None:
            listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, self.case.receive_buffer_bytes)
        if self.case.window_clamp_bytes is not None:
            listener.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, self.case.window_clamp_bytes)
        listener.bind((self.far_address, PORT))
        listener.listen(16)
        return listener

    def _socket(self) -> socket.socket:
        case = self.case
        near = socket.socket()
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, case.congestion_control.encode())
        if case.send_buffer_bytes is not None:
            near.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, case.send_buffer_bytes)
        if case.pacing_bps is not None:
            near.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, (case.pacing_bps // 8).to_bytes(8, "little"))
        return near

    def _write(self, near: socket.socket) -> None:
        self._ends.append(near)
        case, left = self.case, self.case.total_bytes
        with contextlib.suppress(OSError):
            if case.write_bps is not None:
                for size in _ticks(case.write_bps, case.burst_bytes, self._over):
                    near.sendall(bytes(size))
            while not self._over.is_set() and (left is None or left > 0):
                block = BLOCK if left is None else BLOCK[: min(left, len(BLOCK))]
                near.sendall(block)
                left = None if left is None else left - len(block)
            if left is not None:
                near.shutdown(socket.SHUT_WR)

    def _read(self, far: socket.socket) -> None:
        self._ends.append(far)
        case, into = self.case, bytearray(1 << 20)
        with contextlib.suppress(OSError):
            if case.read_bps is not None:
                for size in _ticks(case.read_bps, case.read_bytes, self._over):
                    while size > 0 and (got := far.recv_into(into, min(size, len(into)))):
                        size -= got
                        self._received += got
            while got := far.recv_into(into):
                self._received += got
        if case.total_bytes is not None:
            time.sleep(case.rtt_s)
            self._over.set()


def _ticks(rate_bps: float, piece: int, over: threading.Event) -> Iterator[int]:
    """Yield sizes, each at its time, of which the sum grows by `rate_bps`."""
    began, done = time.monotonic(), 0
    step_s = piece * 8 / rate_bps if piece else TICK_S
    number = 0
    while not over.is_set():
        number += 1
        size = piece or int(rate_bps / 8 * step_s * number) - done
        yield size
        done += size
        rest = began + number * step_s - time.monotonic()
        if rest > 0:
            over.wait(rest)
