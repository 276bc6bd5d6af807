"""A server of the pages over a store with a year of ten paths, and a browser in front of it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from elephan.errors import InputError
from evaluation.runner import OUT, ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = OUT / "web"
STORE = FOLDER / "store.sqlite"
SMALL = OUT / "web-scan" / "store.sqlite"
RAW_DAYS = 8
"""Days of raw samples: those that a window of a week takes. A year of them would take an hour to make."""

PATHS = ("/", "/alerts", "/paths/synthetic/vienna", "/paths/synthetic/geneva?span=1y", "/backups",
         "/backups/synthetic/archive", "/backups/synthetic/images", "/runs", "/ledger")  # fmt: skip
"""Pages that are measured; the two of a run come to them."""

READY_S = 60.0


def filled() -> tuple[str, str]:
    """Make the store, anew each time, so that the year ends now; return a run's id and its size in words."""
    from elephan import units
    from elephan.api import run
    from elephan.backup.synthetic import fill as fill_backup
    from elephan.monitor.synthetic import fill

    _emptied(FOLDER)
    fill_backup(str(STORE))
    # A path that is silent for three minutes counts as such: measuring takes longer.
    fill(str(STORE), paths=10, days=365, raw_days=RAW_DAYS, end_s=time.time() + 1800)
    results = run(str(ROOT / "examples" / "hybrid-manager.toml"), store=str(STORE))
    size = sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file())
    return results.records[0].id, units.size(size)


def _emptied(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def filled_small() -> None:
    """Make a store of a week and a run: for scanners, to which every day looks the same."""
    from elephan.api import run
    from elephan.backup.synthetic import fill as fill_backup
    from elephan.monitor.synthetic import fill

    _emptied(SMALL.parent)
    fill_backup(str(SMALL))
    fill(str(SMALL), paths=3, days=7, raw_days=1)
    run(str(ROOT / "examples" / "hybrid-manager.toml"), store=str(SMALL))


@contextmanager
def served(*options: str, store: Path = STORE) -> Iterator[tuple[str, int]]:
    """Run `elephan web` over a store; yield its URL without the last slash, and its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from elephan.cli import main; main()", "web", "--store", str(store)]
    process = subprocess.Popen([*command, "--listen", f"127.0.0.1:{port}", *options], stderr=subprocess.DEVNULL)
    try:
        until_s = time.monotonic() + READY_S
        while time.monotonic() < until_s:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        url = f"{'https' if '--tls-cert' in options else 'http'}://127.0.0.1:{port}"
        yield url, process.pid
    finally:
        process.terminate()
        process.wait()


def warm(url: str, pages: list[str]) -> None:
    """Ask for each page once: the first request of a process loads libraries."""
    for page in pages:
        request = urllib.request.Request(url + page, headers={"accept": "text/html"})
        urllib.request.urlopen(request, timeout=READY_S).read()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Debian's Chromium. Raises `InputError` where it lacks."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        raise InputError("needs chromium (Debian package chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def processor_s(process: int) -> float:
    """Return the processor time that a process has had, s."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_bytes(process: int) -> int:
    """Return the most memory that a process has had, bytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmHWM")


def others() -> str:
    """Return how busy the machine is with other things, for the page."""
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    return f"load average {os.getloadavg()[0]:.1f} before, measured at niceness {niceness}"
