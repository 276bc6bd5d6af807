"""The target against tgtd, over loopback: `python -m evaluation.performance.iscsi`, as root. Writes a part of
docs/results/iscsi.md; with an option it prints it.

Both serve a file of their own in memory (/dev/shm), so that no drive is measured. Rounds alternate, the median
counts. Two generators, so that neither is what is measured: elephan's load, and libiscsi's iscsi-perf, which reads.
CPU is that of the serving process, from its /proc/PID/stat. tgtd is started on a port of its own and ended by its pid.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from elephan.errors import RunError
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code, require

PAGE = "iscsi.md"
COMMAND = "python -m evaluation.performance.iscsi"
DEFAULT_CC = Path("/proc/sys/net/ipv4/tcp_congestion_control")
FILE_BYTES = 256 << 20
NAME = "iqn.2026-01.example:bench"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SIZES = {"64 KiB": 65536, "4 KiB": 4096}
DEPTHS = (1, 32)


class Missing(RunError):
    """A tool that is not installed, or a target or load that failed."""


@dataclass(frozen=True)
class Peer:
    """A target that runs."""

    url: str
    pid: int

    def cpu_s(self) -> float:
        """Return what its process has used, in user space and in the kernel, s."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


@dataclass(frozen=True)
class Load:
    """Result of a generator: commands per second, and all of them."""

    per_s: float
    commands: int


@dataclass(frozen=True)
class Measured:
    """One round: commands per second, CPU seconds of the target per GB."""

    per_s: float
    cpu_s_per_gb: float


