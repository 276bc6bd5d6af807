"""Count connections by congestion control, from ss(8) in this network namespace."""

from __future__ import annotations

import re
import subprocess
from collections import Counter


def users(mark: str) -> Counter[str] | None:
    """Return the connections per control whose name begins with `mark`; None when there is no ss(8)."""
    try:
        done = subprocess.run(["ss", "-tinH"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    # The name stands in a connection's second line, which is indented.
    lines = (line for line in done.stdout.splitlines() if line[:1].isspace())
    found = (re.search(rf"\s({re.escape(mark)}\w+)\s", line) for line in lines)
    return Counter(match[1] for match in found if match)
