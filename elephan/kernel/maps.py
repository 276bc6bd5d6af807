"""The kernel's struct_ops maps that are elephan's: found by the name within, unregistered by deleting their value."""

from __future__ import annotations

import ctypes
import os
import re
import struct
from dataclasses import dataclass

from elephan.errors import InputError
from elephan.stack import load

STRUCT_OPS = 26
"""BPF_MAP_TYPE_STRUCT_OPS (linux/bpf.h)."""

MAP_NAME = b"cc_algorithm"
"""What CC_ALGORITHM of bpf/env.h calls it."""

INFO_BYTES = 80
"""struct bpf_map_info up to what every kernel since 5.6 fills in: type, id, key, value, entries, flags, name, ..."""

IN_USE = 1
"""BPF_STRUCT_OPS_STATE_INUSE: registered. Afterwards (2) connections may still hold it."""

NAME = re.compile(rb"(elephan_[a-z0-9_]{1,7})\0")


@dataclass(frozen=True)
class Loaded:
    """One of ours in the kernel."""

    name: str
    map_id: int
    registered: bool
    """False when it is unregistered and something that began before still uses it."""


def loaded() -> list[Loaded]:
    """Return all of ours, by name. Raises `InputError` when the kernel does not let us look."""
    bpf = library()
    found = []
    number = ctypes.c_uint32(0)
    while (error := bpf.bpf_map_get_next_id(number, ctypes.byref(number))) == 0:
        one = _ours(bpf, number.value)
        if one is not None:
            found.append(one)
    if error not in (0, -2):
        raise InputError(f"cannot look at the kernel's BPF maps: {os.strerror(-error)} (needs root)")
    return sorted(found, key=lambda one: one.name)


def remove(one: Loaded) -> None:
    """Unregister it. One that has gone meanwhile is no error."""
    bpf = library()
    handle = bpf.bpf_map_get_fd_by_id(one.map_id)
    if handle < 0:
        return
    try:
        key = ctypes.c_uint32(0)
        error = bpf.bpf_map_delete_elem(handle, ctypes.byref(key))
    finally:
        os.close(handle)
    # EINPROGRESS: it was unregistered already.
    if error not in (0, -2, -115):
        raise InputError(f"cannot unload {one.name}: {os.strerror(-error)}")


def _ours(bpf: ctypes.CDLL, number: int) -> Loaded | None:
    handle = bpf.bpf_map_get_fd_by_id(number)
    if handle < 0:
        return None
    try:
        info = ctypes.create_string_buffer(INFO_BYTES)
        length = ctypes.c_uint32(INFO_BYTES)
        if bpf.bpf_obj_get_info_by_fd(handle, info, ctypes.byref(length)):
            return None
        kind, _, _, size = struct.unpack_from("=4I", info)
        if kind != STRUCT_OPS or not info.raw[24:40].startswith(MAP_NAME):
            return None
        value = ctypes.create_string_buffer(size)
        key = ctypes.c_uint32(0)
        if bpf.bpf_map_lookup_elem(handle, ctypes.byref(key), value):
            return None
    finally:
        os.close(handle)
    # The value begins with a count of users and the state (struct bpf_struct_ops_common_value).
    _, state = struct.unpack_from("=2I", value)
    name = NAME.search(value.raw)
    return Loaded(name[1].decode(), number, state == IN_USE) if name and state else None


def library() -> ctypes.CDLL:
    try:
        bpf = load.library()
    except OSError as error:
        raise InputError(f"libbpf is not installed (Debian: libbpf1): {error}") from error
    bpf.bpf_map_get_next_id.argtypes = [ctypes.c_uint32, ctypes.c_void_p]
    bpf.bpf_map_get_fd_by_id.argtypes = [ctypes.c_uint32]
    for name in ("bpf_map_lookup_elem", "bpf_obj_get_info_by_fd"):
        getattr(bpf, name).argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    bpf.bpf_map_delete_elem.argtypes = [ctypes.c_int, ctypes.c_void_p]
    return bpf
