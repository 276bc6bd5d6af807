"""A second host: a network namespace with an sshd, joined to this process's own by a veth pair. Real ssh, real agent.

It has the mounts of this process, so that both ends of a copy are judged by plain system calls. All of it goes with
this process: the namespaces have no names.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from elephan.errors import RunError
from elephan.hosts.agents import agent_files
from tests.copy.model import clock, command, places, tracer
from tests.copy.model.draw import USER
from tests.copy.model.request import REMOTE
from tests.hosts.testbed import keys, where

NEAR, FAR = "10.0.0.1", "10.0.0.2"
DEVICE = "near"
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
PATIENCE_S = 20.0
ACCOUNTS = {"root": 0, "tester": USER}

_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """No second host can be made here, and why."""


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Remote:
    """The second host."""

    def __init__(self, folder: Path) -> None:
        """Make it, with its files in a folder that users may look into. Raises `Unavailable`."""
        lacking = [name for name in ("sshd", "ssh", "ssh-keygen", "ip", "nsenter", "cc") if where(name) is None]
        if lacking:
            raise Unavailable(f"needs {', '.join(lacking)}")
        try:
            agent_files()
        except RunError as error:
            raise Unavailable(str(error)) from error
        self.folder = folder
        folder.mkdir(mode=0o755)
        self._namespace()
        self._accounts()
        self._configure()
        self._start()

    def _namespace(self) -> None:
        if _libc.unshare(CLONE_NEWNET) != 0:
            raise Unavailable(f"unshare: {os.strerror(ctypes.get_errno())}")
        _run("ip", "link", "set", "lo", "up")
        environment = {name: text for name, text in os.environ.items() if name not in ("LD_PRELOAD", clock.FILE)}
        self._log = self.folder / "sshd.log"
        words = [str(where("sshd")), "-D", "-e", "-f", str(self.folder / "sshd_config")]
        # The namespace lives as long as this process, which becomes the sshd.
        self._sshd = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", 'ip link set lo up; echo; read -r go; exec "$@" >/dev/null', "sh", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log.open("wb"),
            env=environment,
            start_new_session=True,
            preexec_fn=command.die_with_parent,
        )
        assert self._sshd.stdout is not None
        if not self._sshd.stdout.readline():
            raise Unavailable("unshare --net has failed")
        self.inode = os.stat(f"/proc/{self._sshd.pid}/ns/net").st_ino
        inside = ["nsenter", f"--net=/proc/{self._sshd.pid}/ns/net"]
        _run("ip", "link", "add", DEVICE, "type", "veth", "peer", "name", "far", "netns", str(self._sshd.pid))
        _run("ip", "address", "add", f"{NEAR}/30", "dev", DEVICE)
        _run("ip", "link", "set", DEVICE, "up")
        _run(*inside, "ip", "address", "add", f"{FAR}/30", "dev", "far")
        _run(*inside, "ip", "link", "set", "far", "up")

    def _accounts(self) -> None:
        """Give both hosts an account for each user of sequences, in the mounts of this process."""
        homes = {name: self.folder / "home" / name for name in ACCOUNTS}
        passwd = "".join(f"{name}:x:{user}:{user}::{homes[name]}:/bin/sh\n" for name, user in ACCOUNTS.items())
        group = "".join(f"{name}:x:{user}:\n" for name, user in ACCOUNTS.items())
        shadow = "".join(f"{name}:*:20000::::::\n" for name in ACCOUNTS)
        other = "sshd:x:65533:65534::/:/usr/sbin/nologin\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
        for name, text in (("passwd", passwd + other), ("group", group + "nogroup:x:65534:\n"), ("shadow", shadow)):
            file = self.folder / name
            file.write_text(text)
            places.bind(os.fsencode(file), os.fsencode(f"/etc/{name}"))
        for name, user in ACCOUNTS.items():
            homes[name].mkdir(parents=True)
            os.chown(homes[name], user, user)
        if not Path("/run/sshd").is_dir():
            places.mount_tmpfs(b"/run", "mode=755")
            os.mkdir("/run/sshd")

    def _configure(self) -> None:
        folder = self.folder
        keys(folder)
        _run("cc", "-O2", "-o", str(folder / "hold"), str(Path(__file__).with_name("hold.c")))
        (folder / "key-user.pub").chmod(0o644)
        (folder / "sshd_config").write_text(
            f"""\
