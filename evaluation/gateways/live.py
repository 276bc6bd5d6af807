"""Two live gateways with an emulated path between them, and one load: `python -m evaluation.gateways.live`, as root.

Prints a table: what was offered and carried, latency beyond the path's propagation, and the CPU of each process.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.path import daemon
from evaluation.markdown import table
from evaluation.requirements import exit_code

ELEPHAN = [sys.executable, "-c", "from elephan.cli import main; main()"]
NEAR, FAR = "198.18.0.1", "198.18.0.2"
"""Ends of an emulated path."""
SYSCTLS = (
    "net.ipv4.tcp_wmem=4096 65536 268435456",
    "net.ipv4.tcp_rmem=4096 131072 268435456",
    "net.unix.max_dgram_qlen=512",
)
"""Windows of a long fat path, and frames that a socket holds."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
OVERHEAD_BYTES = 24 + 4 + 8 + 24
"""Header, CRC, delimiters, six fill words: a frame's time on the line beside its payload."""
TIMEOUT_S = 60


@dataclass(frozen=True)
class PathSettings:
    """The path between the two gateways."""

    rtt_ms: float = 25
    bandwidth: str = "5Gbit/s"
    loss: str = "0"
    congestion_control: str = "cubic"
    """In the kernel, loaded or its own."""
    mtu_bytes: int = 9000


@contextmanager
def path(folder: Path, settings: PathSettings) -> Iterator[tuple[str, str, int]]:
    """Bring the path up; yield the namespaces of its ends, and its process."""
    file = folder / "path.toml"
    file.write_text(
        f'[run]\nduration = "1h"\n[path]\nbandwidth = "{settings.bandwidth}"\nrtt = "{settings.rtt_ms}ms"\n'
        f'loss = "{settings.loss}"\n'
        f'mtu = "{settings.mtu_bytes}B"\nqueue = "2bdp"\n[[flow]]\ncongestion_control = "cubic"\n'
    )
    shown = daemon.up(file, [])
    try:
        (near, *_), (far, *_) = shown.hosts
        for namespace in (near, far):
            for setting in SYSCTLS:
                subprocess.run(["ip", "netns", "exec", namespace, "sysctl", "-qw", setting], check=True)
        yield near, far, _process_of(file)
    finally:
        daemon.down(shown.id)


