"""`python -m evaluation.interop_stamp`: STAMP against implementations that others wrote, and what it costs.

Peers: stamp-suite 1.0.0 of crates.io, a sender and reflector, and scapy 2.8.0 of PyPI, whose layer builds and reads
packets. Both go to target/peers on the first run, which takes some minutes. With --measure it writes
docs/results/stamp.md.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elephan.core import native
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.runner import ROOT

PAGE = "stamp.md"
COMMAND = "python -m evaluation.interop_stamp --measure"
PEERS = ROOT / "target" / "peers"
SUITE = PEERS / "bin" / "stamp-suite"
SCAPY = PEERS / "scapy"
KEY = bytes(range(32))
COUNT = 50
INTERVAL_NS = 10_000_000
PATHS, PATHS_S = 10, 60.0
"""Paths at one packet per second, and the time for which their cost is measured, s."""


def fetch() -> None:
    """Install the peers that are missing."""
    if not SUITE.exists():
        words = ["cargo", "install", "--quiet", "--root", str(PEERS), "--version", "1.0.0", "--locked", "stamp-suite"]
        subprocess.run(words, check=True)
    if not SCAPY.exists():
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(SCAPY), "scapy==2.8.0"]
        subprocess.run(words, check=True)


def free_port() -> int:
    """Return a UDP port of loopback that nobody has now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


@contextmanager
def reflecting(key: bytes | None, *, short_replies: bool = False) -> Iterator[str]:
    """Give where a reflector of elephan's listens, in a thread."""
    reflector = native.PathReflector(["127.0.0.1:0"], key=key, short_replies=short_replies)
    towards = reflector.addresses()[0]
    stop = threading.Event()
    thread = threading.Thread(target=reflector.serve, args=(stop.wait,))
    thread.start()
    try:
        yield towards
    finally:
        stop.set()
        thread.join()


@contextmanager
def suite_reflecting(*options: str) -> Iterator[str]:
    """Give where stamp-suite's reflector listens."""
    port = free_port()
    words = [str(SUITE), "-i", "-S", "127.0.0.1", "-o", str(port), *options]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(1)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)


def towards_suite(key: bytes | None, time_format: str, *options: str) -> str:
    """Measure towards stamp-suite; return how many packets had a reply, and the median round trip."""
    with suite_reflecting(*options) as towards:
        test = {
            "test": "stamp",
            "towards": towards,
            "count": COUNT,
            "interval_ns": INTERVAL_NS,
            "packet_bytes": 300,
            "time_format": time_format,
            **({} if key is None else {"key": key.hex()}),
        }
        outcome = json.loads(native.path_test(json.dumps(test), lambda _: False))
    found = {one["quantity"]: one["value"] for one in outcome["estimates"]}
    answered = outcome["counts"]["packets"] - outcome["counts"]["lost"]
    return f"{answered} of {COUNT}, {found['rtt_s'] * 1e6:.0f} µs"


def of_suite(key: bytes | None, *options: str) -> str:
    """Have stamp-suite measure towards elephan; return what it says."""
    with reflecting(key) as towards:
        host, port = towards.split(":")
        words = [str(SUITE), "-r", host, "-p", port, "-c", str(COUNT), "-d", "10", "--output-format", "json", *options]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    said = next(row for row in rows if row.get("type") == "summary")["measurements"]
    flags = said["tlv_validation"]
    answered = f"{said['unique_replies']} of {COUNT}"
    if not flags["observed_tlvs"]:
        return answered
    return f"{answered}, {flags['observed_tlvs']} TLVs, {flags['rejected_replies']} rejected"


def by_scapy(time_format: str) -> str:
    """Send packets that scapy builds to elephan's reflector; return how many replies scapy reads as they should be."""
    sys.path.insert(0, str(SCAPY))
    from scapy.contrib import stamp  # type: ignore[import-not-found]

    right = 0
    with reflecting(None) as towards, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        host, port = towards.split(":")
        made.connect((host, int(port)))
        made.settimeout(2)
        for number in range(COUNT):
            now_s = time.time()
            error = stamp.ErrorEstimate(S=1, Z=int(time_format == "ptp"), scale=3, multiplier=7)
            packet = stamp.STAMPSessionSenderTestUnauthenticated(seq=number, ts=now_s, err_estimate=error, ssid=77)
            made.send(bytes(packet))
            reply = stamp.STAMPSessionReflectorTestUnauthenticated(made.recv(2000))
            fields = reply.seq == reply.seq_sender == number and reply.ssid == 77
            estimate = reply.err_estimate_sender
            fields = fields and (estimate.S, estimate.scale, estimate.multiplier) == (1, 3, 7)
            right += int(fields and reply.ttl_sender == 64 and bytes(reply)[28:36] == bytes(packet)[4:12])
    return f"{right} of {COUNT}"


