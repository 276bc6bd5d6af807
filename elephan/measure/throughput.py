"""Throughput of one TCP transfer to an iperf3 server, in bytes that its caller allows."""

from __future__ import annotations

import ctypes
import json
import math
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from elephan.errors import InputError, RunError

PORT = 5201
"""Default port of iperf3(1)."""
MAX_BYTES = 100_000_000
"""Bytes of a test that nobody bounds otherwise."""
MAX_SECONDS = 30.0
"""Time of such a test, s."""
CONNECT_MS = 5000
"""Time for a server to answer, ms."""
BUSY_TRIES = 4
"""Connections to a server that has another test, one second apart."""
INTERVALS = 20
"""Intervals that a test of full length has."""
PR_SET_PDEATHSIG = 1
LOOK_S = 0.1
"""Time between two looks for a signal, s."""

WaitForTermination = Callable[[float | None], bool]
"""Wait for signals that end a program (elephan.signals)."""


@dataclass(frozen=True)
class Transfer:
    """One transfer: its server and its bounds, of which the first that is reached ends it.

    Without a bound of bytes it lasts `max_seconds`, rounded up to whole seconds as iperf3 counts.
    """

    host: str
    port: int = PORT
    max_bytes: int | None = MAX_BYTES
    max_seconds: float = MAX_SECONDS
    streams: int = 1
    congestion_control: str | None = None
    """Name in the kernel; None: the host's default."""
    is_reverse: bool = False
    """The server sends."""

    @property
    def whole_seconds(self) -> int:
        """Time of a transfer without a bound of bytes, s."""
        return max(1, math.ceil(self.max_seconds))

    def command(self) -> list[str]:
        """Return the words of iperf3. It takes bytes or seconds: beside bytes, whoever runs it bounds the time."""
        interval = max(0.1, round(self.max_seconds / INTERVALS, 1))
        words = ["iperf3", "-c", self.host, "-p", str(self.port), "-J", "-i", str(interval)]
        words += ["-t", str(self.whole_seconds)] if self.max_bytes is None else ["-n", str(self.max_bytes)]
        words += ["-P", str(self.streams), "--connect-timeout", str(CONNECT_MS)]
        words += [] if self.congestion_control is None else ["-C", self.congestion_control]
        return [*words, "-R"] if self.is_reverse else words


def target(towards: str) -> tuple[str, int]:
    """Return host and port of `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT`. Raises `InputError`."""
    if towards.startswith("["):
        host, _, rest = towards[1:].partition("]")
        port = rest.removeprefix(":") if rest else str(PORT)
    elif towards.count(":") == 1:
        host, _, port = towards.partition(":")
    else:
        host, port = towards, str(PORT)
    if not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise InputError(f"{towards}: HOST or HOST:PORT of an iperf3 server is needed, with a port from 1 to 65535")
    return host, int(port)


def run(transfer: Transfer, wait_for_termination: WaitForTermination) -> dict[str, Any]:
    """Return the outcome of a transfer, as estimators give it.

    Its value is the goodput at the receiver, bit/s; its interval is that of the mean of the rates within the test
    (Student's t, 95 %). Raises `InputError`, `RunError`, and `native.Stopped` at a signal.
    """
    if shutil.which("iperf3") is None:
        raise RunError("throughput: iperf3 is not installed here (Debian: apt install iperf3)")
    for last in [*[False] * (BUSY_TRIES - 1), True]:
        began = time.monotonic()
        report = _report(transfer, wait_for_termination)
        error = "" if _was_ended(report) else str(report.get("error", ""))
        if "busy" not in error or last:
            break
        _sleep(1.0, wait_for_termination)
    if error:
        raise RunError(f"{transfer.host}: iperf3, port {transfer.port}: {_own_words(error)}")
    return _outcome(transfer, report, time.monotonic() - began)


def _was_ended(report: dict[str, Any]) -> bool:
    """Return True for a report of a transfer that was ended by its time: iperf3 calls that an error."""
    return "interrupt" in str(report.get("error", "")) and bool(report["end"].get("sum_sent"))


def _own_words(error: str) -> str:
    """Return a message of iperf3 with the remedy, where there is one."""
    if "refused" in error or "timed out" in error:
        return f"{error}: start `iperf3 -s` there, or open its port"
    return error


