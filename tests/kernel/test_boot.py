"""`elephan kernel enable` and `disable`: a unit that loads a congestion control at every boot, and nothing else."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elephan.cli.main import call
from elephan.errors import InputError
from elephan.kernel import boot, loaded, systemd

Elephan = Callable[..., subprocess.CompletedProcess[str]]

FOLDER = Path("etc/systemd/system")
WANTS = FOLDER / "multi-user.target.wants"
UNIT = "elephan-cc-qa_boot.service"


@pytest.fixture(autouse=True)
def host_s_units_stay() -> Iterator[None]:
    """Compare what systemd would find on this machine before and after."""

    def seen() -> list[tuple[str, int]]:
        return sorted((str(path), path.lstat().st_mtime_ns) for path in Path("/etc/systemd").rglob("*"))

    before = seen()
    yield
    assert seen() == before


def run(*words: str) -> int:
    return call(["kernel", *words])


def executed(unit: Path, key: str) -> list[list[str]]:
    """Return the commands of a unit's key, without the sign that lets a failure pass."""
    lines = unit.read_text().splitlines()
    return [shlex.split(line.partition("=")[2].removeprefix("-")) for line in lines if line.startswith(f"{key}=")]


def test_a_unit_is_written_once_and_taken_away_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("storage_friendly=qa_boot", "--set", "reduction=1/4", "--default", "--root", str(tmp_path))
    assert run("enable", *words) == 0
    unit, link = tmp_path / FOLDER / UNIT, tmp_path / WANTS / UNIT
    assert capsys.readouterr().out == f"elephan_qa_boot: {unit} loads it at every boot\n"
    assert os.readlink(link) == f"/{FOLDER}/{UNIT}"
    command = boot.command_line()
    assert executed(unit, "ExecStart") == [
        [*command, "kernel", "load", "storage_friendly=qa_boot", "--set", "reduction=1/4"],
        [*command, "kernel", "default", "elephan_qa_boot", "--host"],
    ]
    assert executed(unit, "ExecStop") == [[*command, "kernel", "unload", "elephan_qa_boot"]]
    before = unit.read_bytes()
    assert run("enable", *words) == 0
    assert capsys.readouterr().out == f"elephan_qa_boot: {unit} was enabled already\n" and unit.read_bytes() == before
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == [UNIT, "multi-user.target.wants"]
    # Other values are another unit of the same name.
    assert run("enable", "storage_friendly=qa_boot", "--root", str(tmp_path)) == 0
    assert "loads it at every boot" in capsys.readouterr().out and b"reduction" not in unit.read_bytes()
    assert run("disable", "qa_boot", "--root", str(tmp_path)) == 0
    assert capsys.readouterr().out == f"elephan_qa_boot: removed {unit}\n"
    assert not unit.exists() and not link.is_symlink()
    assert run("disable", "storage_friendly=qa_boot", "--root", str(tmp_path)) == 0
    assert capsys.readouterr().out == "elephan_qa_boot: was not enabled\n"


