"""Records of entries that a version's run could not copy: each has to be true by those of the versions before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.backup.model.world import parents

Records = dict[bytes, dict[str, str]]
"""Records by path below the version; the later line about a path replaces the earlier one."""


def records_of(markers: Path, name: str) -> Records:
    """Return the records of a version, of the file that the manual names."""
    file = markers / f"{name}.carried"
    lines = file.read_text().splitlines() if file.exists() else []
    told = [json.loads(line) for line in lines if line]
    return {_path(one["path"]): one for one in told}


def _path(text: str) -> bytes:
    return re.sub(rb"\\x([0-9a-f]{2})", lambda digits: bytes([int(digits[1], 16)]), text.encode())


def wrong_records(
    name: str,
    known: dict[str, Records],
    hidden: set[bytes],
    missing: set[bytes],
    entries: set[bytes],
    marker: dict[str, Any],
) -> list[str]:
    """Return what is untrue in the records of a version, a line each.

    `known`: records of all versions, also of those that are gone. `hidden`: what its run could not read. `missing`:
    those of which no older version has a copy. `entries`: of the version, without folders. `marker`: the version's.
    """
    own = known[name]
    lines = [f"{path!r} could not be read, and has no record" for path in hidden if path not in own]
    for path, record in own.items():
        origin = record.get("from")
        if "failed" in record and path in missing:
            lines.append(f"{path!r} is said not to have been carried over, and no older version has a copy")
        if "failed" in record or origin == name:
            continue
        if origin is None:
            if path in entries:
                lines.append(f"{path!r} is there, and is said to be missing")
            continue
        before = known.get(origin)
        above = [] if before is None else [before[one] for one in reversed(parents(path)) if one in before]
        if before is None:
            lines.append(f"{path!r} is said to be of {origin}, and no run has made that")
        elif above and (above[0].get("from") != origin or any("from" not in one for one in above)):
            lines.append(f"{path!r} is said to be of {origin}, whose run could not copy it")
    told = marker.get("carried") or {"older": 0, "missing": 0, "oldest": None}
    carried = [record["from"] for record in own.values() if "failed" not in record and record.get("from", name) != name]
    absent = sum("failed" not in record and "from" not in record for record in own.values())
    right = {"older": len(carried), "missing": absent, "oldest": min(carried, default=None)}
    lines += [f"{what} {told[what]!r}, and by the records {value!r}" for what, value in right.items()
              if told[what] != value]  # fmt: skip
    return lines