def _process_of(file: Path) -> int:
    """Return the process that has a path up, by the file that it was given."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode().split("\0")
            if "elephan.path.daemon" in words and str(file) in words:
                return int(folder.name)
    raise RuntimeError(f"nobody has {file}")


def name_of(site: int) -> str:
    """Return the name of the port at a site."""
    return f"20:00:52:54:00:00:00:{site:02x}"


def gateway_file(folder: Path, site: int, settings: PathSettings) -> Path:
    """Write the file of the gateway of a site."""
    other = 3 - site
    own, there = (NEAR, FAR) if site == 1 else (FAR, NEAR)
    file = folder / f"{site}.toml"
    file.write_text(
        f'[fabric]\nname = "10:00:00:00:00:00:00:{site:02x}"\ndomain = {site}\n'
        f'[[socket]]\nlocal = "{site}.gateway"\nremote = "{site}.node"\n'
        f'[ip]\nlisten = "{own}:3420"\nplaintext = true\ncongestion_control = "{settings.congestion_control}"\n'
        f'[[peer]]\nname = "site-{other}"\naddress = "{there}:3420"\n'
        f'[[peer.port]]\nname = "{name_of(other)}"\nid = "{other:02x}0100"\n'
    )
    return file


def started(stack: ExitStack, namespace: str, *arguments: str, until: str) -> subprocess.Popen[str]:
    """Start a command in a namespace, and wait until it has said so."""
    command = ["ip", "netns", "exec", namespace, *ELEPHAN, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stack.callback(process.kill)
    assert process.stderr is not None
    for line in process.stderr:
        if until in line:
            return process
    raise RuntimeError(f"{arguments} ended")


def cpu_s(process: int) -> float:
    """Return the CPU time of a process with its threads, s."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def measure(settings: PathSettings, payload_bps: float, size: int, duration_s: float) -> dict[str, Any]:
    """Put one load on the path between two gateways; return the result and each part's share of a core."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="elephan-live-")))
        near, far, emulator = stack.enter_context(path(folder, settings))
        parts = {"emulator": emulator}
        for site, namespace in ((1, near), (2, far)):
            file = gateway_file(folder, site, settings)
            parts[f"gateway {site}"] = started(stack, namespace, "gateway", "run", str(file), until="fabric at").pid

        def port(site: int) -> list[str]:
            return ["--socket", f"{folder}/{site}.node:{folder}/{site}.gateway", "--name", name_of(site), "--json"]

        receiver = started(stack, far, "fc", "load", *port(2), until="listens at")
        parts["receiver"] = receiver.pid
        before = {part: cpu_s(process) for part, process in parts.items()}
        # Half of a port's rate: a generator that the scheduler held up can catch up.
        rate = round(2 * payload_bps * (size + OVERHEAD_BYTES) / size)
        load = ["fc", "load", name_of(2), "--rate", f"{rate}bit/s", "--share", "50%", "--size", str(size)]
        children = os.times()
        sender = subprocess.run(
            ["ip", "netns", "exec", near, *ELEPHAN, *load, "--duration", f"{duration_s}s", *port(1)],
            capture_output=True,
            text=True,
            check=False,
            timeout=duration_s + TIMEOUT_S,
        )
        if sender.returncode > 1:
            raise RuntimeError(sender.stderr)
        after = os.times()
        used = {part: cpu_s(process) - before[part] for part, process in parts.items()}
        used["sender"] = after.children_user + after.children_system - children.children_user - children.children_system
        receiver.send_signal(signal.SIGTERM)
        receiver.communicate(timeout=TIMEOUT_S)
        return {**json.loads(sender.stdout)["sent"], "cpu": {part: used[part] / duration_s for part in used}}


HEADS = ["offered, Mbit/s", "carried", "lost", "held back", "beyond half an RTT: mean, ms", "p50", "p99", "max"]
HEADS += ["CPU: sender", "gateway 1", "emulator", "gateway 2", "receiver"]
"""Of the table whose rows `row` gives."""


def row(settings: PathSettings, payload_bps: float, done: dict[str, Any]) -> list[str]:
    """Return the table's row of a measurement."""
    result = done["result"] or {}
    seconds = done["span_ns"] / 1e9
    latencies_ns = (result.get(f"latency_{which}_ns", 0) for which in ("mean", "p50", "p99", "max"))
    beyond = [f"{latency_ns / 1e6 - settings.rtt_ms / 2:.1f}" for latency_ns in latencies_ns]
    parts = ("sender", "gateway 1", "emulator", "gateway 2", "receiver")
    return [
        f"{payload_bps / 1e6:.0f}",
        f"{result.get('payload_bytes', 0) * 8 / (result.get('span_ns', 0) or 1) * 1e3:.0f}",
        f"{result.get('lost', 0)}",
        f"{done['left_out_ns'] / 1e7 / seconds:.0f} %",
        *beyond,
        *(f"{done['cpu'][part] * 100:.0f} %" for part in parts),
    ]


def main() -> int:
    """Measure each rate, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.gateways.live", description=__doc__)
    parser.add_argument("--payload", default="100,250,500,1000", help="offered payload, Mbit/s: a list")
    parser.add_argument("--size", type=int, default=2048, help="payload of a frame, bytes")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rtt-ms", type=float, default=PathSettings.rtt_ms)
    parser.add_argument("--loss", default=PathSettings.loss)
    parser.add_argument("--bandwidth", default=PathSettings.bandwidth)
    parser.add_argument("--congestion-control", default=PathSettings.congestion_control)
    parser.add_argument("--mtu", type=int, default=PathSettings.mtu_bytes)
    options = parser.parse_args()
    settings = PathSettings(options.rtt_ms, options.bandwidth, options.loss, options.congestion_control, options.mtu)
    rows = []
    for text in options.payload.split(","):
        rate_bps = float(text) * 1e6
        done = measure(settings, rate_bps, options.size, options.seconds)
        rows.append(row(settings, rate_bps, done))
        print(f"{text}: {rows[-1]}", file=sys.stderr)
    print(table(HEADS, rows))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.gateways.live", main))
