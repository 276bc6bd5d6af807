"""The catalogue of metrics and their meanings. Tables, plots, exports and docs/reference/metrics.md read it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from elephan import units
from elephan.report.copy_metrics import COPIES, COPY_COLUMNS
from elephan.report.traffic_metrics import OTHER_TRAFFIC, SENDING

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True)
class Metric:
    """One metric. `name` is its key in records and ends with its unit where it has one."""

    name: str
    title: str
    unit: str
    show: Callable[[float | None], str]
    better: Better
    text: str


def _all() -> tuple[Metric, ...]:
    rate, size, time, count, share = units.rate, units.size, units.duration, units.count, units.share
    return (
        Metric(
            "goodput_bps",
            "goodput",
            "bit/s",
            rate,
            "higher",
            "Payload handed to the receiving application in order, per second after the warm-up and before the drain.",
        ),
        Metric(
            "line_share",
            "share of line",
            "1",
            share,
            "higher",
            "Goodput over the first rate of the slowest line on the flow's first path: 1448/1500 = 96.5 % is full "
            "with 1500-byte packets and timestamps, 1428/1500 = 95.2 % over IPv6; a moved flow can exceed it.",
        ),
        Metric(
            "delivered_bytes",
            "delivered",
            "B",
            size,
            "higher",
            "Payload handed to the receiving application in order.",
        ),
        Metric(
            "delivered_packets",
            "delivered packets",
            "packets",
            count,
            "higher",
            "Distinct data segments that arrived at their receiver. Backend `kernel`: up to a window too few.",
        ),
        Metric("offered_bytes", "offered", "B", size, "neither", "What the workload's generator wanted to send."),
        Metric(
            "retransmitted_segments",
            "retransmitted",
            "segments",
            count,
            "lower",
            "Data segments sent again, needed or not.",
        ),
        Metric("retransmitted_bytes", "retransmitted bytes", "B", size, "lower", "Payload sent again, needed or not."),
        Metric(
            "dropped_packets",
            "dropped",
            "packets",
            count,
            "lower",
            "Packets lost by full queues, active queue management and lines.",
        ),
        Metric(
            "held_packets",
            "kept back",
            "packets",
            count,
            "neither",
            "Packets that moving routers kept back (`hold_buffer`, `delay_equalization`).",
        ),
        Metric(
            "held_bytes_max",
            "kept back max",
            "B",
            size,
            "lower",
            "Most bytes kept back at once: the buffer that the mitigation needs.",
        ),
        Metric("held_max_s", "kept back longest", "s", time, "lower", "Longest that a packet was kept back."),
        Metric(
            "held_dropped_packets",
            "dropped while kept back",
            "packets",
            count,
            "lower",
            "Packets that found the `buffer` full; part of `dropped_packets`.",
        ),
        Metric(
            "duplicate_acks",
            "duplicate ACKs",
            "ACKs",
            count,
            "lower",
            "ACKs of nothing new while data is outstanding (RFC 5681, section 2), without those that report a DSACK, "
            "as in Linux.",
        ),
        Metric(
            "cwnd_mean_packets",
            "mean window",
            "packets",
            units.plain,
            "neither",
            "Under `windows` alone: mean congestion window of the connections that are open, by 1000 samples; backends "
            "`kernel` and `hosts`: by those of the series.",
        ),
        *(Metric(*item) for item in SENDING),
        Metric("timeouts", "time-outs", "", count, "lower", "Expiries of the retransmission timer (RFC 6298)."),
        Metric(
            "fast_retransmits",
            "fast recoveries",
            "",
            count,
            "neither",
            "Episodes of loss recovery that began without a time-out.",
        ),
        Metric(
            "tlp_probes",
            "tail loss probes",
            "",
            count,
            "neither",
            "Probes sent because ACKs stayed out (RFC 8985, section 7).",
        ),
        Metric(
            "cwnd_reductions",
            "window reductions",
            "",
            count,
            "lower",
            "Times that a loss or ECN made TCP ask the congestion control for a lower window: once per recovery and "
            "time-out, later undone or not (RFC 4898, CongSignals). bbr has none to give: it takes its window back "
            "when the recovery ends. Backend `sim`, TCP.",
        ),
        Metric(
            "spurious_recoveries",
            "undone recoveries",
            "",
            count,
            "lower",
            "Reductions taken back because nothing was lost (RFC 3708, RFC 3522).",
        ),
        Metric("sent_segments", "sent", "segments", count, "neither", "Data segments sent, repeated ones too."),
        Metric("acks", "ACKs", "segments", count, "neither", "Pure ACKs that the receiver sent."),
        Metric(
            "rtt_mean_s",
            "RTT mean",
            "s",
            time,
            "lower",
            "Mean of the sender's round-trip time samples; backend `kernel`: of the smoothed one.",
        ),
        Metric("rtt_min_s", "RTT min", "s", time, "lower", "Least round-trip time sample."),
        Metric("rtt_max_s", "RTT max", "s", time, "lower", "Largest round-trip time sample."),
        Metric(
            "latency_mean_s",
            "frame mean",
            "s",
            time,
            "lower",
            "Mean time from a frame's offer, after the warm-up, to the delivery of its last byte.",
        ),
        Metric("latency_p50_s", "frame p50", "s", time, "lower", "Median of the frames' latency."),
        Metric("latency_p99_s", "frame p99", "s", time, "lower", "99 of 100 frames were delivered within this time."),
        Metric("latency_max_s", "frame max", "s", time, "lower", "Largest latency of a frame."),
        Metric("messages", "messages", "", count, "neither", "Frames offered, or writes issued."),
        Metric(
            "lag_mean_s",
            "lag mean",
            "s",
            time,
            "lower",
            "Mean replication lag: from a write at the local site, after the warm-up, to its whole arrival at the far"
            " one.",
        ),
        Metric("lag_p50_s", "lag p50", "s", time, "lower", "Median of the replication lag over all writes."),
        Metric("lag_p99_s", "lag p99", "s", time, "lower", "99 of 100 writes were at the far site within this time."),
        Metric("lag_max_s", "lag max", "s", time, "lower", "Largest replication lag of a write."),
        Metric(
            "lag_max_bytes",
            "data at risk",
            "B",
            size,
            "lower",
            "Most data written at the local site and not yet at the far one, after the warm-up: what a disaster would"
            " have lost.",
        ),
        *_of_the_start_up(),
        Metric(
            "drain_s",
            "drain",
            "s",
            time,
            "lower",
            "From the last write at the local site until the far copy is equal.",
        ),
        Metric(
            "completion_s",
            "completion",
            "s",
            time,
            "lower",
            "From opening the connection to the last byte's delivery, of a run for its last copy; `low`, `high`: the "
            "95 % interval of an extrapolated one.",
        ),
        *(Metric(*item) for item in COPIES),
        Metric(
            "completion_low_s",
            "completion from",
            "s",
            time,
            "lower",
            "Extrapolated copy: lower end of the 95 % interval of its completion.",
        ),
        Metric(
            "completion_high_s",
            "completion to",
            "s",
            time,
            "lower",
            "Extrapolated copy: upper end of the 95 % interval of its completion.",
        ),
        Metric(
            "goodput_low_bps",
            "goodput from",
            "bit/s",
            rate,
            "higher",
            "Extrapolated copy: lower end of the 95 % interval of its goodput.",
        ),
        Metric(
            "goodput_high_bps",
            "goodput to",
            "bit/s",
            rate,
            "higher",
            "Extrapolated copy: upper end of the 95 % interval of its goodput.",
        ),
        Metric(
            "expected_bytes",
            "expected",
            "B",
            size,
            "higher",
            "Extrapolated copy: bytes that arrive before the run ends; `delivered_bytes` are the simulated part's.",
        ),
        Metric(
            "jain_index",
            "fairness",
            "1",
            units.plain,
            "higher",
            "Jain's index of the connections' goodput (Jain, Chiu and Hawe 1984): 1 is equal, or one connection alone; "
            "1/n all for one of n.",
        ),
        Metric(
            "simulated_s",
            "simulated",
            "s",
            time,
            "neither",
            "Length of the run with its drain, in virtual time or, on the backends `kernel` and `hosts`, in real time.",
        ),
        Metric("cpu_s", "CPU", "s", time, "neither", "Processor time of elephan's threads."),
        Metric("events", "events", "", count, "neither", "Events that the simulator handled."),
        *_of_frames(),
        *_of_requests(),
        *_of_the_other_way(),
        *_of_the_manager(),
        *_of_the_emulator(),
        *_of_a_real_path(),
    )


def _of_the_start_up() -> tuple[Metric, ...]:
    """Return the metrics outside the measured interval: of messages that were issued during `measure.warmup`."""
    time, during = units.duration, "issued during the warm-up"
    return (
        Metric("startup_lag_p99_s", "start-up lag p99", "s", time, "lower", f"As `lag_p99_s`, of writes {during}."),
        Metric("startup_lag_max_s", "start-up lag max", "s", time, "lower", f"As `lag_max_s`, of writes {during}."),
        Metric(
            "startup_lag_max_bytes",
            "start-up data at risk",
            "B",
            units.size,
            "lower",
            "As `lag_max_bytes`, at an instant of the warm-up.",
        ),
        Metric("startup_latency_p99_s", "start-up p99", "s", time, "lower", f"As `latency_p99_s`, of frames {during}."),
        Metric("startup_latency_max_s", "start-up max", "s", time, "lower", f"As `latency_max_s`, of frames {during}."),
    )


def _of_frames() -> tuple[Metric, ...]:
    """Return the metrics of workloads `fc` and `fcp` beside those that messages have: frames over gateways."""
    count, time, size = units.count, units.duration, units.size
    waits = "Waits of {} for a buffer-to-buffer credit, with a frame to send and the line free."
    spent = "Time of those waits, of all ports together."
    return (
        Metric(
            "fc_bytes_per_s",
            "FC throughput",
            "B/s",
            units.byte_rate,
            "higher",
            "Payload of Fibre Channel frames that reached their N_Port, per second of the measured interval.",
        ),
        Metric("fc_frames", "FC frames", "", count, "higher", "Fibre Channel frames that reached their N_Port."),
        Metric("fc_bytes", "FC payload", "B", size, "higher", "Their payload."),
        Metric("latency_p95_s", "frame p95", "s", time, "lower", "95 of 100 frames took at most this time."),
        Metric("credit_stalls", "credit stalls", "", count, "lower", waits.format("sending N_Ports")),
        Metric("credit_stall_s", "credit stall time", "s", time, "lower", spent),
        Metric("gateway_credit_stalls", "gateway stalls", "", count, "lower", waits.format("gateways")),
        Metric("gateway_credit_stall_s", "gateway stall time", "s", time, "lower", spent),
        *_of_exchanges(),
    )


def _of_exchanges() -> tuple[Metric, ...]:
    """Return the metrics of workload `fcp` beside those that frames and requests have."""
    count = units.count
    text = "Exchanges that FCP initiators began: one a command, one more each time that it is sent again."
    return (
        Metric("fc_exchanges", "exchanges", "", count, "neither", text),
        Metric("fc_exchanges_unfinished", "open exchanges", "", count, "neither", "Those open when the run ended."),
        Metric("fc_aborts", "aborts", "", count, "lower", "Aborts (ABTS) that FCP initiators sent."),
        Metric(
            "fc_retries", "retries", "", count, "lower", "SCSI commands sent again, after an abort or a lost login."
        ),
        Metric(
            "fc_discarded_frames",
            "discarded frames",
            "",
            count,
            "lower",
            "Frames that gateways discarded: under way for more than half of R_A_TOV, or data that a target wants no "
            "more.",
        ),
        Metric(
            "fc_stale_frames",
            "stale frames",
            "",
            count,
            "lower",
            "Frames that reached their N_Port for an exchange that had ended there.",
        ),
        Metric(
            "fc_frames_unfinished",
            "frames under way",
            "",
            count,
            "neither",
            "Frames on their way when the run ended: `messages` without `fc_frames` and `fc_discarded_frames`.",
        ),
    )


def _of_requests() -> tuple[Metric, ...]:
    """Return the metrics of workloads `iscsi` and `fcp`: block requests done after the warm-up; of a run those of all
    its volumes.
    """
    count, time, size, speed = units.count, units.duration, units.size, units.byte_rate
    since = "from when the application has the request to its status at the initiator"
    found = [
        Metric("requests", "requests", "", count, "higher", "Block requests done."),
        Metric("requests_failed", "failed", "", count, "lower", "Block requests that ended with an error."),
        Metric("io_bytes_per_s", "throughput", "B/s", speed, "higher", "Data read and written, per second."),
        Metric("iops", "IOPS", "1/s", count, "higher", "Requests done, per second."),
    ]
    for kind, kinds, moved in (("read", "reads", "read"), ("write", "writes", "written")):
        found += [
            Metric(kinds, kinds, "", count, "higher", f"{kinds.capitalize()} done."),
            Metric(f"{moved}_bytes", moved, "B", size, "higher", f"Data of the {kinds} done."),
            Metric(f"{kind}_bytes_per_s", kinds, "B/s", speed, "higher", f"Data of the {kinds} done, per second."),
            Metric(f"{kind}_iops", f"{kind} IOPS", "1/s", count, "higher", f"{kinds.capitalize()} done, per second."),
            Metric(f"{kind}_latency_mean_s", f"{kind} mean", "s", time, "lower", f"Mean time of a {kind}, {since}."),
        ]
        for part in (50, 95, 99):
            text = f"{part} of 100 {kinds} were done within this time."
            found.append(Metric(f"{kind}_latency_p{part}_s", f"{kind} p{part}", "s", time, "lower", text))
        found.append(Metric(f"{kind}_latency_max_s", f"{kind} max", "s", time, "lower", f"Longest time of a {kind}."))
        for layer, what in LAYERS.items():
            text = f"Mean part of a {kind}'s time {what}."
            found.append(Metric(f"{kind}_{layer}_mean_s", f"{kind} {layer}", "s", time, "lower", text))
    for layer, what in LAYERS.items():
        found += [
            Metric(f"{layer}_mean_s", layer, "s", time, "lower", f"Mean part of a request's time {what}."),
            Metric(f"{layer}_p99_s", f"{layer} p99", "s", time, "lower", f"99 of 100 requests spent less {what}."),
        ]
    return tuple(found)


LAYERS = {
    "queue": "until its command was handed to TCP",
    "network": "in the network: command, R2Ts, data and status",
    "disk": "at the disk, its queue included",
}
"""Parts of a request's time; they add up to its latency."""


