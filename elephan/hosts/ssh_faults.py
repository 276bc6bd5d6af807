"""Faults of ssh(1) and of the first steps on a host, each as one line that says what to do."""

from __future__ import annotations

import re
from collections.abc import Collection

from elephan.errors import ElephanError, InputError, RunError
from elephan.hosts.book import Host
from elephan.printable import one_line

NO_ROOM, NO_FOLDER, NO_AGENT, DAMAGED, NO_DIGEST, NO_FILE, NOT_INSTALLED = 91, 92, 93, 94, 95, 96, 97
"""Exit codes of the first steps on a host (boot.py), beyond those of programs and shells."""

NOT_EXECUTABLE, NOT_FOUND, OF_SSH = 126, 127, 255
"""Exit codes of a shell (POSIX.1-2017, 2.8.2) and of ssh(1)'s own faults."""

_UNREACHABLE = re.compile(
    r"Connection refused|No route to host|timed out|Network is unreachable|Connection reset|Connection closed"
    r"|kex_exchange_identification|Host is down|Broken pipe|not responding"
)
"""Words of ssh(1) for a host that cannot be reached, or no longer."""


def fault_of(host: Host, code: int | None, said: str, machine: str = "", agents: Collection[str] = ()) -> ElephanError:
    """Return the error of an ssh(1) that ended with `code`, None for one that was killed, and `said` this on stderr.

    `machine` is the machine type that the host named, empty before it did; `agents` are those that there are.
    """
    who = f"{host.name} ({host.destination})"
    if code == OF_SSH and machine and not said.strip():
        # A program that a signal has ended has no exit code that ssh(1) could pass on.
        return RunError(f"{who}: the agent or the connection was ended")
    if code == OF_SSH or not machine:
        return _of_ssh(host, who, said, code)
    known = " and ".join(sorted(agents))
    steps = {
        NO_AGENT: f"{who}: no agent for its machine type, {one_line(machine)}; this elephan has {known}",
        NO_DIGEST: f"{who}: has no sha256sum (coreutils, busybox), by which the agent's file is checked",
        NO_FOLDER: f"{who}: cannot make ~/.cache/elephan: {_last(said)}",
        NO_FILE: f"{who}: {_last(said)} is no file, and is where the agent's file belongs: remove it there",
        DAMAGED: f"{who}: the agent's file arrived damaged, and was removed: try again",
        NOT_EXECUTABLE: f"{who}: may not run a program from ~/.cache/elephan (noexec?): {_last(said)}",
        NOT_FOUND: f"{who}: cannot start the agent: {_last(said)}",
    }
    if code == NOT_INSTALLED:
        return InputError(
            f"{who}: cannot install the agent: {_last(said)}: log in as root, or as a user whom sudo asks no password"
        )
    if code in steps:
        return (InputError if code in (NO_AGENT, NO_DIGEST) else RunError)(steps[code])
    if code == NO_ROOM:
        full = "No space left" in said or "quota" in said.lower()
        why = "no space on its disk" if full else _last(said)
        return RunError(f"{who}: cannot write the agent to ~/.cache/elephan: {why}")
    return RunError(f"{who}: the agent ended (exit code {code}): {_last(said)}")


def _of_ssh(host: Host, who: str, said: str, code: int | None) -> ElephanError:
    name = host.destination.rpartition("@")[2]
    if "Could not resolve hostname" in said and "Temporary failure" in said:
        # EAI_AGAIN, getaddrinfo(3): no name server answers, as when the line is down.
        return RunError(f"{who}: ssh cannot look up {name} now: temporary failure in name resolution")
    if "Could not resolve hostname" in said:
        if host.name == host.destination:
            # Of the command line, not of the book.
            return InputError(f"{name}: neither a host of elephan hosts list, nor one that ssh finds")
        return InputError(f"{who}: ssh finds no host {name}: correct it by elephan hosts remove {host.name} and add")
    if "IDENTIFICATION HAS CHANGED" in said:
        found = re.search(r"Offending \S+ key in (\S+)", said)
        where = f" (known: {one_line(found[1])})" if found else ""
        return InputError(
            f"{who}: its host key has changed{where}: ask its administrator why; if it is right, ssh-keygen -R {name}, "
            f"then ssh {host.destination} once"
        )
    if "Host key verification failed" in said:
        return InputError(f"{who}: its host key is not known yet: ssh {host.destination} once, and compare it")
    if "Permission denied" in said:
        found = re.search(r"Permission denied \(([^)]*)\)", said)
        by = f" ({one_line(found[1])})" if found else ""
        return InputError(
            f"{who}: permission denied{by}: ssh {host.destination} must work without a question: a key in ssh-agent, "
            "or one without a passphrase"
        )
    if _UNREACHABLE.search(said):
        return RunError(f"{who}: cannot be reached: {_last(said)}")
    return RunError(f"{who}: ssh ended (exit code {code}): {_last(said)}")


def _last(said: str) -> str:
    """Return the last line with words of a text."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else "it said nothing"
