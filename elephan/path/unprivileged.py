"""A path without root: in a user namespace, where a user may make network namespaces and TUN devices.

A fresh Python takes the place of the command: it enters, lays a /run of its own over the machine's, and goes on as the
command that it replaced. What it makes goes with its last process, after a kill -9 too, and nobody else sees it.
Nothing here may start a thread: a process with several cannot enter.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from elephan.errors import InputError
from elephan.python_process import python_command

NEW_NS, NEW_USER, NEW_NET = 0x00020000, 0x10000000, 0x40000000
"""CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET (linux/sched.h)."""

NO_SUID, NO_DEV, BIND, RECURSIVE = 2, 4, 4096, 16384
"""MS_NOSUID, MS_NODEV, MS_BIND, MS_REC (linux/mount.h)."""

RUN = "/run"
OWN = ("netns", "elephan")
"""Folders of /run that ip-netns(8) and a path's lock write to in there."""

TUN = "/dev/net/tun"

Mount = Callable[[str, str, str | None, int], None]
"""Source, target, kind, flags of mount(2)."""


def become(module: str, arguments: Sequence[str]) -> None:
    """Go on as a fresh Python that calls `main(ARGUMENTS)` of `module`, which is to `enter` first; does not return.

    Raises `InputError`.
    """
    try:
        os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        raise InputError(
            f"elephan path needs root, or {TUN} for this user, whose user namespace has the rest: {error.strerror}"
        ) from error
    # By no variable of the environment, which is the command's to be run too.
    code = f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; sys.exit(main(sys.argv[1:]))"
    os.execv(sys.executable, python_command("-c", code, *arguments))


def enter() -> None:
    """Enter a user, a network and a mount namespace, as root of these and of nothing else. Raises `OSError`."""
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)

    def checked(what: str, result: int) -> None:
        if result:
            number = ctypes.get_errno()
            raise OSError(number, f"{what}: {os.strerror(number)}")

    def mount(source: str, target: str, kind: str | None, flags: int) -> None:
        given = None if kind is None else kind.encode()
        checked(f"mount {target}", libc.mount(source.encode(), target.encode(), given, ctypes.c_ulong(flags), None))

    checked("unshare", libc.unshare(NEW_USER | NEW_NET | NEW_NS))
    own = Path("/proc/self")
    # Without this no user may map its group (user_namespaces(7)).
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"0 {user} 1")
    (own / "gid_map").write_text(f"0 {group} 1")
    here = Path.cwd()
    # The machine's stays the working directory, and so within reach, when it is covered.
    os.chdir(RUN)
    mount("elephan", RUN, "tmpfs", NO_SUID | NO_DEV)
    for entry in sorted(os.listdir(".")):
        if entry in OWN:
            continue
        # It may go meanwhile.
        with suppress(FileNotFoundError):
            _show(entry, mount)
    os.chdir(here)


def _show(entry: str, mount: Mount) -> None:
    """Let an entry of the working directory, the machine's /run, be seen in the new one."""
    place = Path(RUN, entry)
    if os.path.islink(entry):
        place.symlink_to(os.readlink(entry))
        return
    if os.path.isdir(entry):
        place.mkdir()
    else:
        place.touch()
    mount(entry, str(place), None, BIND | RECURSIVE)
