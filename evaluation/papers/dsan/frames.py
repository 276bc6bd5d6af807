"""Numbers of records with whole gateways: the payload of frames beside the bytes of TCP that carry it."""

from __future__ import annotations

from elephan.papers.evaluation import megabytes_per_s
from elephan.record import Record
from elephan.run_spec.types import FcWorkloadSpec

FRAME_BYTES = 2112
"""Payload of a frame, FC's longest."""

STREAM_BYTES = FRAME_BYTES + 24 + 4 + 8 + 28
"""Bytes of TCP that carry it: header and CRC (FC-FS-2), SOF and EOF and the encapsulation's header (RFC 3643)."""

PAYLOAD_SHARE = FRAME_BYTES / STREAM_BYTES
"""Share of the payload in TCP's bytes."""


def payload(record: Record) -> float:
    """Return the payload of frames that reached their N_Port, MB/s."""
    carried = record.metrics.get("fc_bytes_per_s")
    # A flow that stalled for the whole time carried 0, which is a number.
    return (float("nan") if carried is None else float(carried)) / 1e6


def stream(record: Record) -> float:
    """Return the goodput of TCP between the gateways, encapsulation included, MB/s."""
    return megabytes_per_s(record.metrics.get("goodput_bps"))


def workload(record: Record) -> FcWorkloadSpec:
    """Return the workload of a record's gateways."""
    found = record.spec["flows"][0]["workload"]
    assert found["kind"] == "fc", "the scenarios of whole gateways have no other"
    return found


def pairs(record: Record) -> int:
    """Return the number of pairs of N_Ports."""
    return workload(record)["pairs"]


def offered(record: Record) -> float:
    """Return the payload that the generators of all pairs offer, MB/s."""
    return pairs(record) * megabytes_per_s(workload(record)["load"]["rate_bps"])


def stalled_share(record: Record) -> float:
    """Return the part of the run in which a sending N_Port waited for a credit, mean over the ports."""
    stalled, run = record.metrics.get("credit_stall_s"), record.metrics.get("simulated_s")
    return float(stalled or 0) / float(run or 1) / pairs(record)