def _of_the_other_way() -> tuple[Metric, ...]:
    """Return the metrics of the other direction of connections that carry data both ways: from the target to the
    initiator.
    """
    count, size = units.count, units.size
    back = "from the target to the initiator"
    return (
        Metric("reverse_goodput_bps", "goodput back", "bit/s", units.rate, "higher", f"Goodput {back}."),
        Metric("reverse_delivered_bytes", "delivered back", "B", size, "higher", f"Payload delivered {back}."),
        Metric("reverse_delivered_packets", "packets back", "packets", count, "higher", f"Data segments {back}."),
        Metric("reverse_sent_segments", "sent back", "segments", count, "neither", f"Data segments sent {back}."),
        Metric(
            "reverse_retransmitted_segments",
            "again back",
            "segments",
            count,
            "lower",
            f"Data segments sent again {back}.",
        ),
        Metric("reverse_retransmitted_bytes", "bytes again back", "B", size, "lower", f"Payload sent again {back}."),
        Metric(
            "reverse_dropped_packets",
            "dropped back",
            "packets",
            count,
            "lower",
            "Packets of the other end lost, its ACKs too; part of `dropped_packets`.",
        ),
        Metric("reverse_timeouts", "time-outs back", "", count, "lower", "Retransmission time-outs at the other end."),
        Metric(
            "reverse_fast_retransmits", "recoveries back", "", count, "neither", "Loss recoveries at the other end."
        ),
    )


