"""Programs over SSH: OpenSSH's scp and sftp, rsync and rclone, each to an sshd with keys made for the run."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elephan.backends.programs.ends import Apart, Data, End, File, Place, to_receive, to_send, users
from elephan.run_spec.types import ProgramWorkloadSpec
from elephan.scenario.program import buffer_of, streams_of

_SSHD = """\
ListenAddress {address}
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AllowTcpForwarding no
X11Forwarding no
UseDNS no
PidFile none
LogLevel ERROR
MaxStartups 200
Subsystem sftp internal-sftp
"""

_RCLONE = """\
[far]
type = sftp
host = {address}
port = {port}
user = root
key_file = {folder}/key
known_hosts_file = {folder}/known_hosts
shell_type = none
disable_hashcheck = true
set_modtime = false
"""
"""No checksum of either side: no other program here reads its data a second time."""


@dataclass(frozen=True)
class Keys:
    """Keys of a server and of its only user, private and public."""

    host: tuple[str, str]
    user: tuple[str, str]

    @classmethod
    def made(cls, ssh_keygen: str, within: Path) -> Keys:
        """Make new ones, in files that are in the folder `within` meanwhile.

        Raises `subprocess.CalledProcessError`, `OSError`.
        """
        with tempfile.TemporaryDirectory(dir=within) as folder:
            pairs = []
            for name in ("host", "user"):
                file = Path(folder, name)
                words = [ssh_keygen, "-q", "-t", "ed25519", "-N", "", "-C", "elephan", "-f", str(file)]
                subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)
                pairs.append((file.read_text(encoding="utf-8"), Path(f"{file}.pub").read_text(encoding="utf-8")))
        return cls(pairs[0], pairs[1])


def ends(
    workload: ProgramWorkloadSpec, near: Place, far: Place, port: int, keys: Keys, limit_bps: int | None
) -> tuple[End, End]:
    """Return server and client of a program; the server, at `far`, listens on `port`, and the client sends at most so
    many bit/s.
    """
    received, sent = to_receive(workload, far), to_send(workload, near)
    config = _SSHD.format(address=far.address, port=port, folder=far.folder)
    if workload["program"] != "rsync":
        # rsync runs itself there, by a shell.
        config += "ForceCommand internal-sftp\n"
    server = End(
        (far.command("sshd"), "-D", "-e", "-f", f"{far.folder}/sshd_config"),
        (
            *users(far, f"{far.folder}/far"),
            File("sshd_config", config),
            File("host", keys.host[0]),
            File("authorized_keys", keys.user[1]),
            # Home of its user.
            File("far/", "", 0o755),
        ),
        received,
        Apart(received, "/run/sshd"),
    )
    known = " ".join(keys.host[1].split()[:2])
    own = (File("key", keys.user[0]), File("known_hosts", f"[{far.reached}]:{port} {known}\n"))
    words, files = _CLIENTS[workload["program"]](_Copy(workload, near, far, port, sent, received, limit_bps))
    return server, End(words, own + files, sent)


Client = tuple[tuple[str, ...], tuple[File, ...]]
"""Command line, and files beside the keys."""


@dataclass(frozen=True)
class _Copy:
    """Everything that a client is told."""

    workload: ProgramWorkloadSpec
    near: Place
    far: Place
    port: int
    """The server listens there, at `far`."""
    sent: Data
    received: Data
    limit_bps: int | None
    """It sends at most that; None: as fast as it can."""


def _scp(copy: _Copy) -> Client:
    near, far = copy.near, copy.far
    buffer, requests = buffer_of(copy.workload), copy.workload.get("requests")
    own = [] if buffer is None else ["-X", f"buffer={buffer}"]
    own += [] if requests is None else ["-X", f"nrequests={requests}"]
    own += _kbits(copy.limit_bps)
    words = [near.command("scp"), "-s", "-q", "-P", str(copy.port), "-S", near.command("ssh"), *_options(near), *own]
    return (*words, *copy.sent.paths, f"root@{far.in_url}:{copy.received.folder}/"), ()


def _sftp(copy: _Copy) -> Client:
    near, far = copy.near, copy.far
    buffer, requests = buffer_of(copy.workload), copy.workload.get("requests")
    own = [] if buffer is None else ["-B", str(buffer)]
    own += [] if requests is None else ["-R", str(requests)]
    own += _kbits(copy.limit_bps)
    batch = "".join(f"put {a} {b}\n" for a, b in zip(copy.sent.paths, copy.received.paths, strict=True))
    words = [near.command("sftp"), "-q", "-P", str(copy.port), "-S", near.command("ssh"), *_options(near), *own]
    return (*words, "-b", f"{near.folder}/batch", f"root@{far.in_url}"), (File("batch", batch),)


def _rsync(copy: _Copy) -> Client:
    near, far = copy.near, copy.far
    shell = " ".join([near.command("ssh"), "-p", str(copy.port), *_options(near)])
    there = ["-e", shell, f"--rsync-path={far.command('rsync')}"]
    target = f"root@{far.in_url}:{copy.received.folder}/"
    return (near.command("rsync"), *copying(copy.received, copy.limit_bps), *there, f"{copy.sent.folder}/", target), ()


def copying(received: Data, limit_bps: int | None) -> list[str]:
    """Return rsync's options for a copy of all data, with no comparison of what is there, at so many bit/s at most."""
    # In KiB/s; 0 is none.
    limit = [] if limit_bps is None else [f"--bwlimit={max(limit_bps // 8192, 1)}"]
    return ["-r", "--whole-file", *limit, *(["--inplace", "--write-devices"] if received.kind == "devices" else [])]


