"""The metrics: Prometheus' own checker takes every family, and dashboard and rules ask for none that is not there."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from elephan.monitor.alerts import AlertBook
from elephan.monitor.metrics import LATEST, Numbers, text
from elephan.monitor.schedule import Schedule
from elephan.monitor.spec import AlertSpec
from elephan.monitor.watch import PathWatch
from tests.monitor.test_alerts import step
from tests.monitor.test_watch import samples, spec

ROOT = Path(__file__).resolve().parents[2]


def page(folder: Path) -> str:
    """Return metrics in which every family has a value."""
    watch = PathWatch(spec(rtt_s=0.022), 7, folder)
    watch.handle(samples(0, 200), loaded=False)
    watch.latest |= dict.fromkeys(LATEST, 8.0)
    book = AlertBook(AlertSpec())
    book.change("vienna", 7, "rtt_s", step(time.time()))
    schedule = Schedule.of((spec(),), 0.0)
    return text(
        Numbers("dr", {"vienna": watch}, schedule, book, {("vienna", "available"): 5.0}, {"send": 1}, False, 1.0)
    )


def test_dashboard_and_rules_ask_for_metrics_that_are_there(tmp_path: Path) -> None:
    there = set(re.findall(r"^# TYPE (\S+)", page(tmp_path), re.MULTILINE))
    for name in ("dashboard.json", "rules.yml"):
        asked = set(re.findall(r"\b(?:elephan|process)_[a-z_]+\b", (ROOT / "elephan/monitor" / name).read_text()))
        assert asked and asked <= there, asked - there


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs prometheus: scripts/packages.sh test")
def test_prometheus_own_checker_takes_every_family(tmp_path: Path) -> None:
    words = ["promtool", "check", "metrics"]
    done = subprocess.run(words, input=page(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