def _of_the_manager() -> tuple[Metric, ...]:
    """Return the metrics of short flows and of a manager, if there are any."""
    count, time = units.count, units.duration
    taken = "from opening to the last byte, of short flows that ended in the run"
    return (
        Metric("short_flows", "short flows", "", count, "neither", "Short flows that began."),
        Metric("short_completion_mean_s", "short mean", "s", time, "lower", f"Mean time {taken}."),
        Metric("short_completion_p50_s", "short p50", "s", time, "lower", f"Median of the time {taken}."),
        Metric("short_completion_p99_s", "short p99", "s", time, "lower", f"99 in 100 took at most this time {taken}."),
        Metric("short_completion_max_s", "short max", "s", time, "lower", f"Longest time {taken}."),
        Metric("moves", "moves", "", count, "neither", "Flows that the manager moved to a lightpath."),
        Metric("wasted_moves", "wasted moves", "", count, "lower", "Of those, after which nothing came over it."),
        Metric("returns", "moves back", "", count, "neither", "Flows that it moved back."),
        Metric("refusals", "refused", "", count, "neither", "Moves that it refused: dearer than what they gain."),
        Metric("set_ups", "set-ups", "", count, "neither", "Lightpaths that it had set up."),
        Metric("wasted_set_ups", "wasted set-ups", "", count, "lower", "Of those, released without having carried."),
        Metric(
            "offloaded_bytes",
            "offloaded",
            "B",
            units.size,
            "higher",
            "Bytes of moved flows over lightpaths, as the manager estimated them.",
        ),
    )


