"""Build and run the compared engines: elephan, the skeleton, ns-2, ns-3. Each run is one process and one `Result`."""

from __future__ import annotations

import json
import math
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluation.performance.dumbbell import NS_PER_S, PAYLOAD_BYTES, Dumbbell, run_spec

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "target" / "bench"
NS2_SCRIPT = ROOT / "evaluation" / "performance" / "peers" / "ns2_dumbbell.tcl"
NS3_SOURCE = ROOT / "evaluation" / "performance" / "peers" / "ns3_dumbbell.cc"
SKELETON_SOURCE = ROOT / "evaluation" / "performance" / "skeleton.rs"
SKELETON_PACKETS = 20_000_000
"""Some two seconds: enough that start and clock resolution do not count."""
NS3_LIBRARIES = ["applications", "point-to-point", "traffic-control", "internet", "network", "stats", "core"]
CPU_RESOLUTION_S = 1e-3
"""The scheduler's accounts are brought up to date at its ticks; a run shorter than one may have used none."""
PEERS = ("ns-2", "ns-3")
FULL_SHARE = 0.5
"""A peer's window counts as full from half a bandwidth-delay product on: where a loss may leave it."""

OVERRUN = 3
"""A peer may use its CPU time so many times over before it tells how far it is; then it is ended."""


class Unavailable(Exception):
    """The engine is not installed here; the text names the missing part."""


@dataclass
class Result:
    """Cost of one run."""

    engine: str
    workload: str
    simulated_s: float
    delivered_packets: int
    cpu_s: float
    packets_per_cpu_s: float
    wall_s: float | None = None
    events: int | None = None
    peak_rss_bytes: int | None = None
    goodput_bps: float | None = None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that are known."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}


def output_of(command: list[str]) -> str:
    """Run a command to its end; raise with its text when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


# elephan


def build_elephan() -> Path:
    """Build the core's bench program, as optimized as the shipped module."""
    output_of(["cargo", "build", "-q", "--release", "-p", "experiment", "--example", "bench"])
    return target_directory() / "release" / "examples" / "bench"


def target_directory() -> Path:
    """Return cargo's folder for its output."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def run_elephan(program: Path, workload: str, bell: Dumbbell, engine: str = "elephan", cores: int = 1) -> Result:
    """Simulate the whole of a workload, on as many cores."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(run_spec(bell), file)
        file.flush()
        line = json.loads(output_of([str(program), file.name, *([str(cores)] if cores > 1 else [])]))
    # Sessions have data both ways.
    delivered_packets = line["delivered_packets"] + line.get("reverse_delivered_packets", 0)
    return Result(
        engine=engine,
        workload=workload,
        simulated_s=bell.duration_ns / NS_PER_S,
        delivered_packets=delivered_packets,
        cpu_s=line["cpu_s"],
        packets_per_cpu_s=delivered_packets / max(line["cpu_s"], CPU_RESOLUTION_S),
        wall_s=line["wall_s"],
        events=line["events"],
        peak_rss_bytes=line["peak_rss_bytes"],
        goodput_bps=line["goodput_bps"] + line.get("reverse_goodput_bps", 0.0),
    )


# The skeleton


def build_skeleton() -> Path:
    """Compile the skeleton, one file without dependencies."""
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / "skeleton"
    flags = ["--edition", "2021", "-C", "opt-level=3", "-C", "codegen-units=1", "-C", "lto=fat"]
    output_of(["rustc", *flags, "-o", str(program), str(SKELETON_SOURCE)])
    return program


def run_skeleton(program: Path, workload: str, bell: Dumbbell) -> Result:
    """Move packets over the same line with one fixed window for all flows."""
    line = json.loads(output_of([str(program), str(bell.rate_bps), str(bell.rtt_ns), str(SKELETON_PACKETS)]))
    return Result(
        engine="skeleton",
        workload=workload,
        simulated_s=line["delivered_packets"] * 12_000 / bell.rate_bps,
        delivered_packets=line["delivered_packets"],
        cpu_s=line["cpu_s"],
        packets_per_cpu_s=line["delivered_packets"] / max(line["cpu_s"], CPU_RESOLUTION_S),
        events=line["events"],
        peak_rss_bytes=line["peak_rss_bytes"],
    )


# The peers, which report as they go and are stopped when their CPU time is used up


def ns2_version() -> str:
    """Return the version of ns-2 or raise `Unavailable`."""
    program = shutil.which("ns")
    if program is None:
        raise Unavailable("ns-2 is not installed (make peers; Debian package ns2)")
    with tempfile.NamedTemporaryFile("w", suffix=".tcl") as file:
        file.write("puts [ns-version]\n")
        file.flush()
        return "ns-2 " + output_of([program, file.name]).strip() + package_version("ns2")


