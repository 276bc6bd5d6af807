"""Name of a congestion control in the kernel, whose names have 15 characters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from contextlib import suppress

from elephan.congestion_control import congestion_controls
from elephan.errors import InputError
from elephan.kernel.maps import MARK, Loaded, loaded

LONGEST = 15
"""Characters of a congestion control's name (TCP_CA_NAME_MAX less its end)."""

ROOM = LONGEST - len(MARK)

BEGINNING = 4
"""Characters that stay of a name that does not fit; the others tell apart names that begin alike."""

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def kernel_name(name: str) -> str:
    """Return the name in the kernel of a congestion control or a variant: elephan's mark and at most 7 characters.

    A built-in congestion control gives its first 7, in which they all differ. Another name that is longer gives its
    first 4, and 3 that come from the whole of it: two that begin alike come out the same once in 46,656 times. It
    depends on the name alone, so that a program's configuration may hold it. Raises `InputError` when it has other
    characters.
    """
    bare = name.removeprefix(MARK)
    if not re.fullmatch(r"[a-z0-9_]+", bare):
        raise InputError(f"a name has a-z, 0-9 and _: {name!r}")
    if len(bare) <= ROOM:
        return MARK + bare
    if any(bare == cc.name for cc in congestion_controls()):
        return MARK + bare[:ROOM]
    number = int.from_bytes(hashlib.sha256(bare.encode()).digest()[:8], "big")
    tail = ""
    for _ in range(ROOM - BEGINNING):
        number, digit = divmod(number, len(DIGITS))
        tail += DIGITS[digit]
    return MARK + bare[:BEGINNING] + tail


def algorithm_of(name: str) -> str:
    """Return the congestion control behind a name of the kernel, as people know it: "cubic" for what a run or an
    emulated path has registered as elephan_k85d700. The name itself where it is the kernel's own, or where this user
    may not look.
    """
    if not name.startswith(MARK):
        return name
    with suppress(InputError):
        for one in loaded():
            if one.name == name and one.label:
                return one.label.partition("=")[0]
    return next((cc.name for cc in congestion_controls() if kernel_name(cc.name) == name), name)


def named(name: str, among: Iterable[Loaded]) -> Loaded | None:
    """Return the registered one of this name: the kernel's, with the mark or without, its variant's or congestion
    control's, or both with "=" between, as it was loaded.
    """
    registered = [one for one in among if one.registered]
    conditions: tuple[Callable[[Loaded], bool], ...] = (
        lambda one: one.name in (name, MARK + name),
        lambda one: name in (one.variant, one.label),
    )
    for wanted in conditions:
        for one in registered:
            if wanted(one):
                return one
    return None
