"""One measurement of target and load over an emulated path: what is set, what was measured, how the machine was.

Every point has a path of its own, with evaluation/papers/iscsi/fig6.toml's rate and round trip, in wall-clock time; the
congestion control is loaded under a name of that run, and gone with it. The target serves a file in memory, so that no
drive is measured.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import elephan
from elephan.errors import ElephanError
from elephan.kernel.run_controls import in_kernel
from elephan.kernel.socket_buffers import buffer_for
from elephan.papers.catalogue import folder
from elephan.path.session import Opened, ends_of, open_path, spec_of
from elephan.path.testbed import ADDRESSES
from elephan.scenario import load
from evaluation.performance.iscsi import NAME, end

FILE_BYTES = 256 << 20
MTU_BYTES = 1500
MAIN = (sys.executable, "-c", "from elephan.cli import main; main()", "iscsi")
COUNTERS = ("TcpRetransSegs", "TcpExtTCPTimeouts")
"""Of the kernel's TCP in both namespaces, as nstat(8) names them."""
PARAMETERS: Mapping[str, tuple[tuple[str, int], ...]] = {"bic": (("variant", 1), ("delayed_ack", 0))}
"""BIC with Linux's constants, 0.8 and 16, as evaluation/papers/iscsi/fig6.toml has it."""
CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Of the first line of /proc/stat, in its order (proc(5))."""


@dataclass(frozen=True)
class Point:
    """Settings of one measurement."""

    control: str
    connections: int
    alpha: int = 0
    """FAST's, segments; 0 for the others."""
    queue: int = 50
    """Packets at the bottleneck, each way."""
    window_kib: int = 0
    """Most that a receiver offers per connection; 0: as the kernel tunes it."""
    reads: int = 50
    """Of 100 commands."""
    request_kib: int = 64
    depth: int = 32
    """Commands under way, of all connections together."""
    burst_kib: int = 0
    """MaxBurstLength, with InitialR2T and one R2T at a time; 0: elephan's own negotiation."""
    repetition: int = 1
    """Seed of the places that are read and written."""
    seconds: int = 30

    @property
    def key(self) -> str:
        """Name it among all measurements."""
        return " ".join(f"{name}={value}" for name, value in asdict(self).items())

    @property
    def parameters(self) -> tuple[tuple[str, int], ...]:
        """The congestion control's parameters that are not its defaults, as the kernel has them."""
        return (("alpha", self.alpha),) if self.alpha else PARAMETERS.get(self.control, ())

    def load(self, name: str) -> list[str]:
        """Return the options of `elephan iscsi bench`, with the congestion control's name in the kernel."""
        found = ["--cc", name, "--connections", str(self.connections), "--duration", f"{self.seconds}s"]
        found += ["--reads", str(self.reads), "--random", "--overwrite", "--json", "--seed", str(self.repetition)]
        found += ["--size", f"{self.request_kib}KiB", "--depth", str(self.depth)]
        if self.burst_kib:
            first = min(self.burst_kib, 64)
            keys = ("initial_r2t=yes", "max_outstanding_r2t=1", f"first_burst={first}KiB")
            found += [word for key in (*keys, f"max_burst={self.burst_kib}KiB") for word in ("--set", key)]
        return found

    def limits(self) -> tuple[dict[str, str], str]:
        """Return sysctls and route attributes of a host that offers no more than the window."""
        if not self.window_kib:
            return {}, ""
        # The route's window (ip-route(8)) chooses the window scale, and 65,535 of its units are the most that a socket
        # offers, as ss(8) shows: one byte more than 64 KiB less 1 would double it. The buffer is larger.
        window = (self.window_kib << 10) - 1
        room = 4 * buffer_for(window, MTU_BYTES)
        return {"tcp_moderate_rcvbuf": "0", "tcp_rmem": f"4096 {room} {room}"}, f"window {window}"


