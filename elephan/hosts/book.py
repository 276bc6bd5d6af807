"""The book of hosts: a name for each destination of ssh(1), in a TOML file of the user's configuration.

Port, key, jump host and all else of a destination come from the user's own ssh_config(5).
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan import user_files
from elephan.errors import InputError
from elephan.printable import has_control, one_line
from elephan.scenario.hosts import HOST_NAME
from elephan.scenario.toml import NotToml, format_key, format_value, parse

HEAD = "# Hosts of `elephan hosts`: add, list and remove change this file.\n"

DESTINATION = re.compile(r"(?:[^@\s\-][^@\s]*@)?[^@\s\-][^@\s]*")
"""Of ssh(1): [user@]host, with host also an alias of ssh_config(5). None begins like an option."""


BROADCAST = ipaddress.IPv4Address("255.255.255.255")

PORTS_TEXT = "at least two ports such as 5000-5010"


@dataclass(frozen=True)
class Host:
    """A host of the book."""

    name: str
    destination: str
    """[user@]host, as ssh(1) takes it."""
    address: str | None = None
    """IPv4 or IPv6 address of its data port; None: that at which ssh(1) reaches it."""
    ports: tuple[int, int] | None = None
    """First and last port at which it may receive; None: as its kernel chooses."""

    def as_dict(self) -> dict[str, str]:
        """Return its keys and values in the file."""
        address = {"address": self.address} if self.address else {}
        ports = {"ports": f"{self.ports[0]}-{self.ports[1]}"} if self.ports else {}
        return {"ssh": self.destination} | address | ports


def location() -> Path:
    """Return $ELEPHAN_HOSTS, else the file `hosts.toml` in the user's configuration folder (XDG_CONFIG_HOME)."""
    given = os.environ.get("ELEPHAN_HOSTS")
    if given:
        return Path(given)
    from platformdirs import user_config_path

    return user_config_path("elephan") / "hosts.toml"


class Book:
    """The hosts by name, as the file has them."""

    def __init__(self, file: Path, hosts: dict[str, Host]) -> None:
        """Take them over; `Book.read` reads them."""
        self.file = file
        self._hosts = hosts

    @classmethod
    def read(cls, file: Path | None = None) -> Book:
        """Read the user's file, or `file`; one that is not there has no hosts. Raises `InputError`."""
        file = file or location()
        try:
            text = user_files.read_text(file, user_files.TOML)
        except FileNotFoundError:
            return cls(file, {})
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error
        try:
            raw = parse(text)
        except NotToml as error:
            raise InputError(f"{file}: {error}") from None
        return cls(file, {name: _host(file, name, entry) for name, entry in raw.items()})

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    def __len__(self) -> int:
        return len(self._hosts)

    def find(self, name: str, where: str = "") -> Host:
        """Return the host of a name; `where` stands before the fault's text. Raises `InputError`."""
        try:
            return self._hosts[name]
        except KeyError:
            known = ", ".join(self._hosts) or "none"
            raise InputError(
                f'{where}no host "{name}" in {self.file}; known: {known}; elephan hosts add {name or "NAME"} user@host'
            ) from None

    def add(self, name: str, destination: str, address: str | None = None, ports: str | None = None) -> Host:
        """Add a host and write the file. Raises `InputError` for a name that is taken or text that is no host."""
        host = _checked(name, name, destination, address, ports)
        with self._changed() as hosts:
            if name in hosts:
                there = hosts[name].destination
                raise InputError(f"{name}: is {there} already; elephan hosts remove {name} forgets it")
            hosts[name] = host
        return host

    def remove(self, name: str) -> Host:
        """Remove a host and write the file. Raises `InputError`."""
        # Before a folder is made for a book that is not there.
        self.find(name)
        with self._changed() as hosts:
            host = self.find(name)
            del hosts[name]
        return host

    @contextmanager
    def _changed(self) -> Iterator[dict[str, Host]]:
        """Give the hosts of the file as it is now, to be changed, and write them; other commands wait meanwhile."""
        # A link to a file elsewhere stays one.
        file = Path(os.path.realpath(self.file))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lock = _locked(file.with_name(f".{file.name}.lock"))
        except OSError as error:
            raise InputError(f"{self.file}: cannot be written: {error.strerror}") from error
        try:
            self._hosts = Book.read(self.file)._hosts
            hosts = dict(self._hosts)
            yield hosts
            self._write(file, hosts)
            self._hosts = hosts
        finally:
            # While it is locked: who waits for it finds that it is gone, and makes another one.
            with suppress(OSError):
                file.with_name(f".{file.name}.lock").unlink()
            os.close(lock)

    def _write(self, target: Path, hosts: dict[str, Host]) -> None:
        """Replace the file as a whole: a reader never sees half of it."""
        lines = [HEAD]
        for name, host in hosts.items():
            lines += [f"\n[{format_key(name)}]\n"]
            lines += [f"{key} = {format_value(value)}\n" for key, value in host.as_dict().items()]
        made = None
        try:
            handle, made = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(handle)
            os.replace(made, target)
        except OSError as error:
            if made is not None:
                with suppress(OSError):
                    os.unlink(made)
            raise InputError(f"{self.file}: cannot be written: {error.strerror}") from error


