"""The address that the pages are served on, and what an address beyond this machine takes."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from elephan.errors import InputError

DEFAULT = "127.0.0.1:8080"


@dataclass(frozen=True)
class Listen:
    """An address to listen on."""

    host: str
    """A literal IPv4 or IPv6 address, without brackets."""
    port: int
    """0: any that is free."""

    @classmethod
    def of(cls, text: str) -> Listen:
        """Read HOST:PORT or [HOST]:PORT; `localhost` is 127.0.0.1. Raises `InputError`."""
        host, colon, port = text.rpartition(":")
        right = "right are 127.0.0.1:8080, [::1]:8080, 192.0.2.1:8443"
        if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise InputError(f"--listen {text}: expected ADDRESS:PORT with a port of 0 to 65535; {right}")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise InputError(f"--listen {text}: an IPv6 address stands in brackets; {right}")
        try:
            address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
        except ValueError as error:
            raise InputError(f"--listen {text}: {host!r} is no IP address; {right}") from error
        return cls(str(address), int(port))

    @property
    def is_loopback(self) -> bool:
        """Return True if only this machine reaches it."""
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def in_url(self) -> str:
        """Return the host as a URL writes it."""
        return f"[{self.host}]" if ":" in self.host else self.host


def check(listen: Listen, certificate: Path | None, key: Path | None, tokens: Path | None) -> None:
    """Refuse an address beyond this machine without TLS and login, and half of a certificate. Raises `InputError`.

    `tokens` is the file of tokens; None: nobody logs in.
    """
    if (certificate is None) != (key is None):
        given, missing = ("--tls-cert", "--tls-key") if key is None else ("--tls-key", "--tls-cert")
        raise InputError(f"{given} {certificate or key}: give {missing} too")
    for option, file in (("--tls-cert", certificate), ("--tls-key", key)):
        if file is not None and not file.exists():
            raise InputError(f"{option} {file}: there is no such file; right is a file in PEM")
    if not listen.is_loopback and certificate is None:
        raise InputError(
            f"--listen {listen.in_url}:{listen.port}: an address that other machines reach needs TLS and login; give "
            "--tls-cert, --tls-key and --tokens, or keep 127.0.0.1 and connect through ssh -L"
        )
    if not listen.is_loopback and tokens is None:
        raise InputError(f"--listen {listen.in_url}:{listen.port}: an address that other machines reach needs --tokens")
