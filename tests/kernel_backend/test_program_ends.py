"""Command lines and files of real programs, without a run: each key's option, and data on disks."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from elephan.backends.programs import Ends, Place, ends_of, found
from elephan.backends.programs.ends import Data
from elephan.backends.programs.files import IN_MEMORY, check, file_system_of, require_room, write
from elephan.errors import InputError, RunError


def flow(program: str, **keys: Any) -> Any:
    size = None if program == "iperf3" else 1_000_001
    workload = {"kind": "program", "program": program, "bytes": size, **keys}
    return {"name": "backup", "group": 0, "start_ns": 0, "stop_ns": None, "workload": workload}


def places(folder: Path) -> tuple[Place, Place]:
    """Return places on two machines: in different folders, the commands of the second somewhere else."""
    near = Place("192.0.2.1", str(folder / "near"), str(folder / "near-disk"), found)
    return near, Place("192.0.2.2", str(folder / "far"), str(folder / "far-disk"), lambda command: f"/there/{command}")


def ends(folder: Path, program: str, **keys: Any) -> Ends:
    return ends_of(flow(program, **keys), *places(folder), 10_000, 10_000_000_000, folder)


@pytest.fixture
def installed() -> None:
    for command in ("ssh-keygen", "scp", "sftp", "ssh", "rsync", "rclone", "curl", "lftp", "vsftpd", "iperf3"):
        try:
            found(command)
        except FileNotFoundError as error:
            pytest.skip(str(error))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("program", "keys", "words"),
    [
        ("iperf3", {"streams": 4, "buffer_bytes": 2048}, ["-l 2048 -P 4"]),
        ("scp", {"buffer_bytes": 2048, "requests": 8}, ["-X buffer=2048 -X nrequests=8"]),
        ("sftp", {"buffer_bytes": 2048, "requests": 8}, ["-B 2048 -R 8"]),
        ("rclone", {"buffer_bytes": 2048, "requests": 8}, ["--sftp-chunk-size 2048B --sftp-concurrency 8"]),
        ("rclone", {"files": 5, "streams": 4}, ["--transfers 4"]),
        ("rsync", {}, ["--write-devices", "/source/", "/far/sink/"]),
        ("rsync", {"sink": "disk"}, ["--whole-file -e"]),
    ],
)
def test_a_key_is_an_option_of_the_client(tmp_path: Path, program: str, keys: Any, words: list[str]) -> None:
    line = " ".join(ends(tmp_path, program, **keys).client.words)
    for some in words:
        assert some in line


@pytest.mark.usefixtures("installed")
def test_a_key_is_a_line_of_the_file_that_a_program_reads(tmp_path: Path) -> None:
    def text(program: str, role: str, name: str, **keys: Any) -> str:
        end = getattr(ends(tmp_path, program, **keys), role)
        (file,) = (file for file in end.files if file.name == name)
        return str(file.text)

    assert "trans_chunk_size=8192\n" in text("ftp", "server", "vsftpd.conf", buffer_bytes=8192)
    assert "trans_chunk_size=4096\n" in text("ftp", "server", "vsftpd.conf", buffer_bytes=1024)
    assert "xfer:buffer-size 1024\n" in text("lftp", "client", "lftp", buffer_bytes=1024)
    assert "mput -P 3 -O /sink " in text("lftp", "client", "lftp", files=5, streams=3)
    assert text("pget", "client", "lftp", files=2, streams=3).count("pget -n 3 ") == 2
    assert text("sftp", "client", "batch", files=3).count("put ") == 3


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("program", ["scp", "sftp", "rsync", "rsyncd", "rclone", "ftp", "lftp", "pget", "iperf3"])
def test_each_end_names_its_own_machines_commands_and_folders(tmp_path: Path, program: str) -> None:
    near, far = places(tmp_path)
    made = ends(tmp_path, program)
    at_far, at_near = (made.client, made.server) if made.fetches else (made.server, made.client)
    assert made.fetches == (program == "pget")
    for end, own, other in ((at_far, far, near), (at_near, near, far)):
        said = "\n".join([*end.words, *(file.text for file in end.files)])
        assert f"{other.folder}/" not in said.replace(f"root@{far.address}:{far.folder}/", "").replace(
            f"put {near.folder}", ""
        ).replace(f" {far.folder}/far/sink", "").replace(f"far:{far.folder}/", ""), said
        assert ("/there/" in end.words[0]) == (own is far)


def test_sizes_add_up_and_holes_take_no_room(tmp_path: Path) -> None:
    near, _ = places(tmp_path)
    made = ends(tmp_path, "ftp", files=3)
    assert made.sent is not None and made.sent.sizes == (333_334, 333_334, 333_333)
    write(made.client, near)
    for path, size in zip(made.sent.paths, made.sent.sizes, strict=True):
        assert os.stat(path).st_size == size and os.stat(path).st_blocks == 0


def test_data_on_a_disk_is_random_and_what_arrives_is_compared(tmp_path: Path) -> None:
    near, far = places(tmp_path)
    made = ends(tmp_path, "ftp", files=2, source="disk", sink="disk")
    assert made.sent is not None and made.received is not None
    write(made.client, near)
    write(made.server, far)
    sent = [Path(path).read_bytes() for path in made.sent.paths]
    assert [len(data) for data in sent] == [500_001, 500_000] and len(set(sent[0])) == 256
    with pytest.raises(RunError, match="file0 did not arrive"):
        check(made.sent, made.received)
    for path, data in zip(made.received.paths, sent, strict=True):
        Path(path).write_bytes(data)
    check(made.sent, made.received)
    Path(made.received.paths[1]).write_bytes(sent[1][:-1] + bytes([sent[1][-1] ^ 1]))
    with pytest.raises(RunError, match="file1 arrived with 500000 bytes that are not those of its source"):
        check(made.sent, made.received)


def test_devices_are_like_dev_null(tmp_path: Path) -> None:
    _, far = places(tmp_path)
    made = ends(tmp_path, "ftp", files=2)
    write(made.server, far)
    with tarfile.open(tmp_path / "far" / "devices.tar") as tar:
        null = os.stat("/dev/null").st_rdev
        assert [(one.name, one.ischr(), os.makedev(one.devmajor, one.devminor)) for one in tar] == [
            ("file0", True, null),
            ("file1", True, null),
        ]


def test_keys_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    near, _ = places(tmp_path)
    write(ends(tmp_path, "scp").client, near)
    assert os.stat(f"{near.folder}/key").st_mode & 0o777 == 0o600


def test_data_that_does_not_fit_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    huge = flow("scp", sink="disk")
    huge["workload"]["bytes"] = 1 << 60
    with pytest.raises(InputError, match=rf'"disk": {tmp_path} has room for \d+ bytes, and the programs have 1152'):
        require_room([huge], tmp_path)
    in_memory = flow("lftp")
    in_memory["workload"]["bytes"] = 1 << 60
    with pytest.raises(InputError, match='lftp cannot write to a device.*take sink = "disk"'):
        require_room([in_memory], tmp_path)
    require_room([flow("scp", sink="disk"), flow("lftp")], tmp_path)


def test_a_disk_that_is_memory_is_refused() -> None:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    memory = next(Path(mount[1]) for mount in mounts if mount[2] in IN_MEMORY)
    assert file_system_of(memory)[0] in IN_MEMORY
    with pytest.raises(InputError, match="which is memory"):
        require_room([flow("scp", source="disk")], memory)


def test_data_names_its_files() -> None:
    assert Data("/x", (1, 2), "holes").paths == ["/x/file0", "/x/file1"]