def _locked(path: Path) -> int:
    """Return the open file at `path`, locked: the kernel lets go of it with the process. Raises `OSError`."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # The one that held it has removed it.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), os.fstat(lock)):
                    return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _host(file: Path, name: str, entry: Any) -> Host:
    if not isinstance(entry, dict):
        raise InputError(f'{file}: {name}: a table such as [{name}] with ssh = "user@host"')
    for key in entry:
        if key not in ("ssh", "address", "ports"):
            raise InputError(f"{file}: {name}.{key}: no such key; there are ssh, address and ports")
    if not isinstance(entry.get("ssh"), str):
        raise InputError(f'{file}: {name}.ssh: missing; a destination such as "user@host"')
    address = entry.get("address")
    if address is not None and not isinstance(address, str):
        raise InputError(f"{file}: {name}.address: {address!r}: an IPv4 or IPv6 address in quotes")
    ports = entry.get("ports")
    if ports is not None and not isinstance(ports, str):
        raise InputError(f"{file}: {name}.ports: {ports!r}: {PORTS_TEXT}, in quotes")
    return _checked(f"{file}: {name}", name, entry["ssh"], address, ports)


def _checked(where: str, name: str, destination: str, address: str | None, ports: str | None) -> Host:
    if not HOST_NAME.fullmatch(name):
        raise InputError(f"{where}: a name has 1 to 63 letters, digits, dots, hyphens and underscores")
    if has_control(destination) or not DESTINATION.fullmatch(destination):
        raise InputError(f'{where}: "{destination}": a destination of ssh such as user@host')
    if address is not None:
        address = data_address(where, address)
    return Host(name, destination, address, None if ports is None else _ports(where, ports))


def data_address(where: str, text: str) -> str:
    """Return an address at which other hosts can reach one, as text. Raises `InputError`, with `where` in front."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise InputError(f'{where}: address "{one_line(text)}": an IPv4 or IPv6 address') from None
    # One and the same; an IPv4 path to the kernels (RFC 4291, 2.5.5.2).
    address = getattr(address, "ipv4_mapped", None) or address
    kinds = {
        "that of no machine": address.is_unspecified,
        "that of a group of machines": address.is_multicast or address == BROADCAST,
        "one on a single link, where an interface must be named": address.version == 6 and address.is_link_local,
    }
    for kind, is_one in kinds.items():
        if is_one:
            raise InputError(f'{where}: address "{text}": one at which other hosts reach it; this is {kind}')
    return str(address)


def _ports(where: str, text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text)
    first, last = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 0 < first < last < 2**16:
        raise InputError(f'{where}: ports "{text}": {PORTS_TEXT}')
    return first, last
