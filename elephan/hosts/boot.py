"""First steps on a host: the agent's file is looked for, sent where it is missing, checked, and run for the shell.

One ssh session does it all: its input carries the file where the host asks for it, in pieces, and frames after that. A
host without the file costs one more round trip for each piece. No master connection is made (ControlMaster): one of our
own would outlive a killed front; one of the user's own is used.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from elephan.core import version
from elephan.hosts import ssh_faults

MARK = "elephan-boot"
"""First word of the first steps' lines. What a host's shell prints before them (motd, .bashrc) is passed over."""

GZIP = "gzip"
"""Program that unpacks the file where a host has it."""

PIECE = 256 * 1024
"""Bytes of the file that are sent before the host tells that they came."""

SPELLINGS = {"x86_64": ("x86_64", "amd64"), "aarch64": ("aarch64", "arm64")}
"""Machine types as `uname -m` writes them, by the agent's name for them."""


INSTALLED = "/usr/local/libexec/elephan/agent"
"""The agent where an administrator installed it (`elephan hosts install`): root's file in root's folder, the one that a
line of sudoers(5) may name. Who may write the named file becomes root by it.
"""

BY_SUDO = (
    'if [ $(id -u) = 0 ]; then exec "$f"; fi',
    # A user who may run a shell by sudo gains nothing by the agent. Any other needs a file that only root may change.
    f'if [ "$f" = {INSTALLED} ]; then set -- "$f" --version; else set -- /bin/sh -c :; fi',
    'if sudo -n "$@" </dev/null >/dev/null 2>&1; then exec sudo -n "$f"; fi',
)
"""Steps of an agent with all the rights that its user may have."""

INSTALL = (
    's=""; [ $(id -u) = 0 ] || s="sudo -n"',
    # Renamed into place: an agent that runs keeps its file.
    f'$s install -D -o 0 -g 0 -m 755 "$f" {INSTALLED}.new </dev/null && $s mv -f {INSTALLED}.new {INSTALLED} </dev/null'
    f" || exit {ssh_faults.NOT_INSTALLED}",
    f"f={INSTALLED}",
)
"""Steps that install the agent for all users of a host."""


@dataclass(frozen=True)
class AgentFile:
    """The agent of one machine type."""

    machine: str
    path: Path
    sha256: str

    @property
    def cached_name(self) -> str:
        """Return its name in a host's cache: another build has another one."""
        return f"agent-{version()}-{self.sha256[:16]}"


def agent_file(machine: str, path: Path) -> AgentFile:
    """Return the agent at `path`. Raises `OSError`."""
    found = path.stat()
    return _agent_file(machine, path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)
def _agent_file(machine: str, path: Path, mtime_ns: int, size: int) -> AgentFile:
    """Return the agent at `path`; one that is built anew has another time or size."""
    return AgentFile(machine, path, hashlib.sha256(path.read_bytes()).hexdigest())


@lru_cache(maxsize=8)
def packed(agent: AgentFile, program: str) -> bytes:
    """Return an agent's file for `program` to unpack, as it is for another than `GZIP`. Raises `OSError`."""
    content = agent.path.read_bytes()
    return gzip.compress(content, mtime=0) if program == GZIP else content


def command(agents: Mapping[str, AgentFile], as_user: bool = False, install: bool = False) -> str:
    """Return the command line for a user's login shell, whichever that is; `as_user`: without sudo; `install`: also to
    where root alone may change it.

    Within the quotes stand no quote, backslash, line feed or exclamation mark: fish and csh act on these even there.
    """
    cases = " ".join(
        f"{'|'.join(SPELLINGS.get(machine, (machine,)))}) h={one.sha256} f={one.cached_name};;"
        for machine, one in sorted(agents.items())
    )
    own = "|".join(sorted({one.cached_name for one in agents.values()}))
    steps = [
        "umask 077",
        # A relative one does not count (XDG Base Directory Specification).
        "d=$HOME/.cache; case ${XDG_CACHE_HOME:-} in /*) d=$XDG_CACHE_HOME;; esac; d=$d/elephan",
        "m=$(uname -m)",
        f"echo {MARK} machine $m ${{SSH_CONNECTION:-none}}",
        f"case $m in {cases} *) exit {ssh_faults.NO_AGENT};; esac",
        f"command -v sha256sum >/dev/null || exit {ssh_faults.NO_DIGEST}",
        'sum() { sha256sum "$1" 2>/dev/null | cut -c1-64; }',
        "f=$d/$f",
        # An installed agent of this build needs no second file.
        f'if [ -O {INSTALLED} ] || [ -w {INSTALLED} ]; then [ $(id -u) = 0 ]; fi'
        f' && if [ x"$(sum {INSTALLED})" = x$h ]; then f={INSTALLED}; fi',
        # A folder would take the file in, and a pipe be read for ever.
        f'if [ -e "$f" ]; then [ -f "$f" ] || {{ echo "$f" >&2; exit {ssh_faults.NO_FILE}; }}; fi',
        # Parts of files whose sender was cut off, as by a restart: the name ends in the shell's process id. That of the
        # host stands before it, because hosts may share a home.
        "p=$d/.agent-$(uname -n)",
        'for o in "$p"-*; do [ -d "/proc/${o##*-}" ] || rm -f "$o"; done',
        # Those of other versions: a process that runs keeps its file.
        "k=0",
        'for o in "$d"/agent-*; do '
        f'case ${{o##*/}} in {own}) ;; *) if [ -f "$o" ]; then rm -f "$o" && k=$((k+1)); fi;; esac; done',
        f"echo {MARK} removed $k",
        # A file that is there was checked when it came; it is checked again, since anyone of this user may write there.
        'if [ x"$(sum "$f")" = x$h ]; then :',
        f'else mkdir -p "$d" || exit {ssh_faults.NO_FOLDER}',
        "t=$p-$$",
        'bye() { rm -f "$t"; }',
        "trap bye EXIT HUP INT TERM PIPE",
        f'z=cat; if command -v {GZIP} >/dev/null; then z="{GZIP} -dc"; fi',
        f"echo {MARK} send $z",
        # The next piece is sent when this one has come: only the far end tells what has arrived.
        f'{{ while read -r n && [ "$n" -gt 0 ]; do head -c "$n" || exit; echo {MARK} more >&3; done'
        f' | $z >"$t"; }} 3>&1 || exit {ssh_faults.NO_ROOM}',
        f'[ x"$(sum "$t")" = x$h ] || exit {ssh_faults.DAMAGED}',
        f'chmod 700 "$t" && mv -f "$t" "$f" || exit {ssh_faults.NO_ROOM}',
        "trap - EXIT HUP INT TERM PIPE",
        "fi",
        *(INSTALL if install else ()),
        f"echo {MARK} start",
        *([] if as_user else BY_SUDO),
        'exec "$f"',
    ]
    script = "; ".join(steps)
    assert not set(script) & set("'\\!\n"), "a character that some shell acts on within quotes"
    return f"exec /bin/sh -c '{script}'"
