"""A compiled object with its name and its parameters set, and open to programs that are not root, or not.

One object of an algorithm serves for every variant: what makes a variant is constants, and they are set in a copy.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from elephan.errors import InputError

NON_RESTRICTED = 1
"""TCP_CONG_NON_RESTRICTED: a program without CAP_NET_ADMIN may choose it as well."""

NAME_AT = 9 * 8
NAME_BYTES = 16
"""In struct tcp_congestion_ops of bpf/env.h: nine hooks, then the name, then the flags."""

LABEL_BYTES = 64
"""CC_LABEL_BYTES of bpf/env.h."""

SYMBOLS = 2
"""SHT_SYMTAB."""


def prepared(
    compiled: bytes,
    name: str,
    values: Mapping[str, int],
    label: str = "",
    restricted: bool = False,
    listens: bool = False,
) -> bytes:
    """Return the object with the name `name` for the kernel, `label` for people, and `cc_param_*` as in `values`.

    Unless it is to be `restricted`, it has the flag that lets every program choose it. `label` "" leaves it as it is.
    One that `listens` looks for orders on each ACK (bpf/trim.h); of any other the kernel drops that part.
    """
    data = bytearray(compiled)
    places = _places(compiled)
    for key, value in values.items():
        if f"cc_param_{key}" not in places:
            raise InputError(f"the compiled object has no parameter {key!r}: the algorithm never reads it")
        struct.pack_into("<q", data, places[f"cc_param_{key}"], value)
    if listens:
        struct.pack_into("<I", data, places["cc_listens"], 1)
    start = places["cc_algorithm"] + NAME_AT
    was = bytes(data[start : start + NAME_BYTES])
    (flags,) = struct.unpack_from("<I", data, start + NAME_BYTES)
    if not was.rstrip(b"\0").isascii() or was[:1] == b"\0" or was[-1:] != b"\0":
        raise InputError("the compiled object is not laid out as congestion/bpf/env.h says")
    if len(name.encode()) >= NAME_BYTES:
        raise InputError(f"the kernel's names have at most {NAME_BYTES - 1} characters: {name}")
    struct.pack_into(f"<{NAME_BYTES}sI", data, start, name.encode(), flags if restricted else flags | NON_RESTRICTED)
    if label:
        struct.pack_into(f"<{LABEL_BYTES}s", data, places["cc_label"], label.encode()[: LABEL_BYTES - 1])
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
