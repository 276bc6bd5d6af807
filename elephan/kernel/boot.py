"""A congestion control at every boot: a systemd unit that loads it, and makes it the default if that is wanted.

The unit, /etc/systemd/system/elephan-cc-NAME.service, and the link by which systemd finds it are all that is written;
NAME is the kernel's without elephan's mark. It runs this very command by its absolute path. **Invariant: only units
that carry elephan's first line are ever written over or removed.**
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elephan.congestion_control import CongestionControl, find
from elephan.errors import InputError
from elephan.kernel.control import Removed, chosen, unload, values_of
from elephan.kernel.deployment import exact
from elephan.kernel.maps import MARK, loaded
from elephan.kernel.names import kernel_name, named
from elephan.kernel.systemd import (
    BOOTED,
    UNITS,
    WANTED_BY,
    be_own,
    command_line,
    link_of,
    plain,
    quoted,
    systemctl,
    verify,
    write_enabled,
)

PREFIX = "elephan-cc-"
FIRST_LINE = "# Written by `elephan kernel enable`; `elephan kernel disable` removes it."


@dataclass(frozen=True)
class Enabled:
    """Result of `enable`."""

    name: str
    """In the kernel."""
    unit: Path
    changed: bool
    """False when the very same unit was enabled already."""
    started: bool
    """True if systemd runs here and has started it."""


def enable(
    what: str, settings: Sequence[str] = (), default: bool = False, root: Path | None = None, restricted: bool = False
) -> Enabled:
    """Write and enable the unit that loads `NAME`, `NAME=variant` or a .c file at every boot, and start it.

    `default`: it also makes it the default of the machine. `root` is a folder that holds another system's files, in
    which nothing is started. Raises `InputError`, and `RunError` when systemd cannot start it; the unit then stays.
    """
    _need_root("enable", root)
    cc, variant, name = chosen(what)
    words = _words(cc, variant, values_of(what.partition("=")[0], settings), restricted)
    text = unit_text(name, words, default)
    place = (root or Path("/")) / UNITS / unit_name(name)
    before = place.read_text() if place.is_file() else None
    if before is not None and not before.startswith(FIRST_LINE):
        raise InputError(f"{place} is there already and is not elephan's: another variant's name has another unit")
    if root is not None and not root.is_dir():
        raise InputError(f"--root {root}: a folder that holds a system's files")
    if default:
        _be_only_default(place)
    verify(unit_name(name), text)
    changed = before != text or not link_of(place).is_symlink()
    write_enabled(place, text)
    started = False
    if root is None and BOOTED.is_dir():
        systemctl("daemon-reload")
        systemctl("restart" if changed else "start", place.name)
        started = True
    return Enabled(name, place, changed, started)


def _be_only_default(place: Path) -> None:
    """Raise `InputError` if another unit of elephan's makes its control the default: the order of the two is unknown.
    """
    for other in sorted(place.parent.glob(f"{PREFIX}*.service")) if place.parent.is_dir() else ():
        text = other.read_text()
        if other.name != place.name and text.startswith(FIRST_LINE) and "kernel default " in text:
            name = other.name.removeprefix(PREFIX).removesuffix(".service")
            raise InputError(
                f"--default: {other} makes {MARK}{name} the default at boot; first: elephan kernel disable {name}"
            )


@dataclass(frozen=True)
class Disabled:
    """Result of `disable`."""

    name: str
    unit: Path | None
    """The unit that was removed; None: there was none."""
    removed: Removed | None
    """The unloaded controls; None if it was not loaded, or `root` is another system's."""


def disable(what: str, root: Path | None = None) -> Disabled:
    """Remove the unit of `NAME`, `NAME=variant`, a .c file or a name of the kernel's, and unload what it has loaded.

    Raises `InputError`.
    """
    _need_root("disable", root)
    name = _kernel_name_of(what)
    place = (root or Path("/")) / UNITS / unit_name(name)
    link = link_of(place)
    was = place.is_file()
    be_own(place, FIRST_LINE)
    running = root is None and BOOTED.is_dir()
    try:
        link.unlink(missing_ok=True)
        place.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be removed: {error.strerror}") from error
    removed = unload(name) if root is None and named(name, loaded()) else None
    if was and running:
        # This call has already done the work of the unit's stop command.
        systemctl("stop", place.name)
        systemctl("daemon-reload")
    return Disabled(name, place if was else None, removed)


def unit_name(name: str) -> str:
    """Return the name of the unit for a name in the kernel."""
    return f"{PREFIX}{name.removeprefix(MARK)}.service"


def unit_text(name: str, words: Sequence[str], default: bool) -> str:
    """Return the unit that runs `elephan kernel load WORDS`."""
    command = command_line()
    load = quoted([*command, "kernel", "load", *words])
    take_out = quoted([*command, "kernel", "unload", name])
    lines = [
        FIRST_LINE,
        "[Unit]",
        f"Description=congestion control {plain(' '.join(words))} in the kernel, as {name}",
        # Connections that begin before it is there have another one.
        "Wants=network-pre.target",
        "Before=network-pre.target",
        f"RequiresMountsFor={quoted(command[:1])}",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        # One that was loaded by hand meanwhile, perhaps with other parameters.
        f"ExecStartPre=-{take_out}",
        f"ExecStart={load}",
        *([f"ExecStart={quoted([*command, 'kernel', 'default', name, '--host'])}"] if default else []),
        f"ExecStop=-{take_out}",
        "",
        "[Install]",
        f"WantedBy={WANTED_BY}",
    ]
    return "\n".join(lines) + "\n"


def _words(cc: CongestionControl, variant: str, values: dict[str, int], restricted: bool) -> list[str]:
    """Return what follows `elephan kernel load`."""
    what = str(Path(cc.path).resolve()) if cc.path else cc.name
    words = [f"{what}={variant}" if variant else what]
    declared = {item.name: item for item in cc.parameters}
    for key, value in values.items():
        words += ["--set", f"{key}={exact(declared[key], value)}"]
    return [*words, *(["--restricted"] if restricted else [])]


def _kernel_name_of(what: str) -> str:
    algorithm, _, variant = what.partition("=")
    if algorithm.endswith(".c") and not variant:
        # Its name stands in it; where it has gone, that of the file is the best guess.
        algorithm = find(algorithm).name if Path(algorithm).is_file() else Path(algorithm).stem
    return kernel_name(variant or algorithm)


def _need_root(what: str, root: Path | None) -> None:
    if root is None and os.geteuid() != 0:
        raise InputError(f"elephan kernel {what} needs root: it writes below /{UNITS}")
