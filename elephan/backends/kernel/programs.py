"""Real programs as the traffic of a flow: their command lines, and the files that they need.

A server gets a configuration, keys and a list of users of its own; none of the machine's is read. It runs in a mount
namespace of its own, where these lie over /etc and where what it receives goes to a device like /dev/null, so that no
disk is the bottleneck and nothing of the machine can be written to. All files lie in the run's folder and go with it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from elephan.errors import RunError
from elephan.run_spec.types import FlowSpec

SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""As the programs' own PATH (crates/kernel/src/traffic/process.rs): servers are often not on a user's."""

NEEDS = {
    "iperf3": {"iperf3": "iperf3"},
    "scp": {"sshd": "openssh-server", "scp": "openssh-client", "ssh": "openssh-client", "ssh-keygen": "openssh-client"},
    "ftp": {"vsftpd": "vsftpd", "curl": "curl"},
}
"""Commands of each program, and the Debian package of each command."""

VERSIONS = {
    "iperf3": ("--version", r"iperf (\S+)"),
    "ssh": ("-V", r"OpenSSH_([^\s,]+)"),
    "vsftpd": ("-v", r"version (\S+)"),
    "curl": ("--version", r"curl (\S+)"),
}
"""By command: the argument that prints its version, and a pattern that finds it."""

CARRY = {"iperf3": ("iperf3",), "scp": ("ssh",), "ftp": ("vsftpd", "curl")}
"""Commands whose versions a record contains, by program."""

DATA_PORTS = (40_000, 40_999)
"""Of ftp's passive mode. The hosts are the flow's own, so the ports are free."""

PASSABLE = 0o711
"""Mode of a folder that a server which is not root passes through and cannot read; the keys in it are root's alone."""

_THERE = """\
set -e
for file in passwd shadow group; do mount --bind "$1/$file" "/etc/$file"; done
mount -t tmpfs -o mode=755 elephan "$1/far"
mknod -m 666 "$1/far/sink" c 1 3
if [ -n "$2" ]; then mount -t tmpfs -o mode=755 elephan /run; mkdir "$2"; fi
shift 2
exec "$@"
"""
"""In a mount namespace of its own: users, the place of received data, and the empty folder that sshd locks itself into.
"""


def where(command: str) -> str | None:
    """Return the full path of a command, None when it is not installed."""
    return shutil.which(command, path=SEARCHED)


def installed() -> frozenset[str]:
    """Return the commands of `NEEDS` that this machine has."""
    return frozenset(command for needs in NEEDS.values() for command in needs if where(command))


def lacks(program: str, commands: Iterable[str]) -> str | None:
    """Return which of a program's commands are not among `commands` and how to get them; None when all are."""
    missing = {command: package for command, package in NEEDS[program].items() if command not in set(commands)}
    if not missing:
        return None
    are = "is" if len(missing) == 1 else "are"
    packages = " ".join(dict.fromkeys(missing.values()))
    return f"{program} needs {', '.join(missing)}, which {are} not installed: apt-get install {packages}"


@cache
def version(command: str) -> str | None:
    """Return a command's version as it prints it; None if it prints none."""
    word, pattern = VERSIONS[command]
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
        found = re.search(pattern, said.read().decode(errors="replace"))
    return found[1] if found else None


def versions(programs: Iterable[str]) -> dict[str, str]:
    """Return the versions of the commands that carry some programs' data."""
    names = dict.fromkeys(command for program in programs for command in CARRY[program])
    return {name: found for name in names if (found := version(name)) is not None}


def prepared(flow: FlowSpec, folder: Path, near: str, far: str, port: int, duration_ns: int) -> dict[str, Any]:
    """Write a flow's program's files into `folder`, which is made; return crates/kernel/src/plan.rs's ProgramPlan.

    `near` and `far` are the hosts' addresses, `port` the server's, `duration_ns` the run's. Raises `RunError`.
    """
    workload = flow["workload"]
    assert workload["kind"] == "program", "a flow of a program"
    program = workload["program"]
    try:
        folder.mkdir()
        folder.chmod(PASSABLE)
        server, client = _MAKERS[program](flow, folder, near, far, port, duration_ns)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RunError(f"flow {flow['name']}: {program} cannot be set up: {error}") from error
    return {
        "name": program,
        "server": server,
        "client": client,
        # iperf3 ends at the end of its time; its server then discards data in flight.
        "confirmed": program != "iperf3",
        "folder": str(folder),
    }


