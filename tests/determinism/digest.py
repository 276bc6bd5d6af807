"""The digest of everything that a simulated run gives, for comparing runs of different builds and processors.

It is the SHA-256 of this text: an integer in decimal; a float as `x` and the 16 hexadecimal digits of its bits; a
string after its length in bytes and a colon; None and NaN, which are absent, as `-`; a list as `[item,...,]`; a
dictionary as `{name=value,...,}` in the order of its names. `crates/experiment/examples/digest.rs` writes the same of
the same run.
"""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any

from elephan.core import native
from elephan.record import canonical_json

PARTS = (
    "background cwnd_reductions event_times_s extrapolation flow_groups flow_series flows link_series links manager "
    "metrics notes short_flows"
).split()


def digest_of(spec: dict[str, Any]) -> str:
    """Simulate `spec` and return the digest in hexadecimal. Raises ValueError when the spec is wrong."""
    result = native.simulate(canonical_json(spec))
    return hashlib.sha256(as_text({part: getattr(result, part) for part in PARTS}).encode()).hexdigest()


def as_text(value: Any) -> str:
    """Return a value as the digest sees it."""
    if value is None:
        return "-"
    if isinstance(value, dict):
        return "{" + "".join(f"{name}={as_text(value[name])}," for name in sorted(value)) + "}"
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return "[" + "".join(f"{as_text(item)}," for item in value) + "]"
    if isinstance(value, float):
        return "-" if math.isnan(value) else "x" + struct.pack(">d", value).hex()
    if isinstance(value, str):
        return f"{len(value.encode())}:{value}"
    assert isinstance(value, int), type(value)
    return str(value)