def ns2_command(bell: Dumbbell, mark_s: float) -> list[str]:
    """Return the command that runs a dumbbell in ns-2."""
    options = {
        "flows": bell.flows,
        "ca": bell.congestion_control,
        "rate_bps": float(bell.rate_bps),
        "rtt_s": bell.rtt_ns / NS_PER_S,
        "loss": bell.loss_e12 / 1e12,
        "queue_packets": bell.limit_packets,
        "stagger_s": bell.stagger_ns / NS_PER_S,
        "seconds": bell.duration_ns / NS_PER_S,
        "window_packets": bell.window_bytes // PAYLOAD_BYTES,
        "seed": bell.seed,
        "mark_s": mark_s,
        "delayed_ack": int(bell.transport.get("delayed_ack", True)),
    }
    return ["ns", str(NS2_SCRIPT), *(str(text) for pair in options.items() for text in pair)]


def build_ns3() -> Path:
    """Compile the program against libns3-dev, optimized; raise `Unavailable` without the library."""
    if not Path("/usr/include/ns3/core-module.h").exists():
        raise Unavailable("ns-3 is not installed (make peers; Debian package libns3-dev)")
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / "ns3_dumbbell"
    if not program.exists() or program.stat().st_mtime < NS3_SOURCE.stat().st_mtime:
        libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
        output_of(["g++", "-O3", "-DNDEBUG", "-std=c++17", str(NS3_SOURCE), "-o", str(program), *libraries])
    return program


def ns3_version() -> str:
    """Return the version of ns-3 as Debian packages it."""
    return "ns-3" + package_version("libns3-dev")


def package_version(package: str) -> str:
    """Return a Debian package's version in brackets, or nothing."""
    if shutil.which("dpkg-query") is None:
        return ""
    done = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=False)
    return f" (Debian {package} {done.stdout})" if done.returncode == 0 else ""


def ns3_command(program: Path, bell: Dumbbell, mark_s: float) -> list[str]:
    """Return the command that runs a dumbbell in ns-3.

    Its first slow start ends at one bandwidth-delay product: with the overshoot it would not get past the first
    recovery in minutes (some 200 packets per CPU second on W1), and only that would be measured.
    """
    options = {
        "flows": bell.flows,
        "ca": bell.congestion_control,
        "rateBps": float(bell.rate_bps),
        "rttS": bell.rtt_ns / NS_PER_S,
        "loss": bell.loss_e12 / 1e12,
        "queuePackets": bell.limit_packets,
        "staggerS": bell.stagger_ns / NS_PER_S,
        "seconds": bell.duration_ns / NS_PER_S,
        "ssthreshPackets": max(2, bell.product_packets // bell.flows),
        "seed": bell.seed,
        "markS": mark_s,
    }
    return [str(program), *(f"--{name}={value}" for name, value in options.items())]


def marks_of(command: list[str], budget_s: float) -> Iterator[dict[str, Any]]:
    """Yield a peer's progress lines until it ends or has used its CPU time, when it is ended.

    It is also ended between two lines, when it has used that time OVERRUN times.
    """
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        most_s = math.ceil(OVERRUN * budget_s)
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (most_s, most_s + 1))
        ended = False
        for line in process.stdout:
            if not line.startswith("{"):
                continue  # ns-2 echoes some commands on its standard output.
            mark = json.loads(line)
            yield mark
            if mark["cpu_s"] >= budget_s:
                ended = True
                process.terminate()
                break
        status = process.wait()
        if status not in (0, -signal.SIGXCPU) and not ended:
            raise RuntimeError(f"{command[0]}: status {status}: {process.stderr.read().strip()[-500:]}")


def run_peer(engine: str, command: list[str], workload: str, bell: Dumbbell, budget_s: float) -> Result:
    """Measure a peer's rate from the time at which its window is full; if the time is too short for that, note it."""
    marks = list(marks_of(command, budget_s))
    if len(marks) < 2:
        return Result(
            engine=engine,
            workload=workload,
            simulated_s=0.0,
            delivered_packets=0,
            cpu_s=0.0,
            packets_per_cpu_s=0.0,
            note=f"told nothing within {OVERRUN * budget_s:g} s of CPU time",
        )
    last = marks[-1]
    full_packets = FULL_SHARE * bell.product_packets / bell.flows
    filled = [mark for mark in marks[:-1] if mark["cwnd_packets"] >= full_packets]
    first = filled[0] if filled else marks[len(marks) // 2]
    packets, cpu_s = last["delivered_packets"] - first["delivered_packets"], last["cpu_s"] - first["cpu_s"]
    note = f"{first['simulated_s']:g} to {last['simulated_s']:g} s of {bell.duration_ns / NS_PER_S:g} s"
    if not filled:
        note += f"; window of {last['cwnd_packets']:,} packets only, slower still when full"
    return Result(
        engine=engine,
        workload=workload,
        simulated_s=last["simulated_s"] - first["simulated_s"],
        delivered_packets=packets,
        cpu_s=cpu_s,
        packets_per_cpu_s=packets / cpu_s if cpu_s > 0 else 0.0,
        note=note,
    )