def _of_the_emulator() -> tuple[Metric, ...]:
    """Return the metrics of the emulator itself, which only the backend kernel has."""
    late = "later than the network model says"
    time = units.duration
    return (
        Metric("emulator_late_p50_s", "late p50", "s", time, "lower", f"Half of the packets came this much {late}."),
        Metric("emulator_late_p99_s", "late p99", "s", time, "lower", f"1 packet in 100 came this much {late}."),
        Metric("emulator_late_max_s", "late max", "s", time, "lower", f"One packet came this much {late}."),
        Metric(
            "emulator_own_drops",
            "own drops",
            "packets",
            units.count,
            "lower",
            "Packets lost in the emulator's own buffers.",
        ),
        Metric(
            "emulator_cpu_share",
            "emulator's core",
            "1",
            units.share,
            "lower",
            "Share of a core of the emulator's thread; above 95 % it may have been too slow.",
        ),
    )


def _of_a_real_path() -> tuple[Metric, ...]:
    """Return what the backend hosts finds of the path between the two hosts."""
    return (
        Metric("path_rtt_s", "path RTT", "s", units.duration, "neither", "Least round-trip time between two hosts."),
        Metric("path_mtu_bytes", "path MTU", "B", units.count, "neither", "MTU of the path between two hosts."),
    )


