"""The one door to the native core: everything else in the front asks here for it."""

from __future__ import annotations

import hashlib
from functools import cache
from types import ModuleType

from elephan.errors import CoreMissing


def native() -> ModuleType:
    """Return the native module. Raises `CoreMissing` with what to do when it is not built."""
    try:
        from elephan import _native
    except ImportError as error:
        raise CoreMissing(f"the native core cannot be loaded ({error}); build it with: make setup") from error
    return _native


def version() -> str:
    """Version of elephan: that of the core, from which the whole package takes it."""
    return str(native().version)


@cache
def build_digest() -> str:
    """First 16 hex digits of the SHA-256 of the core's file.

    Two builds of one version are told apart by it, so that a changed core does not pass old results off as its own.
    """
    path = native().__file__
    assert path is not None, "an extension module has a file"
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:16]
