"""One copy as a person asks for it: sources, destination, how it is carried, how long to try."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from elephan.errors import InputError

STREAMS_MAX = 256
"""Most data streams of a copy (crates/copy, `EndSpec::streams`)."""

_REMOTE = re.compile(r"(?P<host>[^:/\[\]]+|[^:/\[\]]*\[[0-9A-Fa-f:.%]+\]):(?P<path>.*)", re.DOTALL)
"""As scp(1): a colon before the first slash separates host and path; an IPv6 address stands in brackets."""


@dataclass(frozen=True)
class Place:
    """A path of this machine (`host` is None), or of a host."""

    host: str | None
    """Name in the book of hosts, or a destination of ssh(1)."""
    path: str
    """Absolute, or relative to the working folder here, to the user's home there."""

    @classmethod
    def parse(cls, text: str) -> Place:
        """Return the place of `path` or `host:path`; `./a:b` is a file here. Raises `InputError`."""
        found = _REMOTE.fullmatch(text)
        if found is None:
            host, path = None, text
        else:
            host, path = found["host"].replace("[", "").replace("]", ""), found["path"]
        if not text or "\0" in text:
            raise InputError(f"{text!r}: PATH or HOST:PATH is needed")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{text!r}: its name is no UTF-8: copy the folder that it is in") from None
        if host is not None and host.startswith("-"):
            raise InputError(f"{text}: a host's name does not begin with a dash; a file here is ./{text}")
        if host is not None and not path:
            raise InputError(f"{text}: a path is missing after the colon; the home there is {text}.")
        return cls(host, path)

    def __str__(self) -> str:
        """Return the text that `parse` takes."""
        if self.host is None:
            return f"./{self.path}" if _REMOTE.fullmatch(self.path) else self.path
        at, _, address = self.host.rpartition("@")
        host = f"{at}@[{address}]" if at and ":" in address else f"[{address}]" if ":" in address else self.host
        return f"{host}:{self.path}"


@dataclass
class CopyRequest:
    """A copy. Absent settings are the host's, or the advice's where `auto` is set."""

    sources: list[Place]
    """All on one host. A folder whose path ends in a slash stands for what is in it, as with rsync."""
    destination: Place
    streams: int | None = None
    """Data streams, 1 to 256."""
    transport: Literal["tcp", "quic"] = "tcp"
    congestion_control: str | None = None
    """Name in the kernel, name of a built-in control of elephan, or path of a user's own C file (ends in .c)."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of that control, by name, as scenarios have them."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Members of `CopyOptions` (crates/copy) that are not the default."""
    rate_bps: int | None = None
    """Most that all streams together send, bit/s."""
    window_bytes: int | None = None
    """Window of each stream, bytes."""
    auto: bool | None = False
    """Ask elephan.advise for what is not set, and steer while the copy runs. None: where it is worth its time."""
    harm: float | None = None
    """Most that a flow beside the copy may lose, a share of its rate; None: as four ordinary flows take."""
    over_ssh: bool = False
    """Data goes through ssh, where no port can be opened."""
    plaintext: bool = False
    """No TLS on the data."""
    listen: Literal["auto", "local", "remote"] = "auto"
    """Side that takes connections. Auto: the remote one first."""
    patience_s: float = 3600.0
    """Time since the last byte that became durable in which a lost path is tried again, s."""
    verify: Literal["write", "read"] = "write"
    """Read: each file is read back from its disk before it gets its name."""
    receipt: str | None = None
    """File for the receipt; None: the default folder alone."""
    sign: str | None = None
    """SSH key, private or public in ssh-agent, that signs the receipt."""

    def check(self) -> None:
        """Raise `InputError` for what no copy can be."""
        if not self.sources:
            raise InputError("a copy needs a source and a destination: elephan copy SRC... DST")
        hosts = {place.host for place in self.sources}
        if len(hosts) > 1:
            named = " and ".join(sorted("this machine" if host is None else host for host in hosts))
            raise InputError(f"sources are on {named}: all sources of a copy are on one host; make one copy of each")
        if self.streams is not None and not 1 <= self.streams <= STREAMS_MAX:
            raise InputError(f"--streams {self.streams}: 1 to {STREAMS_MAX}")
        if self.rate_bps is not None and self.rate_bps <= 0:
            raise InputError("--rate: above 0 bit/s")
        if self.window_bytes is not None and self.window_bytes <= 0:
            raise InputError("--window: above 0 B")
        if self.harm is not None and not 0 < self.harm < 1:
            raise InputError(f"--harm {self.harm:g}: a share above 0% and below 100%, such as 5%")
        if self.over_ssh and self.transport == "quic":
            raise InputError("--over-ssh carries TCP: leave out --transport quic")
        if self.plaintext and self.transport == "quic":
            raise InputError("QUIC is always encrypted (RFC 9001): leave out --plaintext or --transport quic")
        for option, is_given in (("--listen remote", self.listen == "remote"), ("--over-ssh", self.over_ssh)):
            if is_given and self.is_local:
                raise InputError(f"no side of this copy is remote: leave out {option}")
        if self.over_ssh and None not in (self.source_host, self.destination.host):
            raise InputError("--over-ssh: data of two remote hosts would go through here: run the copy on one of them")

    @property
    def is_local(self) -> bool:
        """True if both sides are on this machine."""
        return self.source_host is None and self.destination.host is None

    @property
    def source_host(self) -> str | None:
        """Host of the sources; None for this machine."""
        return self.sources[0].host
