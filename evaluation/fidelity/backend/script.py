"""One flow, losses by packet number and no other: windows over time on both backends, step for step comparable.

The same packets of the line are lost, so both senders take the same reductions until their packets are numbered
differently (one segment more or less in flight). What is compared: ssthresh after each reduction, and cwnd over
the whole run.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy

from elephan.store import Series
from evaluation.fidelity.backend.cases import LIKE_LINUX, key_of
from evaluation.fidelity.backend.measured import honoured
from evaluation.fidelity.cases import BPS_PER_MBPS, NS_PER_MS
from evaluation.fidelity.judge import job
from evaluation.performance.dumbbell import NS_PER_S, Dumbbell, run_spec
from evaluation.runner import Runner

NAME = "script"
"""Mark of its runs among those that are kept."""


@dataclass(frozen=True)
class Windows:
    """Values of a flow's series."""

    cwnd: tuple[int, ...]
    """Segments, at each multiple of the series' interval."""
    reductions: tuple[int, ...]
    """ssthresh after each change of it, in order, segments."""


@dataclass(frozen=True)
class Difference:
    """Two backends' windows of one congestion control."""

    cc: str
    kernel: Windows
    ours: Windows

    @property
    def ssthresh(self) -> float:
        """Mean of the relative differences of ssthresh, reduction by reduction, as far as both have them."""
        pairs = list(zip(self.kernel.reductions, self.ours.reductions, strict=False))
        return float(numpy.mean([abs(own - kernel) / kernel for kernel, own in pairs])) if pairs else 0.0

    @property
    def cwnd(self) -> float:
        """Mean distance of cwnd over the run, as a part of the kernel's mean."""
        length = min(len(self.kernel.cwnd), len(self.ours.cwnd))
        kernel, own = numpy.array(self.kernel.cwnd[:length]), numpy.array(self.ours.cwnd[:length])
        return float(numpy.abs(own - kernel).mean() / kernel.mean())


def spec_of(table: dict[str, Any], cc: dict[str, Any]) -> dict[str, Any]:
    """Return the run of one congestion control over the path of the script."""
    script = table["script"]
    bell = Dumbbell(
        rate_bps=table["rate_mbps"] * BPS_PER_MBPS,
        rtt_ns=script["rtt_ms"] * NS_PER_MS,
        duration_ns=script["seconds"] * 1000 * NS_PER_MS,
        congestion_control=cc["congestion_control"],
        parameters=cc["parameters"],
        window_bytes=table["window_bytes"],
        queue_packets=script["queue_packets"],
        transport=LIKE_LINUX,
        series_ns=script["series_ms"] * NS_PER_MS,
    )
    spec = run_spec(bell)
    spec["links"][0]["loss"] = {"kind": "list", "packets": lost(script)}
    return spec


def lost(script: dict[str, Any]) -> list[int]:
    """Return the numbers of the packets that are lost, from 1."""
    steps = itertools.accumulate(itertools.cycle(script["gaps"]), initial=script["first"])
    return list(itertools.takewhile(lambda number: number < script["last"], steps))


def specs(reference: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the runs by their congestion controls' names: those of the table, then the others with their defaults."""
    table = reference["backend"]
    congestion_controls = [
        *table["congestion_control"],
        *({"name": n, "congestion_control": n, "parameters": {}} for n in table["script"]["also"]),
    ]
    return {cc["name"]: spec_of(table, cc) for cc in congestion_controls}


def differences(runner: Runner, reference: dict[str, Any], runs: dict[str, dict[str, Any]]) -> list[Difference]:
    """Return the congestion controls whose run was measured and honoured, with the same run simulated."""
    both = {name: (spec, runs.get(key_of(spec))) for name, spec in specs(reference).items()}
    chosen = [(name, spec, run) for name, (spec, run) in both.items() if run is not None and honoured(run)]
    results = runner.run(job(spec) for _, spec, _ in chosen)
    found = []
    for (name, spec, run), record in zip(chosen, results, strict=True):
        kernel = Windows(tuple(run["windows"]["cwnd"]), tuple(run["windows"]["reductions"]))
        found.append(Difference(name, kernel, windows(spec, results.series_of(record))))
    return found


def windows(spec: dict[str, Any], series: Series | None) -> Windows:
    """Return what is kept of one flow's series: cwnd at each multiple of the interval, whenever samples were taken.

    A real clock takes a sample late, or none; the latest one holds until the next.
    """
    assert series is not None, "the script asks for a series"
    times_s, cwnds, thresholds = (
        series.flow.column(name).to_numpy() for name in ("time_s", "cwnd_packets", "ssthresh_packets")
    )
    interval_ns, duration_ns = spec["measure"]["series_interval_ns"], spec["duration_ns"]
    wanted_s = numpy.arange(interval_ns, duration_ns + 1, interval_ns) / NS_PER_S
    # Half an interval of grace: a sample that is a few us late is that of its instant.
    latest = numpy.searchsorted(times_s, wanted_s + interval_ns / NS_PER_S / 2) - 1
    cwnd = cwnds[numpy.maximum(latest, 0)]
    known = [int(value) for value in thresholds[~numpy.isnan(thresholds)]]
    changes = [value for before, value in zip([0, *known], known, strict=False) if value != before]
    return Windows(tuple(int(value) for value in cwnd), tuple(changes))