def test_the_unit_s_commands_load_and_unload_without_an_environment(kernel: None, tmp_path: Path) -> None:
    """As systemd runs them: from /, with no variable but a short PATH."""
    boot.enable("storage_friendly=qa_boot", ["reduction=1/4"], root=tmp_path)
    unit = tmp_path / FOLDER / UNIT

    def all_of(key: str, check: bool = True) -> None:
        for words in executed(unit, key):
            environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8"}
            done = subprocess.run(words, cwd="/", env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0 or not check, done.stderr

    for _ in range(2):
        all_of("ExecStartPre", check=False)
        all_of("ExecStart")
        (one,) = (one for one in loaded() if one.name == "elephan_qa_boot" and one.registered)
        assert one.label == "storage_friendly=qa_boot" and one.parameters["reduction"] == "1/4"
    all_of("ExecStop")
    assert not any(one.name == "elephan_qa_boot" and one.registered for one in loaded())


def test_the_unit_runs_the_command_that_was_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script under ~/.local/bin is not beside its interpreter."""
    monkeypatch.setattr(sys, "argv", ["-c"])
    script = Path(sys.executable).parent / "elephan"
    assert boot.command_line() == ([str(script)] if script.exists() else [sys.executable, "-c", systemd.CODE])
    called = tmp_path / "bin" / "elephan"
    called.parent.mkdir()
    called.write_text("#!/bin/sh\n")
    called.chmod(0o755)
    monkeypatch.chdir(called.parent)
    monkeypatch.setattr(sys, "argv", ["./elephan", "kernel", "enable", "reno"])
    assert boot.command_line() == [str(called)]


def test_disable_unloads(kernel: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elephan: Elephan) -> None:
    monkeypatch.setattr(boot, "UNITS", tmp_path / FOLDER)
    monkeypatch.setattr(boot, "BOOTED", tmp_path / "no systemd")
    done = boot.enable("reno=qa_boot")
    assert not done.started and done.unit == tmp_path / FOLDER / UNIT
    assert elephan("load", "reno=qa_boot").returncode == 0
    gone = boot.disable("reno=qa_boot")
    assert gone.unit == done.unit and gone.removed is not None
    assert [one.name for one in gone.removed.unloaded] == ["elephan_qa_boot"]
    again = boot.disable("reno=qa_boot")
    assert again.unit is None and again.removed is None


def test_systemd_finds_nothing_wrong_with_a_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = boot.enable("cubic", default=True, restricted=True, root=tmp_path).unit
    words = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_systemd_refuses_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    monkeypatch.setattr(boot, "command_line", lambda: [str(tmp_path / "gone" / "elephan")])
    with pytest.raises(
        InputError, match=r"systemd-analyze refuses elephan-cc-reno\.service: .*gone/elephan is not exec"
    ):
        boot.enable("reno", root=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_of_one_s_own_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / 'a "folder" of 100 $MONEY; done'
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert call(["cc", "new", "mine"]) == 0
    unit = boot.enable("./mine.c", root=tmp_path).unit
    assert unit.name == "elephan-cc-mine.service"
    (line,) = (line for line in unit.read_text().splitlines() if line.startswith("ExecStart="))
    assert line.endswith(f'kernel load "{tmp_path}/a \\"folder\\" of 100 $$MONEY; done/mine.c"')
    assert boot.disable("./mine.c", root=tmp_path).unit == unit


def test_one_unit_alone_makes_its_control_the_default(tmp_path: Path) -> None:
    """Two defaults at boot would have no certain order."""
    boot.enable("cubic", default=True, root=tmp_path)
    boot.enable("cubic", default=True, root=tmp_path)
    with pytest.raises(InputError, match=r"makes elephan_cubic the default at boot; first: .* kernel disable cubic"):
        boot.enable("reno", default=True, root=tmp_path)
    boot.enable("reno", root=tmp_path)
    assert len(list((tmp_path / FOLDER).glob("elephan-cc-*.service"))) == 2


def test_another_system_s_folder_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--root .*none: a folder that holds a system's files"):
        boot.enable("reno", root=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_unit_of_somebody_else_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / FOLDER / UNIT
    place.parent.mkdir(parents=True)
    place.write_text("[Service]\nExecStart=/bin/true\n")
    for words in (("enable", "reno=qa_boot"), ("disable", "qa_boot")):
        assert run(*words, "--root", str(tmp_path)) == 2
        error = capsys.readouterr().err
        assert "is not elephan's" in error and error.count("\n") == 1
    assert place.read_text().startswith("[Service]")


@pytest.mark.parametrize("words", [("enable", "reno"), ("enable", "reno", "--default"), ("disable", "reno")])
def test_without_root_both_are_refused_in_one_line(words: tuple[str, ...]) -> None:
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed")
        prefix = ["unshare", "--user", "--map-user=1000"]
    else:
        prefix = []
    command = [*prefix, sys.executable, "-c", "from elephan.cli import main; main()", "kernel", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"error: elephan kernel {words[0]} needs root: it writes below /etc/systemd/system")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("renoo",), "no congestion control 'renoo'"),
        (("reno=",), "the variant's name follows"),
        (("storage_friendly", "--set", "reduction=7"), "--set reduction: a number from"),
        (("reno=kbeef01",), "is how runs name theirs"),
    ],
)
def test_what_could_not_be_loaded_is_not_enabled(
    tmp_path: Path, words: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("enable", *words, "--root", str(tmp_path)) == 2
    error = capsys.readouterr().err
    assert text in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())
