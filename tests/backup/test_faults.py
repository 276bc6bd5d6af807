"""Runs that cannot copy everything: what their versions have, what stays of the older ones, and what is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.backup.conftest import Site
from tests.processes import quick

Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]

DENIED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
"""Root without the right to read what a mode denies; any other user has none."""


@pytest.fixture
def command(site: Site) -> Command:
    """Run `elephan backup FILE` in a process of its own, as a user whom modes bind."""

    def run(*words: object, prefix: list[str] | None = None, **env: str) -> Done:
        line = [sys.executable, "-c", "from elephan.cli import main; main()", "backup", str(site.file)]
        return subprocess.run(
            [*(DENIED if prefix is None else prefix), *line, *map(str, words)], capture_output=True, text=True,
            stdin=subprocess.DEVNULL, env=quick() | env, check=False, timeout=120,
        )  # fmt: skip

    return run


def status(command: Command, **env: str) -> tuple[int, dict[str, Any]]:
    """The job's state and the exit code."""
    done = command("status", "--json", **env)
    (view,) = json.loads(done.stdout)
    return done.returncode, view


def test_a_file_that_cannot_be_read_is_carried_over_and_pushes_out_no_version(site: Site, command: Command) -> None:
    site.job("keep = 1")
    site.write("gone", "not to be carried")
    assert command("run", "records", "--once").returncode == 0
    first = site.versions()[0]
    site.write("a.txt", "second")
    (site.source / "a.txt").chmod(0)
    (site.source / "gone").unlink()
    for number in (2, 3):
        done = command("run", "records", "--once")
        assert done.returncode == 1 and f"1 carried over, the oldest from {first.name}" in done.stderr, done.stderr
        assert len(site.versions()) == 2 and first.exists(), number
    newest = site.versions()[1]
    assert (newest / "a.txt").samefile(first / "a.txt") and not (newest / "gone").exists()
    code, view = status(command)
    assert code == 1 and view["state"] == "faults" and view["faults"]["older"] == 1
    assert view["complete"]["version"] == first.name
    assert abs(view["at_risk_s"] - (view["last"]["begun"] - view["complete"]["begun"])) < 120
    text = command("status")
    assert text.returncode == 1 and "1 from older versions, the oldest of" in text.stdout
    restored = command("restore", "records", "--to", site.folder / "restored")
    assert restored.returncode == 1 and f"a.txt: of {first.name}, older than the version" in restored.stdout
    assert (site.folder / "restored/a.txt").read_text() == "first"
    assert (site.folder / "restored/sub/b.txt").read_text() == "kept"
    (site.source / "a.txt").chmod(0o644)
    assert command("run", "records", "--once").returncode == 0
    (last,) = site.versions()
    assert (last / "a.txt").read_text() == "second" and status(command)[1]["state"] == "good"
    assert command("restore", "records").returncode == 0


@pytest.mark.parametrize("kind", ["incremental", "full"])
def test_a_folder_that_cannot_be_listed_is_carried_over_whole(site: Site, command: Command, kind: str) -> None:
    site.job(kind=kind)
    site.write("sub/deep/c", "deep")
    (site.source / "sub/link").symlink_to("nowhere")
    assert command("run", "records", "--once").returncode == 0
    (site.source / "sub").chmod(0)
    for _ in range(2):
        assert command("run", "records", "--once").returncode == 1
    first, *others = site.versions()
    for version in others:
        assert (version / "sub/deep/c").samefile(first / "sub/deep/c")
        assert (version / "sub/b.txt").samefile(first / "sub/b.txt")
        assert os.readlink(version / "sub/link") == "nowhere"
    restored = command("restore", "records", "--to", site.folder / "restored")
    assert restored.returncode == 1 and "sub: of " + first.name in restored.stdout
    assert (site.folder / "restored/sub/deep/c").read_text() == "deep"


