"""Programs that copy from left to right, with the options that people give them for such a path."""

from __future__ import annotations

import json
import re
import secrets
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from elephan.errors import InputError
from evaluation.performance.copy import ours
from evaluation.performance.copy.bench import PORT, Bench, timed
from evaluation.performance.copy.cells import Line, Payload, Row
from evaluation.performance.copy.payloads import Laid
from evaluation.runner import ROOT

FTP_PORT, IPERF_PORT = 2121, 5201
STREAMS = 8
"""Of programs that can have several."""
B3SUM = ROOT / "target" / "peers" / "bin" / "b3sum"

_VSFTPD = """\
listen=YES
listen_ipv6=NO
listen_address={address}
listen_port={port}
background=NO
anonymous_enable=YES
local_enable=NO
no_anon_password=NO
secure_email_list_enable=YES
email_password_file={folder}/passwords
ftp_username=nobody
nopriv_user=nobody
anon_root={root}
secure_chroot_dir={folder}/empty
anon_world_readable_only=NO
connect_from_port_20=NO
pasv_address={address}
seccomp_sandbox=NO
isolate=NO
isolate_network=NO
xferlog_enable=NO
syslog_enable=NO
"""

_RCLONE = """\
[left]
type = sftp
host = {address}
port = {port}
user = root
key_file = {folder}/key-user
known_hosts_file = {folder}/path_known_hosts
shell_type = none
disable_hashcheck = true
"""
"""No checksum: no other program here, elephan aside, reads its data a second time."""

Runs = Callable[[Bench, Laid, float, Row], None]
"""Runs it once and fills the row."""


@dataclass(frozen=True)
class Tool:
    """A program with its settings."""

    name: str
    text: str
    """For a reader."""
    kinds: frozenset[str]
    """Payloads that it can copy."""
    run: Runs
    command: str = ""
    """Its version is in a row: a key of `VERSIONS` of elephan.backends.programs.requirements."""
    packages: tuple[tuple[str, str], ...] = ()
    """Programs that it needs, and their Debian packages."""
    ours: bool = False
    streams: int = 1
    at: str = "path"
    """path, or disk: a bound that no path has part in."""

    def suits(self, line: Line, payload: Payload) -> bool:
        """Return True if the program can run there."""
        return payload.kind in self.kinds and (self.at == "disk") == (line.rate_mbps == 0)


def scp(made: Bench, laid: Laid, limit_s: float, row: Row) -> None:
    """Copy with scp, whose protocol is SFTP."""
    own = ["-r"] if laid.payload.kind == "small" else []
    timed(made, laid, 0, ["scp", "-q", "-p", *own, str(laid.source), f"right:{laid.target}"], limit_s, row)


def sftp(made: Bench, laid: Laid, limit_s: float, row: Row) -> None:
    """Copy with sftp."""
    batch = made.folder / "batch"
    option = "-R " if laid.payload.kind == "small" else ""
    # A folder goes into one that is there.
    there = laid.folder if laid.payload.kind == "small" else laid.target
    batch.write_text(f"put -p {option}{laid.source} {there}\n")
    timed(made, laid, 0, ["sftp", "-q", "-b", str(batch), "right"], limit_s, row)


def rsync(made: Bench, laid: Laid, limit_s: float, row: Row) -> None:
    """Copy with rsync over ssh: a device by its differences."""
    if laid.payload.kind == "device":
        own = ["-t", "--inplace", "--no-whole-file", "--copy-devices", "--write-devices", "--ignore-times"]
        words = [*own, str(laid.source), f"right:{laid.target}"]
    else:
        words = ["-a", str(laid.source), f"right:{laid.folder}/"]
    timed(made, laid, 0, ["rsync", "-e", "ssh", *words], limit_s, row)


def dd(made: Bench, laid: Laid, limit_s: float, row: Row) -> None:
    """Copy a device with dd through ssh: all of it."""
    there = f"dd of={laid.target} bs=1M conv=notrunc status=none"
    line = f"dd if={laid.source} bs=1M status=none | ssh right {shlex.quote(there)}"
    timed(made, laid, 0, ["bash", "-o", "pipefail", "-c", line], limit_s, row)


