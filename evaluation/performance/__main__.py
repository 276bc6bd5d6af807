"""`make bench`: measures every workload on every engine, keeps the history, rewrites docs/results/performance.md.

elephan and the skeleton run several times, in turn, and their median counts; the peers run once, between them, for as
much CPU time as --budget allows. Rates are packets per second of CPU time, so that what else the machine does counts
little. It counts where a run has two cores: that is a ratio of times on the clock.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import platform
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from elephan.backends.host import cpu_model
from evaluation.performance import engines
from evaluation.performance.dumbbell import NS_PER_S, PAYLOAD_BYTES, Dumbbell, run_spec
from evaluation.performance.engines import PEERS, ROOT, Result, Unavailable
from evaluation.performance.page import write_page
from evaluation.requirements import exit_code

HISTORY = ROOT / "evaluation" / "performance" / "history.jsonl"
WORKLOADS = ROOT / "evaluation" / "performance" / "workloads.toml"
FORMAT = 1
"""Form of a line of the history."""
SERIES_NS = 10_000_000
"""Interval of the series whose cost is measured (the issue's bound is for 10 ms)."""
MARK_RTTS = 2
"""Round trips between two progress lines of a peer."""
FIRST_RTTS = 60
"""Round trips that the first slow start and the recovery from its overshoot take at most."""
BUDGETS_S = {"ns-2": 40.0, "ns-3": 75.0}
"""CPU time for a peer on a workload, s: enough to fill the window of W2 even for ns-3."""
LARGE_WINDOW_FACTOR = 3.5
"""More of it for ns-2 where the window is large: its slow start alone costs 100 s on W4."""
LARGE_WINDOW_PACKETS = 50_000
CORES = 2
SEVERAL_CORES = "elephan+cores"
"""elephan on so many cores."""


@dataclasses.dataclass
class Workload:
    """One line of the table."""

    name: str
    what: str
    peers: bool
    bell: Dumbbell

    @property
    def several_cores(self) -> bool:
        """Return whether several cores share it: one flow is one core's."""
        return self.bell.flows > 1 and self.bell.session is None


def load_workloads() -> list[Workload]:
    """Read workloads.toml."""
    workloads = []
    for entry in tomllib.loads(WORKLOADS.read_text(encoding="utf-8"))["workload"]:
        name, what, peers = entry.pop("name"), entry.pop("what"), entry.pop("peers", True)
        parameters = {"hystart": 0} if entry["congestion_control"] == "cubic" else {}
        workloads.append(Workload(name, what, peers, Dumbbell(parameters=parameters, **entry)))
    return workloads


def measure(workloads: list[Workload], wanted: list[str], repeats: int, budgets_s: dict[str, float]) -> dict[str, Any]:
    """Run everything and return the history's line."""
    # Before anything is built: a commit made meanwhile is not the measured one.
    line: dict[str, Any] = {"format": FORMAT, **circumstances()}
    versions: dict[str, str] = {}
    elephan = engines.build_elephan() if "elephan" in wanted else None
    skeleton = engines.build_skeleton() if "skeleton" in wanted else None
    peers = available_peers([name for name in wanted if name in PEERS], versions)

    runs: dict[tuple[str, str], list[Result]] = {}

    def keep(result: Result) -> None:
        runs.setdefault((result.workload, result.engine), []).append(result)
        rate = f"{result.packets_per_cpu_s:>12,.0f} packets/CPU s"
        say(f"  {result.workload:<4} {result.engine:<15} {rate}  {result.note}")

    for turn in range(repeats):
        say(f"turn {turn + 1} of {repeats}")
        for workload in workloads:
            name, bell = workload.name, workload.bell
            if skeleton:
                keep(engines.run_skeleton(skeleton, name, bell))
            if elephan:
                keep(engines.run_elephan(elephan, name, bell))
                if workload.several_cores:
                    keep(engines.run_elephan(elephan, name, bell, SEVERAL_CORES, CORES))
                traced = dataclasses.replace(bell, series_ns=SERIES_NS)
                keep(engines.run_elephan(elephan, name, traced, "elephan+series"))
                if turn == 0 and bell.session is None:
                    keep(engines.run_elephan(elephan, name, small(bell), "elephan-base"))
            # The peers' turns lie between the others', one peer per turn, so that the machine's mood is shared.
            for place, (engine, command) in enumerate(peers.items()):
                if workload.peers and turn == min(place, repeats - 1):
                    mark_s = MARK_RTTS * bell.rtt_ns / NS_PER_S
                    budget_s = budgets_s[engine]
                    if engine == "ns-2" and bell.product_packets > LARGE_WINDOW_PACKETS:
                        budget_s *= LARGE_WINDOW_FACTOR
                    keep(engines.run_peer(engine, command(bell, mark_s), name, bell, budget_s))

    line |= {"versions": versions, "workloads": []}
    for workload in workloads:
        results = {engine: middle(runs[name, engine]) for name, engine in runs if name == workload.name}
        walls = {engine: wall_s(found) for (name, engine), found in runs.items() if name == workload.name}
        # A session's memory is that of its disks and requests, not of its packets.
        of_packets = elephan is not None and workload.bell.session is None
        entry = summary(workload, results, in_flight_packets(workload.bell) if of_packets else None)
        if "elephan" in walls and SEVERAL_CORES in walls:
            entry["by_two_cores"] = round(walls["elephan"] / walls[SEVERAL_CORES], 3)
        line["workloads"].append(entry)
    return line


def in_flight_packets(bell: Dumbbell) -> int:
    """Return the most packets that the senders have had outstanding, all flows together.

    The first slow start overshoots furthest, so its round trips are looked at alone, twice in each.
    """
    from elephan import _native

    begin = dataclasses.replace(
        bell,
        duration_ns=min(bell.duration_ns, FIRST_RTTS * bell.rtt_ns + bell.flows * bell.stagger_ns),
        series_ns=bell.rtt_ns // 2,
    )
    series = _native.simulate(json.dumps(run_spec(begin)), None, 1.0).flow_series
    by_time: dict[float, float] = {}
    for time_s, in_flight in zip(series["time_s"], series["in_flight_bytes"], strict=True):
        by_time[time_s] = by_time.get(time_s, 0.0) + float(in_flight)
    return round(max(by_time.values()) / PAYLOAD_BYTES)


def available_peers(wanted: list[str], versions: dict[str, str]) -> dict[str, Callable[[Dumbbell, float], list[str]]]:
    """Return the command of each peer that is installed; print the missing ones."""
    peers: dict[str, Callable[[Dumbbell, float], list[str]]] = {}
    for name in wanted:
        try:
            if name == "ns-2":
                versions[name] = engines.ns2_version()
                peers[name] = engines.ns2_command
            else:
                peers[name] = functools.partial(engines.ns3_command, engines.build_ns3())
                versions[name] = engines.ns3_version()
        except Unavailable as missing:
            say(f"left out: {missing}")
    return peers


def small(bell: Dumbbell) -> Dumbbell:
    """The same hosts and links with next to nothing in flight: what memory costs before the first packet."""
    duration_ns = min(bell.duration_ns, 10 * bell.rtt_ns)
    return dataclasses.replace(bell, window_bytes=10_000, duration_ns=duration_ns, loss_e12=0)


def middle(results: list[Result]) -> Result:
    """Return the run with the median rate (of an even number: the slower of the two in the middle)."""
    rate = statistics.median_low(result.packets_per_cpu_s for result in results)
    return next(result for result in results if result.packets_per_cpu_s == rate)


def wall_s(results: list[Result]) -> float:
    """Return the median time that passed, s."""
    return statistics.median_low(result.wall_s or 0.0 for result in results)


def summary(workload: Workload, results: dict[str, Result], in_flight: int | None) -> dict[str, Any]:
    """Put a workload's results and the ratios between them together."""
    line: dict[str, Any] = {
        "name": workload.name,
        "what": workload.what,
        "results": [result.as_dict() for result in results.values()],
    }
    ours = results.get("elephan")
    if ours is None:
        return line
    for engine in ("skeleton", *PEERS):
        if engine in results and results[engine].packets_per_cpu_s > 0:
            line[f"over_{engine}"] = round(ours.packets_per_cpu_s / results[engine].packets_per_cpu_s, 3)
    line["over_real_time"] = round(ours.simulated_s / ours.cpu_s, 2)
    if "elephan+series" in results:
        line["series_cost"] = round(results["elephan+series"].cpu_s / ours.cpu_s - 1, 3)
    base = results.get("elephan-base")
    if base and in_flight and ours.peak_rss_bytes and base.peak_rss_bytes:
        line["in_flight_packets"] = in_flight
        line["bytes_per_packet_in_flight"] = round((ours.peak_rss_bytes - base.peak_rss_bytes) / in_flight, 1)
        line["base_bytes"] = base.peak_rss_bytes
    return line


def circumstances() -> dict[str, Any]:
    """Return when, from which source and on what machine this was measured."""
    sources = ("crates", "congestion", "Cargo.toml")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": git("rev-parse", "--short=12", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--untracked-files=no", "--", *sources)),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        # The suffix of a distributor does not matter here.
        "kernel": platform.release().partition("-")[0],
        "rustc": engines.output_of(["rustc", "--version"]).split()[1],
        "load": round(os.getloadavg()[2], 2),
    }


