"""Frames of an agent's channel: a length, then that many bytes of JSON (docs/design/agent.md)."""

from __future__ import annotations

import json
from typing import IO, Any

FRAME_MOST = 16 * 2**20
"""Bytes of a frame."""

LENGTH_BYTES = 4
"""Of a frame's length, big-endian."""


class MalformedFrameError(Exception):
    """Bytes are no frame of an agent; the text says why, in one line."""


def frame_of(source: IO[bytes]) -> dict[str, Any] | None:
    """Read a frame: `id` and one of `event`, `answer` and `error`; None at the end of the channel.

    Raises `MalformedFrameError`, and what reading raises.
    """
    head = source.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    length = int.from_bytes(head, "big")
    if length > FRAME_MOST:
        raise MalformedFrameError(f"its length would be {length} bytes, and {FRAME_MOST} are the most")
    body = source.read(length)
    if len(body) < length:
        return None
    try:
        found = json.loads(body)
    except ValueError:
        raise MalformedFrameError("it is no JSON") from None
    except RecursionError:
        raise MalformedFrameError("it is too deep") from None
    if not isinstance(found, dict):
        raise MalformedFrameError("it is no object")
    if type(found.get("id")) is not int:
        raise MalformedFrameError("it has no id")
    match found:
        case {"event": str()} | {"answer": dict()} | {"error": {"kind": str(), "text": str()}}:
            return found
    raise MalformedFrameError("it has no event, answer or error")
