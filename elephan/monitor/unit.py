"""A systemd unit that runs a monitor from the boot on: printed, or written below /etc/systemd/system.

**Invariant: only units that carry elephan's first line are ever written over or removed.**
"""

from __future__ import annotations

import pwd
import stat
from pathlib import Path

from elephan.errors import InputError
from elephan.kernel.systemd import (
    UNITS,
    WANTED_BY,
    command_line,
    install_units,
    need_root,
    plain,
    quoted,
    remove_units,
)
from elephan.monitor.spec import Spec

FIRST_LINE = "# Written by `elephan monitor unit`; `elephan monitor unit FILE --remove` removes it."
WHAT = "elephan monitor unit"
PREFIX = "elephan-monitor-"
RAW_SOCKETS = ("hops", "mtu")
"""Tests that need CAP_NET_RAW, for ICMP."""
HOMES = ("/home", "/root", "/run/user")
MEMORY_MAX = "512M"
"""Of the monitor with its children: forecasts are simulations."""


def unit_name(name: str) -> str:
    """Return the name of the unit of a monitor."""
    return f"{PREFIX}{name}.service"


def unit_text(spec: Spec, user: str | None = None, store: str | None = None) -> str:
    """Return the unit; without a `user` systemd makes one up (DynamicUser). Raises `InputError`.

    The store is below /var/lib, unless `store` is a server's URL or another file.
    """
    command = command_line()
    name = unit_name(spec.name).removesuffix(".service")
    if user is not None:
        try:
            pwd.getpwnam(user)
        except KeyError:
            raise InputError(f"--user {user}: no user of this machine") from None
    elif user is None:
        for path in (command[0], spec.file):
            closed = _closed(Path(path))
            if closed is not None:
                raise InputError(
                    f"{path}: the unit's own user cannot enter {closed}; name one who can with --user, or move it"
                )
    place = store or f"/var/lib/{name}/results.sqlite"
    run = quoted([*command, "monitor", "run", spec.file, "--store", place])
    tests = {test.test for path in spec.paths for test in path.tests}
    capabilities = "CAP_NET_RAW" if tests & set(RAW_SOCKETS) else ""
    homes = any(path.startswith(HOMES) for path in (command[0], spec.file))
    outside = store is not None and "://" not in store
    who = ["DynamicUser=yes"] if user is None else [f"User={user}"]
    lines = [
        FIRST_LINE,
        "[Unit]",
        f"Description=monitor {plain(spec.name)} of elephan",
        "Wants=network-online.target",
        "After=network-online.target time-sync.target",
        f"RequiresMountsFor={quoted([command[0], spec.file])}",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={run}",
        "ExecReload=kill -HUP $MAINPID",
        "Restart=on-failure",
        "RestartSec=5s",
        # A wrong file does not get better by itself.
        "RestartPreventExitStatus=2",
        *who,
        f"StateDirectory={name}",
        # Python's and apprise's own files.
        f"Environment=HOME=/var/lib/{name}",
        *([f"ReadWritePaths={quoted([str(Path(place).absolute().parent)])}"] if outside else []),
        f"MemoryMax={MEMORY_MAX}",
        f"CapabilityBoundingSet={capabilities}",
        f"AmbientCapabilities={capabilities}",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        f"ProtectHome={'read-only' if homes else 'yes'}",
        "PrivateTmp=yes",
        "PrivateDevices=yes",
        "ProtectClock=yes",
        "ProtectControlGroups=yes",
        "ProtectHostname=yes",
        "ProtectKernelLogs=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
        "RestrictNamespaces=yes",
        "RestrictRealtime=yes",
        "RestrictSUIDSGID=yes",
        "LockPersonality=yes",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        "UMask=0027",
        "",
        "[Install]",
        f"WantedBy={WANTED_BY}",
    ]
    return "\n".join(lines) + "\n"


def _closed(path: Path) -> Path | None:
    """Return the first folder above `path` that others cannot enter, or `path` itself where they cannot read it."""
    try:
        for folder in reversed(path.resolve().parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                return folder
        return None if path.stat().st_mode & stat.S_IROTH else path
    except OSError:
        return None


def install(spec: Spec, text: str, root: Path | None = None) -> tuple[Path, bool]:
    """Write and enable the unit, and start it where systemd runs; return its file, and whether it was started.

    `root` is a folder that holds another system's files, in which nothing is started. Raises `InputError`, `RunError`.
    """
    need_root(WHAT, root)
    (place,), started = install_units({unit_name(spec.name): text}, FIRST_LINE, root)
    return place, started


def remove(spec: Spec, root: Path | None = None) -> Path | None:
    """Stop the unit and remove it; what the monitor has stored stays. Return its file; None: there was none."""
    need_root(WHAT, root)
    place = (root or Path("/")) / UNITS / unit_name(spec.name)
    if not place.is_file():
        return None
    remove_units([place], FIRST_LINE, root)
    return place
