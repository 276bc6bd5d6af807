"""Systemd units for a backup: a service that runs its jobs from the boot on, or a timer for each job.

**Invariant: only units that carry elephan's first line are ever written over or removed.**
"""

from __future__ import annotations

import getpass
import pwd
from pathlib import Path

from elephan.backup.config import DAYS
from elephan.backup.spec import JobSpec, Schedule, Spec
from elephan.copy.api import Place
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

FIRST_LINE = "# Written by `elephan backup`; `elephan backup FILE unit --remove` removes it."
WHAT = "elephan backup FILE unit"
PREFIX = "elephan-backup-"
TIMERS = "timers.target"
DAY_S = 86_400
LONGEST_TRY = "infinity"
"""A first copy may take weeks."""


def names(spec: Spec, timers: bool) -> list[str]:
    """Return the names of the units."""
    if not timers:
        return [f"{PREFIX}{spec.name}.service"]
    return [f"{PREFIX}{spec.name}.{job.name}.{kind}" for job in spec.jobs for kind in ("service", "timer")]


def texts(spec: Spec, user: str | None, store: str | None, timers: bool) -> dict[str, str]:
    """Return the units by name; without a `user` they run as the present one. Raises `InputError`."""
    who = user or getpass.getuser()
    try:
        pwd.getpwnam(who)
    except KeyError:
        raise InputError(f"--user {who}: no user of this machine") from None
    place = store or f"/var/lib/{PREFIX}{spec.name}/results.sqlite"
    command = [*command_line(), "backup", spec.file, "run"]
    if not timers:
        service = _service(spec, spec.jobs, who, place, [*command, "--store", place], is_daemon=True)
        return {names(spec, False)[0]: service}
    found = {}
    for job in spec.jobs:
        if _calendar(job.schedule) is None:
            raise InputError(f"job {job.name}: no every and no at: a timer needs one of them")
        words = [*command, job.name, "--once", "--store", place]
        stem = f"{PREFIX}{spec.name}.{job.name}"
        found[f"{stem}.service"] = _service(spec, (job,), who, place, words, is_daemon=False)
        found[f"{stem}.timer"] = _timer(spec, job)
    return found