@contextmanager
def target(path: Opened, image: Path, *options: str) -> Iterator[str]:
    """Serve `image` at the path's far end; give its URL."""
    where = ("ip", "netns", "exec", path.place.names[1])
    own = ("--lun", str(image), "--portal", ADDRESSES[1], "--name", NAME)
    process = subprocess.Popen([*where, *MAIN, "target", *own, *options], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        url = next((line.strip() for line in process.stderr if line.startswith("iscsi://")), "")
        if not url:
            raise ElephanError("the target did not start")
        yield url
    finally:
        end(process)


def measure(point: Point) -> dict[str, Any]:
    """Measure one: a line of what was set, measured, and of the emulator and the machine meanwhile.

    Raises `ElephanError`.
    """
    scenario = load(
        folder() / "iscsi" / "fig6.toml",
        [
            'sweep.flow.congestion_control=["reno"]',
            "sweep.flow.connections=[1]",
            f'path.queue="{point.queue} packets"',
        ],
    )
    spec, _ = spec_of(scenario)
    sysctls, route = point.limits()
    hosts = [replace(host, sysctls={**host.sysctls, **sysctls}, route=route) for host in ends_of(spec)]
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as place,
        open_path(hosts, spec, {"what": "bench", "of": "fig6.toml"}) as path,
        in_kernel(path.place.id, [(point.control, point.parameters)]) as (name,),
    ):
        image = Path(place, "disk.img")
        with image.open("wb") as file:
            file.truncate(FILE_BYTES)
        assert isinstance(path, Opened), "elephan's own emulator carries it"
        path.start(spec)
        with target(path, image, "--cc", name) as url:
            where = ("ip", "netns", "exec", path.place.names[0])
            before = _machine()
            done = subprocess.run(
                [*where, *MAIN, "bench", url, *point.load(name)], capture_output=True, text=True, check=False
            )
            machine = _used(before, _machine())
        tcp = [_counters(namespace) for namespace in path.place.names]
        report = path.stop(spec)
    if done.returncode != 0:
        raise ElephanError(done.stderr.strip())
    (result,) = json.loads(done.stdout)["points"]
    if result["lost"]:
        raise ElephanError(f"{point.key}: the session was lost {result['lost']} times")
    return {
        "key": point.key,
        "point": asdict(point),
        "MBps": _rate(result, "reads") + _rate(result, "writes"),
        "reads_MBps": _rate(result, "reads"),
        "writes_MBps": _rate(result, "writes"),
        "queue_drops": [link["dropped_by_queue"] for link in report.core["links"]],
        "tcp": tcp,
        "faults": report.faults(),
        "emulator": report.metrics(),
        "machine": machine,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": ".".join(platform.release().split("-")[0].split(".")[:2]),
        "version": elephan.__version__,
    }


def _rate(result: Mapping[str, Any], kind: str) -> float:
    return float(result[kind]["bytes"] / result["elapsed_ns"] * 1e3)


def _machine() -> dict[str, float]:
    """Return the machine's clocks: those of its CPUs, s, and the time in which a task waited for one, s."""
    ticks = os.sysconf("SC_CLK_TCK")
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    found = {name: int(value) / ticks for name, value in zip(CPU_FIELDS, fields, strict=False)}
    pressure = Path("/proc/pressure/cpu")
    waited = re.search(r"some .*total=(\d+)", pressure.read_text()) if pressure.exists() else None
    return {**found, "waited": int(waited[1]) / 1e6 if waited else 0.0, "now": time.monotonic()}


def _used(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return shares of all CPUs' time that were used and stolen, of wall-clock time that a task waited, and load."""
    spent = {name: after[name] - before[name] for name in before}
    whole = sum(spent[name] for name in CPU_FIELDS) or 1.0
    return {
        "busy_share": round(1 - (spent["idle"] + spent["iowait"]) / whole, 4),
        "steal_share": round(spent["steal"] / whole, 4),
        "waited_share": round(spent["waited"] / spent["now"], 4),
        "load": os.getloadavg()[0],
    }


def _counters(namespace: str) -> dict[str, int]:
    command = ["ip", "netns", "exec", namespace, "nstat", "-asz", *COUNTERS]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: int(re.search(rf"{name}\s+(\d+)", text)[1]) for name in COUNTERS}  # type: ignore[index]
