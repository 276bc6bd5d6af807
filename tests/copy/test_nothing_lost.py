"""Copies that lost data or reached too far, each with the shipped command and a plain look at the files."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.copy.conftest import Copy, Mount, events
from tests.copy.model import clock
from tests.processes import quick

BIG = 700_000
"""Bytes of a file of several chunks."""


def names(folder: Path) -> list[str]:
    """Return all paths below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def write(path: Path, content: bytes | str, seconds: int = 1_600_000_000) -> Path:
    """Write a file with a time; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, (seconds, seconds))
    return path


@pytest.mark.parametrize("size", [1, 5_000, BIG])
@pytest.mark.parametrize("options", [[], ["--checksum"], ["--verify=read"], ["--mirror"], ["--checksum", "--whole"]])
def test_a_file_that_became_shorter_loses_its_tail(
    copy_alone: Copy, tmp_path: Path, size: int, options: list[str]
) -> None:
    content = os.urandom(BIG)
    write(tmp_path / "to" / "file", content + os.urandom(BIG), 1_500_000_000)
    write(tmp_path / "from" / "file", content[:size])
    receipt = tmp_path / "receipt.json"
    done = copy_alone(f"{tmp_path}/from/", tmp_path / "to", "--receipt", receipt, *options)
    assert done.returncode == 0, done
    assert (tmp_path / "to" / "file").read_bytes() == content[:size]
    assert copy_alone("verify", receipt).returncode == 0


def test_a_file_that_changes_at_the_destination_while_it_is_compared_is_not_kept(
    copy_alone: Copy, tmp_path: Path
) -> None:
    # Longer than the source by less than a chunk, of the same time: only their sizes differ.
    content = os.urandom(BIG)
    write(tmp_path / "from" / "file", content)
    write(tmp_path / "to" / "file", content + b"tail")
    assert copy_alone(f"{tmp_path}/from/", tmp_path / "to").returncode == 0
    assert (tmp_path / "to" / "file").read_bytes() == content


@pytest.mark.parametrize("size", [10_000, BIG])
def test_metadata_of_an_older_version_stay(copy_alone: Copy, tmp_path: Path, size: int) -> None:
    file = write(tmp_path / "from" / "file", os.urandom(size))
    file.chmod(0o644)
    assert copy_alone(f"{tmp_path}/from/", tmp_path / "1").returncode == 0
    for _ in range(2):
        assert copy_alone(f"{tmp_path}/from/", tmp_path / "2", "--link-to", tmp_path / "1").returncode == 0
        assert (tmp_path / "1" / "file").samefile(tmp_path / "2" / "file")
    before = (tmp_path / "1" / "file").stat()
    file.chmod(0o600)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    for options in (["--link-to", tmp_path / "1"], [], ["--checksum"]):
        assert copy_alone(f"{tmp_path}/from/", tmp_path / "2", *options).returncode == 0
        after = (tmp_path / "1" / "file").stat()
        assert (before.st_mode, before.st_mtime_ns, before.st_uid) == (after.st_mode, after.st_mtime_ns, after.st_uid)
        assert (tmp_path / "2" / "file").stat().st_mode & 0o7777 == 0o600


@pytest.mark.parametrize("size", [10, BIG])
@pytest.mark.parametrize("options", [[], ["--checksum"]])
def test_a_hard_link_that_was_broken_is_broken(copy_alone: Copy, tmp_path: Path, size: int, options: list[str]) -> None:
    content = os.urandom(size)
    write(tmp_path / "from" / "a", content)
    (tmp_path / "from" / "b").hardlink_to(tmp_path / "from" / "a")
    assert copy_alone(f"{tmp_path}/from/", tmp_path / "to").returncode == 0
    assert (tmp_path / "to" / "a").samefile(tmp_path / "to" / "b")
    (tmp_path / "from" / "b").unlink()
    write(tmp_path / "from" / "b", content).chmod(0o600)
    for _ in range(2):
        assert copy_alone(f"{tmp_path}/from/", tmp_path / "to", *options).returncode == 0
        one, other = (tmp_path / "to" / "a").stat(), (tmp_path / "to" / "b").stat()
        assert (one.st_nlink, other.st_nlink) == (1, 1)
        assert (one.st_mode & 0o7777, other.st_mode & 0o7777) == (0o644, 0o600)


@pytest.mark.parametrize("size", [0, 4096, BIG])
def test_a_file_that_ends_in_a_hole_is_read_back(copy_alone: Copy, tmp_path: Path, size: int) -> None:
    file = write(tmp_path / "from" / "image", os.urandom(size))
    os.truncate(file, 3_000_000)
    done = copy_alone(f"{tmp_path}/from/", tmp_path / "to", "--verify=read")
    assert done.returncode == 0, done
    assert (tmp_path / "to" / "image").read_bytes() == file.read_bytes()


def test_a_mirror_leaves_other_file_systems_alone(copy_alone: Copy, tmp_path: Path, mount: Mount) -> None:
    write(tmp_path / "from" / "file", "file")
    mount(tmp_path / "from" / "other")
    write(tmp_path / "from" / "other" / "left out", "source")
    write(tmp_path / "to" / "other" / "archive", "only copy")
    mount(tmp_path / "to" / "disk")
    write(tmp_path / "to" / "disk" / "database", "only copy")
    write(tmp_path / "to" / "old", "old")
    mount(tmp_path / "to" / "gone" / "disk")
    write(tmp_path / "to" / "gone" / "disk" / "deep", "only copy")
    for options in (["--one-file-system"], []):
        copy_alone(f"{tmp_path}/from/", tmp_path / "to", "--mirror", "--max-removals", "100", *options)
        assert (tmp_path / "to" / "disk" / "database").read_text() == "only copy"
        assert (tmp_path / "to" / "gone" / "disk" / "deep").read_text() == "only copy"
        assert not (tmp_path / "to" / "old").exists()
        if options:
            assert (tmp_path / "to" / "other" / "archive").read_text() == "only copy"
        else:
            # Without the option the sources have the folder and its content.
            assert names(tmp_path / "to" / "other") == ["left out"]


@pytest.mark.parametrize("options", [[], ["--one-file-system"]])
def test_a_mirror_removes_on_the_mount_of_the_destination_alone(
    copy_alone: Copy, tmp_path: Path, mount: Mount, options: list[str]
) -> None:
    write(tmp_path / "from" / "shared" / "file", "file")
    mount(tmp_path / "to" / "shared")
    write(tmp_path / "to" / "shared" / "archive", "only copy")
    command = (f"{tmp_path}/from/", tmp_path / "to", "--mirror", *options)
    said = "shared: on another mount than the destination: mirror leaves 1 there"
    assert said in copy_alone(*command, "--dry-run").stdout
    done = copy_alone(*command)
    assert done.returncode == 0 and said in done.stderr, done
    assert names(tmp_path / "to" / "shared") == ["archive", "file"]


def test_a_mirror_removes_at_most_half_of_the_tree(copy_alone: Copy, tmp_path: Path) -> None:
    write(tmp_path / "from" / "stays", "1")
    for number in range(5):
        write(tmp_path / "to" / "old" / f"{number}", "old")
    write(tmp_path / "to" / "stays", "0", 1_500_000_000)
    before = names(tmp_path / "to")
    command = (f"{tmp_path}/from/", tmp_path / "to", "--mirror")
    listed = copy_alone(*command, "--dry-run")
    assert listed.returncode == 0
    assert listed.stdout.count("would remove old") == 6 and "--max-removals 6 allows it" in listed.stdout, listed
    assert (tmp_path / "to" / "stays").read_text() == "0"
    for more in ([], ["--max-removals", "5"]):
        refused = copy_alone(*command, *more)
        assert refused.returncode == 1 and "--max-removals 6 allows it" in refused.stdout, refused
        assert names(tmp_path / "to") == before
    receipt = tmp_path / "receipt.json"
    done = copy_alone(*command, "--max-removals", "6", "--receipt", receipt)
    assert done.returncode == 0, done
    assert names(tmp_path / "to") == ["stays"]
    told = json.loads(receipt.read_text())
    assert told["removed"] == 6
    assert sorted(told["removals"]) == ["old", *(f"old/{number}" for number in range(5))]
    assert copy_alone(tmp_path / "from", tmp_path / "x", "--max-removals", "1").returncode == 2


def test_a_folder_in_the_way_stays_when_the_copy_fails(copy_alone: Copy, tmp_path: Path) -> None:
    for name in ("file", "link", "first", "second"):
        write(tmp_path / "to" / name / "precious", "only copy")
    write(tmp_path / "from" / "file", "file")
    (tmp_path / "from" / "link").symlink_to("file")
    write(tmp_path / "from" / "first", "linked")
    (tmp_path / "from" / "second").hardlink_to(tmp_path / "from" / "first")
    # A path that is too long for a copy: a fault for any user, root included.
    deep = tmp_path / "from"
    descriptor = os.open(deep, os.O_RDONLY)
    for _ in range(17):
        os.mkdir("d" * 250, dir_fd=descriptor)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    command = (f"{tmp_path}/from/", tmp_path / "to", "--mirror", "--max-removals", "100")
    done = copy_alone(*command)
    assert done.returncode == 1 and "a copy takes paths of up to 4096 bytes" in done.stdout, done
    for name in ("file", "link", "first", "second"):
        assert (tmp_path / "to" / name / "precious").read_text() == "only copy"
    subprocess.run(["rm", "-r", tmp_path / "from" / ("d" * 250)], check=True)
    listed = copy_alone(*command, "--dry-run")
    assert "would remove file/precious" in listed.stdout, listed
    done = copy_alone(*command)
    assert done.returncode == 0, done
    assert names(tmp_path / "to") == ["file", "first", "link", "second"]
    assert (tmp_path / "to" / "file").read_text() == "file" and (tmp_path / "to" / "second").read_text() == "linked"
    assert os.readlink(tmp_path / "to" / "link") == "file"
    assert (tmp_path / "to" / "first").samefile(tmp_path / "to" / "second")


def test_a_mirror_of_a_folder_inside_its_destination_is_refused(copy_alone: Copy, tmp_path: Path) -> None:
    write(tmp_path / "a" / "b" / "file", "only copy")
    done = copy_alone(f"{tmp_path}/a/b/", tmp_path / "a", "--mirror")
    assert done.returncode == 2 and "it would be removed" in done.stderr, done
    assert names(tmp_path / "a") == ["b", "b/file"]
    assert copy_alone(f"{tmp_path}/a/b/", tmp_path / "a").returncode == 0
    assert (tmp_path / "a" / "file").read_text() == "only copy"
    write(tmp_path / "c" / "file", "x")
    older = ("--link-to", tmp_path / "a" / "b")
    assert copy_alone(f"{tmp_path}/c/", tmp_path / "a", "--mirror", *older).returncode == 2
    assert (tmp_path / "a" / "b" / "file").read_text() == "only copy"


def test_a_mirror_leaves_a_source_that_is_bound_elsewhere(copy_alone: Copy, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    write(tmp_path / "a" / "b" / "file", "only copy")
    (tmp_path / "bound").mkdir()
    subprocess.run(["mount", "--bind", tmp_path / "a" / "b", tmp_path / "bound"], check=True)
    try:
        done = copy_alone(f"{tmp_path}/bound/", tmp_path / "a", "--mirror", "--max-removals", "99")
    finally:
        subprocess.run(["umount", tmp_path / "bound"], check=True)
    assert done.returncode == 1 and "not copied: b: a source of this copy: it stays" in done.stdout, done
    assert names(tmp_path / "a") == ["b", "b/file", "file"]


def test_bytes_that_are_no_utf_8_are_refused(copy_alone: Copy, tmp_path: Path) -> None:
    write(tmp_path / "from" / "file", "x")
    for option in ("--exclude", "--link-to"):
        done = copy_alone(tmp_path / "from", tmp_path / "to", option, os.fsdecode(b"caf\xe9"))
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and option in done.stderr, done


def test_a_user_mirrors_folders_of_any_mode(copy_alone: Copy, tmp_path: Path, state: Path) -> None:
    write(tmp_path / "from" / "file", "x")
    # Everything is imported before the rights to read it are given up.
    assert copy_alone(f"{tmp_path}/from/", tmp_path / "to", "--mirror").returncode == 0
    for mode in (0o555, 0o000, 0o311):
        folder = write(tmp_path / "to" / f"old {mode:o}" / "sub" / "file", "x").parent
        folder.chmod(mode)
        folder.parent.chmod(mode)
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "65534:65534", tmp_path], check=True)
    parents = [parent for parent in tmp_path.parents if parent.stat().st_uid == os.geteuid()]
    modes = [(parent, parent.stat().st_mode) for parent in parents]
    for parent, mode in modes:
        parent.chmod(mode | 0o111)
    try:
        child = os.fork()
        if child == 0:
            code = 99
            try:
                if os.geteuid() == 0:
                    os.setgroups([])
                    os.setresgid(65_534, 65_534, 65_534)
                    os.setresuid(65_534, 65_534, 65_534)
                done = copy_alone(f"{tmp_path}/from/", tmp_path / "to", "--mirror", "--max-removals", "9")
                (tmp_path / "said").write_text(f"{done}")
                code = done.returncode
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, (tmp_path / "said").read_text()
    finally:
        for parent, mode in modes:
            parent.chmod(mode)
    assert names(tmp_path / "to") == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="rights are given up that root has")
def test_root_without_all_rights_writes_to_folders_of_any_mode(state: Path, tmp_path: Path) -> None:
    """As in a hardened service: its owner's rights to a folder are all that root has."""
    write(tmp_path / "from" / "folder" / "file", "x")
    (tmp_path / "to" / "folder").mkdir(parents=True)
    (tmp_path / "to" / "folder").chmod(0)
    deny = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    line = [sys.executable, "-c", "from elephan.cli import main; main()", "copy", f"{tmp_path}/from/", f"{tmp_path}/to"]
    done = subprocess.run([*deny, *line], env=quick(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "to" / "folder" / "file").read_text() == "x"
    assert (tmp_path / "to" / "folder").stat().st_mode & 0o777 == 0o755


def test_a_destination_without_inodes_is_full(copy_alone: Copy, tmp_path: Path, mount: Mount) -> None:
    for number in range(100):
        write(tmp_path / "from" / f"{number}", "x")
    mount(tmp_path / "to", "nr_inodes=40")
    done = copy_alone(f"{tmp_path}/from/", tmp_path / "to")
    assert done.returncode == 1 and "is full" in done.stderr and "not copied" not in done.stdout, done
    # The rest fits, once the parts of the others are gone.
    for number in range(30, 100):
        (tmp_path / "from" / f"{number}").unlink()
    for path in (tmp_path / "to").glob("[0-9]*"):
        path.unlink()
    assert copy_alone(f"{tmp_path}/from/", tmp_path / "to").returncode == 0
    assert len(names(tmp_path / "to")) == 30


def test_parts_of_files_that_are_gone_make_room(copy_alone: Copy, tmp_path: Path, mount: Mount) -> None:
    mount(tmp_path / "to", "size=8m")
    write(tmp_path / "from" / "a", os.urandom(7_000_000))
    write(tmp_path / "from" / "b", os.urandom(7_000_000))
    done = copy_alone(f"{tmp_path}/from/", tmp_path / "to")
    assert done.returncode == 1 and "is full" in done.stderr, done
    for path in (tmp_path / "to").glob("[ab]"):
        path.unlink()
    for name in "ab":
        (tmp_path / "from" / name).unlink()
    write(tmp_path / "from" / "c", os.urandom(7_500_000))
    done = copy_alone(f"{tmp_path}/from/", tmp_path / "to")
    assert done.returncode == 0, done
    assert names(tmp_path / "to") == ["c"]


@pytest.mark.parametrize("room", [4096, 100_000, 300_000, 500_000, 690_000])
def test_a_file_gets_its_name_only_with_all_chunks_that_an_older_one_has(
    copy_alone: Copy, tmp_path: Path, mount: Mount, room: int
) -> None:
    disk = mount(tmp_path / "disk", "size=16m")
    content = os.urandom(BIG)
    # Its chunks are all there, in a version that must not change, and the disk is full while they are copied over.
    write(disk / "old" / "file", content, 1_500_000_000)
    write(tmp_path / "from" / "file", content)
    (disk / "to").mkdir()
    with (disk / "ballast").open("wb") as ballast:
        found = os.statvfs(disk)
        os.posix_fallocate(ballast.fileno(), 0, found.f_bavail * found.f_frsize - room)
    words = (f"{tmp_path}/from/", disk / "to", "--link-to", disk / "old", "--retry-for", "1s")
    done = copy_alone(*words)
    assert done.returncode == 1 and "full" in done.stderr, done
    assert not (disk / "to" / "file").exists()
    (disk / "ballast").unlink()
    assert copy_alone(*words).returncode == 0
    assert (disk / "to" / "file").read_bytes() == content and (disk / "old" / "file").read_bytes() == content


def test_the_state_of_copies_in_a_source_is_named(copy_alone: Copy, tmp_path: Path) -> None:
    write(tmp_path / "from" / "sub" / ".elephan-copy" / "part", "x")
    done = copy_alone(f"{tmp_path}/from/", tmp_path / "to", "--json")
    assert done.returncode == 0, done
    notes = events(done.stdout)[-1]["receipt"]["notes"]
    assert len(notes) == 1 and notes[0].startswith("left out: sub/.elephan-copy"), notes


def test_a_link_to_a_file_that_is_not_copied_is_a_fault(copy_alone: Copy, tmp_path: Path) -> None:
    write(tmp_path / "from" / "a", "new")
    (tmp_path / "from" / "b").hardlink_to(tmp_path / "from" / "a")
    write(tmp_path / "to" / "a" / "in the way", "x")
    done = copy_alone(f"{tmp_path}/from/", tmp_path / "to")
    assert done.returncode == 1
    assert "not copied: a: " in done.stdout and "not copied: b: " in done.stdout, done


def test_records_of_a_part_that_is_gone_are_not_those_of_the_next_one(state: Path, tmp_path: Path) -> None:
    source, to = tmp_path / "from", tmp_path / "to"
    write(source / "a", os.urandom(12_000_000))
    write(source / "b", os.urandom(12_000_000))
    words = [sys.executable, "-c", "from elephan.cli import main; main()", "copy", f"{source}/", str(to), "-q"]

    def killed_once(is_reached: Callable[[], bool]) -> None:
        copying = subprocess.Popen([*words, "--rate", "60Mbit/s"], env=quick(), stdin=subprocess.DEVNULL)
        while not is_reached():
            assert copying.poll() is None, "the copy was not long enough"
            time.sleep(0.002)
        copying.kill()
        copying.wait()

    # The journal has all of `a`, and its part has become a file, which somebody removes.
    killed_once((to / "a").exists)
    (to / "a").unlink()
    before = {path.name for path in to.glob(".elephan-copy/*/*.part")}

    def has_begun() -> bool:
        return any(path.name not in before and path.stat().st_size for path in to.glob(".elephan-copy/*/*.part"))

    killed_once(has_begun)
    assert subprocess.run(words, env=quick(), check=False).returncode == 0
    assert (to / "a").read_bytes() == (source / "a").read_bytes()
    assert (to / "b").read_bytes() == (source / "b").read_bytes()


def test_writes_of_others_to_a_file_that_is_compared_are_not_adopted(state: Path, tmp_path: Path) -> None:
    content = os.urandom(24_000_000)
    write(tmp_path / "from" / "x", content)
    # Most chunks of the part are taken over from this file.
    write(tmp_path / "to" / "x", os.urandom(262_144) + content[262_144:18_000_000] + os.urandom(6_000_000))
    words = [sys.executable, "-c", "from elephan.cli import main; main()", "copy", f"{tmp_path}/from/"]
    words += [str(tmp_path / "to"), "-q"]
    copying = subprocess.Popen([*words, "--rate", "20Mbit/s"], env=quick(), stdin=subprocess.DEVNULL)
    while not (tmp_path / "to" / ".elephan-copy").exists():
        time.sleep(0.001)
    with (tmp_path / "to" / "x").open("r+b") as file:
        end_s = time.monotonic() + 0.6
        place = 1_000_000
        while time.monotonic() < end_s:
            os.pwrite(file.fileno(), b"other", place)
            place = 1_000_000 + (place + 524_287) % 16_000_000
            time.sleep(0.003)
    time.sleep(1)
    copying.kill()
    copying.wait()
    assert subprocess.run(words, env=quick(), check=False).returncode == 0
    assert (tmp_path / "to" / "x").read_bytes() == content


def test_each_removal_counts_once_whatever_the_sources(copy_alone: Copy, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name / name, "x")
    for number in range(3):
        write(tmp_path / "to" / f"old {number}", "x")
    sources = (f"{tmp_path}/one/", f"{tmp_path}/two/")
    done = copy_alone(*sources, tmp_path / "to", "--mirror", "--max-removals", "3")
    assert done.returncode == 0, done
    assert names(tmp_path / "to") == ["one", "two"]


def test_a_dry_run_names_folders_that_stay_in_the_way(copy_alone: Copy, tmp_path: Path) -> None:
    write(tmp_path / "from" / "file", "x")
    write(tmp_path / "to" / "x" / "keep.tmp", "x")
    write(tmp_path / "to" / "x" / "other", "x")
    (tmp_path / "from" / "x").write_text("a file")
    command = (f"{tmp_path}/from/", tmp_path / "to", "--mirror", "--exclude", "*.tmp", "--max-removals", "9")
    assert "x: a folder of which something stays" in copy_alone(*command, "--dry-run").stdout
    assert copy_alone(*command).returncode == 1
    assert names(tmp_path / "to") == ["file", "x", "x/keep.tmp", "x/other"]


def test_a_hard_link_keeps_its_content_when_its_first_name_is_replaced(state: Path, tmp_path: Path) -> None:
    from elephan.copy.api import CopyRequest, Place, copy

    source = tmp_path / "from"
    # Sent before the others, for one second.
    write(source / "0", os.urandom(2_500_000))
    write(source / "a", "old")
    (source / "b").hardlink_to(source / "a")

    def watch(event: dict[str, object]) -> None:
        if event["event"] == "scanned" and event["complete"]:
            write(source / "new", "new file")
            (source / "new").rename(source / "a")

    outcome = copy(
        CopyRequest([Place.parse(f"{source}/")], Place.parse(str(tmp_path / "to")), streams=1, rate_bps=20_000_000),
        watch,
    )
    assert (source / "a").read_text() == "new file", "the copy was not long enough"
    copied = {path.name: path.read_text() for path in (tmp_path / "to").glob("[ab]")}
    assert copied.get("b", "old") == "old", copied
    if "b" not in copied:
        assert outcome.exit_code == 1 and [fault["path"] for fault in outcome.faults] == ["b"]
    assert copy(CopyRequest([Place.parse(f"{source}/")], Place.parse(str(tmp_path / "to")))).exit_code == 0
    assert (tmp_path / "to" / "b").read_text() == "old" and (tmp_path / "to" / "a").read_text() == "new file"


def test_a_receipt_stays_when_the_clock_is_set_back(state: Path, tmp_path: Path) -> None:
    (tmp_path / "clock").mkdir()
    moved = clock.environment(tmp_path / "clock")
    if moved is None:
        pytest.skip("no C compiler")
    write(tmp_path / "from" / "file", "first")
    words = ["copy", f"{tmp_path}/from/", str(tmp_path / "to"), "--quiet"]
    command = [sys.executable, "-c", "from elephan.cli import main; main()", *words]
    roots = []
    began_s = time.monotonic()
    for number in range(6):
        write(tmp_path / "from" / "file", f"content {number}", 1_600_000_000 + number)
        # Each copy begins at the same time of day.
        clock.set_offset(Path(moved[clock.FILE]), -int(time.monotonic() - began_s))
        subprocess.run(command, env=quick() | moved | {"XDG_STATE_HOME": str(state.parent)}, check=True)
        roots.append({json.loads(file.read_text())["root"] for file in (state / "receipts").iterdir()})
    assert [len(found) for found in roots] == [1, 2, 3, 4, 5, 6]
    assert all(before < after for before, after in zip(roots, roots[1:], strict=False))


def test_forgetting_a_copy_removes_its_parts_on_other_mounts(copy_alone: Copy, tmp_path: Path, mount: Mount) -> None:
    write(tmp_path / "from" / "disk" / "file", os.urandom(3_000_000))
    (tmp_path / "to").mkdir()
    mount(tmp_path / "to" / "disk", "size=1m")
    assert copy_alone(f"{tmp_path}/from/", tmp_path / "to").returncode == 1
    assert len(names(tmp_path / "to" / "disk")) == 1
    unfinished = json.loads(copy_alone("list", "--json").stdout)["unfinished"]
    assert copy_alone("forget", unfinished[0]["copy"]).returncode == 0
    assert names(tmp_path / "to") == ["disk"]


def test_an_acl_that_is_removed_is_removed_on_xfs(copy_alone: Copy, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    image, disk = tmp_path / "image", tmp_path / "disk"
    image.touch()
    os.truncate(image, 400 << 20)
    disk.mkdir()
    subprocess.run(["mkfs.xfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, disk], check=True)
    try:
        file = write(disk / "from" / "file", "x")
        # As linux/posix_acl_xattr.h has it: owner, user 7, group, mask, others.
        rows = [(1, 6, 2**32 - 1), (2, 4, 7), (4, 4, 2**32 - 1), (0x10, 4, 2**32 - 1), (0x20, 0, 2**32 - 1)]
        acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)
        os.setxattr(file, "system.posix_acl_access", acl)
        assert copy_alone(f"{disk}/from/", disk / "to").returncode == 0
        assert os.getxattr(disk / "to" / "file", "system.posix_acl_access") == acl
        os.removexattr(file, "system.posix_acl_access")
        done = copy_alone(f"{disk}/from/", disk / "to")
        assert done.returncode == 0, done
        assert "system.posix_acl_access" not in os.listxattr(disk / "to" / "file")
    finally:
        subprocess.run(["umount", disk], check=True)


def interrupted(source: str, to: Path, is_reached: Callable[[], bool], *options: str) -> None:
    """Kill a copy once a state of it is reached."""
    words = [sys.executable, "-c", "from elephan.cli import main; main()", "copy", source, str(to), "-q", *options]
    copying = subprocess.Popen(words, env=quick(), stdin=subprocess.DEVNULL)
    while not is_reached():
        assert copying.poll() is None, "the copy was not long enough"
        time.sleep(0.002)
    copying.kill()
    copying.wait()


def journal_has(to: Path, size: int) -> Callable[[], bool]:
    """Return a function that tells if the journal of the only copy to a folder has reached a size, bytes."""
    return lambda: any(path.stat().st_size >= size for path in to.glob(".elephan-copy/*/journal*"))


@pytest.mark.parametrize("kind", ["truncated", "replaced by an empty file", "truncated and extended again"])
def test_records_of_a_part_that_became_shorter_count_no_more(state: Path, tmp_path: Path, kind: str) -> None:
    content = os.urandom(12_000_000)
    write(tmp_path / "from" / "file", content)
    to = tmp_path / "to"
    to.mkdir()
    interrupted(f"{tmp_path}/from/", to, journal_has(to, 400), "--rate", "60Mbit/s")
    (part,) = to.glob(".elephan-copy/*/*.part")
    if kind.startswith("truncated"):
        size = part.stat().st_size
        os.truncate(part, 300_000)
        os.truncate(part, size if kind.endswith("again") else 300_000)
    else:
        part.unlink()
        part.touch()
    words = [sys.executable, "-c", "from elephan.cli import main; main()", "copy", f"{tmp_path}/from/", str(to), "-q"]
    assert subprocess.run(words, env=quick(), check=False).returncode == 0
    assert (to / "file").read_bytes() == content
