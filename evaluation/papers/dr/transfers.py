"""Copies of a file as the paper counts them: the file's size over the time from the opening to the last byte."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from elephan.papers.spread import Spread
from elephan.record import Record
from elephan.run_spec.quantities import loss_rate
from elephan.run_spec.types import RunSpec

UNTUNED_BYTES, TUNED_BYTES = 65_535, 184_320
"""The paper's windows: without TCP tuning and with it."""

CCS = {"reno": ("Reno", 0), "bic": ("BIC", 1), "fast": ("FAST", 2), "fast20": ("FAST, alpha 20", 3)}
"""Title and colour, slowest in the paper first."""

JUDGED = ("reno", "bic", "fast")
"""Congestion controls of the verdicts; FAST with its default alpha."""

STATED, POLICED = "line", "policer"
"""Two readings of "rate-limited to 45 Mbps": a line with a queue, and a policer of 8 KiB."""

READINGS = {STATED: "line with a queue", POLICED: "policer of 8 KiB"}

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, order=True)
class Transfer:
    """A copy and its throughput."""

    application: str
    """ "FTP", "SCP", or "BBFTP n" with n streams."""
    streams: int
    window_bytes: int
    cc: str
    file_bytes: int
    mb_per_s: float
    """Size of the file over its transfer time, 10^6 B/s."""


def transfer_of(record: Record) -> Transfer:
    """Return the copy of a record. Raises KeyError when it did not end."""
    flow = record.spec["flows"][0]
    transport, workload = flow["transport"], flow["workload"]
    assert workload["kind"] in ("bulk", "program"), "a copy"
    file_bytes = workload["bytes"]
    completion_s = record.metrics["completion_s"]
    assert file_bytes is not None and completion_s is not None, "of a file, and it ended"
    streams = len(record.spec["flows"])
    return Transfer(
        application=_application(record, streams),
        streams=streams,
        window_bytes=transport["window_bytes"],
        cc=f"{transport['congestion_control']}{transport['parameters'].get('alpha') or ''}",
        file_bytes=file_bytes,
        mb_per_s=file_bytes / completion_s / 1e6,
    )


def _application(record: Record, streams: int) -> str:
    flow = record.spec["flows"][0]
    workload = flow["workload"]
    if workload["kind"] == "program":
        return workload["program"].upper()
    if flow["transport"]["send_buffer_bytes"] is not None:
        return "SCP"
    # With one stream BBFTP is the same copy.
    return "FTP" if streams == 1 else f"BBFTP {streams}"


def reading_of(spec: RunSpec) -> str:
    """Return which of the two readings a run's path is."""
    return POLICED if "policer" in spec["links"][0] else STATED


def path_of(spec: RunSpec) -> str:
    """Return in words how a run's path and host differ from what the paper states."""
    forward = next(link for link in spec["links"] if link["name"] == "path.forward")
    flow = spec["flows"][0]
    first = spec["links"][flow["route"][0]]
    if "policer" in forward:
        policer = forward["policer"]
        return f"policer of {policer['rate_bps'] / 1e6:g} Mbit/s, {policer['burst_bytes'] >> 10} KiB"
    if first["name"] != forward["name"]:
        return f"host of {first['rate_bps'] / 1e6:g} Mbit/s"
    if flow["transport"]["send_buffer_bytes"] is not None:
        return f"application keeps {flow['transport']['send_buffer_bytes']} B in flight"
    background = [source for source in spec["background"] if source["enabled"]]
    if background:
        bursts = "" if background[0]["on_off_ns"] is None else ", in bursts"
        return f"competing traffic of 77 %{bursts}"
    queue = forward["queue"]
    if queue["kind"] == "drop_tail" and queue["limit_packets"] is not None:
        return f"queue of {queue['limit_packets']} packets"
    loss = loss_rate(forward["loss"])
    return f"random loss {loss:g}" if loss else "as stated"


def spreads(transfers: Iterable[Transfer], key: Callable[[Transfer], Key]) -> dict[Key, Spread]:
    """Return throughputs by key, in the order in which keys come."""
    return spreads_of((key(transfer), transfer.mb_per_s) for transfer in transfers)


def spreads_of(values: Iterable[tuple[Key, float]]) -> dict[Key, Spread]:
    """Return values by key, in the order in which keys come."""
    found: dict[Key, list[float]] = {}
    for name, value in values:
        found.setdefault(name, []).append(value)
    return {name: Spread(tuple(values)) for name, values in found.items()}


def by_reading(records: Sequence[Record]) -> dict[str, list[Transfer]]:
    """Return the copies by reading of the path."""
    found: dict[str, list[Transfer]] = {STATED: [], POLICED: []}
    for record in records:
        found[reading_of(record.spec)].append(transfer_of(record))
    return found


def streams_text(count: int) -> str:
    """Return a number of streams in words."""
    return f"{count} stream" + ("s" if count > 1 else "")
