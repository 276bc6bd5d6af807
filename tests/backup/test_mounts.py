"""File systems below a source: one that is not mounted at a run removes no version and no copy of its content."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.backup.conftest import Site
from tests.processes import quick, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")

Done = subprocess.CompletedProcess[str]
Enter = Callable[..., Done]


@pytest.fixture
def enter() -> Iterator[Enter]:
    """Run commands in one mount namespace of their own."""
    holder = subprocess.Popen(["unshare", "--mount", "sleep", "300"])
    own = Path("/proc/self/ns/mnt").readlink()
    until(lambda: Path(f"/proc/{holder.pid}/ns/mnt").readlink() != own, 10)

    def run(*words: object) -> Done:
        return subprocess.run(
            ["nsenter", f"--target={holder.pid}", "--mount", *map(str, words)], capture_output=True, text=True,
            stdin=subprocess.DEVNULL, env=quick(), check=False, timeout=120,
        )  # fmt: skip

    yield run
    holder.kill()
    holder.wait()


@pytest.fixture
def command(site: Site, enter: Enter) -> Enter:
    """Run `elephan backup FILE` there."""
    line = [sys.executable, "-c", "from elephan.cli import main; main()", "backup", str(site.file)]
    return lambda *words: enter(*line, *words)


def mount(enter: Enter, disk: Path, *files: str) -> None:
    """Mount a file system with files on a folder."""
    disk.mkdir(parents=True, exist_ok=True)
    assert enter("mount", "-t", "tmpfs", "none", disk).returncode == 0
    for name in files:
        assert enter("sh", "-c", f"echo {name} > '{disk}/{name}'").returncode == 0


def content(site: Site, kind: str, path: str) -> Path:
    """The newest copy of a path."""
    return (site.destination if kind == "mirror" else site.versions()[-1]) / path


@pytest.mark.parametrize("kind", ["incremental", "full", "mirror"])
def test_a_file_system_below_a_source_that_is_not_mounted_fails_the_run(
    site: Site, enter: Enter, command: Enter, kind: str
) -> None:
    site.job("max_removals = 100" if kind == "mirror" else "keep = 1", kind=kind)
    disk = site.source / "sub" / "the disk"
    mount(enter, disk, "one", "two")
    assert command("run", "records", "--once").returncode == 0
    kept = content(site, kind, "sub/the disk/one")
    assert kept.read_text() == "one\n"
    assert command("run", "records", "--once").returncode == 0, "while it is mounted"
    kept = content(site, kind, "sub/the disk/one")
    version = "the run before" if kind == "mirror" else site.versions()[-1].name
    assert enter("umount", disk).returncode == 0
    for now, entry in (("is empty now", None), ("is empty now", "lost+found"), ("nothing is mounted there now", "x")):
        if entry is not None:
            (disk / entry).mkdir()
        done = command("run", "records", "--once")
        text = f"{disk}: was a file system of its own in {version}, and {now}: mount the disk, or set may_be_empty"
        assert done.returncode == 1 and text in done.stderr, done.stderr
        assert kept.read_text() == "one\n"
    (view,) = json.loads(command("status", "--json").stdout)
    assert view["state"] == "failed"
    # Its user removes the mount point itself.
    (disk / "x").rmdir()
    (disk / "lost+found").rmdir()
    disk.rmdir()
    assert command("run", "records", "--once").returncode == 0
    assert not content(site, kind, "sub/the disk").exists()
    # And a run of a plain folder of that name lists no mount point.
    disk.mkdir()
    assert command("run", "records", "--once").returncode == 0
    assert command("run", "records", "--once").returncode == 0


def test_several_file_systems_and_sources_are_each_compared(site: Site, enter: Enter, command: Enter) -> None:
    other = site.folder / "other"
    odd = other / os.fsdecode(b"odd\\ \xff")
    mount(enter, site.source / "outer", "one")
    assert enter("mkdir", site.source / "outer/inner").returncode == 0
    assert enter("mount", "-t", "tmpfs", "none", site.source / "outer/inner").returncode == 0
    mount(enter, odd, "two")
    # A folder of the same file system, mounted once more.
    bound = other / "bound"
    bound.mkdir()
    assert enter("mount", "--bind", site.source / "sub", bound).returncode == 0
    site.job("keep = 1")
    site.file.write_text(site.file.read_text().replace(f'["{site.source}/"]', f'["{site.source}", "{other}"]'))
    assert command("run", "records", "--once").returncode == 0
    (version,) = site.versions()
    assert (version / "other/bound/b.txt").read_text() == "kept"
    for folder in (site.source / "outer/inner", site.source / "outer", odd, bound):
        assert enter("umount", folder).returncode == 0
    said = command("run", "records", "--once").stderr
    # The inner one is missing with the outer one.
    text = f"{site.source}/outer: was a file system of its own in {version.name}, and is empty now (2 more): mount"
    assert text in said, said
    site.job("keep = 1", "may_be_empty = true")
    site.file.write_text(site.file.read_text().replace(f'["{site.source}/"]', f'["{site.source}", "{other}"]'))
    assert site.versions() == [version] and (version / "other" / odd.name / "two").exists()
    assert command("run", "records", "--once").returncode == 0
    assert not (site.versions()[-1] / "other" / odd.name / "two").exists()


def test_a_mount_point_in_a_folder_that_could_not_be_listed_is_still_known(
    site: Site, enter: Enter, command: Enter
) -> None:
    site.job("keep = 1")
    deny = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    line = (sys.executable, "-c", "from elephan.cli import main; main()", "backup", site.file)
    disk = site.source / "sub" / "disk"
    mount(enter, disk, "one")
    assert command("run", "records", "--once").returncode == 0
    (site.source / "sub").chmod(0)
    assert enter(*deny, *line, "run", "records", "--once").returncode == 1
    (site.source / "sub").chmod(0o755)
    assert enter("umount", disk).returncode == 0
    done = command("run", "records", "--once")
    assert done.returncode == 1 and f"file system of its own in {site.versions()[0].name}" in done.stderr, done.stderr
    assert [(one / "sub/disk/one").read_text() for one in site.versions()] == ["one\n"] * 2
