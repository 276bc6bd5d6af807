"""Where an object's constants lie and what their declarations say, from its type information (BTF) in the kernel."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

MAGIC = 0xEB9F

VAR, DATASEC, DECL_TAG = 14, 15, 17
ARRAY, ENUM, PROTO, ENUM64 = 3, 6, 13, 19
STRUCT, UNION = 4, 5
"""Kinds (linux/btf.h)."""

FIXED_BYTES = {1: 4, ARRAY: 12, VAR: 4, DECL_TAG: 4}
"""What follows a type of fixed length: of an integer its bits, of an array its element, index and length."""

ENTRY_BYTES = {STRUCT: 12, UNION: 12, ENUM: 8, PROTO: 8, DATASEC: 12, ENUM64: 12}
"""What follows for each of a type's members."""

TAG = re.compile(r"elephan:param (.*)", re.DOTALL)


@dataclass(frozen=True)
class Constant:
    """A variable of a section."""

    offset: int
    size: int
    declared: dict[str, str]
    """What CC_PARAMS said of it: unit, default, min, max, scale, doc; {} where the kernel keeps no such tags (5.16)."""


def constants(btf: bytes, section: str) -> dict[str, Constant]:
    """Return the variables of a section by name. Raises `ValueError` when it is no BTF, or has a kind unknown here."""
    magic, _, _, header, types, types_bytes, texts, _ = struct.unpack_from("<HBBIIIII", btf)
    if magic != MAGIC:
        raise ValueError("no BTF")

    def text(offset: int) -> str:
        start = header + texts + offset
        return btf[start : btf.index(b"\0", start)].decode()

    at, end = header + types, header + types + types_bytes
    names: dict[int, str] = {}
    tags: dict[int, dict[str, str]] = {}
    members: list[tuple[int, int, int]] = []
    number = 0
    while at < end:
        number += 1
        name, info, of = struct.unpack_from("<3I", btf, at)
        kind, count = info >> 24 & 0x1F, info & 0xFFFF
        at += 12
        if kind == VAR:
            names[number] = text(name)
        elif kind == DECL_TAG and (match := TAG.match(text(name))):
            tags[of] = dict(part.split("=", 1) for part in match[1].split(";", 5) if "=" in part)
        elif kind == DATASEC and text(name) == section:
            members = [struct.unpack_from("<3I", btf, at + 12 * index) for index in range(count)]
        if kind > ENUM64:
            raise ValueError(f"kind {kind} of BTF")
        at += FIXED_BYTES.get(kind, 0) + ENTRY_BYTES.get(kind, 0) * count
    return {names[of]: Constant(offset, size, tags.get(of, {})) for of, offset, size in members}
