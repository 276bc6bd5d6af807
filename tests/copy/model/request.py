"""One `elephan copy` as the model sees it: what of its command line matters to data."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import Any

SWITCHES = {
    "mirror": "--mirror",
    "checksum": "--checksum",
    "whole": "--whole",
    "no_owners": "--no-owners",
    "no_xattrs": "--no-xattrs",
    "no_sparse": "--no-sparse",
    "one_file_system": "--one-file-system",
    "verify_read": "--verify=read",
    "quic": "--transport=quic",
    "one_stream": "--streams=1",
    "many_streams": "--streams=9",
    "slow": "--rate=500kB/s",
}
"""Options without a value, by the name that a step has for them."""
REMOTE = "remote"
"""The second host in the book of hosts."""
CARRIED = ("--over-ssh", "--plaintext", "--listen=local")
"""Options of copies between hosts, one at most: how data is carried."""


@dataclass(frozen=True)
class Request:
    """Paths are relative to the world; `src/` stands for what is in it."""

    sources: tuple[bytes, ...]
    destination: bytes
    switches: frozenset[str] = frozenset()
    exclude: tuple[str, ...] = ()
    link_to: bytes | None = None
    max_removals: int | None = None
    user: int | None = None
    """Runs as this user; None: as root."""
    ends: str = ""
    """Ends at the second host: "source", "destination", "both"; "": none."""
    carried: str | None = None
    """One of `CARRIED`."""

    def on(self, switch: str) -> bool:
        """Return True if an option of `SWITCHES` is set."""
        return switch in self.switches

    def words(self, root: bytes, extra: tuple[bytes, ...] = ()) -> list[bytes]:
        """Return the command line behind `elephan`."""
        there = REMOTE.encode() + b":"
        source_host = there if self.ends in ("source", "both") else b""
        host = there if self.ends in ("destination", "both") else b""
        words = [b"copy", *(source_host + root + b"/" + source for source in self.sources)]
        words.append(host + root + b"/" + self.destination)
        words += [SWITCHES[name].encode() for name in sorted(self.switches)]
        for pattern in self.exclude:
            words += [b"--exclude", pattern.encode()]
        if self.link_to is not None:
            words += [b"--link-to", root + b"/" + self.link_to]
        if self.max_removals is not None:
            words += [b"--max-removals", b"%d" % self.max_removals]
        if self.carried is not None:
            words.append(self.carried.encode())
        return [*words, *extra]

    def as_step(self) -> dict[str, Any]:
        """Return it for JSON."""
        step: dict[str, Any] = {
            "sources": [source.decode("latin-1") for source in self.sources],
            "destination": self.destination.decode("latin-1"),
        }
        step |= {"switches": sorted(self.switches)} if self.switches else {}
        step |= {"exclude": list(self.exclude)} if self.exclude else {}
        step |= {"link_to": self.link_to.decode("latin-1")} if self.link_to is not None else {}
        step |= {"max_removals": self.max_removals} if self.max_removals is not None else {}
        step |= {"user": self.user} if self.user is not None else {}
        step |= {"ends": self.ends} if self.ends else {}
        step |= {"carried": self.carried} if self.carried is not None else {}
        return step

    @classmethod
    def of_step(cls, step: dict[str, Any]) -> Request:
        """Return the request of `as_step`."""
        link_to = step.get("link_to")
        return cls(
            tuple(source.encode("latin-1") for source in step["sources"]),
            step["destination"].encode("latin-1"),
            frozenset(step.get("switches", ())),
            tuple(step.get("exclude", ())),
            None if link_to is None else link_to.encode("latin-1"),
            step.get("max_removals"),
            step.get("user"),
            step.get("ends", ""),
            step.get("carried") if step.get("ends") else None,
        )


@dataclass
class Excluded:
    """Names that `--exclude` leaves out, by the words of the manual and rsync(1): a second implementation."""

    patterns: tuple[str, ...]
    _parsed: list[tuple[re.Pattern[bytes], bool, bool, int | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Parse."""
        self._parsed = [_parsed(pattern) for pattern in self.patterns]

    def names(self, path: bytes, is_folder: bool) -> bool:
        """Return True if a pattern names the path itself, which is relative to the destination."""
        parts = path.split(b"/")
        for expression, anchored, folders, count in self._parsed:
            if folders and not is_folder:
                continue
            if count is None:
                starts = [0] if anchored else range(len(parts))
            elif count > len(parts) or (anchored and count != len(parts)):
                continue
            else:
                starts = [len(parts) - count]
            if any(expression.fullmatch(b"/".join(parts[start:])) for start in starts):
                return True
        return False


@functools.cache
def _parsed(pattern: str) -> tuple[re.Pattern[bytes], bool, bool, int | None]:
    folders, anchored = pattern.endswith("/"), pattern.startswith("/")
    glob = pattern.strip("/")
    text, at = "", 0
    while at < len(glob):
        if glob.startswith("**", at):
            text, at = text + ".*", at + 2
            continue
        letter = glob[at]
        if letter == "[":
            end = glob.index("]", at + 2)
            inner = glob[at + 1 : end].replace("\\", "\\\\")
            text += "[" + ("^" + inner[1:] if inner[0] in "!^" else inner) + "]"
            at = end
        elif letter == "\\":
            at += 1
            text += re.escape(glob[at])
        else:
            text += {"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter))
        at += 1
    count = None if "**" in glob else glob.count("/") + 1
    return re.compile(text.encode(), re.DOTALL), anchored, folders, count