def test_a_file_that_changes_while_it_is_read_and_has_no_older_copy_is_named_as_missing(
    site: Site, command: Command
) -> None:
    site.job('rate = "16Mbit/s"')
    assert command("run", "records", "--once").returncode == 0
    busy = site.write("busy", b"x" * 3_000_000)
    ended = threading.Event()

    def change() -> None:
        with busy.open("r+b") as file:
            while not ended.wait(0.02):
                file.seek(0)
                file.write(os.urandom(4096))
                file.flush()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        assert command("run", "records", "--once").returncode == 1
    finally:
        ended.set()
        thread.join()
    assert not (site.versions()[1] / "busy").exists()
    _, view = status(command)
    assert view["state"] == "faults" and view["faults"]["missing"] == 1
    restored = command("restore", "records", "--to", site.folder / "restored")
    assert restored.returncode == 1 and "busy: missing: it could not be copied then" in restored.stdout
    assert (site.folder / "restored/a.txt").read_text() == "first"
    # An exact restore would remove the file, which the version lacks.
    exact = command("restore", "records", "--exact")
    assert exact.returncode == 2 and "lacks entries that the sources had" in exact.stderr and busy.exists()


def test_names_of_any_bytes_are_carried_over(site: Site, command: Command) -> None:
    site.job()
    names = [b"\xff\xfe", b"back\\slash", b"\\x41", b"new\nline", "ä".encode(), b"\x01"]
    folder = os.fsencode(site.source)
    for name in names:
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(name)
    assert command("run", "records", "--once").returncode == 0
    for name in names:
        Path(os.fsdecode(folder + b"/" + name)).chmod(0)
    assert command("run", "records", "--once").returncode == 1
    for name in names:
        assert Path(os.fsdecode(os.fsencode(site.versions()[1]) + b"/" + name)).read_bytes() == name


def test_a_source_that_has_become_empty_fails_the_run(site: Site, command: Command) -> None:
    site.job("keep = 1")
    assert command("run", "records", "--once").returncode == 0
    aside = site.folder / "aside"
    site.source.rename(aside)
    site.source.mkdir()
    done = command("run", "records", "--once")
    assert done.returncode == 1 and "empty, and it was not for version-" in done.stderr, done.stderr
    assert "may_be_empty = true" in done.stderr and len(site.versions()) == 1
    assert (site.versions()[0] / "a.txt").exists() and status(command)[1]["state"] == "failed"
    # A marker of an earlier release says nothing of the sources.
    (marker,) = (site.destination / ".elephan-backup").glob("*.json")
    told = json.loads(marker.read_text())
    facts = {"backup": "dr", "job": "records", "faults": 0, "files": 2, "bytes": 9}
    marker.write_text(json.dumps({"version": told["version"], "state": "complete", "facts": facts}))
    done = command("run", "records", "--once")
    assert done.returncode == 1 and "may_be_empty = true" in done.stderr
    site.job("keep = 1", "may_be_empty = true")
    assert command("run", "records", "--once").returncode == 0 and not (site.versions()[0] / "a.txt").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_mount_point_on_which_nothing_is_mounted_fails_the_run(site: Site, command: Command) -> None:
    site.job("keep = 1")
    mount = f'mount -t tmpfs none {site.source} && echo disk > {site.source}/on-disk && exec "$@"'
    mounted = ["unshare", "--mount", "sh", "-c", mount, "sh"]
    assert command("run", "records", "--once", prefix=mounted).returncode == 0
    # Below the mount point lies something else.
    done = command("run", "records", "--once", prefix=[])
    assert done.returncode == 1 and "nothing is mounted there, as was for version-" in done.stderr, done.stderr
    (version,) = site.versions()
    assert (version / "on-disk").read_text() == "disk\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("bound", ["nr_inodes=40", "size=300k"])
def test_a_full_destination_ends_the_attempt_and_no_version_goes(site: Site, command: Command, bound: str) -> None:
    site.job("keep = 1", top="[retry]\nattempts = 1\n")
    disk = site.destination.parent
    script = f"""
        set -e
        mount -t tmpfs -o {bound} none {disk}
        "$@" run records --once
        cd {site.source}
        for n in $(seq 60); do head -c 8192 /dev/urandom > f$n; done
        set +e
        "$@" run records --once
        code=$?
        ls {disk}/copies > {site.folder}/listing
        cat {disk}/copies/.elephan-backup/*.json > {site.folder}/markers
        cat {disk}/copies/latest/a.txt > {site.folder}/kept
        exit $code
    """
    line = [sys.executable, "-c", "from elephan.cli import main; main()", "backup", str(site.file)]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *line], capture_output=True, text=True, env=quick(),
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "No space left" in done.stderr or "full" in done.stderr, done.stderr
    assert "not copied" not in done.stderr, "a full disk is no fault of each file"
    assert (site.folder / "kept").read_text() == "first"
    assert '"state":"partial"' not in (site.folder / "markers").read_text()
    assert status(command)[1]["state"] == "failed"