def git(*arguments: str) -> str:
    """Return what git prints, or nothing outside a clone."""
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=ROOT)
    return done.stdout.strip()


def say(text: str) -> None:
    """Progress goes to standard error; it is no result."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Measure, append, rewrite."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.performance", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--workloads", help="comma-separated names; default all")
    parser.add_argument("--engines", default="elephan,skeleton,ns-2,ns-3", help="comma-separated")
    parser.add_argument("--repeats", type=int, default=3, help="turns of elephan and the skeleton (median counts)")
    parser.add_argument("--budget", type=float, help="CPU seconds per workload for each peer")
    parser.add_argument("--dry", action="store_true", help="print the history's line, store nothing")
    parser.add_argument("--page", action="store_true", help="only rewrite docs/results/performance.md from the history")
    options = parser.parse_args()
    if not options.page:
        names = options.workloads.split(",") if options.workloads else None
        workloads = [workload for workload in load_workloads() if names is None or workload.name in names]
        budgets_s = BUDGETS_S if options.budget is None else dict.fromkeys(PEERS, options.budget)
        line = measure(workloads, options.engines.split(","), options.repeats, budgets_s)
        if options.dry:
            print(json.dumps(line, indent=1))
            return 0
        with HISTORY.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    write_page(HISTORY)
    return 0


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance", main))