def _report(transfer: Transfer, wait_for_termination: WaitForTermination) -> dict[str, Any]:
    """Run iperf3 and return its JSON. Its own end at a signal reports the part that was done."""
    libc = ctypes.CDLL(None)
    process = subprocess.Popen(
        transfer.command(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
        # Nobody would end it otherwise once this process is killed, and it would send all its bytes (prctl(2)).
        preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
    )
    try:
        text, errors = _ended(process, transfer, wait_for_termination)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    try:
        report: dict[str, Any] = json.loads(text)
    except ValueError as fault:
        words = errors.strip().splitlines() or [f"exit status {process.returncode}"]
        raise RunError(f"iperf3: {words[-1]}") from fault
    return report


def _ended(
    process: subprocess.Popen[str], transfer: Transfer, wait_for_termination: WaitForTermination
) -> tuple[str, str]:
    """Wait for a process within the bound of its transfer; return its output and its errors."""
    from elephan.core import native

    # SIGINT makes iperf3 report the part that was done; its own time to connect comes on top.
    end = time.monotonic() + transfer.max_seconds
    if transfer.max_bytes is None:
        end = time.monotonic() + transfer.whole_seconds + 2 * CONNECT_MS / 1000
    told = False
    while True:
        try:
            return process.communicate(timeout=LOOK_S)
        except subprocess.TimeoutExpired:
            pass
        if wait_for_termination(0):
            raise native.Stopped("told to stop")
        if time.monotonic() > end:
            if told:
                raise RunError(f"{transfer.host}: iperf3 does not end")
            process.send_signal(2)
            told, end = True, time.monotonic() + CONNECT_MS / 1000 + 5


def _sleep(seconds: float, wait_for_termination: WaitForTermination) -> None:
    from elephan.core import native

    if wait_for_termination(seconds):
        raise native.Stopped("told to stop")


def _outcome(transfer: Transfer, report: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return the outcome of iperf3's report."""
    sums = [one["sum"] for one in report["intervals"] if not one["sum"]["omitted"]]
    sent, received = (report["end"].get(key, {}) for key in ("sum_sent", "sum_received"))
    # A client that is ended early has no count of its server: its own stands, with a note. Its bytes are those that it
    # wrote, so the buffer that it fills at first is in them: the first quarter of the time does not count.
    told = received if transfer.is_reverse or not _was_ended(report) else sent
    if not told.get("bytes"):
        raise RunError(f"{transfer.host}: iperf3 carried no data in {transfer.max_seconds:g} s")
    control = transfer.congestion_control or report["end"].get("sender_tcp_congestion", "TCP")
    notes = [f"{control}, {_streams(transfer)}"]
    value = float(told["bits_per_second"])
    if told is sent:
        sums = sums[len(sums) // 4 :]
        value = 8 * sum(one["bytes"] for one in sums) / max(1e-9, sum(one["seconds"] for one in sums))
        notes.append("ended by its time: the rate is the sender's, without the first quarter of the time")
    if sent.get("retransmits"):
        notes.append(f"{sent['retransmits']} segments were sent again")
    sent_bytes = int(sent.get("bytes") or told["bytes"])
    low, high = interval([one["bits_per_second"] for one in sums], value)
    return {
        "estimates": [{"quantity": "throughput_bps", "value": value, "low": low, "high": high}],
        "refused": None,
        "notes": notes,
        "cost": {
            "packets": math.ceil(sent_bytes / max(1, int(report["start"].get("tcp_mss_default") or 1448))),
            "bytes": sent_bytes,
            "seconds": seconds,
        },
        "took_s": seconds,
    }


def _streams(transfer: Transfer) -> str:
    return "1 connection" if transfer.streams == 1 else f"{transfer.streams} connections"


def interval(rates: Sequence[float], value: float) -> tuple[float, float]:
    """Return the interval of a mean, 95 %, around `value`; the value itself where fewer than three rates tell."""
    if len(rates) < 3:
        return value, value
    mean = sum(rates) / len(rates)
    deviation = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / (len(rates) - 1))
    half = _t95(len(rates) - 1) * deviation / math.sqrt(len(rates))
    return max(0.0, value - half), value + half


def _t95(freedom: int) -> float:
    """Return Student's t for 95 % of both sides: the expansion of Abramowitz and Stegun, 26.7.5, to its third term."""
    z = 1.959964
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    t: float = z + sum(term / freedom ** (power + 1) for power, term in enumerate(terms))
    return t