def _iperf3(
    flow: FlowSpec, folder: Path, near: str, far: str, port: int, duration_ns: int
) -> tuple[list[str], list[str]]:
    # Without a time it is ended with the run; the margin is for its own beginning.
    until_ns = duration_ns + 60_000_000_000 if flow["stop_ns"] is None else flow["stop_ns"]
    length = ["-t", str((until_ns - flow["start_ns"]) // 1_000_000_000)]
    tool = _command("iperf3")
    return (
        [tool, "-s", "-1", "-B", far, "-p", str(port)],
        [tool, "-c", far, "-B", near, "-p", str(port), "-i", "0", *length],
    )


def _scp(flow: FlowSpec, folder: Path, near: str, far: str, port: int, duration_ns: int) -> tuple[list[str], list[str]]:
    _users(folder)
    for name in ("host", "key"):
        # Twice: the server's own key, and the client's.
        words = [_command("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "elephan", "-f", str(folder / name)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    shutil.copy(folder / "key.pub", folder / "authorized_keys")
    host_key = " ".join((folder / "host.pub").read_text(encoding="utf-8").split()[:2])
    _write(folder / "known_hosts", f"[{far}]:{port} {host_key}\n")
    _write(
        folder / "sshd_config",
        f"""\
ListenAddress {far}
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
ForceCommand internal-sftp
Subsystem sftp internal-sftp
""",
    )
    options = {
        "BatchMode": "yes",
        "Compression": "no",
        "ControlPath": "none",
        "GlobalKnownHostsFile": "/dev/null",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": f"{folder}/known_hosts",
        "BindAddress": near,
    }
    given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    source = _source(folder, _bytes_of(flow))
    return (
        _there(folder, "/run/sshd", [_command("sshd"), "-D", "-e", "-f", f"{folder}/sshd_config"]),
        [
            _command("scp"), "-s", "-q", "-F", "none", "-S", _command("ssh"), "-i", f"{folder}/key", "-P", str(port),
            *given, source, f"root@{far}:{folder}/far/sink",
        ],
    )  # fmt: skip


def _ftp(flow: FlowSpec, folder: Path, near: str, far: str, port: int, duration_ns: int) -> tuple[list[str], list[str]]:
    _users(folder)
    (folder / "empty").mkdir()
    first, last = DATA_PORTS
    _write(
        folder / "vsftpd.conf",
        f"""\
listen=YES
listen_ipv6=NO
listen_address={far}
listen_port={port}
background=NO
anonymous_enable=YES
local_enable=NO
no_anon_password=YES
ftp_username=nobody
nopriv_user=nobody
anon_root={folder}/far
secure_chroot_dir={folder}/empty
write_enable=YES
anon_upload_enable=YES
anon_other_write_enable=YES
connect_from_port_20=NO
pasv_min_port={first}
pasv_max_port={last}
seccomp_sandbox=NO
xferlog_enable=NO
syslog_enable=NO
""",
    )
    source = _source(folder, _bytes_of(flow))
    return (
        _there(folder, "", [_command("vsftpd"), f"{folder}/vsftpd.conf"]),
        # Appended, since a server would cut an existing file first, which a device does not bear.
        [
            _command("curl"), "-q", "-sS", "--noproxy", "*", "--interface", near, "--ftp-pasv", "--append",
            "--upload-file", source, f"ftp://{far}:{port}/sink",
        ],
    )  # fmt: skip


def _bytes_of(flow: FlowSpec) -> int:
    workload = flow["workload"]
    assert workload["kind"] == "program" and workload["bytes"] is not None, "a file has a size"
    return workload["bytes"]


_MAKERS: dict[str, Callable[..., tuple[list[str], list[str]]]] = {"iperf3": _iperf3, "scp": _scp, "ftp": _ftp}


def _command(name: str) -> str:
    path = where(name)
    if path is None:
        raise FileNotFoundError(f"{name} is not installed")
    return path


def _there(folder: Path, own: str, words: list[str]) -> list[str]:
    """Return a server's command line in a mount namespace of its own; `own` is a folder that it needs under /run."""
    return [_command("unshare"), "--mount", _command("sh"), "-c", _THERE, "sh", str(folder), own, *words]


def _users(folder: Path) -> None:
    """Write the users that a server knows: other users of this machine, and a locked root, do not matter."""
    home = folder / "far"
    home.mkdir()
    users = {"root": (0, 0), "nobody": (65534, 65534), "sshd": (65533, 65534)}
    shells = {"root": "/bin/sh"}
    lines = [
        f"{name}:x:{user}:{group}::{home}:{shells.get(name, '/usr/sbin/nologin')}"
        for name, (user, group) in users.items()
    ]
    _write(folder / "passwd", "\n".join(lines) + "\n", 0o644)
    _write(folder / "shadow", "".join(f"{name}:*:20000::::::\n" for name in users))
    _write(folder / "group", "root:x:0:\nnogroup:x:65534:\n", 0o644)


def _source(folder: Path, size: int) -> str:
    """Make the file to be sent: a hole, which takes no room and no disk to read."""
    path = folder / "source"
    with path.open("wb") as file:
        file.truncate(size)
    return str(path)


def _write(path: Path, text: str, mode: int = 0o600) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