def _of_links() -> tuple[Metric, ...]:
    size, count = units.size, units.count
    return (
        Metric("carried_bps", "carried", "bit/s", units.rate, "neither", "IP packets delivered, per second."),
        Metric("delivered_packets", "delivered", "packets", count, "higher", "IP packets that left the line."),
        Metric("delivered_bytes", "delivered bytes", "B", size, "higher", "Bytes of those packets, headers included."),
        Metric("dropped_packets", "dropped", "packets", count, "lower", "All lost here: the sum of the next."),
        Metric("dropped_by_queue", "by queue", "packets", count, "lower", "Found the queue full."),
        Metric("dropped_by_aqm", "by AQM", "packets", count, "lower", "Dropped early by RED, CoDel or FQ-CoDel."),
        Metric("dropped_by_loss", "by line", "packets", count, "lower", "Taken by the line's loss model."),
        Metric("dropped_by_outage", "by outage", "packets", count, "lower", "On the line when it went down."),
        Metric(
            "fcs_errors", "FCS errors", "frames", count, "lower", "On a `line`: damaged, found by the check sequence."
        ),
        Metric("undetected_errors_expected", "undetected", "frames", units.plain, "lower", "2^-32 of `fcs_errors`."),
        Metric("dropped_by_policer", "by policer", "packets", count, "lower", "Exceeded a policer, if there is one."),
        Metric("marked_packets", "marked", "packets", count, "neither", "Marked congestion experienced (RFC 3168)."),
        Metric("queue_max_packets", "queue max", "packets", count, "lower", "Longest queue, packets."),
        Metric("queue_max_bytes", "queue max bytes", "B", size, "lower", "Longest queue, bytes."),
    )


