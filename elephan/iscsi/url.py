"""Addresses and credentials of a unit: URLs as libiscsi, qemu and others write them, secrets from files or the
environment.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from elephan.errors import InputError

PORT = 3260
SECRET_BYTES_MIN = 12
"""A shorter secret can be guessed by who listens (RFC 7143, 9.2.1)."""
FORM = "iscsi://[USER[%SECRET]@]HOST[:PORT]/TARGET/LUN"


@dataclass(frozen=True)
class Url:
    """A logical unit of a target."""

    host: str
    port: int
    target: str
    lun: int
    chap: tuple[str, str] | None

    @classmethod
    def parse(cls, text: str) -> Url:
        """Take a URL apart. Raises `InputError` with the form that is needed."""
        match = re.fullmatch(r"iscsi://(?:([^@/%]+)(?:%([^@/]*))?@)?(\[[^]]+\]|[^:/@]+)(?::(\d+))?/([^/]+)/(\d+)", text)
        if match is None:
            raise InputError(f"{text}: {FORM} is needed")
        user, word, host, port, target, lun = match.groups()
        if port is not None and not 1 <= int(port) <= 65535:
            raise InputError(f"{text}: port {port}: 1 to 65535 is needed")
        if int(lun) > 255:
            raise InputError(f"{text}: LUN {lun}: 0 to 255 is needed")
        chap = None
        if user is not None:
            word = os.environ.get("ELEPHAN_CHAP_SECRET") if word is None else unquote(word)
            if not word:
                raise InputError(f"{text}: user {user} without a secret: set ELEPHAN_CHAP_SECRET, or write USER%SECRET")
            chap = (unquote(user), word)
        return cls(host.strip("[]"), int(port or PORT), target, int(lun), chap)

    def place(self) -> str:
        """Return the URL without what only one knows."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"iscsi://{host}:{self.port}/{self.target}/{self.lun}"

    def address(self) -> str:
        """Return ADDRESS:PORT, the first that the name has. Raises `InputError` when it has none."""
        return resolve(self.host, self.port)


def resolve(host: str, port: int) -> str:
    """Return ADDRESS:PORT for a name or address."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InputError(f"{host}: {error.strerror or error}") from error
    family, address = found[0][0], found[0][4][0]
    return f"[{address}]:{port}" if family == socket.AF_INET6 else f"{address}:{port}"


def portal(text: str) -> str:
    """Return ADDRESS:PORT for HOST, HOST:PORT or [ADDRESS]:PORT."""
    match = re.fullmatch(r"(\[[^]]+\]|[^:]+)(?::(\d+))?", text)
    if match is None or int(match[2] or 0) > 65535:
        raise InputError(f"portal {text}: HOST, HOST:PORT or [IPV6]:PORT is needed")
    return resolve(match[1].strip("[]"), PORT if match[2] is None else int(match[2]))


def secret(text: str, option: str = "--chap") -> tuple[str, str]:
    """Return (name, secret) for USER=FILE (the file's first line) or USER ($ELEPHAN_CHAP_SECRET)."""
    name, _, file = text.partition("=")
    if file:
        try:
            word = Path(file).read_text(encoding="utf-8").split("\n", 1)[0]
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{option} {text}: {file}: {getattr(error, 'strerror', None) or error}") from error
    else:
        word = os.environ.get("ELEPHAN_CHAP_SECRET", "")
        if not word:
            raise InputError(f"{option} {text}: set ELEPHAN_CHAP_SECRET, or write USER=FILE with the secret in FILE")
    if not name or len(word.encode()) < SECRET_BYTES_MIN:
        raise InputError(f"{option} {text}: a name and a secret of at least {SECRET_BYTES_MIN} bytes are needed")
    return name, word


def check_secrets(chap: tuple[str, str] | None, mutual: tuple[str, str] | None) -> None:
    """Refuse mutual CHAP without CHAP, and one secret for both directions. Raises `InputError`.

    With one secret, a peer that does not know it could answer a challenge by sending the same challenge back and
    returning the response (RFC 7143, 12.1.3: the same secret must not be used in both directions).
    """
    if mutual is None:
        return
    if chap is None:
        raise InputError("--mutual-chap needs --chap: the target shows itself to initiators that showed themselves")
    if chap[1] == mutual[1]:
        raise InputError(
            f"--mutual-chap {mutual[0]}: the secret is the same as that of --chap {chap[0]}; each direction needs a "
            "secret of its own (RFC 7143, 12.1.3)"
        )