def _service(
    spec: Spec, jobs: tuple[JobSpec, ...], user: str, store: str, words: list[str], is_daemon: bool
) -> str:  # fmt: skip
    name = f"{PREFIX}{spec.name}"
    sources = [place for job in jobs for text in job.sources if (place := Place.parse(text)).host is None]
    written = [place for job in jobs if (place := Place.parse(job.destination)).host is None]
    folders = sorted({str(Path(place.path.rstrip("/")).parent) for place in written if not _is_device(place)})
    if "://" not in store and not store.startswith("/var/lib/"):
        folders.append(str(Path(store).absolute().parent))
    has_devices = any(_is_device(place) for place in (*sources, *written))
    places = [spec.file, *folders, *(place.path for place in sources)]
    in_tmp = any(path.startswith(("/tmp", "/var/tmp")) for path in places)
    what = f"backup {plain(spec.name)} of elephan" + ("" if is_daemon else f", job {plain(jobs[0].name)}")
    lines = [
        FIRST_LINE,
        "[Unit]",
        f"Description={what}",
        "Wants=network-online.target",
        "After=network-online.target time-sync.target",
        f"RequiresMountsFor={quoted([words[0], spec.file, *folders])}",
        "",
        "[Service]",
        *(["Type=exec", "ExecReload=kill -HUP $MAINPID", "Restart=on-failure", "RestartSec=5s"] if is_daemon else
          ["Type=oneshot", f"TimeoutStartSec={LONGEST_TRY}"]),
        f"ExecStart={quoted(words)}",
        # A wrong file does not get better by itself.
        *(["RestartPreventExitStatus=2"] if is_daemon else []),
        # A copy that is told to end syncs what it has first.
        "TimeoutStopSec=60s",
        f"User={user}",
        f"StateDirectory={name}",
        # Journals of devices (XDG Base Directory Specification).
        f"Environment=XDG_STATE_HOME=/var/lib/{name} XDG_DATA_HOME=/var/lib/{name}",
        *([f"ReadWritePaths={quoted(folders)}"] if folders else []),
        "ProtectSystem=strict",
        *([] if any(folder.startswith(("/home", "/root")) for folder in folders) else ["ProtectHome=read-only"]),
        *([] if has_devices else ["PrivateDevices=yes"]),
        "NoNewPrivileges=yes",
        *([] if in_tmp else ["PrivateTmp=yes"]),
        "ProtectClock=yes",
        "ProtectControlGroups=yes",
        "ProtectHostname=yes",
        "ProtectKernelLogs=yes",
        "ProtectKernelModules=yes",
        "RestrictNamespaces=yes",
        "RestrictRealtime=yes",
        "LockPersonality=yes",
        "SystemCallArchitectures=native",
        "Nice=5",
        *(["", "[Install]", f"WantedBy={WANTED_BY}"] if is_daemon else []),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _is_device(place: Place) -> bool:
    return place.path.startswith("/dev/")


def _timer(spec: Spec, job: JobSpec) -> str:
    lines = [
        FIRST_LINE,
        "[Unit]",
        f"Description=times of the backup {plain(spec.name)} of elephan, job {plain(job.name)}",
        "",
        "[Timer]",
        *(f"OnCalendar={one}" for one in _calendar(job.schedule) or []),
        # A time that came while the machine was off is caught up.
        "Persistent=true",
        "AccuracySec=1s",
        "",
        "[Install]",
        f"WantedBy={TIMERS}",
    ]
    return "\n".join(lines) + "\n"


def _calendar(schedule: Schedule) -> list[str] | None:
    """Return a schedule as systemd.time(7) writes it; None: it has no times. Raises `InputError` for a period that a
    day or a week does not hold a whole number of times.
    """
    if schedule.at_min:
        every_day = len(schedule.days) == 7
        days = "" if every_day else ",".join(DAYS[day].capitalize() for day in sorted(schedule.days)) + " "
        return [f"{days}*-*-* {minute // 60:02d}:{minute % 60:02d}:00" for minute in schedule.at_min]
    if schedule.every_s is None:
        return None
    every_s = round(schedule.every_s)
    if every_s == DAY_S:
        return ["*-*-* 00:00:00"]
    if every_s == 7 * DAY_S:
        return ["Mon *-*-* 00:00:00"]
    if every_s < 60 and 60 % every_s == 0:
        return [f"*-*-* *:*:00/{every_s}"]
    if every_s % 60 == 0 and every_s < 3600 and 3600 % every_s == 0:
        return [f"*-*-* *:00/{every_s // 60}:00"]
    if every_s % 3600 == 0 and DAY_S % every_s == 0:
        return [f"*-*-* 00/{every_s // 3600}:00:00"]
    raise InputError(
        f"every = {every_s} s: a timer needs a period of which an hour, a day or a week holds a whole number; "
        "without --timers any does"
    )


def install(texts_: dict[str, str], root: Path | None = None) -> tuple[list[Path], bool]:
    """Write and enable units, and start them where systemd runs; return their files, and whether they were started.

    `root` is a folder that holds another system's files, in which nothing is started. Raises `InputError`, `RunError`.
    """
    need_root(WHAT, root)
    return install_units(texts_, FIRST_LINE, root)


def remove(spec: Spec, root: Path | None = None) -> list[Path]:
    """Stop the backup's units and remove them; what was stored and copied stays. Return their files."""
    need_root(WHAT, root)
    folder = (root or Path("/")) / UNITS
    found = sorted({*folder.glob(f"{PREFIX}{spec.name}.service"), *folder.glob(f"{PREFIX}{spec.name}.*.service"),
                    *folder.glob(f"{PREFIX}{spec.name}.*.timer")})  # fmt: skip
    remove_units(found, FIRST_LINE, root)
    return found
