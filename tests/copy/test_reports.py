"""Messages of copies about left out entries, folders in the way, removals, and freed room."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.copy.conftest import Copy, Mount
from tests.copy.test_nothing_lost import BIG, interrupted, journal_has, names, write


def used(*paths: Path) -> int:
    """Return the bytes of disk that paths take, as du(1) counts them."""
    counted = subprocess.run(["du", "-s", "-c", "-B1", *paths], capture_output=True, text=True, check=True)
    return int(counted.stdout.splitlines()[-1].split()[0])


@pytest.mark.parametrize("name", ["", "one file"])
def test_forgetting_a_copy_tells_the_room_that_it_made(
    copy_alone: Copy, state: Path, tmp_path: Path, name: str
) -> None:
    write(tmp_path / "from" / "file", os.urandom(12_000_000))
    to = tmp_path / "to"
    to.mkdir()
    # One file to a new name, which is not there yet, has its part in the folder of that name.
    source, target = (f"{tmp_path}/from/file", to / name) if name else (f"{tmp_path}/from/", to)
    interrupted(source, target, journal_has(to, 100), "--rate", "30Mbit/s")
    own = [path for path in (state / "copies").iterdir() if path.is_dir()]
    before = used(to / ".elephan-copy", *own)
    unfinished = json.loads(copy_alone("list", "--json").stdout)["unfinished"]
    done = copy_alone("forget", unfinished[0]["copy"])
    assert done.returncode == 0, done
    assert names(to) == []
    told, unit = done.stdout.split("forgotten, ")[1].split()[:2]
    # Three digits are printed; folders take room too, and some of them stay.
    assert float(told) * {"MB": 1e6, "kB": 1e3, "B": 1}[unit] == pytest.approx(before, rel=0.02), (done, before)


def test_what_is_in_the_way_is_named_as_what_it_is(copy_alone: Copy, tmp_path: Path, mount: Mount) -> None:
    for name in ("empty", "point", "disk/below"):
        write(tmp_path / "from" / name, "file")
    (tmp_path / "to" / "empty").mkdir(parents=True)
    mount(tmp_path / "to" / "point")
    mount(tmp_path / "to" / "disk")
    (tmp_path / "to" / "disk" / "below").mkdir()
    command = (f"{tmp_path}/from/", tmp_path / "to", "--mirror", "--max-removals", "9")
    done = copy_alone(*command)
    assert done.returncode == 1, done
    said = {line.split(": ")[1]: line for line in done.stdout.splitlines() if line.startswith("not copied: ")}
    assert "a mount point" in said["point"], done
    assert "on another mount" in said["disk/below"], done
    assert "not empty" not in done.stdout, done
    assert sum(line.startswith("not copied: point:") for line in done.stdout.splitlines()) == 1, done
    assert (tmp_path / "to" / "empty").is_dir()
    plain = copy_alone(f"{tmp_path}/from/", tmp_path / "to")
    assert plain.returncode == 1 and "not copied: point: a mount point" in plain.stdout, plain
    assert (tmp_path / "to" / "empty").read_text() == (tmp_path / "to" / "disk" / "below").read_text() == "file"


@pytest.mark.parametrize("options", [[], ["--mirror", "--max-removals", "99"]])
def test_a_folder_on_another_mount_has_the_time_of_its_source_after_a_fault(
    copy_alone: Copy, tmp_path: Path, mount: Mount, options: list[str]
) -> None:
    for name in ("held", "file"):
        write(tmp_path / "from" / "disk" / name, os.urandom(BIG))
    os.utime(tmp_path / "from" / "disk", (1_600_000_000, 1_600_000_000))
    mount(tmp_path / "to" / "disk")
    write(tmp_path / "to" / "disk" / "held" / "in the way", "only copy")
    assert copy_alone(f"{tmp_path}/from/", tmp_path / "to", *options).returncode == 1
    assert names(tmp_path / "to" / "disk") == ["file", "held", "held/in the way"]
    assert (tmp_path / "to" / "disk").stat().st_mtime == 1_600_000_000


def test_sockets_are_left_out_with_a_note_and_no_mirror_removes_files_of_their_names(
    copy_alone: Copy, tmp_path: Path
) -> None:
    write(tmp_path / "from" / "sub" / "file", "x")
    for name in ("one", "sub/two", "sub/three"):
        # A path of a socket has at most 107 bytes.
        folder = os.open(tmp_path / "from", os.O_PATH)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{name}")
        os.close(folder)
    write(tmp_path / "to" / "one", "only copy")
    write(tmp_path / "to" / "sub" / "three" / "below", "only copy")
    write(tmp_path / "to" / "old", "x")
    command = (f"{tmp_path}/from/", tmp_path / "to", "--mirror")
    said = "left out 3 sockets: one, sub/three, sub/two"
    listed = copy_alone(*command, "--dry-run")
    assert listed.returncode == 0 and said in listed.stdout and "would remove old" in listed.stdout, listed
    assert "1 entry to remove" in listed.stdout, listed
    receipt = tmp_path / "receipt.json"
    done = copy_alone(*command, "--receipt", receipt)
    assert done.returncode == 0 and said in done.stderr, done
    assert names(tmp_path / "to") == ["one", "sub", "sub/file", "sub/three", "sub/three/below"]
    assert said in json.loads(receipt.read_text())["notes"]


@pytest.mark.parametrize("options", [[], ["--mirror"]])
def test_a_dry_run_refuses_the_destinations_that_the_copy_refuses(
    copy_alone: Copy, tmp_path: Path, options: list[str]
) -> None:
    write(tmp_path / "from" / "file", "x")
    write(tmp_path / "to", "a file")
    devices = [path for path in map(Path, ("/dev/loop0", "/dev/vda", "/dev/sda")) if path.is_block_device()]
    for destination in (tmp_path / "to", tmp_path / "no" / "folder", tmp_path / "to" / "below", *devices):
        real = copy_alone(f"{tmp_path}/from/", destination, *options)
        dry = copy_alone(f"{tmp_path}/from/", destination, "--dry-run", *options)
        assert real.returncode == dry.returncode == 2, (real, dry)
        assert real.stderr.rpartition("destination ")[2] == dry.stderr.rpartition("destination ")[2]
    for destination in (tmp_path / "to", tmp_path / "new name"):
        assert copy_alone(tmp_path / "from" / "file", destination, "--dry-run", *options).returncode == 0
    assert copy_alone(f"{tmp_path}/from/", tmp_path / "new", "--dry-run", *options).returncode == 0
    assert not (tmp_path / "new").exists() and not (tmp_path / "new name").exists()
    assert (tmp_path / "to").read_text() == "a file"


def test_a_dry_run_lists_no_source_among_the_removals(copy_alone: Copy, tmp_path: Path) -> None:
    write(tmp_path / "a" / "b" / "file", "only copy")
    write(tmp_path / "a" / "old", "x")
    for options in ([], ["--dry-run"]):
        done = copy_alone(f"{tmp_path}/a/b/", tmp_path / "a", "--mirror", *options)
        assert done.returncode == 2 and "it would be removed" in done.stderr, done
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    (tmp_path / "bound").mkdir()
    subprocess.run(["mount", "--bind", tmp_path / "a" / "b", tmp_path / "bound"], check=True)
    try:
        command = (f"{tmp_path}/bound/", tmp_path / "a", "--mirror", "--max-removals", "99")
        listed = copy_alone(*command, "--dry-run")
    finally:
        subprocess.run(["umount", tmp_path / "bound"], check=True)
    assert "would remove old" in listed.stdout and "would remove b" not in listed.stdout, listed
    assert "b: a source of this copy: it stays" in listed.stdout, listed


@pytest.mark.parametrize("others", [0, 1])
def test_a_source_that_became_a_link_removes_no_folder_of_an_earlier_copy(
    copy_alone: Copy, tmp_path: Path, others: int
) -> None:
    write(tmp_path / "data" / "file", "only copy")
    write(tmp_path / "other" / "file", "x")
    sources = [tmp_path / name for name in ("data", "other")[: 1 + others]]
    command = (*sources, tmp_path / "to", "--mirror", "--max-removals", "99")
    assert copy_alone(*command).returncode == 0
    (tmp_path / "data").rename(tmp_path / "moved")
    (tmp_path / "data").symlink_to("moved")
    listed = copy_alone(*command, "--dry-run")
    assert "would remove" not in listed.stdout, listed
    done = copy_alone(*command)
    assert done.returncode == 1 and "not copied: data: the source is a symbolic link" in done.stdout, done
    assert (tmp_path / "to" / "data" / "file").read_text() == "only copy"
    # A link is copied as a link where nothing is in its way.
    assert copy_alone(*sources, f"{tmp_path}/new/").returncode == 0
    assert os.readlink(tmp_path / "new" / "data") == "moved"


def test_the_list_has_the_newest_receipts(copy_alone: Copy, tmp_path: Path) -> None:
    """After months there are hundreds, and the newest stood anywhere among them."""
    source = tmp_path / "source"
    source.mkdir()
    assert copy_alone(f"{source}/", tmp_path / "there").returncode == 0
    (only,) = copy_alone("list").stdout.splitlines()
    file = Path(only.split()[-1])
    first = json.loads(file.read_text())
    for day in range(1, 31):
        (file.parent / f"{day * 7919 % 31:02d}.json").write_text(json.dumps({**first, "ended": f"2020-01-{day:02d}T"}))
    lines = copy_alone("list").stdout.splitlines()
    assert lines[0] == only and lines[-1] == "... and 11 older receipts: --all"
    assert [line.split()[1] for line in lines[1:-1]] == [f"2020-01-{day:02d}T" for day in range(30, 11, -1)]
    assert len(copy_alone("list", "--all").stdout.splitlines()) == 31
    assert len(json.loads(copy_alone("list", "--json").stdout)["receipts"]) == 31


def test_the_end_counts_the_files_that_no_end_has_read(copy_alone: Copy, tmp_path: Path) -> None:
    """Damage that keeps size and time passes a copy unseen: the end says of how many files that holds."""
    source, there = tmp_path / "source", tmp_path / "there"
    source.mkdir()
    for name in ("one", "two", "three"):
        (source / name).write_bytes(name.encode() * 1000)
    (source / "empty").touch()
    file = tmp_path / "receipt.json"
    words = (f"{source}/", there, "--receipt", file)
    done = copy_alone(*words)
    assert done.returncode == 0 and "not read" not in done.stdout
    assert json.loads(file.read_text())["unread_files"] == 0
    before = (there / "one").stat()
    (there / "one").write_bytes(b"XXXX" + (source / "one").read_bytes()[4:])
    os.utime(there / "one", ns=(before.st_atime_ns, before.st_mtime_ns))
    (source / "two").write_bytes(b"new content")
    done = copy_alone(*words)
    assert done.returncode == 0
    assert "2 files unchanged by size and time, not read (--checksum reads)" in done.stdout.splitlines()
    assert json.loads(file.read_text())["unread_files"] == 2
    assert copy_alone("verify", file).returncode == 1
    done = copy_alone(*words, "--checksum")
    assert done.returncode == 0 and "not read" not in done.stdout
    assert json.loads(file.read_text())["unread_files"] == 0
    assert (there / "one").read_bytes() == (source / "one").read_bytes()
    assert copy_alone("verify", file).returncode == 0