CATALOGUE: dict[str, Metric] = {metric.name: metric for metric in _all()}

LINKS: dict[str, Metric] = {metric.name: metric for metric in _of_links()}
"""Metrics of one direction of a link, under `links`."""

BACKGROUND: dict[str, Metric] = {item[0]: Metric(*item) for item in OTHER_TRAFFIC}
"""Metrics of a source of other traffic, under `background`."""

HEADLINE = (
    "lag_p50_s",
    "lag_p99_s",
    "lag_max_s",
    "lag_max_bytes",
    "startup_lag_p99_s",
    "startup_lag_max_bytes",
    "drain_s",
    "latency_p50_s",
    "latency_p99_s",
    "latency_max_s",
    "startup_latency_p99_s",
    "fc_bytes_per_s",
    "credit_stall_s",
    "completion_s",
    *COPY_COLUMNS,
    "io_bytes_per_s",
    "iops",
    "read_latency_p50_s",
    "read_latency_p99_s",
    "write_latency_p50_s",
    "write_latency_p99_s",
    "queue_mean_s",
    "network_mean_s",
    "disk_mean_s",
    "short_completion_p50_s",
    "short_completion_p99_s",
    "moves",
    "offloaded_bytes",
    "goodput_bps",
    "reverse_goodput_bps",
    "line_share",
    "retransmitted_segments",
    "dropped_packets",
)
"""Columns of a table, in order; those that no record has are left out."""

SUFFIXES: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("_bps", "bit/s", units.rate),
    ("_bytes_per_s", "B/s", units.byte_rate),
    ("_bytes", "B", units.size),
    ("_packets", "packets", units.count),
    ("_segments", "segments", units.count),
    ("_s", "s", units.duration),
)


def metric(name: str) -> Metric:
    """Return the catalogue's entry, for "after-move.goodput_bps" that of the metric in this window of the measurement;
    for a metric of a later backend one made from its name's unit."""
    known = CATALOGUE.get(name)
    if known is not None:
        return known
    window, dot, inside = name.partition(".")
    if dot:
        return replace(metric(inside), name=name, title=f"{window}: {metric(inside).title}")
    for suffix, unit, show in SUFFIXES:
        if name.endswith(suffix):
            return Metric(name, name.removesuffix(suffix).replace("_", " "), unit, show, "neither", "")
    return Metric(name, name.replace("_", " "), "", units.plain, "neither", "")


def present(metrics: Iterable[dict[str, int | float | None]], names: Iterable[str] = HEADLINE) -> list[Metric]:
    """Return the catalogue's entries of those `names` that at least one of `metrics` has a value for."""
    given = list(metrics)
    return [metric(name) for name in names if any(item.get(name) is not None for item in given)]