def _kbits(limit_bps: int | None) -> list[str]:
    """Return the option of scp and sftp, in kbit/s."""
    return [] if limit_bps is None else ["-l", str(max(limit_bps // 1000, 1))]


def _rclone(copy: _Copy) -> Client:
    near, far = copy.near, copy.far
    buffer, requests = buffer_of(copy.workload), copy.workload.get("requests")
    own = [] if buffer is None else ["--sftp-chunk-size", f"{buffer}B"]
    own += [] if requests is None else ["--sftp-concurrency", str(requests)]
    own += [] if copy.limit_bps is None else ["--bwlimit", f"{max(copy.limit_bps // 8, 1)}B"]
    # A device has no size to compare.
    own += ["--ignore-size", "--ignore-checksum"] if copy.received.kind == "devices" else []
    words = [
        # From 1.63 on it would write to another name first; older ones do not know the option.
        near.command("env"), "RCLONE_INPLACE=true", near.command("rclone"), "copy", "--config",
        f"{near.folder}/rclone.conf", "--bind", near.address, "--transfers", str(streams_of(copy.workload)),
        "--checkers", "1", "--no-check-dest", "--no-traverse", "--retries", "1", "--low-level-retries", "1",
        "--stats", "0", "--log-level", "ERROR", *own, copy.sent.folder, f"far:{copy.received.folder}",
    ]  # fmt: skip
    config = _RCLONE.format(address=far.in_url, port=copy.port, folder=near.folder)
    return tuple(words), (File("rclone.conf", config),)


def _options(near: Place) -> list[str]:
    """Return options of ssh, scp and sftp for a connection that no setting of a user changes."""
    options = {
        "BatchMode": "yes",
        "Compression": "no",
        "ControlPath": "none",
        "GlobalKnownHostsFile": "/dev/null",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": f"{near.folder}/known_hosts",
        "BindAddress": near.address,
    }
    given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["-F", "none", "-i", f"{near.folder}/key", *given]


_CLIENTS: dict[str, Callable[[_Copy], Client]] = {
    "scp": _scp,
    "sftp": _sftp,
    "rsync": _rsync,
    "rclone": _rclone,
}
