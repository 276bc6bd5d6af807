"""Commands that real programs need on a machine: the Debian packages that have them, and their versions."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Literal

from elephan.backends.programs import built

SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""As the programs' own PATH (crates/kernel/src/traffic/process.rs): servers are often not on a user's."""

_SSHD = {"sshd": "openssh-server", "ssh-keygen": "openssh-client"}

NEEDS = {
    "iperf3": {"iperf3": "iperf3"},
    "scp": {**_SSHD, "scp": "openssh-client", "ssh": "openssh-client"},
    "sftp": {**_SSHD, "sftp": "openssh-client", "ssh": "openssh-client"},
    "rsync": {**_SSHD, "rsync": "rsync", "ssh": "openssh-client"},
    "rsyncd": {"rsync": "rsync"},
    "rclone": {**_SSHD, "rclone": "rclone"},
    "ftp": {"vsftpd": "vsftpd", "curl": "curl"},
    "lftp": {"vsftpd": "vsftpd", "lftp": "lftp"},
    "pget": {"vsftpd": "vsftpd", "lftp": "lftp"},
    "udt": {"g++": "g++", built.HEADER: "libudt-dev"},
    "srt": {"srt-file-transmit": "srt-tools"},
}
"""Commands of each program, and the Debian package of each command; of udt, what it is built with."""

Role = Literal["server", "client"]

NEEDED_BY: dict[str, dict[Role, tuple[str, ...]]] = {
    "iperf3": {"server": ("iperf3",), "client": ("iperf3",)},
    "scp": {"server": ("sshd",), "client": ("scp", "ssh")},
    "sftp": {"server": ("sshd",), "client": ("sftp", "ssh")},
    "rsync": {"server": ("sshd", "rsync"), "client": ("rsync", "ssh")},
    "rsyncd": {"server": ("rsync",), "client": ("rsync",)},
    "rclone": {"server": ("sshd",), "client": ("rclone",)},
    "ftp": {"server": ("vsftpd",), "client": ("curl",)},
    "lftp": {"server": ("vsftpd",), "client": ("lftp",)},
    "pget": {"server": ("vsftpd",), "client": ("lftp",)},
    "udt": {"server": ("g++", built.HEADER), "client": ("g++", built.HEADER)},
    "srt": {"server": ("srt-file-transmit",), "client": ("srt-file-transmit",)},
}
"""Of these, the commands on the machine of each end; ssh-keygen is needed where elephan runs."""

VERSIONS = {
    "iperf3": ("--version", r"iperf (\S+)"),
    "ssh": ("-V", r"OpenSSH_([^\s,]+)"),
    "rsync": ("--version", r"version (\S+)"),
    "rclone": ("--version", r"rclone v(\S+)"),
    "vsftpd": ("-v", r"version (\S+)"),
    "curl": ("--version", r"curl (\S+)"),
    "lftp": ("--version", r"Version (\S+)"),
    "srt-file-transmit": ("-version", r"SRT Library version: ([^\s,]+)"),
}
"""By command: the argument that prints its version, and a pattern that finds it."""

CARRY = {
    "iperf3": ("iperf3",),
    "scp": ("ssh",),
    "sftp": ("ssh",),
    "rsync": ("ssh", "rsync"),
    "rsyncd": ("rsync",),
    "rclone": ("ssh", "rclone"),
    "ftp": ("vsftpd", "curl"),
    "lftp": ("vsftpd", "lftp"),
    "pget": ("vsftpd", "lftp"),
    # libudt has no version that a program could ask for.
    "udt": (),
    "srt": ("srt-file-transmit",),
}
"""Commands whose versions a record contains, by program."""


def where(command: str) -> str | None:
    """Return the full path of a command or a header, None when it is not installed."""
    if command.endswith(".h"):
        return built.header(command)
    return shutil.which(command, path=SEARCHED)


def found(command: str) -> str:
    """Return the full path of a command; udt is built first. Raises `FileNotFoundError`, `RunError`."""
    path = built.udt() if command == "udt" else where(command)
    if path is None:
        raise FileNotFoundError(f"{command} is not installed")
    return path


def installed() -> frozenset[str]:
    """Return the commands of `NEEDS` that this machine has."""
    return frozenset(command for needs in NEEDS.values() for command in needs if where(command))


def lacks(program: str, commands: Iterable[str]) -> str | None:
    """Return which of a program's commands are not among `commands` and how to get them; None when all are."""
    return _missing(program, NEEDS[program], commands)


def lacks_at(program: str, role: Role, commands: Iterable[str]) -> str | None:
    """Return the same of one end's machine."""
    return _missing(program, {command: NEEDS[program][command] for command in NEEDED_BY[program][role]}, commands)


def _missing(program: str, needs: Mapping[str, str], commands: Iterable[str]) -> str | None:
    missing = {command: package for command, package in needs.items() if command not in set(commands)}
    if not missing:
        return None
    are = "is" if len(missing) == 1 else "are"
    packages = " ".join(dict.fromkeys(missing.values()))
    return f"{program} needs {', '.join(missing)}, which {are} not installed: apt-get install {packages}"


@cache
def version(command: str) -> str | None:
    """Return a command's version as it prints it; None if it prints none."""
    word = VERSIONS[command][0]
    path = where(command)
    if path is None:
        return None
    with tempfile.TemporaryFile() as said:
        try:
            # vsftpd prints it to its standard input.
            subprocess.run([path, word], stdin=said, stdout=said, stderr=said, timeout=5, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        said.seek(0)
        return version_in(command, said.read().decode(errors="replace"))


def version_in(command: str, said: str) -> str | None:
    """Return the version in what a command has said of itself; None if it said none."""
    seen = re.search(VERSIONS[command][1], said)
    return seen[1] if seen else None


def versions(programs: Iterable[str]) -> dict[str, str]:
    """Return the versions of the commands that carry some programs' data."""
    names = dict.fromkeys(command for program in programs for command in CARRY[program])
    return {name: seen for name in names if (seen := version(name)) is not None}