HEADER = """# Metrics

Every number of a record, under `metrics` for the run and under `flows` for a connection where it makes sense. Names
carry units; what does not apply or could not be measured is `null` or absent, never a made-up zero. Of several names
the text says the first; `p50` is the median, `p99` what 99 of 100 stay within. After the unit stands + where more is
better, - where less is. Generated: `python -m elephan.report.metrics --write`.

Under `quantiles` a record has whole distributions: `per_mille` lists the places, and `lag_s`, `latency_s`,
`read_latency_s`, `write_latency_s`, `short_completion_s` and `file_time_s` have the value for each. Flows have their
own, as `lag_quantiles_s`, up to 32 connections.

A table's row of a flow with several connections has their sum of counters, rates and waits, their largest and least
values, and their means weighted by messages or requests. Its percentiles are read from the connections' distributions
together, within about one percent; without these they are the highest of a connection, and a note says so.

"""

PREFIXES = {
    "startup_": "of messages issued during the warm-up.",
    "reverse_": "from the target to the initiator, for the connection's other end.",
}
"""Prefixes of quantities that share an entry of the page."""

SIGN = {"higher": "+", "lower": "-", "neither": ""}


def as_markdown() -> str:
    """Return docs/reference/metrics.md."""
    links = "\n## Of a link\n\nUnder `links`, for each direction.\n\n" + _items(LINKS)
    sources = "\n## Of other traffic\n\nUnder `background`, for each source, over the whole run and its drain.\n\n"
    return HEADER + _items(CATALOGUE) + links + sources + _items(BACKGROUND)


def _items(catalogue: dict[str, Metric]) -> str:
    """Return an entry per quantity: its statistics share one, and so do reads and writes."""
    rows: dict[tuple[str, str, str], list[Metric]] = {}
    others: dict[str, list[str]] = {prefix: [] for prefix in PREFIXES}
    for item in catalogue.values():
        prefix = item.name[: item.name.find("_") + 1]
        if prefix in PREFIXES:
            others[prefix].append(f"`{item.name}`")
            continue
        quantity = _STATISTIC.sub("", item.name)
        key = (quantity if _STATISTIC.search(item.name) else item.name, item.unit, item.better)
        rows.setdefault(key, []).append(item)
    of_reads = {_as_write(items[0].text): items for items in rows.values() if _READ.search(items[0].text)}
    lines = []
    for items in rows.values():
        first = items[0]
        if first.text in of_reads:
            continue
        writes = next((other for other in rows.values() if other[0].text == _as_write(first.text) != first.text), [])
        text = _READ.sub(lambda match: f"{match[0]} ({_as_write(match[0])})", first.text) if writes else first.text
        names = ", ".join(f"`{item.name}`" for item in [*items, *writes])
        unit = "share" if first.unit == "1" else first.unit
        kind = " ".join(filter(None, (unit, SIGN[first.better])))
        lines.append(_filled(f"- {names}{f' ({kind})' if kind else ''}: {text}"))
    for prefix, meaning in PREFIXES.items():
        if others[prefix]:
            lines.append(_filled(f"- {', '.join(others[prefix])}: as those without `{prefix}`, {meaning}"))
    return "".join(lines)


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"


_STATISTIC = re.compile(r"_(mean|p50|p95|p99|min|max|low|high)(?=_(s|bps)$)")
_READ = re.compile(r"\b[Rr]eads?\b(?! data| and| every)('s)?")


def _as_write(text: str) -> str:
    """Return what a text on reads says of writes."""
    return text.replace("read", "write").replace("Read", "Write")


if __name__ == "__main__":
    import sys
    from pathlib import Path

    if sys.argv[1:] == ["--write"]:
        (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").write_text(as_markdown())
    else:
        print(as_markdown(), end="")
