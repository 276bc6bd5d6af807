"""The monitor's numbers as text for Prometheus."""

from __future__ import annotations

import math
import os
import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from elephan.metrics_endpoint import family
from elephan.monitor.alerts import AlertBook
from elephan.monitor.schedule import Schedule
from elephan.monitor.watch import PathWatch

LATEST = {
    "rtt_s": ("elephan_path_rtt_seconds", "Round-trip time of the newest answer, without the reflector's own time."),
    "forward_delay_s": ("elephan_path_forward_delay_seconds", "Delay to the far end by both clocks, newest answer."),
    "reverse_delay_s": ("elephan_path_reverse_delay_seconds", "Delay from the far end by both clocks, newest answer."),
    "jitter_s": ("elephan_path_jitter_seconds", "Mean difference of following round-trip times in the last minute."),
    "loss": ("elephan_path_loss_ratio", "Share of packets lost in the last minute."),
    "ttl": ("elephan_path_ttl", "TTL of the newest answer."),
    "capacity_bps": ("elephan_path_capacity_bytes_per_second", "Rate of the narrowest link, newest test."),
    "available_bps": ("elephan_path_available_bytes_per_second", "Available bandwidth, newest test."),
    "throughput_bps": ("elephan_path_throughput_bytes_per_second", "Throughput, newest test."),
    "queue_bytes": ("elephan_path_queue_bytes", "Depth of the bottleneck's queue, newest test."),
    "path_mtu_bytes": ("elephan_path_mtu_bytes", "Path MTU, newest test."),
    "hops": ("elephan_path_hops", "Hops to the far end, newest test."),
}
"""Metric and meaning of each quantity's newest value."""


@dataclass(frozen=True)
class Numbers:
    """Source of the metrics."""

    monitor: str
    watches: Mapping[str, PathWatch]
    schedule: Schedule
    book: AlertBook
    test_bytes: Mapping[tuple[str, str], float]
    failed_children: Mapping[str, int]
    store_fault: bool
    started_s: float


def text(numbers: Numbers) -> str:
    """Return all metrics in Prometheus' text format."""
    return "\n".join(_lines(numbers)) + "\n"


def _lines(numbers: Numbers) -> Iterator[str]:
    monitor = {"monitor": numbers.monitor}

    def of(name: str) -> dict[str, str]:
        return {**monitor, "path": name}

    watches = numbers.watches
    for quantity, (metric, help_) in LATEST.items():
        # Prometheus' base unit of data is the byte.
        unit = 8.0 if quantity.endswith("_bps") else 1.0
        rows = [
            (of(name), watch.latest[quantity] / unit) for name, watch in watches.items() if quantity in watch.latest
        ]
        yield from family(metric, "gauge", help_, rows)
    minutes = []
    for name, watch in watches.items():
        rtt = watch.minute.get("rtt_s")
        if rtt is not None and rtt["count"]:
            minutes += [
                ({**of(name), "percentile": q}, rtt[p]) for q, p in (("5", "p05"), ("50", "p50"), ("95", "p95"))
            ]
    yield from family("elephan_path_rtt_minute_seconds", "gauge", "Percentiles of the RTT in the last minute.", minutes)
    bounds: list[tuple[dict[str, str], float]] = []
    now = time.time()
    for name, watch in watches.items():
        usual: Any = watch.benchmark("rtt_s", now)
        if usual is not None:
            bounds += [
                ({**of(name), "bound": bound}, usual[part])
                for part, bound in enumerate(("low", "mid", "high"))
                if math.isfinite(usual[part])
            ]
    yield from family("elephan_path_rtt_benchmark_seconds", "gauge", "What RTT is usual now.", bounds)
    sent = [(of(name), watch.sent) for name, watch in watches.items()]
    yield from family("elephan_path_sent_packets_total", "counter", "STAMP packets answered or lost.", sent)
    lost = [(of(name), watch.lost) for name, watch in watches.items()]
    yield from family("elephan_path_lost_packets_total", "counter", "STAMP packets without an answer.", lost)
    stamps = [(of(name), watch.last_sample_s) for name, watch in watches.items() if watch.last_sample_s is not None]
    yield from family("elephan_path_last_sample_timestamp_seconds", "gauge", "Time of the newest sample.", stamps)
    silent = [(of(name), int(name in numbers.schedule.silent)) for name in watches]
    yield from family("elephan_path_silent", "gauge", "1 while the path does not answer.", silent)
    alerts = [
        ({**of(alert.path), "quantity": alert.quantity, "kind": alert.kind, "cause": alert.cause or "unknown"}, 1)
        for alert in numbers.book.open.values()
    ]
    yield from family("elephan_path_alert", "gauge", "1 for each alert that is open.", alerts)
    counts = [(of(name), sum(alert.path == name for alert in numbers.book.open.values())) for name in watches]
    yield from family("elephan_path_alerts_open", "gauge", "Alerts that are open.", counts)
    used = [({**of(path), "test": test}, count) for (path, test), count in numbers.test_bytes.items()]
    yield from family("elephan_path_test_bytes_total", "counter", "Bytes that path tests have put on the path.", used)
    budget = [(of(name), account.tokens) for name, account in numbers.schedule.accounts.items()]
    yield from family("elephan_path_budget_bytes", "gauge", "Bytes that tests may send now.", budget)
    missed = [({**of(job.path.name), "test": job.test.test}, job.missed) for job in numbers.schedule.jobs]
    yield from family("elephan_path_tests_missed_total", "counter", "Periods in which a test could not run.", missed)
    failures = [({**monitor, "task": task}, count) for task, count in numbers.failed_children.items()]
    yield from family("elephan_monitor_failed_children_total", "counter", "Child processes that failed.", failures)
    waiting = [(monitor, len(numbers.book.messages))]
    yield from family("elephan_monitor_waiting_messages", "gauge", "Messages of alerts that wait.", waiting)
    dropped = sum(watch.journal.dropped for watch in watches.values())
    yield from family(
        "elephan_monitor_dropped_samples_total", "counter", "Samples lost to a full disk.", [(monitor, dropped)]
    )
    yield from family(
        "elephan_monitor_store_fault",
        "gauge",
        "1 while rows wait for the store.",
        [(monitor, int(numbers.store_fault))],
    )
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield from family(
        "process_cpu_seconds_total", "counter", "Processor time.", [({}, usage.ru_utime + usage.ru_stime)]
    )
    yield from family("process_resident_memory_bytes", "gauge", "Resident memory.", [({}, _resident())])
    yield from family("process_start_time_seconds", "gauge", "Start of the process.", [({}, numbers.started_s)])


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
