"""Memory and processor time of a monitor of ten paths at one sample a second, over loopback, for some minutes.

The process is the one that users run, with its metrics endpoint scraped every 15 s. The reflector is elephan's own, in
a process of its own, whose cost is not the monitor's. Children (files of days, forecasts) have ended before.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code

COMMAND = "python -m evaluation.monitor.process"
PAGE = "monitor.md"
PATHS = 10
SECONDS = 300
PORT = 19_464
REFLECTOR = """
import sys
from elephan.core import native
reflector = native.PathReflector(["127.0.0.1:0"])
print(reflector.addresses()[0], flush=True)
reflector.serve(lambda _: False)
"""


def _stat(pid: int) -> tuple[float, float, float]:
    """Return processor time, s, resident memory now and at its peak, MB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    memory = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(("VmRSS", "VmHWM")):
            memory[line[:5]] = int(line.split()[1]) / 1024
    return ticks / os.sysconf("SC_CLK_TCK"), memory["VmRSS"], memory["VmHWM"]


def measure(seconds: int) -> str:
    """Return the table."""
    with tempfile.TemporaryDirectory(prefix="elephan-monitor-") as name:
        folder = Path(name)
        reflector = subprocess.Popen([sys.executable, "-c", REFLECTOR], stdout=subprocess.PIPE, text=True)
        assert reflector.stdout is not None
        towards = reflector.stdout.readline().strip()
        file = folder / "ten.toml"
        paths = "".join(
            f'[[path]]\nname = "p{number}"\ntowards = "{towards}"\nline_rate = "1Gbit/s"\n'
            '[[path.test]]\ntest = "stamp"\nperiod = "1s"\n'
            for number in range(PATHS)
        )
        file.write_text(f'name = "ten"\n[metrics]\nlisten = "127.0.0.1:{PORT}"\n{paths}')
        words = ["-c", "from elephan.cli import main; main()", "monitor", "run", str(file)]
        monitor = subprocess.Popen([sys.executable, *words, "--store", str(folder / "results.sqlite")])
        try:
            for _ in range(300):
                with suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=10)
                    break
                time.sleep(1)
            # Until what it does at its start is over.
            time.sleep(30)
            before_s, _, _ = _stat(monitor.pid)
            began_s = time.monotonic()
            while time.monotonic() < began_s + seconds:
                time.sleep(15)
                page = urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=10).read().decode()
            lasted_s = time.monotonic() - began_s
            after_s, now_mb, peak_mb = _stat(monitor.pid)
        finally:
            monitor.send_signal(signal.SIGTERM)
            monitor.wait(60)
            reflector.terminate()
            reflector.wait(10)
    sent = sum(
        float(line.rpartition(" ")[2])
        for line in page.splitlines()
        if line.startswith("elephan_path_sent_packets_total")
    )
    rows = [
        ["memory at the end, MB", f"{now_mb:.1f}"],
        ["memory at its peak, MB", f"{peak_mb:.1f}"],
        ["processor time, part of a core", f"{100 * (after_s - before_s) / lasted_s:.2f} %"],
        ["samples in all", f"{sent:.0f}"],
    ]
    return f"{fill(f'{PATHS} paths, one sample a second each, {lasted_s:.0f} s.')}\n\n{table(['', ''], rows)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; return the exit code."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--seconds", type=int, default=SECONDS, help="prints, and writes no page, unless 300")
    options = parser.parse_args(arguments)

    def work() -> None:
        text = measure(options.seconds)
        if options.seconds == SECONDS:
            write_parts(PAGE, COMMAND, {"process": text})
        else:
            print(text)

    return exit_code(COMMAND, work)


if __name__ == "__main__":
    sys.exit(main())
