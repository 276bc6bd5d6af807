"""`python -m evaluation.performance.line`, as root: frames that `elephan line` sends and receives over virtual
interfaces, beside trafgen and iperf3. Writes the table of docs/results/line.md.

Each sends as fast as it can, elephan up to the 10 Gbit/s that the interfaces claim; all take turns. elephan and iperf3
have a receiver that looks at each frame; trafgen has none: its frames are counted by the interface at the other end,
where nobody takes them. CPU is that of the whole machine, softirqs included.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from elephan.errors import RunError
from evaluation.markdown import fill, spread, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code, require

PAGE = "line.md"
COMMAND = "python -m evaluation.performance.line"
TOOLS = {"ip": "iproute2", "trafgen": "netsniff-ng", "iperf3": "iperf3"}
ELEPHAN = [sys.executable, "-c", "from elephan.cli import main; main()"]
FRAME_BYTES = (64, 512, 1518, 9018)
"""Sizes of frames with their check sequences."""
MTUS = {"long": 9000, "short": 1500}
"""Pairs of interfaces: a driver takes a program of AF_XDP for frames up to a page."""
SECONDS, TURNS = 3, 5
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
UDP_BYTES = 14 + 20 + 8 + 4
"""Bytes of a frame of UDP beside its payload."""


@dataclass(frozen=True)
class Measured:
    """One run."""

    frames_per_s: float
    """Frames that arrived and were taken."""
    lost: float
    """Part of the frames that were sent and not taken."""
    busy: float
    """Processors that were busy, softirqs included."""


def main() -> int:
    """Measure, and write the table."""
    arguments = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    arguments.add_argument("--turns", type=int, default=TURNS, help="turns of all (default %(default)s)")
    given = arguments.parse_args()
    require(TOOLS, root=True)
    with namespace() as name:
        found: dict[tuple[str, int], list[Measured]] = {}
        for turn in range(given.turns):
            for size in FRAME_BYTES:
                for title, run in programs(name, size).items():
                    found.setdefault((title, size), []).append(run())
            print(f"turn {turn + 1} of {given.turns}: load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    write_parts(PAGE, COMMAND, {"speed": f"{lines(found)}\n\n{basis(given.turns)}"})
    return 0


def programs(name: str, size: int) -> Mapping[str, Callable[[], Measured]]:
    """Return what sends frames of a size."""
    found: dict[str, Callable[[], Measured]] = {
        "elephan, packet-mmap": lambda: elephan(name, "packet-mmap", size),
        "elephan, packet-mmap, steered": lambda: steered(name, size),
        "trafgen, no receiver": lambda: trafgen(name, size),
        "iperf3, UDP": lambda: iperf3(name, size),
    }
    if size - 18 <= MTUS["short"]:
        found["elephan, AF_XDP"] = lambda: elephan(name, "af-xdp", size)
    return found


@contextmanager
def namespace() -> Iterator[str]:
    """Make a namespace with two pairs of interfaces, with addresses of IPv4 for iperf3; it goes afterwards."""
    name, far = f"elephan-line-{os.getpid()}", f"elephan-line-{os.getpid()}-far"
    try:
        for one in (name, far):
            subprocess.run(["ip", "netns", "add", one], check=True)
        for number, (pair, mtu) in enumerate(MTUS.items()):
            ends = [(name, f"{pair}-near", f"198.18.{number}.1/24"), (far, f"{pair}-far", f"198.18.{number}.2/24")]
            words = ["ip", "-n", name, "link", "add", "dev", ends[0][1], "mtu", str(mtu), "type", "veth"]
            subprocess.run([*words, "peer", "name", ends[1][1], "mtu", str(mtu), "netns", far], check=True)
            for inside, interface, address in ends:
                subprocess.run(["ip", "-n", inside, "address", "add", address, "dev", interface], check=True)
                subprocess.run(["ip", "-n", inside, "link", "set", "dev", interface, "up"], check=True)
        yield name
    finally:
        for one in (name, far):
            subprocess.run(["ip", "netns", "del", one], check=False)


def pair_of(size: int) -> str:
    return "short" if size - 18 <= MTUS["short"] else "long"


def within(name: str, *words: str) -> list[str]:
    return ["ip", "netns", "exec", name, *words]


def busy_ticks() -> int:
    """Return the time that all processors were busy, ticks."""
    numbers = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]]
    idle = numbers[3] + numbers[4]
    return sum(numbers[:8]) - idle


@contextmanager
def process(words: list[str], ready: str) -> Iterator[subprocess.Popen[str]]:
    """Start a program, and end it and its children by SIGINT, trafgen's by SIGKILL; it is ready when it says so."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        started = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=said, text=True, start_new_session=True)
        try:
            deadline_s = time.monotonic() + 30
            while ready:
                said.seek(0)
                if ready in said.read():
                    break
                if started.poll() is not None or time.monotonic() > deadline_s:
                    raise RunError(f"{words[4]} does not start")
                time.sleep(0.05)
            yield started
        finally:
            # trafgen's children go on after SIGINT to their parent.
            os.killpg(started.pid, signal.SIGINT if ready else signal.SIGKILL)
            started.wait(timeout=30)


