"""The workload `program`: a real program's traffic, and which keys each program can follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import model_validator

from elephan.run_spec.types import FlowSpec, MediumSpec, ProgramName, ProgramWorkloadSpec
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import PositiveSize, PositiveSpan, Whole
from elephan.scenario.table import Table, setting

STREAMS_MAX = 128
"""Parallel streams of iperf3 (iperf_api.h, MAX_STREAMS); the others have no bound of their own."""

FILES_MAX = 10_000
"""Their names are words of a command line, of which Linux takes 2 MiB."""

SRT_MTU_MAX = 1500
"""Of SRT, bytes: a receiver of 1.5.1 refuses more ("MSS size 9000exceeds MTU size")."""

REQUEST_MAX = 255 << 10
"""Data of an SFTP request, bytes: a message of OpenSSH has 256 KiB (sftp-common.h), with 1 KiB for the rest."""


@dataclass(frozen=True)
class Traits:
    """A program's abilities."""

    streams: Literal["one", "files", "parts"]
    """Connections for data at once: one; one for each of several files; any number, each for a part of the data."""
    buffer: tuple[int, int] | None = None
    """Least and largest application buffer, bytes; None where no option sets it."""
    buffer_of: str = ""
    """Owner of the buffer, where it is not the sender's."""
    requests: bool = False
    """Has an option for SFTP requests without an answer."""
    files: Literal["none", "one", "many"] = "many"
    """Files that it sends, from and to a disk if asked."""
    fetches: bool = False
    """Its client is at the destination."""
    over_udp: bool = False
    """Has a transport of its own: the flow's is UDT4, or what comes nearest to it where it is simulated."""


PROGRAMS: Mapping[ProgramName, Traits] = {
    # MAX_BLOCKSIZE of iperf_api.h.
    "iperf3": Traits("parts", buffer=(1, 1 << 20), files="none"),
    "scp": Traits("one", buffer=(1, REQUEST_MAX), requests=True),
    "sftp": Traits("one", buffer=(1, REQUEST_MAX), requests=True),
    "rsync": Traits("one"),
    "rsyncd": Traits("one"),
    "rclone": Traits("files", buffer=(1, REQUEST_MAX), requests=True),
    # get_chunk_size of vsftpd's ftpdataio.c.
    "ftp": Traits("one", buffer=(4096, 65_536), buffer_of="vsftpd's, which receives; curl's own stays 64 KiB"),
    "lftp": Traits("files", buffer=(1, 1 << 30)),
    # lftp 4.9.2 reads, and vsftpd 3.0.3 writes, 64 KiB at a time whatever their options say (strace).
    "pget": Traits("parts", fetches=True),
    "udt": Traits("one", files="one", over_udp=True),
    "srt": Traits("one", files="one", over_udp=True),
}


class Program(Table):
    """A real program on the backend kernel; sim plays it as bulk (docs/howto/real-programs.md)."""

    kind: Literal["program"]
    """Kind of workload."""
    program: ProgramName = setting(examples=["scp"])
    """iperf3; scp, sftp, rsync, rclone to an sshd; rsyncd: rsync to its daemon; ftp: curl to a vsftpd; lftp: its put to
    a vsftpd; pget: lftp's pget from one; udt: a sender and a receiver on libudt; srt: srt-file-transmit."""
    bytes: PositiveSize | None = setting(None, examples=["1GB"])
    """All but iperf3, required: data to send, in equal parts by connection."""
    files: Annotated[int, Whole(1, FILES_MAX)] = setting(1, examples=[100])
    """All but iperf3: files of equal size that hold `bytes`."""
    duration: PositiveSpan | None = setting(None, examples=["30s"])
    """iperf3 only, whole seconds. When absent: the run's end."""
    streams: Annotated[int, Whole(1, STREAMS_MAX)] = setting(1, examples=[8])
    """Parallel connections of one program: iperf3, pget; with `files` rclone, lftp. A note says what others do."""
    buffer: PositiveSize | None = setting(None, examples=["64KiB"])
    """Application buffer: of one write, or of an SFTP request. When absent: the program's own."""
    requests: Annotated[int, Whole(1, 65_536)] | None = setting(None, examples=[256])
    """scp, sftp, rclone: SFTP requests without an answer. When absent: the program's own, 64."""
    source: MediumSpec = setting("memory", examples=["disk"])
    """Sender's files: one hole, which needs no disk; or random data on the disk, read from there."""
    sink: MediumSpec = setting("memory", examples=["disk"])
    """Receiver's files: a device that discards; or files on the disk."""

    @model_validator(mode="after")
    def _one_end(self) -> Program:
        if self.program == "iperf3":
            if self.bytes is not None:
                raise wrong("absent: iperf3 ends when it has written them, before they arrive; take duration", "bytes")
            if self.duration is not None and self.duration % 1_000_000_000:
                raise wrong('whole seconds, which is what iperf3 takes, such as "30s"', "duration")
        elif self.bytes is None:
            raise wrong(f'the size of the file that {self.program} sends, such as "1GB"', "bytes")
        elif self.duration is not None:
            raise wrong(f"absent: {self.program} ends with its file", "duration")
        elif self.bytes < self.files * (self.streams if PROGRAMS[self.program].streams == "parts" else 1):
            raise wrong(f"at most {self.bytes}: every file has at least one byte, for every stream", "files")
        return self


