"""The one door to the native core: everything else in the front takes `native` from here.

`native` is the module itself, so that type checkers see its functions (`_native.pyi`). It takes a millisecond to load.
Raises `CoreMissing`, with what to do, when it is not built.
"""

from __future__ import annotations

import hashlib
from functools import cache

from elephan.errors import CoreMissing

try:
    from elephan import _native as native
except ImportError as error:
    raise CoreMissing(f"the native core cannot be loaded ({error}); build it with: make setup") from error

__all__ = ["build_digest", "native", "version"]


def version() -> str:
    """Version of elephan: that of the core, from which the whole package takes it."""
    return native.version


@cache
def build_digest() -> str:
    """First 16 hex digits of the SHA-256 of the core's file.

    Two builds of one version are told apart by it, so that a changed core does not pass old results off as its own.
    """
    digest = hashlib.sha256()
    with open(native.__file__, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:16]
