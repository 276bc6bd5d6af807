"""The one door to the native core: everything else in the front takes `native` from here.

`native` is the module itself, so that type checkers see its functions (`_native.pyi`). It takes a millisecond to load.
Raises `CoreMissing`, with what to do, when it is not built.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from elephan.errors import CoreMissing

try:
    from elephan import _native as native
except ImportError as error:
    raise CoreMissing(f"the native core cannot be loaded ({error}); build it with: make setup") from error

__all__ = ["build_digest", "native", "version"]


def version() -> str:
    """Version of elephan: that of the core, from which the whole package takes it."""
    return native.version


def record_sources() -> list[Path]:
    """Return the files of Python that take part in making a record, in a fixed order."""
    package = Path(__file__).parent
    folders = (package / name for name in ("backends", "congestion_control", "hosts", "kernel", "path"))
    files = (package / name for name in ("network_namespace.py", "record.py", "report/notes.py", "store/series.py"))
    return sorted([*files, *(file for folder in folders for file in folder.rglob("*.py"))])


@cache
def build_digest() -> str:
    """First 16 hex digits of the SHA-256 of the core's file and of `record_sources`.

    Two builds of one version are told apart by it, so that a changed one does not pass old results off as its own.
    """
    digest = hashlib.sha256()
    for file in (Path(native.__file__), *record_sources()):
        with file.open("rb") as opened:
            while block := opened.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:16]