def rclone(made: Bench, laid: Laid, limit_s: float, row: Row) -> None:
    """Fetch with rclone over SFTP: only a destination of its own host takes several streams of a file."""
    config = made.folder / "rclone.conf"
    config.write_text(_RCLONE.format(address=made.address(0), port=PORT, folder=made.folder))
    words = ["rclone", "--config", str(config), "--stats", "0", "--log-level", "ERROR", "--retries", "1"]
    # A file of its whole size from the start would hide what had arrived when a run is stopped.
    words.append("--local-no-preallocate")
    if laid.payload.kind == "small":
        words += ["copy", "--transfers", str(STREAMS), "--checkers", str(STREAMS)]
    else:
        words += ["copyto", "--multi-thread-streams", str(STREAMS), "--multi-thread-cutoff", "16M"]
    timed(made, laid, 1, [*words, f"left:{laid.source}", str(laid.target)], limit_s, row)


def lftp(made: Bench, laid: Laid, limit_s: float, row: Row) -> None:
    """Fetch with lftp from vsftpd, in plaintext: pget of one file, mirror of many."""
    password = secrets.token_hex(16)
    folder = made.folder / "vsftpd"
    (folder / "empty").mkdir(parents=True, exist_ok=True)
    (folder / "passwords").write_text(f"{password}\n")
    config = folder / "vsftpd.conf"
    config.write_text(
        _VSFTPD.format(address=made.address(0), port=FTP_PORT, folder=folder, root=laid.source.parent)
    )
    # It goes to its user's home first, which the machine's nobody has not.
    (folder / "passwd").write_text(f"root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::{folder}/empty:/bin/false\n")
    there = f'mount --bind "{folder}/passwd" /etc/passwd && exec vsftpd "{config}"'
    made.serve(0, ["unshare", "--mount", "sh", "-c", there], FTP_PORT)
    script = f"""\
set cmd:fail-exit yes
set net:connection-limit 0
set ftp:ssl-allow no
set ftp:anon-pass {password}
set xfer:log no
set file:use-fallocate no
set pget:save-status never
set pget:min-chunk-size 1
open ftp://{made.address(0)}:{FTP_PORT}
"""
    if laid.payload.kind == "small":
        script += f"mirror --parallel={STREAMS} /{laid.source.name} {laid.target}\n"
    else:
        script += f"pget -n {STREAMS} /{laid.source.name} -o {laid.target}\n"
    file = made.folder / "lftp"
    file.write_text(script)
    timed(made, laid, 1, ["lftp", "--norc", "-f", str(file)], limit_s, row)


def iperf3(streams: int) -> Runs:
    """Return the bound: as many bytes from memory to memory."""

    def run(made: Bench, laid: Laid, limit_s: float, row: Row) -> None:
        made.serve(1, ["iperf3", "-s", "-1", "-p", str(IPERF_PORT)], IPERF_PORT)
        # By time where the bytes would take too long: a client that is killed tells no rate.
        amount = laid.payload.bytes
        share = made.line.rate_mbps * 1e6 / 8 * limit_s
        until = ["-n", str(amount)] if amount < 0.8 * share else ["-t", f"{max(int(limit_s) - 5, 5)}"]
        words = ["iperf3", "-c", made.address(1), "-p", str(IPERF_PORT), "-P", str(streams), "--json", *until]
        output = timed(made, laid, 0, words, 3 * limit_s, row)
        said = json.loads(output)["end"]["sum_received"]
        row.bytes, row.own_s = int(said["bytes"]), float(said["seconds"])

    return run


def copied_here(hashed: bool) -> Runs:
    """Return the bound of the file system: cp of the same tree, without a path; with `hashed` b3sum of both sides."""

    def run(made: Bench, laid: Laid, limit_s: float, row: Row) -> None:
        words = f"cp -r --preserve=all {laid.source} {laid.target}"
        if hashed:
            words += f" && {B3SUM} {laid.source} {laid.target}"
        timed(made, laid, 0, ["bash", "-c", words], 10 * limit_s, row)

    return run


def elephan(options: Mapping[str, str], *flags: str) -> Runs:
    """Return elephan's command with options."""

    def run(made: Bench, laid: Laid, limit_s: float, row: Row) -> None:
        ours.command(made, laid, limit_s, row, options, flags)

    return run


def engine(options: Mapping[str, str], *flags: str) -> Runs:
    """Return both ends of elephan without its front."""

    def run(made: Bench, laid: Laid, limit_s: float, row: Row) -> None:
        ours.ends(made, laid, limit_s, row, options, flags)

    return run


_FILES, _ALL = frozenset({"file", "small"}), frozenset({"file", "small", "device"})
_SSH = (("ssh", "openssh-client"), ("sshd", "openssh-server"))


