"""The systemd units: checked by systemd itself, written over only where they are elephan's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from elephan.backup import unit
from elephan.cli.main import call
from elephan.kernel import systemd

FILE = """name = "dr"
[[job]]
name = "records"
kind = "incremental"
sources = ["/srv/records/"]
destination = "/srv/disk/records"
{when}
[[job]]
name = "volume"
kind = "mirror"
sources = ["/dev/vg/data"]
destination = "osc:/dev/vg/copy"
at = ["02:00", "14:30"]
days = ["sat", "sun"]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(unit, "command_line", lambda: ["/usr/bin/env", "elephan"])
    found = tmp_path / "dr.toml"
    found.write_text(FILE.format(when='every = "2h"'))
    return found


def test_a_service_runs_all_jobs(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["backup", str(file), "unit", "--user", "root"]) == 0
    text = capsys.readouterr().out
    assert f"ExecStart=/usr/bin/env elephan backup {file} run --store /var/lib/elephan-backup-dr/results.sqlite" in text
    # The device of the second job is read there; the first one's versions are written.
    assert "ReadWritePaths=/srv/disk" in text and "PrivateDevices" not in text
    assert "WantedBy=multi-user.target" in text
    systemd.verify("elephan-backup-dr.service", text)


def test_timers_run_each_job_at_its_times(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["backup", str(file), "unit", "--timers", "--user", "root", "--root", str(tmp_path)]
    assert call([*words, "--install"]) == 0
    folder = tmp_path / "etc/systemd/system"
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        f"elephan-backup-dr.{job}.{kind}" for job in ("records", "volume") for kind in ("service", "timer")
    }
    timer = (folder / "elephan-backup-dr.volume.timer").read_text()
    assert "OnCalendar=Sat,Sun *-*-* 02:00:00\nOnCalendar=Sat,Sun *-*-* 14:30:00\nPersistent=true" in timer
    assert (folder / "timers.target.wants/elephan-backup-dr.records.timer").is_symlink()
    service = (folder / "elephan-backup-dr.records.service").read_text()
    assert "run records --once" in service and "Type=oneshot" in service and "PrivateDevices=yes" in service
    for text in (timer, (folder / "elephan-backup-dr.records.timer").read_text()):
        for line in (line for line in text.splitlines() if line.startswith("OnCalendar=")):
            if shutil.which("systemd-analyze"):
                subprocess.run(["systemd-analyze", "calendar", line.partition("=")[2]], check=True, capture_output=True)
    # Of another backup, or somebody's own.
    (folder / "elephan-backup-other.service").write_text("[Service]\n")
    assert call([*words[:4], "--root", str(tmp_path), "--remove"]) == 0
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["elephan-backup-other.service"]
    (folder / "elephan-backup-dr.records.timer").write_text("[Timer]\n")
    assert call([*words, "--install"]) == 2
    assert "is not elephan's: it stays" in capsys.readouterr().err


def test_a_period_that_no_timer_has_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(FILE.format(when='every = "5h"'))
    assert call(["backup", str(file), "unit", "--timers", "--user", "root"]) == 2
    assert "a timer needs a period" in capsys.readouterr().err
    assert call(["backup", str(file), "unit", "--user", "nobody-of-this-name"]) == 2
    assert "no user of this machine" in capsys.readouterr().err