def elephan(name: str, method: str, size: int) -> Measured:
    """Send with `elephan line send` to `elephan line receive`, without a pause."""
    pair = pair_of(size)
    common = ["--method", method, "--force", "--json"]
    receive = within(f"{name}-far", *ELEPHAN, "line", "receive", f"{pair}-far", *common)
    send = within(name, *ELEPHAN, "line", "send", f"{pair}-near", "--line", "10Gbit/s", "--mix", str(size), *common)
    with process(receive, "receives at"):
        sender = subprocess.Popen(
            [*send, "--duration", f"{SECONDS}s", "--ramp", "0s"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        # Past the start of Python and the search for the receiver.
        time.sleep(SECONDS)
        before, at_s = busy_ticks(), time.monotonic()
        time.sleep(1)
        busy = (busy_ticks() - before) / TICKS_PER_S / (time.monotonic() - at_s)
        told = json.loads(sender.communicate(timeout=60)[0])
    got = told["received"]
    return Measured(got["frames"] / (got["span_ns"] / 1e9), got["lost"] / told["sent"]["frames"], busy)


def steered(name: str, size: int) -> Measured:
    """Send with elephan while the receiving interface hands its frames to all processors (receive packet steering)."""
    file = f"/sys/class/net/{pair_of(size)}-far/queues/rx-0/rps_cpus"

    def steer(processors: int) -> None:
        subprocess.run(within(f"{name}-far", "sh", "-c", f"echo {processors:x} > {file}"), check=True)

    steer((1 << (os.cpu_count() or 1)) - 1)
    try:
        return elephan(name, "packet-mmap", size)
    finally:
        steer(0)


def trafgen(name: str, size: int) -> Measured:
    """Send with trafgen on one processor, and count at the other end's interface."""
    pair = pair_of(size)
    fill_bytes = size - 18
    config = f"{{ eth(da=02:00:00:00:00:02, sa=02:00:00:00:00:01, type=0x88b5), fill(0x55, {fill_bytes}) }}"
    command = within(
        name, "trafgen", "--out", f"{pair}-near", "--cpus", "1", "--no-sock-mem", "--jumbo-support", config
    )
    with process(command, ""):
        time.sleep(1)
        before, ticks, at_s = received(name, pair), busy_ticks(), time.monotonic()
        time.sleep(SECONDS)
        took_s = time.monotonic() - at_s
        frames, busy = received(name, pair) - before, (busy_ticks() - ticks) / TICKS_PER_S / took_s
    return Measured(frames / took_s, 0.0, busy)


def received(name: str, pair: str) -> int:
    """Return the frames that the other end's interface has received."""
    words = within(f"{name}-far", "cat", "/proc/net/dev")
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    line = next(line for line in text.splitlines() if line.strip().startswith(f"{pair}-far:"))
    return int(line.split(":")[1].split()[1])


def iperf3(name: str, size: int) -> Measured:
    """Send datagrams whose frames have the size with iperf3, as many as it can."""
    pair = pair_of(size)
    address = f"198.18.{list(MTUS).index(pair)}.2"
    server = within(f"{name}-far", "iperf3", "-s", "-1", "-B", address)
    client = ["iperf3", "-c", address, "-u", "-b", "0", "-l", str(size - UDP_BYTES), "-t", str(SECONDS), "-J"]
    with subprocess.Popen(server, stdout=subprocess.DEVNULL) as listening:
        time.sleep(0.5)
        started = subprocess.Popen(within(name, *client), stdout=subprocess.PIPE, text=True)
        time.sleep(1)
        before, at_s = busy_ticks(), time.monotonic()
        time.sleep(1)
        busy = (busy_ticks() - before) / TICKS_PER_S / (time.monotonic() - at_s)
        told = json.loads(started.communicate(timeout=60)[0])["end"]["sum"]
        listening.wait(timeout=30)
    lost = told["lost_packets"] / told["packets"]
    return Measured(told["packets"] * (1 - lost) / told["seconds"], lost, busy)


def lines(found: Mapping[tuple[str, int], list[Measured]]) -> str:
    """Return the table: medians."""
    rows = []
    for (title, size), runs in sorted(found.items(), key=lambda item: (item[0][1], item[0][0])):
        frames = statistics.median(run.frames_per_s for run in runs)
        lost, busy = (statistics.median(values) for values in zip(*((run.lost, run.busy) for run in runs), strict=True))
        rows.append(
            [
                f"{size:,}",
                title,
                f"{frames / 1e6:.3f}",
                spread([run.frames_per_s / 1e6 for run in runs], ".3f"),
                f"{frames * size * 8 / 1e9:.2f}",
                f"{100 * lost:.1f} %",
                f"{busy / frames * 1e6:.2f}",
            ]
        )
    head = ["frame, B", "program", "million frames/s", "least to most", "Gbit/s", "not taken", "CPU us a frame"]
    return table(head, rows)


def basis(turns: int) -> str:
    """Return what the numbers stand on."""
    return fill(
        f"Medians of {turns} turns, {SECONDS} s each, over virtual interfaces of one machine, load "
        f"{os.getloadavg()[0]:.1f} at the end."
    )


if __name__ == "__main__":
    sys.exit(exit_code(COMMAND, main))