def _ours(name: str, text: str, streams: int, *flags: str, at: str = "path", **options: str) -> Tool:
    given = {"streams": str(streams), **options} if streams else dict(options)
    flags = flags if "auto" in flags else (*flags, "no-auto")
    return Tool(f"elephan-{name}", f"elephan, {text}", _ALL, elephan(given, *flags), "", _SSH, True, streams, at)


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("iperf3-1", "iperf3 -P 1 (memory)", _FILES, iperf3(1), "iperf3", (("iperf3", "iperf3"),)),
        Tool("iperf3-8", "iperf3 -P 8 (memory)", _FILES, iperf3(8), "iperf3", (("iperf3", "iperf3"),), streams=8),
        Tool("scp", "scp", _FILES, scp, "ssh", (("scp", "openssh-client"), *_SSH)),
        Tool("sftp", "sftp", _FILES, sftp, "ssh", (("sftp", "openssh-client"), *_SSH)),
        Tool("rsync", "rsync over ssh", _ALL, rsync, "rsync", (("rsync", "rsync"), *_SSH)),
        Tool("dd-ssh", "dd through ssh", frozenset({"device"}), dd, "ssh", _SSH),
        Tool("rclone-8", "rclone over SFTP, 8 streams", _FILES, rclone, "rclone", (("rclone", "rclone"),), streams=8),
        Tool(
            "lftp-8", "lftp pget -n 8 (FTP)", _FILES, lftp, "lftp", (("lftp", "lftp"), ("vsftpd", "vsftpd")), streams=8
        ),
        Tool("cp", "cp -r (no path)", _FILES, copied_here(hashed=False), at="disk"),
        Tool("cp-b3sum", "cp and b3sum (no path)", _FILES, copied_here(hashed=True), at="disk"),
        _ours("cubic-1", "TCP cubic, 1 stream", 1, cc="cubic"),
        _ours("cubic-8", "TCP cubic, 8 streams", 8, cc="cubic"),
        _ours("cubic-8-plaintext", "TCP cubic, 8 streams, plaintext", 8, "plaintext", cc="cubic"),
        _ours("storage_friendly-1", "TCP storage_friendly, 1 stream", 1, cc="storage_friendly"),
        _ours("storage_friendly-8", "TCP storage_friendly, 8 streams", 8, cc="storage_friendly"),
        _ours("bbr-1", "TCP bbr, 1 stream", 1, cc="bbr"),
        _ours("bbr-8", "TCP bbr, 8 streams", 8, cc="bbr"),
        _ours("quic-cubic-8", "QUIC cubic, 8 streams", 8, transport="quic", cc="cubic"),
        _ours(
            "quic-storage_friendly-8",
            "QUIC storage_friendly, 8 streams",
            8,
            transport="quic",
            cc="storage_friendly",
        ),
        Tool("engine-1", "elephan's ends alone, TCP cubic, 1 stream", _ALL, engine({"streams": "1"})),
        Tool("engine-8", "elephan's ends alone, TCP cubic, 8 streams", _ALL, engine({"streams": "8"}), streams=8),
        Tool(
            "engine-bbr-8", "elephan's ends alone, TCP with Linux's bbr", _ALL, engine({"streams": "8", "cc": "bbr"}),
            streams=8,
        ),  # fmt: skip
        Tool(
            "engine-8-plaintext", "elephan's ends alone, plaintext", _ALL, engine({"streams": "8"}, "plaintext"),
            streams=8,
        ),  # fmt: skip
        Tool(
            "engine-quic-8", "elephan's ends alone, QUIC cubic", _ALL,
            engine({"streams": "8", "transport": "quic", "cc": "cubic"}), streams=8,
        ),  # fmt: skip
        _ours("local", "4 streams over loopback", 4, at="disk"),
        _ours("local-plaintext", "4 streams over loopback, plaintext", 4, "plaintext", at="disk"),
        _ours("auto", "as it chooses (--auto)", 0, "auto"),
    )
}


def chosen(names: str) -> list[Tool]:
    """Return the tools that an option names, by name or by a beginning. Raises `InputError`."""
    found: dict[str, Tool] = {}
    for name in names.split(","):
        fitting = [tool for key, tool in TOOLS.items() if re.fullmatch(rf"{re.escape(name)}(-.*)?", key)]
        if not fitting:
            raise InputError(f"--tools {name}: there are {', '.join(TOOLS)}")
        exact = TOOLS.get(name)
        found |= {tool.name: tool for tool in ([exact] if exact else fitting)}
    return list(found.values())


def paths_of(tools: list[Tool]) -> Mapping[str, str]:
    """Return the programs that some tools need, and their Debian packages."""
    return {program: package for tool in tools for program, package in tool.packages}
