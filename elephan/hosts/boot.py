"""First steps on a host: the agent's file is looked for, sent where it is missing, checked, and run for the shell.

One ssh session does it all: its input carries the file where the host asks for it, and frames after that. A host
without the file costs one more round trip. No master connection is made (ControlMaster): one of our own would outlive
a killed front; one of the user's own is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from elephan.core import version
from elephan.hosts import ssh_faults

MARK = "elephan-boot"
"""First word of the first steps' lines. What a host's shell prints before them (motd, .bashrc) is passed over."""

SPELLINGS = {"x86_64": ("x86_64", "amd64"), "aarch64": ("aarch64", "arm64")}
"""Machine types as `uname -m` writes them, by the agent's name for them."""


@dataclass(frozen=True)
class AgentFile:
    """The agent of one machine type."""

    machine: str
    path: Path
    sha256: str
    size: int

    @property
    def cached_name(self) -> str:
        """Return its name in a host's cache: another build has another one."""
        return f"agent-{version()}-{self.sha256[:16]}"


@lru_cache(maxsize=8)
def agent_file(machine: str, path: Path) -> AgentFile:
    """Return the agent at `path`. Raises `OSError`."""
    content = path.read_bytes()
    return AgentFile(machine, path, hashlib.sha256(content).hexdigest(), len(content))


def command(agents: Mapping[str, AgentFile]) -> str:
    """Return the command line for a user's login shell, whichever that is.

    Within the quotes stand no quote, backslash, line feed or exclamation mark: fish and csh act on these even there.
    """
    cases = " ".join(
        f"{'|'.join(SPELLINGS.get(machine, (machine,)))}) h={one.sha256} n={one.size} f={one.cached_name};;"
        for machine, one in sorted(agents.items())
    )
    steps = [
        "umask 077",
        "d=${XDG_CACHE_HOME:-$HOME/.cache}/elephan",
        "m=$(uname -m)",
        f"echo {MARK} machine $m ${{SSH_CONNECTION:-none}}",
        f"case $m in {cases} *) exit {ssh_faults.NO_AGENT};; esac",
        f"command -v sha256sum >/dev/null || exit {ssh_faults.NO_DIGEST}",
        'sum() { sha256sum "$1" 2>/dev/null | cut -c1-64; }',
        "f=$d/$f",
        # A file that is there was checked when it came; it is checked again, since anyone of this user may write there.
        'if [ x"$(sum "$f")" = x$h ]; then :',
        f'else mkdir -p "$d" || exit {ssh_faults.NO_FOLDER}',
        # Parts of files whose sender was cut off, as by a restart: the name ends in the shell's process id.
        'for o in "$d"/.agent-*; do [ -d "/proc/${o##*-}" ] || rm -f "$o"; done',
        "t=$d/.agent-$$",
        'bye() { rm -f "$t"; }',
        "trap bye EXIT HUP INT TERM PIPE",
        f"echo {MARK} send",
        f'head -c $n >"$t" || exit {ssh_faults.NO_ROOM}',
        f'[ x"$(sum "$t")" = x$h ] || exit {ssh_faults.DAMAGED}',
        f'chmod 700 "$t" && mv -f "$t" "$f" || exit {ssh_faults.NO_ROOM}',
        "trap - EXIT HUP INT TERM PIPE",
        # Those of other versions: a process that runs keeps its file.
        'for o in "$d"/agent-*; do [ "$o" = "$f" ] || rm -f "$o"; done',
        "fi",
        f"echo {MARK} start",
        'if [ $(id -u) = 0 ]; then exec "$f"; fi',
        'if sudo -n true 2>/dev/null; then exec sudo -n "$f"; fi',
        'exec "$f"',
    ]
    script = "; ".join(steps)
    assert not set(script) & set("'\\!\n"), "a character that some shell acts on within quotes"
    return f"exec /bin/sh -c '{script}'"
