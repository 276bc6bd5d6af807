"""A compiled object with its parameters set, and open to programs that are not root."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from elephan.errors import InputError

NON_RESTRICTED = 1
"""TCP_CONG_NON_RESTRICTED: a program without CAP_NET_ADMIN may choose it as well."""

SYMBOLS = 2
"""SHT_SYMTAB."""


def prepared(compiled: bytes, name: str, values: Mapping[str, int]) -> bytes:
    """Return the object with `cc_param_*` as in `values`, and the flag set that lets every program use it."""
    data = bytearray(compiled)
    places = _places(compiled)
    for key, value in values.items():
        if f"cc_param_{key}" not in places:
            raise InputError(f"the compiled object has no parameter {key!r}: the algorithm never reads it")
        struct.pack_into("<q", data, places[f"cc_param_{key}"], value)
    # struct tcp_congestion_ops of bpf/env.h: nine hooks, name[16], flags.
    start = places["cc_algorithm"] + 9 * 8
    if bytes(data[start : start + 16]).rstrip(b"\0") != name.encode():
        raise InputError("the compiled object is not laid out as congestion/bpf/env.h says")
    (flags,) = struct.unpack_from("<I", data, start + 16)
    struct.pack_into("<I", data, start + 16, flags | NON_RESTRICTED)
    return bytes(data)


def _places(data: bytes) -> dict[str, int]:
    """Return where each symbol's bytes lie in a 64-bit little-endian ELF file."""
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry, count = struct.unpack_from("<2H", data, 0x3A)
    # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link
    sections = [struct.unpack_from("<2I4QI", data, table + i * entry) for i in range(count)]
    found = {}
    for section in sections:
        if section[1] != SYMBOLS:
            continue
        texts = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            text, _, _, owner, value, _ = struct.unpack_from("<I2BH2Q", data, at)
            if 0 < owner < count:
                start = texts + text
                found[data[start : data.index(b"\0", start)].decode()] = sections[owner][4] + value
    return found
