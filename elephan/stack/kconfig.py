"""What objects ask of the kernel's configuration (`CONFIG_HZ`, congestion/bpf/env.h), where that is not to be had.

libbpf reads it from a file and refuses an object where there is none, also one that could do without: as in a
container of a distribution that keeps it under /boot alone. What it is told at opening it does not look for.
"""

from __future__ import annotations

import ctypes
import os
import re
import time
from pathlib import Path

PLACES = (f"/boot/config-{os.uname().release}", "/proc/config.gz")
"""Where libbpf looks."""
TIMERS = Path("/proc/timer_list")
RATES = (100, 250, 300, 1000)
"""Ticks per second that kernels are built with (kernel/Kconfig.hz)."""
LOOK_S = 0.2
"""Between two looks at the number of ticks: 20 or more of them."""


class OpenOptions(ctypes.Structure):
    """The beginning of struct bpf_object_open_opts, which says itself how long it is."""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("object_name", ctypes.c_char_p),
        ("relaxed_maps", ctypes.c_bool),
        ("pin_root_path", ctypes.c_char_p),
        ("_removed", ctypes.c_uint32),
        ("kconfig", ctypes.c_char_p),
    )


def options(name: bytes | None = None) -> OpenOptions:
    """Return what an object of this name is opened with."""
    told = None if any(Path(place).exists() for place in PLACES) else f"CONFIG_HZ={ticks_per_s()}\n".encode()
    return OpenOptions(ctypes.sizeof(OpenOptions), name, False, None, 0, told)


def ticks_per_s() -> int:
    """Return how often the kernel's clock ticks per second, by looking; 0 where it does not show."""
    first, began_s = _ticks(), time.monotonic()
    if first is None:
        return 0
    time.sleep(LOOK_S)
    last, elapsed_s = _ticks(), time.monotonic() - began_s
    if last is None:
        return 0
    rate = (last - first) / elapsed_s
    nearest = min(RATES, key=lambda known: abs(known - rate))
    # 250 and 300 are the closest.
    return nearest if abs(nearest - rate) < nearest / 12 else 0


def _ticks() -> int | None:
    try:
        found = re.search(r"^jiffies: (\d+)$", TIMERS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1])