ListenAddress {FAR}
HostKey {folder}/key-right
AuthorizedKeysFile {folder}/key-user.pub
ForceCommand {folder}/hold
AcceptEnv {command.REMOTE_STATE} {tracer.HOLD}
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UseDNS no
PidFile none
MaxStartups 500
MaxSessions 500
LogLevel ERROR
"""
        )
        key = " ".join((folder / "key-right.pub").read_text().split()[:2])
        (folder / "known_hosts").write_text(f"{FAR} {key}\n")
        for name, user in ACCOUNTS.items():
            # ssh(1) takes a key that its user alone can read.
            own = folder / f"key-of-{name}"
            shutil.copy(folder / "key-user", own)
            os.chown(own, user, user)
            (folder / f"ssh_config-{user}").write_text(
                f"""\
Host *
    HostName {FAR}
    User {name}
    IdentityFile {own}
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    SendEnv {command.REMOTE_STATE} {tracer.HOLD}
    ControlPath none
    KexAlgorithms curve25519-sha256
"""
            )
        tools = folder / "bin"
        tools.mkdir()
        wrapper = tools / "ssh"
        wrapper.write_text(f'#!/bin/sh\nexec {where("ssh")} -F {folder}/ssh_config-$(id -u) "$@"\n')
        wrapper.chmod(0o755)
        os.environ["PATH"] = f"{tools}:{os.environ['PATH']}"

    def _start(self) -> None:
        assert self._sshd.stdin is not None
        self._sshd.stdin.write(b"go\n")
        self._sshd.stdin.close()
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError), socket.create_connection((FAR, 22), 1.0):
                return
            if time.monotonic() > deadline_s or self._sshd.poll() is not None:
                raise Unavailable(f"sshd does not listen: {self._log.read_text().strip()[-300:]}")
            time.sleep(0.02)

    def close(self) -> None:
        """End it."""
        self._sshd.kill()
        self._sshd.wait()
        for name in ("passwd", "group", "shadow"):
            places.unmount(os.fsencode(f"/etc/{name}"))

    def load(self, folder: Path) -> None:
        """Send the agent for each account, and load the modules that a copy between hosts loads."""
        for name, user in ACCOUNTS.items():
            own = folder / f"loaded-{name}"
            (own / "source").mkdir(parents=True)
            os.chown(own, user, user)
            self.book(own / "hosts.toml")
            words = [b"copy", os.fsencode(own / "source"), os.fsencode(f"{REMOTE}:{own}/destination"), b"-q"]
            command.load_modules(words, own, user)

    def book(self, file: Path) -> None:
        """Write the user's book of hosts."""
        file.write_text(f'[{REMOTE}]\nssh = "{FAR}"\n')

    # Its processes.

    def processes(self) -> dict[int, str]:
        """Return the processes there of sessions, by id, with their names."""
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdecimal() or int(entry) == self._sshd.pid:
                continue
            with suppress(OSError):
                if os.stat(f"/proc/{entry}/ns/net").st_ino == self.inode:
                    found[int(entry)] = Path(f"/proc/{entry}/comm").read_text().strip()
        return found

    def wait(self, patience_s: float = PATIENCE_S) -> dict[int, str]:
        """Wait until no session is left there; return the processes that stay."""
        deadline_s = time.monotonic() + patience_s
        while (left := self.processes()) and time.monotonic() < deadline_s:
            time.sleep(0.005)
        return left

    # The network between both.

    def set_link(self, up: bool) -> None:
        """Set the link between both hosts up or down (netdevice(7))."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            found = fcntl.ioctl(handle, SIOCGIFFLAGS, struct.pack("16sH14x", DEVICE.encode(), 0))
            flags = struct.unpack("16sH14x", found)[1]
            flags = flags | IFF_UP if up else flags & ~IFF_UP
            fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH14x", DEVICE.encode(), flags))

    def reset(self, what: str) -> None:
        """Reset connections to the second host: "data", "one" of those, or "all" with the sessions of ssh."""
        data = "not ( dport = :22 or sport = :22 )"
        words = ["ss", "-K", "-tnH", "state", "established"]
        if what == "all":
            _run(*words)
        elif what == "data":
            _run(*words, data)
        else:
            rows = [row.split() for row in _run("ss", "-tnH", "state", "established", data).splitlines()]
            ports = [row[2].rpartition(":")[2] for row in rows if row[2].startswith((NEAR, FAR))]
            if ports:
                _run(*words, f"sport = :{ports[-1]}")