@pytest.mark.parametrize("slash", ["/", ""])
def test_an_exact_restore_leaves_what_the_job_excludes(site: Site, command: Command, slash: str) -> None:
    site.job('exclude = ["*.tmp", "/data/cache/", "/cache/", "kept/here"]')
    if not slash:
        site.file.write_text(site.file.read_text().replace(f'"{site.source}/"', f'"{site.source}"'))
    for name in ("a.tmp", "cache/c", "kept/here/b"):
        site.write(name, "only copy")
    site.write("later", "in the version")
    assert command("run", "records", "--once").returncode == 0
    # A version has more than the job of today copies.
    site.file.write_text(site.file.read_text().replace('"*.tmp"', '"*.tmp", "later"'))
    (site.source / "later").unlink()
    site.write("new", "not in the version")
    done = command("restore", "records", "--exact")
    assert done.returncode == 0, done
    there = sorted(str(path.relative_to(site.source)) for path in site.source.rglob("*") if path.is_file())
    assert there == ["a.tmp", "a.txt", "cache/c", "kept/here/b", "later", "sub/b.txt"]


def test_a_file_that_became_an_unreadable_folder_keeps_its_older_version(site: Site, command: Command) -> None:
    site.job("keep = 1")
    site.write("p", "only copy")
    assert command("run", "records", "--once").returncode == 0
    (first,) = site.versions()
    (site.source / "p").unlink()
    site.write("p/in", "x")
    (site.source / "p").chmod(0)
    try:
        assert command("run", "records", "--once").returncode == 1
    finally:
        (site.source / "p").chmod(0o755)
    assert first in site.versions() and (first / "p").read_text() == "only copy"


def test_the_state_of_a_job_has_one_exit_code(site: Site, command: Command) -> None:
    site.job()
    assert command("run", "records", "--once").returncode == 0
    assert [command("status", *words).returncode for words in ((), ("records",), ("records", "--json"))] == [0, 0, 0]
    (site.source / "a.txt").chmod(0)
    assert command("run", "records", "--once").returncode == 1
    assert [command("status", *words).returncode for words in ((), ("records",), ("records", "--json"))] == [1, 1, 1]


def test_thousands_of_files_that_cannot_be_read_are_carried_over_and_counted(site: Site, command: Command) -> None:
    site.job()
    for number in range(10_500):
        site.write(f"{number // 500}/{'long name ' * 12}{number}", str(number))
    assert command("run", "records", "--once").returncode == 0
    subprocess.run(["find", site.source, "-name", "long*", "-exec", "chmod", "0", "{}", "+"], check=True)
    for _ in range(2):
        assert command("run", "records", "--once").returncode == 1
    first, *others = site.versions()
    for version in others:
        carried = [path for path in version.rglob("long*") if path.samefile(first / path.relative_to(version))]
        # Each end names its first 10,000 faults; further entries are missing from the version, and the older one stays.
        assert len(carried) >= 10_000
    done = command("restore", "records", "--to", site.folder / "restored")
    restored = sum(1 for _ in (site.folder / "restored").rglob("long*"))
    assert done.returncode == 1 and restored == len(carried), done.stdout[-2000:]
    lines = done.stdout.splitlines()
    missing = 10_500 - restored
    assert f"{restored} entries older than the version, {missing} entries missing: " in lines[-1], lines[-1]
    named = sum("older than the version: it could not be copied then" in line for line in lines[:-1])
    assert any(line.startswith(f"records: {restored - named} more: ") for line in lines), lines
    assert f"records: {missing} more: missing: the run named its first faults alone" in lines, lines


def test_a_source_that_became_a_link_fails_the_run(site: Site, command: Command) -> None:
    site.job("keep = 1")
    site.file.write_text(site.file.read_text().replace(f'{site.source}/"', f'{site.source}"'))
    assert command("run", "records", "--once").returncode == 0
    aside = site.folder / "aside"
    site.source.rename(aside)
    site.source.symlink_to(aside)
    done = command("run", "records", "--once")
    assert done.returncode == 1 and "a symbolic link, and it was a folder for version-" in done.stderr, done.stderr
    (version,) = site.versions()
    assert (version / "data/a.txt").read_text() == "first"
    site.file.write_text(site.file.read_text() + "may_be_empty = true\n")
    assert command("run", "records", "--once").returncode == 0
    assert os.readlink(site.versions()[-1] / "data") == str(aside)
