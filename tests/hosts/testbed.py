"""Two hosts for tests: namespaces with their own sshd, users and homes, joined by elephan's emulated path.

Real ssh, real agent, real path. The front reaches each sshd over a veth pair of its own, as over a management network;
data goes between the two hosts over the emulated path.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.hosts.boot import INSTALLED
from elephan.kernel.maps import loaded
from elephan.path import testbed
from elephan.path.session import Opened, ends_of, open_path, spec_of
from elephan.scenario import load

PATIENCE_S = 20.0
USER = "tester"
"""A user without rights, known to the two sshd alone."""
SUDOER = "sudoer"
"""A user whom sudo asks no password."""
LIMITED = "limited"
"""A user whom sudo lets run one other program, without a password."""
BARE = "bare"
"""A user whose shell finds few programs."""
OPERATOR = "operator"
"""A user whom sudo lets run the installed agent, without a password."""
OWNER = "owner"
"""A user whom sudo lets run the agents in the user's own cache, without a password."""
USERS = {"root": 0, USER: 4242, SUDOER: 4243, LIMITED: 4244, BARE: 4245, OPERATOR: 4246, OWNER: 4247}
FEW = ("cat", "chmod", "cut", "head", "id", "mkdir", "mv", "rm", "sha256sum", "uname")
"""Those of `BARE`: what the first steps need."""

LISTS = ("available_congestion_control", "allowed_congestion_control")

THERE = """\
set -e
for file in passwd shadow group sudoers; do mount --bind "$1/etc/$file" "/etc/$file"; done
mount -t tmpfs -o mode=755 elephan /run
mkdir /run/sshd /run/local /run/work
mount -t overlay -o lowerdir=/usr/local,upperdir=/run/local,workdir=/run/work elephan /usr/local
shift
exec "$@"
"""

ELF_AARCH64 = (
    r"\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00",
    r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff",
)
"""Beginning of a program of aarch64 (ELF: e_ident, e_type, e_machine), and its mask."""

AS_AARCH64 = """\
set -e
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
echo ":aarch64:M::$1:$2:$3:F" >/proc/sys/fs/binfmt_misc/register
mount --bind "$4" "$(command -v uname)"
shift 4
exec "$@"
"""
"""A host of aarch64: qemu-user runs its programs. The table of interpreters is that of a user namespace (Linux 6.7), so
the machine's own stays; F loads the interpreter at once. Its root has no rights over the network.
"""

SCENARIO = """\
[run]
duration = "4s"
stop_when_done = false

[path]
{path}

[[flow]]
congestion_control = "cubic"
"""