def free_port() -> int:
    """Return a port on the loopback without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def elephan(image: Path, *options: str) -> Iterator[Peer]:
    """Serve a file by elephan's target, in a process of its own."""
    command = [sys.executable, "-c", "from elephan.cli import main; main()", "iscsi", "target", "--lun", str(image)]
    command += ["--portal", "127.0.0.1:0", "--name", NAME, *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        url = next((line.strip() for line in process.stderr if line.startswith("iscsi://")), "")
        if not url:
            raise Missing("elephan's target did not start")
        yield Peer(url, process.pid)
    finally:
        end(process)


@contextmanager
def tgtd(image: Path, *, chap: tuple[str, str] | None = None) -> Iterator[Peer]:
    """Serve a file by tgtd as Debian has it, on a port and with a control socket of its own. Needs root."""
    for tool in ("tgtd", "tgtadm"):
        if shutil.which(tool, path=_sbin()) is None:
            raise Missing(f"{tool} is not installed (Debian package tgt)")
    port = free_port()
    # The number of the control socket: a signed 16-bit one for tgtadm.
    control = str(port % 32768)
    process = subprocess.Popen(
        ["tgtd", "-f", "-C", control, "--iscsi", f"portal=127.0.0.1:{port}"],
        env=os.environ | {"PATH": _sbin()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _tgtadm(control, "--op", "new", "--mode", "target", "--tid", "1", "-T", NAME, patience_s=10)
        _tgtadm(control, "--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", str(image))
        if chap is not None:
            user, secret = chap
            _tgtadm(control, "--op", "new", "--mode", "account", "--user", user, "--password", secret)
            _tgtadm(control, "--op", "bind", "--mode", "account", "--tid", "1", "--user", user)
        _tgtadm(control, "--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")
        yield Peer(f"iscsi://127.0.0.1:{port}/{NAME}/1", process.pid)
    finally:
        end(process)
        for left in Path("/var/run/tgtd").glob(f"socket.{control}*"):
            left.unlink(missing_ok=True)


def _sbin() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def _tgtadm(control: str, *arguments: str, patience_s: float = 0) -> None:
    until = time.monotonic() + patience_s
    while True:
        command = ["tgtadm", "-C", control, "--lld", "iscsi", *arguments]
        done = subprocess.run(
            command, env=os.environ | {"PATH": _sbin()}, capture_output=True, text=True, check=False, timeout=30
        )
        if done.returncode == 0:
            return
        if time.monotonic() > until:
            raise Missing(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
        time.sleep(0.1)


def end(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """End it by its pid: SIGTERM, and SIGKILL for one that does not go (tgtd with a target never does)."""
    for number, patience_s in ((signal.SIGTERM, 5), (signal.SIGKILL, 10)):
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(patience_s)
            except subprocess.TimeoutExpired:
                continue
    if process.stderr is not None:
        process.stderr.close()


def own_load(peer: Peer, size: int, depth: int, seconds: float, reads: int, cc: str | None) -> Load:
    """Put elephan's load on it."""
    command = [sys.executable, "-c", "from elephan.cli import main; main()", "iscsi", "bench", peer.url, "--json"]
    command += ["--size", f"{size}B", "--depth", str(depth), "--connections", "1", "--duration", f"{seconds}s"]
    command += ["--reads", str(reads), "--overwrite", *(["--cc", cc] if cc else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    # Commands that failed are no success.
    if done.returncode != 0:
        raise Missing(f"{peer.url}: {done.stderr.strip()}")
    (result,) = json.loads(done.stdout)["points"]
    if result["lost"]:
        raise Missing(f"{peer.url}: {result['lost']} sessions lost")
    number = result["reads"]["done"] + result["writes"]["done"]
    return Load(number / (result["elapsed_ns"] / 1e9), number)


def iscsi_perf(peer: Peer, size: int, depth: int, seconds: float) -> Load:
    """Put the reads of libiscsi's iscsi-perf on it, which takes whole seconds."""
    whole = max(1, round(seconds))
    command = ["iscsi-perf", "-m", str(depth), "-b", str(size // 512), "-t", str(whole), peer.url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found = re.findall(r"iops average (\d+)", done.stdout)
    if not found:
        raise Missing(f"iscsi-perf says {done.stdout[-200:]!r}")
    return Load(float(found[-1]), int(found[-1]) * whole)


def rounds(peers: list[Peer], load: Callable[[Peer], Load], size: int, count: int) -> list[Measured]:
    """Return the medians for each peer over rounds in turn."""
    seen: list[list[Measured]] = [[] for _ in peers]
    for number in range(count):
        # The order of the peers rotates, so that warming up favours none.
        for at in sorted(range(len(peers)), key=lambda at: (at + number) % len(peers)):
            cpu = peers[at].cpu_s()
            done = load(peers[at])
            used = peers[at].cpu_s() - cpu
            seen[at].append(Measured(done.per_s, used / (done.commands * size / 1e9)))
    return [
        Measured(statistics.median(m.per_s for m in one), statistics.median(m.cpu_s_per_gb for m in one))
        for one in seen
    ]


@dataclass(frozen=True)
class Compared:
    """Both targets under one load."""

    title: str
    size: int
    own: Measured
    other: Measured

    @property
    def ratio(self) -> float:
        """Commands per second of elephan's target over those of tgtd."""
        return self.own.per_s / self.other.per_s

    def row(self) -> list[str]:
        """Return the row of the table."""
        rates = [f"{measured.per_s * self.size / 1e6:,.0f}" for measured in (self.own, self.other)]
        return [self.title, *rates, f"{self.ratio:.2f}", *(f"{m.cpu_s_per_gb:.2f}" for m in (self.own, self.other))]


def loads_of(size: int, depth: int, seconds: float, cc: str | None) -> dict[str, Callable[[Peer], Load]]:
    """Return the loads of one size and depth by their names."""
    found: dict[str, Callable[[Peer], Load]] = {
        what: partial(own_load, size=size, depth=depth, seconds=seconds, reads=reads, cc=cc)
        for what, reads in (("reads", 100), ("writes", 0))
    }
    return {**found, "reads, iscsi-perf": partial(iscsi_perf, size=size, depth=depth, seconds=seconds)}


def measure(seconds: float, count: int, cc: str | None) -> list[Compared]:
    """Put each load on both targets, in rounds."""
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    found = []
    with tempfile.TemporaryDirectory(prefix="elephan-bench-", dir=folder) as place:
        images = [Path(place, name) for name in ("own.img", "tgtd.img")]
        for image in images:
            # Written, not only long: a hole is read faster than data.
            image.write_bytes(os.urandom(1 << 20) * (FILE_BYTES >> 20))
        options = ["--cc", cc] if cc else []
        with elephan(images[0], *options) as ours, tgtd(images[1]) as theirs:
            for (title, size), depth in product(SIZES.items(), DEPTHS):
                for what, load in loads_of(size, depth, seconds, cc).items():
                    own, other = rounds([ours, theirs], load, size, count)
                    found.append(Compared(f"{title}, depth {depth}, {what}", size, own, other))
                    print(" | ".join(found[-1].row()), file=sys.stderr, flush=True)
    return found


def text_of(found: Sequence[Compared], seconds: float, count: int, cc: str) -> str:
    """Return the part of the page."""
    ratios = [compared.ratio for compared in found]
    sentence = (
        f"The target is {min(ratios):.1f} to {max(ratios):.1f} times as fast as tgtd. Medians of {count} rounds of "
        f"{seconds:g} s; {cc} over loopback."
    )
    heads = ["", "elephan, MB/s", "tgtd, MB/s", "ratio", "elephan, CPU s/GB", "tgtd, CPU s/GB"]
    return f"{fill(sentence)}\n\n{table(heads, [compared.row() for compared in found])}"


def main() -> None:
    """Measure, then write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a round (default: 2)")
    parser.add_argument("--rounds", type=int, default=5, help="of each (default: 5)")
    parser.add_argument("--cc", help="congestion control of elephan's target and load (default: the kernel's)")
    arguments = parser.parse_args()
    require({"tgtd": "tgt", "tgtadm": "tgt", "iscsi-perf": "libiscsi-bin"}, root=True)
    found = measure(arguments.seconds, arguments.rounds, arguments.cc)
    cc = arguments.cc or DEFAULT_CC.read_text().strip()
    text = text_of(found, arguments.seconds, arguments.rounds, cc)
    if arguments == parser.parse_args([]):
        write_parts(PAGE, COMMAND, {"tgtd": text})
    else:
        print(text)


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.iscsi", main))
