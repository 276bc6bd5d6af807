"""The systemd unit: checked by systemd itself, written over only where it is elephan's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from elephan.cli.main import call
from elephan.kernel import systemd
from elephan.monitor import unit
from tests.monitor.test_config import EXAMPLE


def test_a_unit_is_printed_that_systemd_takes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit, "command_line", lambda: ["/usr/bin/env", "elephan"])
    assert call(["monitor", "unit", str(EXAMPLE), "--user", "root"]) == 0
    text = capsys.readouterr().out
    for line in ("User=root", "ProtectSystem=strict", "StateDirectory=elephan-monitor-dr", "CapabilityBoundingSet="):
        assert line in text.splitlines()
    assert "--store /var/lib/elephan-monitor-dr/results.sqlite" in text
    systemd.verify("elephan-monitor-dr.service", text)
    if shutil.which("systemd-analyze"):
        (tmp_path / "elephan-monitor-dr.service").write_text(text)
        words = ["systemd-analyze", "security", "--offline=yes", str(tmp_path / "elephan-monitor-dr.service")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert "OK" in done.stdout or "MEDIUM" in done.stdout, done.stdout[-300:]


def test_it_is_installed_and_removed_where_it_is_elephans(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit, "command_line", lambda: ["/usr/bin/env", "elephan"])
    words = ["monitor", "unit", str(EXAMPLE), "--user", "root", "--root", str(tmp_path)]
    assert call([*words, "--install"]) == 0
    place = tmp_path / "etc/systemd/system/elephan-monitor-dr.service"
    link = place.parent / "multi-user.target.wants" / place.name
    assert capsys.readouterr().out == f"dr: {place} runs it at every boot\n" and link.is_symlink()
    assert call([*words, "--remove"]) == 0
    assert capsys.readouterr().out == f"dr: removed {place}\n" and not place.exists() and not link.is_symlink()
    place.write_text("[Service]\n")
    assert call([*words, "--install"]) == 2 and call([*words, "--remove"]) == 2
    assert "is not elephan's: it stays" in capsys.readouterr().err


def test_a_place_that_the_units_user_cannot_enter_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "elephan").touch()
    monkeypatch.setattr(unit, "command_line", lambda: [str(closed / "elephan")])
    assert call(["monitor", "unit", str(EXAMPLE)]) == 2
    assert "the unit's own user cannot enter" in capsys.readouterr().err
    assert call(["monitor", "unit", str(EXAMPLE), "--user", "nobody-of-this-name"]) == 2
    assert "no user of this machine" in capsys.readouterr().err