@dataclass
class End:
    """One host."""

    name: str
    namespace: str
    folder: Path
    management: str
    """Address at which the front reaches it."""
    data: str
    """Address on the emulated path."""
    sshd: subprocess.Popen[bytes]

    def home(self, user: str = "root") -> Path:
        """Home of a user there."""
        return self.folder / "home" / user

    def files(self) -> list[str]:
        """Everything below the homes."""
        root = self.folder / "home"
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())

    def processes(self) -> dict[int, str]:
        """Processes there but for the listening sshd, by id, with their command lines."""
        found = {}
        for pid in testbed.processes([self.namespace]):
            if pid == self.sshd.pid:
                continue
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:
                continue
            if "[listener]" not in words:
                found[pid] = words
        return found

    def sysctls(self) -> dict[str, str]:
        """Values under net.ipv4 and net.core of its namespace, without the lists of congestion controls: these are the
        machine's, and others load some meanwhile.
        """
        done = self.run("sysctl", "-a", "-r", r"^net\.(ipv4\.tcp|core)")
        found = dict(line.split(" = ", 1) for line in done.stdout.splitlines() if " = " in line)
        return {name: value for name, value in found.items() if not name.endswith(LISTS)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in its namespace."""
        return subprocess.run(
            ["ip", "netns", "exec", self.namespace, *words], capture_output=True, text=True, check=True
        )


@dataclass
class Hosts:
    """Both hosts, the path between them, and the environment in which a front knows them."""

    left: End
    right: End
    path: Opened
    spec: Any
    folder: Path
    environment: dict[str, str]

    @property
    def ends(self) -> tuple[End, End]:
        """Both."""
        return self.left, self.right


def controls() -> set[str]:
    """Congestion controls of runs between hosts that are registered in this kernel, which both hosts share."""
    return {one.name for one in loaded() if one.registered and one.name.startswith("elephan_h")}


def folders() -> list[str]:
    """Folders of runs' programs, which both hosts have in the same places."""
    return [str(path) for parent in ("/tmp", "/var/tmp") for path in Path(parent).glob("elephan-run-*")]


def missing() -> str | None:
    """Return what this machine lacks for the hosts; None when nothing."""
    lacking = [name for name in ("sshd", "ssh", "ssh-keygen", "sudo", "unshare", "sysctl") if where(name) is None]
    return testbed.missing() or (f"needs {', '.join(lacking)}" if lacking else None)


def where(command: str) -> str | None:
    """Full path of a command."""
    return shutil.which(command, path=f"/usr/sbin:/sbin:{os.environ['PATH']}")


@contextmanager
def hosts(
    folder: Path, path: str, flow: str = "", *, right_is_aarch64: bool = False, data: bool = False
) -> Iterator[Hosts]:
    """Make the hosts on an emulated path with these lines of `[path]`; with `data` their sshd listen on it, too."""
    scenario = folder / "path.toml"
    scenario.write_text(SCENARIO.format(path=path) + flow)
    spec, _ = spec_of(load(scenario))
    # The user without rights has a home there.
    folder.chmod(0o755)
    made: list[End] = []
    with open_path(ends_of(spec), spec, {"what": "path", "of": "test"}) as opened:
        assert isinstance(opened, Opened)
        opened.start(spec)
        try:
            keys(folder)
            for number, name in enumerate(("left", "right")):
                foreign = right_is_aarch64 and number == 1
                made.append(sshd(folder, name, opened.place, number, as_aarch64=foreign, data=data))
            environment = front(folder, made)
            yield Hosts(made[0], made[1], opened, spec, folder, environment)
        finally:
            for end in made:
                end.sshd.kill()
                end.sshd.wait()


def keys(folder: Path) -> None:
    """Make the host keys and the user's own."""
    for name in ("left", "right", "user", "other"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(folder / f"key-{name}")]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def sshd(
    folder: Path, name: str, place: testbed.Site, number: int, *, as_aarch64: bool = False, data: bool = False
) -> End:
    """Start a host's sshd on a management network of its own, and return when it listens."""
    namespace = place.names[number]
    # A /30 network for each host of each pair that lives: their ids begin with other digits.
    subnet = f"198.19.{int(place.id[:2], 16)}"
    first = int(place.id[2:4], 16) % 32 * 8 + 4 * number
    near, far = f"{subnet}.{first + 1}", f"{subnet}.{first + 2}"
    # At most 15 bytes; the far end goes with the namespace, and this one with it.
    device = f"eh{place.id}{number}"
    testbed.ip(
        lines=[
            f"link add {device} type veth peer name mgmt netns {namespace}",
            f"address add {near}/30 dev {device}",
            f"link set {device} up",
        ]
    )
    testbed.ip("-n", namespace, lines=[f"address add {far}/30 dev mgmt", "link set mgmt up"])
    also = [testbed.ADDRESSES[number]] if data else []
    return listening(folder, name, namespace, [far, *also], testbed.ADDRESSES[number], as_aarch64=as_aarch64)


def listening(
    folder: Path, name: str, namespace: str, addresses: list[str], data: str, *, as_aarch64: bool = False
) -> End:
    """Start an sshd in a namespace, with users of its own, and return when it listens at `addresses`."""
    own = folder / name
    (own / "etc").mkdir(parents=True)
    users = {name: (number, number) for name, number in USERS.items()}
    users |= {"sshd": (65533, 65534), "nobody": (65534, 65534)}
    lines, shadow = "", ""
    for user, (uid, gid) in users.items():
        home = own / "home" / user
        shell = "/bin/sh" if user in USERS else "/usr/sbin/nologin"
        lines += f"{user}:x:{uid}:{gid}::{home}:{shell}\n"
        shadow += f"{user}:*:20000::::::\n"
        if user in USERS:
            home.mkdir(parents=True)
            os.chown(home, uid, gid)
    (own / "etc" / "passwd").write_text(lines)
    (own / "etc" / "shadow").write_text(shadow)
    (own / "etc" / "group").write_text(
        "".join(f"{name}:x:{number}:\n" for name, number in USERS.items()) + "nogroup:x:65534:\n"
    )
    (own / "etc" / "sudoers").write_text(
        f"{SUDOER} ALL=(root) NOPASSWD: ALL\n{LIMITED} ALL=(root) NOPASSWD: /usr/bin/true\n"
        f"{OPERATOR} ALL=(root) NOPASSWD: {INSTALLED}\n"
        f"{OWNER} ALL=(root) NOPASSWD: {own / 'home' / OWNER}/.cache/elephan/*\n"
    )
    (own / "etc" / "sudoers").chmod(0o440)
    few = own / "bin"
    few.mkdir()
    for command in FEW:
        (few / command).symlink_to(str(where(command)))
    config = own / "sshd_config"
    listen = "".join(f"ListenAddress {address}\n" for address in addresses)
    config.write_text(
        f"""\
{listen}Subsystem sftp internal-sftp
Port 2222
HostKey {folder}/key-{name}
AuthorizedKeysFile {folder}/key-user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UseDNS no
PidFile none
MaxStartups 100
LogLevel ERROR
Match User {BARE}
    SetEnv PATH={few}
"""
    )
    (folder / "key-user.pub").chmod(0o644)
    words = ["sh", "-c", THERE, "sh", str(own), str(where("sshd")), "-D", "-e", "-f", str(config)]
    if as_aarch64:
        words = aarch64(own, words)
    process = subprocess.Popen(
        ["ip", "netns", "exec", namespace, "unshare", "--mount", *words],
        stdin=subprocess.PIPE if as_aarch64 else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=(own / "sshd.log").open("wb"),
        start_new_session=True,
    )
    if as_aarch64:
        begin_there(process)
    end = End(name, namespace, own, addresses[0], data, process)
    waited(lambda: ":2222" in end.run("ss", "-tlnH").stdout, lambda: (own / "sshd.log").read_text())
    return end


def aarch64(folder: Path, words: list[str]) -> list[str]:
    """Return the command line that runs `words` on a host of aarch64; it waits for `begin_there`."""
    real, shown = folder / "uname.real", folder / "uname"
    shutil.copy(str(where("uname")), real)
    shown.write_text(f'#!/bin/sh\nif [ "$*" = -m ]; then echo aarch64; else exec {real} "$@"; fi\n')
    shown.chmod(0o755)
    there = ["sh", "-c", AS_AARCH64, "sh", *ELF_AARCH64, str(where("qemu-aarch64-static")), str(shown), *words]
    # exec, once the ids are mapped: a root that starts a program has all capabilities of the namespace.
    return ["unshare", "--user", "--mount", "sh", "-c", 'read -r go; exec "$@"', "sh", *there]


def begin_there(process: subprocess.Popen[bytes]) -> None:
    """Map all ids of a new user namespace to themselves, and let its process go on."""
    assert process.stdin is not None
    own = os.readlink("/proc/self/ns/user")
    waited(lambda: os.readlink(f"/proc/{process.pid}/ns/user") != own)
    for kind in ("uid", "gid"):
        Path(f"/proc/{process.pid}/{kind}_map").write_text("0 0 65536\n")
    process.stdin.write(b"go\n")
    process.stdin.close()


def front(folder: Path, ends: list[End]) -> dict[str, str]:
    """Write the user's ssh configuration and book of hosts; return the environment in which the front runs."""
    known = "".join(
        f"[{end.management}]:2222 {' '.join((folder / f'key-{end.name}.pub').read_text().split()[:2])}\n"
        for end in ends
    )
    (folder / "known_hosts").write_text(known)
    config = "".join(f"Host {end.name}\n    HostName {end.management}\n" for end in ends)
    config += f"""\
Host *
    Port 2222
    IdentityFile {folder}/key-user
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    ControlPath none
"""
    (folder / "ssh_config").write_text(config)
    # ssh(1) takes the user's own configuration by the password file's home, whatever HOME says.
    tools = folder / "bin"
    tools.mkdir()
    wrapper = tools / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
    wrapper.chmod(0o755)
    book = folder / "hosts.toml"
    book.write_text(
        "".join(
            f'[{prefix}{end.name}]\nssh = "{user}@{end.name}"\naddress = "{end.data}"\n'
            for end in ends
            for prefix, user in (
                ("", "root"),
                ("user-", USER),
                ("sudo-", SUDOER),
                ("limited-", LIMITED),
                ("bare-", BARE),
                ("operator-", OPERATOR),
                ("owner-", OWNER),
            )
        )
    )
    return {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "ELEPHAN_HOSTS": str(book),
        "ELEPHAN_STORE": str(folder / "store.sqlite"),
    }


def waited(seen: Any, otherwise: Any = lambda: "not seen in time") -> Any:
    """Return what `seen` returns once it is true."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (found := seen()):
        assert time.monotonic() < deadline_s, otherwise()
        time.sleep(0.02)
    return found


def kill(pid: int) -> None:
    """Kill a process, if it is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
