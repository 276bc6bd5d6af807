"""The kernel's struct_ops maps that are elephan's: found by the name within, unregistered by deleting their value.

What one is called and which parameters it has lies in its object's constants, a map beside it: the one that has the
same type information (BTF), since each load of an object brings its own. Both live as long as the programs do.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from elephan.errors import InputError
from elephan.kernel import btf
from elephan.stack import Parameter, load

HASH, ARRAY, STRUCT_OPS = 1, 2, 26
"""BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_STRUCT_OPS (linux/bpf.h)."""

MAP_NAME = b"cc_algorithm"
"""What CC_ALGORITHM of bpf/env.h calls it."""

INFO_BYTES = 80
"""struct bpf_map_info up to what every kernel since 5.6 fills in: type, id, key, value, entries, flags, name, ..."""

BTF_ID_AT = 64
"""Where in it the number of the object's BTF stands."""

CONSTANTS = b".rodata"
PARAMETER = "cc_param_"
LABEL = "cc_label"
"""The section of an object's constants, and what is in there: bpf/env.h."""

BTF_BYTES_MAX = 1 << 20
"""Of an object; the built-in ones have 3 to 20 kB."""

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
    label: str = ""
    """Its stack, and behind "=" its variant; "" when the kernel does not tell (before Linux 5.10)."""
    values: dict[str, int] = field(default_factory=dict)
    """Its parameters, as the object has them."""
    parameters: dict[str, str] = field(default_factory=dict)
    """The same, as a scenario writes them."""
    changed: tuple[str, ...] = ()
    """Those that are not as the algorithm's file says."""

    @property
    def variant(self) -> str:
        """Return its variant's name, or its stack's where it has none."""
        return self.label.partition("=")[2] or self.label


def loaded() -> list[Loaded]:
    """Return all of ours, by name. Raises `InputError` when the kernel does not let us look."""
    bpf = library()
    found: list[tuple[Loaded, int]] = []
    # By the number of the BTF: the constants of each object.
    constants: dict[int, bytes] = {}
    for number in _numbers(bpf):
        with _opened(bpf.bpf_map_get_fd_by_id(number)) as handle:
            info = _info(bpf, handle, INFO_BYTES)
            if info is None:
                continue
            kind, _, _, size = struct.unpack_from("=4I", info)
            (types,) = struct.unpack_from("=I", info, BTF_ID_AT)
            name = info[24:40].rstrip(b"\0")
            if kind == ARRAY and name.endswith(CONSTANTS) and (value := _value(bpf, handle, size)):
                constants[types] = value
            elif kind == STRUCT_OPS and name.startswith(MAP_NAME) and (value := _value(bpf, handle, size)):
                # The value begins with a count of users and the state (struct bpf_struct_ops_common_value).
                _, state = struct.unpack_from("=2I", value)
                match = NAME.search(value)
                if match and state:
                    found.append((Loaded(match[1].decode(), number, state == IN_USE), types))
    described = [_described(bpf, one, types, constants.get(types, b"")) for one, types in found]
    return sorted(described, key=lambda one: (one.name, one.map_id))


@contextmanager
def hashes(names: Collection[str]) -> Iterator[dict[str, dict[str, int]]]:
    """Give the hash maps that lie beside registered controls: descriptors by the control's and the map's name."""
    bpf = library()
    owners: dict[int, str] = {}
    maps: list[tuple[int, str, int]] = []
    try:
        for number in _numbers(bpf):
            handle = bpf.bpf_map_get_fd_by_id(number)
            info = _info(bpf, handle, INFO_BYTES)
            kind, _, _, size = struct.unpack_from("=4I", info) if info else (0, 0, 0, 0)
            if info and kind == HASH:
                (types,) = struct.unpack_from("=I", info, BTF_ID_AT)
                maps.append((types, info[24:40].rstrip(b"\0").decode(errors="replace"), handle))
                continue
            if info and kind == STRUCT_OPS and (value := _value(bpf, handle, size)):
                match, (state,) = NAME.search(value), struct.unpack_from("=I", value, 4)
                if match and state == IN_USE and match[1].decode() in names:
                    owners[struct.unpack_from("=I", info, BTF_ID_AT)[0]] = match[1].decode()
            if handle >= 0:
                os.close(handle)
        found: dict[str, dict[str, int]] = {name: {} for name in names}
        for types, name, handle in maps:
            if types in owners:
                found[owners[types]][name] = handle
        yield found
    finally:
        for _, _, handle in maps:
            os.close(handle)


