"""The monitor's journal and summaries: what was there a minute before the power went, and what a summary counts."""

from __future__ import annotations

import os
import random
import sqlite3
import struct
import subprocess
import sys
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.copy.model import command
from tests.power_cut import places

if TYPE_CHECKING:
    from tests.power_cut.recording import Recorder

RUN_S = 215
MARK_S = 5
LOST_S = 60
"""Samples that a power cut may cost (docs/howto/monitor.md)."""
STORE = places.DISK / "results.sqlite"
COMMAND = [sys.executable, "-c", "from elephan.cli import main; main()"]
FILE = """\
name = "dr"

[[path]]
name = "p0"
towards = "127.0.0.1:8620"
line_rate = "1Gbit/s"

[[path.test]]
test = "stamp"
period = "100ms"
"""
_RECORD = struct.Struct("<qqqBBHI")


def samples(folder: Path) -> list[int]:
    """Return when each sample in the journals was sent, Unix ns; the format is that of docs/design/monitor.md."""
    found = []
    for file in folder.glob("results.monitor/*/*.journal"):
        content = file.read_bytes()
        for at in range(0, len(content) - _RECORD.size + 1, _RECORD.size):
            record = content[at : at + _RECORD.size]
            sent_ns, *_, check = _RECORD.unpack(record)
            if zlib.crc32(record[:-4]) == check:
                found.append(sent_ns)
    return found


def minutes(database: Path) -> dict[int, int]:
    """Return the samples that each minute's summary counts, by its start, Unix s."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        rows = connection.execute(
            "select start, count + lost from monitor_summary where quantity = 'rtt_s' and seconds = 60"
        )
        return dict(rows.fetchall())
    except sqlite3.OperationalError:
        return {}
    finally:
        connection.close()


class MonitorJournal:
    """One path to a reflector on loopback."""

    def prepare(self, work: Path, draw: random.Random) -> None:
        """Nothing is drawn."""

    def record(self, recorder: Recorder) -> None:
        """Run the monitor, and mark what can be read at times."""
        file = places.ROOT / "dr.toml"
        file.write_text(FILE)
        words = ["measure", "reflect", "127.0.0.1", "--port", "8620"]
        reflector = subprocess.Popen([*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        monitor = subprocess.Popen([*COMMAND, "monitor", "run", str(file), "--store", str(STORE)])
        end_s = time.monotonic() + RUN_S
        try:
            while time.monotonic() < end_s:
                time.sleep(MARK_S)
                if monitor.poll() is not None or reflector.poll() is not None:
                    raise RuntimeError("the monitor or its reflector has ended")
                limit_ns = (time.time_ns() // 10**9 - LOST_S) * 10**9
                count = sum(sent_ns < limit_ns for sent_ns in samples(places.DISK))
                there = minutes(STORE) if STORE.exists() else {}
                recorder.mark(f"at {limit_ns} {count} {len(there)}")
        finally:
            monitor.terminate()
            monitor.wait(60)
            reflector.terminate()
            reflector.wait(60)

    def judge(self, work: Path, marks: list[str]) -> list[str]:
        """Old samples are there, each summary's as well, and the monitor can be asked."""
        limit_ns, count, summaries = map(int, marks[-1].split()[1:]) if marks else (0, 0, 0)
        database = places.database_copy(STORE)
        sent = samples(places.DISK)
        lines = []
        old = sum(sent_ns < limit_ns for sent_ns in sent)
        if old < count:
            lines.append(f"{old} samples older than {LOST_S} s, should be {count}")
        there = minutes(database) if database.exists() else {}
        if len(there) < summaries:
            lines.append(f"{len(there)} summaries of minutes, should be {summaries}")
        of_minute = Counter(sent_ns // 10**9 // 60 * 60 for sent_ns in sent)
        for start, number in there.items():
            if of_minute[start] < number:
                lines.append(f"the summary of {start} counts {number} samples, the journal has {of_minute[start]}")
        if not lines and summaries:
            words = [b"monitor", b"status", b"--store", os.fsencode(STORE)]
            result = command.start([words], places.ROOT / "state").wait()
            if result.code not in (0, 1) or "Traceback" in result.output:
                lines.append(f"elephan monitor status: exit code {result.code}: {result.output.strip()[-400:]}")
        return lines
