"""Name of a copy: the same for each run of the same command, so that each goes on where the one before has stopped."""

from __future__ import annotations

import hashlib
import json
import os
import platform

from elephan.copy.request import CopyRequest
from elephan.copy.sides import end_paths

DIGITS = 32
"""Hex digits of a name."""


def name_of(request: CopyRequest) -> str:
    """Return the name, from sources, destination and their hosts."""
    paths, here = end_paths(request), [platform.node(), os.geteuid()]
    whole = json.dumps(
        [request.source_host or here, paths["source"], request.destination.host or here, paths["destination"]]
    )
    return hashlib.sha256(whole.encode()).hexdigest()[:DIGITS]