def entries(handle: int, key_bytes: int, value_bytes: int) -> dict[bytes, bytes]:
    """Return what is in a hash map that nobody changes meanwhile."""
    bpf = library()
    found: dict[bytes, bytes] = {}
    key, after, value = None, ctypes.create_string_buffer(key_bytes), ctypes.create_string_buffer(value_bytes)
    while bpf.bpf_map_get_next_key(handle, key, after) == 0:
        if bpf.bpf_map_lookup_elem(handle, after, value) == 0:
            found[after.raw] = value.raw
        key = ctypes.create_string_buffer(after.raw, key_bytes)
    return found


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
    if -error not in (0, errno.ENOENT, errno.EINPROGRESS):
        raise InputError(f"cannot unload {one.name}: {os.strerror(-error)}")


def _described(bpf: ctypes.CDLL, one: Loaded, types: int, constants: bytes) -> Loaded:
    """Return it with its label and parameters, as far as the kernel tells."""
    if not constants:
        return one
    with _opened(bpf.bpf_btf_get_fd_by_id(types)) as handle:
        text = _btf(bpf, handle)
    try:
        places = btf.constants(text, CONSTANTS.decode())
    except (ValueError, struct.error):
        return one
    label, values, written, changed = "", {}, {}, []
    for name, place in places.items():
        value = constants[place.offset : place.offset + place.size]
        if name == LABEL:
            label = value.partition(b"\0")[0].decode(errors="replace")
        elif name.startswith(PARAMETER) and len(value) == 8:
            key = name.removeprefix(PARAMETER)
            (values[key],) = struct.unpack("<q", value)
            parameter = _parameter(key, place.declared)
            written[key] = parameter.text(values[key]) if parameter else str(values[key])
            if parameter and parameter.default != values[key]:
                changed.append(key)
    return Loaded(one.name, one.map_id, one.registered, label, values, written, tuple(changed))


def _parameter(name: str, declared: dict[str, str]) -> Parameter | None:
    try:
        default, minimum, maximum, scale = (int(declared[key], 0) for key in ("default", "min", "max", "scale"))
    except (KeyError, ValueError):
        # No tags, or one with an expression of C in it.
        return None
    return Parameter(name, declared.get("unit", "1"), default, minimum, maximum, scale, declared.get("doc", ""))


def _numbers(bpf: ctypes.CDLL) -> Iterator[int]:
    number = ctypes.c_uint32(0)
    while (error := bpf.bpf_map_get_next_id(number, ctypes.byref(number))) == 0:
        yield number.value
    if error != -errno.ENOENT:
        raise InputError(f"cannot look at the kernel's BPF maps: {os.strerror(-error)} (needs root)")


@contextmanager
def _opened(handle: int) -> Iterator[int]:
    """Give a descriptor, negative when there is none, and close it."""
    try:
        yield handle
    finally:
        if handle >= 0:
            os.close(handle)


def _info(bpf: ctypes.CDLL, handle: int, size: int) -> bytes | None:
    info = ctypes.create_string_buffer(size)
    length = ctypes.c_uint32(size)
    if handle < 0 or bpf.bpf_obj_get_info_by_fd(handle, info, ctypes.byref(length)):
        return None
    return info.raw


def _value(bpf: ctypes.CDLL, handle: int, size: int) -> bytes | None:
    value = ctypes.create_string_buffer(size)
    key = ctypes.c_uint32(0)
    return None if bpf.bpf_map_lookup_elem(handle, ctypes.byref(key), value) else value.raw


def _btf(bpf: ctypes.CDLL, handle: int) -> bytes:
    # struct bpf_btf_info: where the text is to go, how much room there is (and then, how much it is), a number.
    text = ctypes.create_string_buffer(BTF_BYTES_MAX)
    info = ctypes.create_string_buffer(struct.pack("=Q2I", ctypes.addressof(text), BTF_BYTES_MAX, 0), 16)
    length = ctypes.c_uint32(16)
    if handle < 0 or bpf.bpf_obj_get_info_by_fd(handle, info, ctypes.byref(length)):
        return b""
    return text.raw[: struct.unpack_from("=QI", info)[1]]


def library() -> ctypes.CDLL:
    try:
        bpf = load.library()
    except OSError as error:
        raise InputError(f"libbpf is not installed (Debian: libbpf1): {error}") from error
    bpf.bpf_map_get_next_id.argtypes = [ctypes.c_uint32, ctypes.c_void_p]
    bpf.bpf_map_get_fd_by_id.argtypes = [ctypes.c_uint32]
    bpf.bpf_btf_get_fd_by_id.argtypes = [ctypes.c_uint32]
    for name in ("bpf_map_lookup_elem", "bpf_map_get_next_key", "bpf_obj_get_info_by_fd"):
        getattr(bpf, name).argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    bpf.bpf_map_delete_elem.argtypes = [ctypes.c_int, ctypes.c_void_p]
    return bpf