def interop() -> str:
    """Return the table of both directions."""
    auth = ("-A", "A", "--hmac-key", KEY.hex())
    rows = []
    for name, key, options in (("no authentication", None, ()), ("HMAC-SHA-256", KEY, auth)):
        for time_format in ("ntp", "ptp"):
            clock = ("-K", time_format.upper())
            there = towards_suite(key, time_format, *options)
            stateful = towards_suite(key, time_format, "--stateful-reflector", *options)
            back = of_suite(key, *options, *clock)
            tlvs = of_suite(key, *options, *clock, "--timestamp-info", "--extra-padding", "100")
            rows.append([f"stamp-suite, {name}, {time_format.upper()}", there, stateful, back, tlvs])
    for time_format in ("ntp", "ptp"):
        rows.append([f"scapy's layer, no authentication, {time_format.upper()}", "–", "–", by_scapy(time_format), "–"])
    heads = ["peer", "elephan to it", "to its stateful mode", "it to elephan", "it, with TLVs"]
    return table(heads, rows)


SENDER = """
import json, sys, time
from pathlib import Path
from elephan.core import native
sessions = native.PathSessions()
paths = int(sys.argv[2])
for number in range(paths):
    sessions.add(sys.argv[1], key=None, interval_ns=10**9, delay_ns=number * 10**9 // paths)
began_s, cpu_s, samples = time.monotonic(), time.process_time(), 0
while time.monotonic() - began_s < float(sys.argv[3]):
    samples += len(sessions.poll(1.0))
used = time.process_time() - cpu_s
# Not ru_maxrss, which begins at the memory of the process that started this one.
lines = Path("/proc/self/status").read_text().splitlines()
peak_kb = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
print(json.dumps([used / (time.monotonic() - began_s), peak_kb, samples]))
"""


def cost() -> str:
    """Return what ten paths cost, and the agent that reflects."""
    with reflecting(None) as towards:
        words = [sys.executable, "-c", SENDER, towards, str(PATHS), str(PATHS_S)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    core, peak_kb, samples = json.loads(done.stdout)
    what = f"{PATHS} sessions at 1 packet/s in one Python process"
    rows = [[what, f"{core:.2%}", f"{peak_kb / 1e3:.1f} MB", str(samples)]]
    agent = ROOT / "target" / "agent" / f"elephan-agent-{os.uname().machine}"
    if agent.exists():
        rows.append(["an agent that reflects them", *agent_cost(agent)])
    return table(["what", "of a core", "peak memory", "packets"], rows)


def agent_cost(agent: Path) -> list[str]:
    """Return the share of a core, the peak memory and the replies of an agent that reflects for `PATHS` sessions."""

    def frame(**keys: Any) -> bytes:
        body = json.dumps(keys).encode()
        return len(body).to_bytes(4, "big") + body

    with subprocess.Popen([str(agent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None

        def told() -> dict[str, Any]:
            assert process.stdout is not None
            length = int.from_bytes(process.stdout.read(4), "big")
            found: dict[str, Any] = json.loads(process.stdout.read(length))
            return found

        process.stdin.write(frame(id=1, request="hello", protocol=2))
        process.stdin.write(frame(id=2, request="reflect", local="127.0.0.1", key=KEY.hex()))
        process.stdin.flush()
        told()
        port = told()["port"]
        sessions = native.PathSessions()
        for number in range(PATHS):
            sessions.add(f"127.0.0.1:{port}", key=KEY, interval_ns=10**9, delay_ns=number * 10**9 // PATHS)
        began_s, ticks = time.monotonic(), cpu_ticks(process.pid)
        while time.monotonic() - began_s < PATHS_S / 3:
            sessions.poll(1.0)
        core = (cpu_ticks(process.pid) - ticks) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began_s)
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        peak_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
        process.stdin.write(frame(id=3, request="stop", run=2))
        process.stdin.flush()
        answers = [told(), told()]
        replies = next(one["answer"]["replies"] for one in answers if one["id"] == 2)
        process.stdin.close()
    return [f"{core:.2%}", f"{peak_kb / 1e3:.1f} MB", str(replies)]


def cpu_ticks(pid: int) -> int:
    """Return the CPU time of a process, in ticks of the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def main() -> None:
    """Fetch the peers, measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help=f"write docs/results/{PAGE}")
    asked = parser.parse_args()
    fetch()
    texts = {"interop": interop(), "cost": cost()}
    if asked.measure:
        write_parts(PAGE, COMMAND, texts)
    else:
        print(fill("Packets with a reply, and the median round trip where elephan measured."))
        print("\n\n".join(texts.values()))


if __name__ == "__main__":
    main()