def program_spec(program: Program) -> ProgramWorkloadSpec:
    """Return a program's workload as the core takes it; keys that are the program's own are absent."""
    spec: ProgramWorkloadSpec = {"kind": "program", "program": program.program, "bytes": program.bytes}
    if program.files > 1:
        spec["files"] = program.files
    if program.streams > 1:
        spec["streams"] = program.streams
    if program.buffer is not None:
        spec["buffer_bytes"] = program.buffer
    if program.requests is not None:
        spec["requests"] = program.requests
    if program.source != "memory":
        spec["source"] = program.source
    if program.sink != "memory":
        spec["sink"] = program.sink
    return spec


def streams_of(workload: ProgramWorkloadSpec) -> int:
    """Return the connections with data that a program has at once, which may be fewer than asked for."""
    asked = workload.get("streams", 1)
    match PROGRAMS[workload["program"]].streams:
        case "one":
            return 1
        case "files":
            return min(asked, workload.get("files", 1))
    return asked


def files_of(workload: ProgramWorkloadSpec) -> int:
    """Return the files that a program sends, which may be fewer than asked for."""
    return 1 if PROGRAMS[workload["program"]].files == "one" else workload.get("files", 1)


def buffer_of(workload: ProgramWorkloadSpec) -> int | None:
    """Return the application buffer that a program is given, bytes; None where its own stays."""
    asked, traits = workload.get("buffer_bytes"), PROGRAMS[workload["program"]]
    return None if asked is None or traits.buffer is None else min(max(asked, traits.buffer[0]), traits.buffer[1])


def notes_of(flows: Sequence[FlowSpec], *, simulated: bool = False) -> list[str]:
    """Return a note on each key of the flows' programs that a program cannot follow, or not as it stands.

    Of simulated ones only those on connections: nothing else of a program is simulated.
    """
    notes: dict[str, None] = {}
    groups = Counter(flow["group"] for flow in flows)
    for flow in flows:
        workload = flow["workload"]
        if workload["kind"] == "program":
            name = flow["name"] if groups[flow["group"]] == 1 else flow["name"].rpartition(".")[0]
            found = _of_streams(workload)
            if not simulated:
                found += _of_buffer(workload) + _of_data(workload) + _of_packets(flow)
            notes.update(dict.fromkeys(f"flow {name}: {note}" for note in found))
    return list(notes)


def _of_streams(workload: ProgramWorkloadSpec) -> list[str]:
    program, asked, files = workload["program"], workload.get("streams", 1), workload.get("files", 1)
    if streams_of(workload) == asked:
        return []
    why = (
        f"{program} has one connection for data; the flow's connections = {asked} starts {asked} programs"
        if PROGRAMS[program].streams == "one"
        else f"{program} has a connection for each file at a time, and files = {files}"
    )
    return [f"streams = {asked}: {why}"]


def _of_buffer(workload: ProgramWorkloadSpec) -> list[str]:
    program, asked, given = workload["program"], workload.get("buffer_bytes"), buffer_of(workload)
    notes = []
    if asked is not None and given is None:
        notes.append(f"buffer = {asked}B: {program} has no option for it, and keeps its own")
    elif asked is not None:
        if given != asked:
            notes.append(f"buffer = {asked}B: {program} has {given}B, the nearest that it takes")
        if PROGRAMS[program].buffer_of:
            notes.append(f"buffer = {given}B is {PROGRAMS[program].buffer_of}")
    if "requests" in workload and not PROGRAMS[program].requests:
        notes.append(f"requests = {workload['requests']}: {program} has no option for it")
    return notes


def _of_packets(flow: FlowSpec) -> list[str]:
    workload, mtu = flow["workload"], flow["transport"]["mtu_bytes"]
    if workload["kind"] == "program" and workload["program"] == "srt" and mtu > SRT_MTU_MAX:
        return [f"mtu = {mtu}B: srt has packets of {SRT_MTU_MAX}B at most"]
    return []


def _of_data(workload: ProgramWorkloadSpec) -> list[str]:
    program = workload["program"]
    match PROGRAMS[program].files:
        case "many":
            return []
        case "one":
            files = workload.get("files", 1)
            return [f"files = {files}: {program} sends one file, of all bytes"] if files > 1 else []
    ends = {"source": workload.get("source"), "sink": workload.get("sink")}
    notes = [f'{key} = "disk": {program} reads and writes memory alone' for key, end in ends.items() if end == "disk"]
    if workload.get("files", 1) > 1:
        notes.append(f"files = {workload['files']}: {program} sends no files")
    return notes
