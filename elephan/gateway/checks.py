"""Contradictions between keys of a gateway's file, and between it and the files that it names."""

from __future__ import annotations

import os
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

from elephan import user_files
from elephan.gateway.config import Address, Config, Ip, addresses_file
from elephan.kernel import namespaces
from elephan.kernel.names import kernel_name
from elephan.scenario.problem import Location

Fault = tuple[Location, str]
"""Place of a wrong value, and what would be right."""

SOCKET_PATH_BYTES = 107
"""Longest path of a socket (unix(7))."""
DOMAINS = range(1, 240)
"""Domains of switches (FC-SW-5); those above are of the fabric itself."""


def faults(file: Path, config: Config) -> Iterator[Fault]:
    """Yield what contradicts something else. `file` is the gateway's file, from whose folder paths begin."""
    yield from _names(config)
    yield from _sockets(file, config)
    yield from _addresses_file(file, config)
    if config.ip is not None:
        yield from _peers(config, config.ip)
        yield from _listeners(config, config.ip)
        yield from _control(config.ip)
    yield from _certificates(file, config)


def _names(config: Config) -> Iterator[Fault]:
    for number, peer in enumerate(config.peer):
        for place, port in enumerate(peer.port):
            if port.name == config.fabric.name:
                yield ("peer", number, "port", place, "name"), "a name other than that of the fabric"


def _sockets(file: Path, config: Config) -> Iterator[Fault]:
    taken: set[str] = set()
    for number, one in enumerate(config.socket):
        for key, path in (("local", one.local), ("remote", one.remote)):
            place = os.path.normpath(file.parent / path)
            if place in taken:
                yield ("socket", number, key), "a path that no other key has"
            if len(str(file.parent / path).encode()) > SOCKET_PATH_BYTES:
                expected = f"a path of at most {SOCKET_PATH_BYTES} bytes, with that of the file's folder"
                yield ("socket", number, key), expected
            taken.add(place)


def _addresses_file(file: Path, config: Config) -> Iterator[Fault]:
    place = addresses_file(file, config)
    others = [one for socket in config.socket for one in (socket.local, socket.remote)]
    if config.tls is not None:
        others += [config.tls.certificate, config.tls.key, config.tls.authority]
    taken = {os.path.normpath(path) for path in (file, *(file.parent / other for other in others))}
    try:
        is_other = not stat.S_ISREG(place.stat().st_mode)
    except OSError:
        is_other = False
    if is_other or os.path.normpath(place) in taken:
        yield ("fabric", "addresses"), 'a file of its own, which the gateway writes, such as "room-a.addresses"'


def _peers(config: Config, ip: Ip) -> Iterator[Fault]:
    hosts: dict[object, str] = {}
    ids: dict[int, str] = {}
    for number, peer in enumerate(config.peer):
        host, port = peer.address
        at = ("peer", number, "address")
        if host.version != ip.listen[0].version:
            yield at, f"an IPv{ip.listen[0].version} address, as ip.listen is one"
        elif port == 0 or host.is_unspecified or host.is_multicast:
            yield at, "the address and the port at which the peer listens"
        elif peer.address == ip.listen:
            yield at, "the address of another gateway: this is ip.listen, this gateway's own"
        elif host in hosts:
            yield at, f"an IP address that no other peer has, as a peer is known by it; {hosts[host]} has it"
        hosts.setdefault(host, peer.name)
        for place, one in enumerate(peer.port):
            if one.id is None:
                continue
            at_id = ("peer", number, "port", place, "id")
            if one.id >> 16 not in DOMAINS:
                yield at_id, 'an address of a domain from 01 to ef, such as "020100"'
            elif one.id in ids:
                yield at_id, f"an address that no other port has; one of {ids[one.id]} has it"
            ids.setdefault(one.id, peer.name)


def _listeners(config: Config, ip: Ip) -> Iterator[Fault]:
    isns, prometheus = config.isns, config.statistics.prometheus
    if isns is not None:
        if isns.server[0].version != ip.listen[0].version:
            yield ("isns", "server"), f"an IPv{ip.listen[0].version} address, as ip.listen is one"
        if isns.server == ip.listen:
            yield ("isns", "server"), "the address of a name server: this is ip.listen, this gateway's own"
        if isns.scn_port is not None and isns.scn_port == ip.listen[1]:
            yield ("isns", "scn_port"), "a port other than that of ip.listen"
    if prometheus is None:
        return
    at = ("statistics", "prometheus")
    if _clash(prometheus, ip.listen):
        yield at, "a port other than that of ip.listen"
    if isns is not None and isns.scn_port is not None and _clash(prometheus, (ip.listen[0], isns.scn_port)):
        yield at, "a port other than isns.scn_port"


def _clash(one: Address, other: Address) -> bool:
    """Return True if two sockets cannot listen at two addresses."""
    is_same_host = one[0] == other[0] or one[0].is_unspecified or other[0].is_unspecified
    return one[1] == other[1] != 0 and is_same_host and one[0].version == other[0].version


def _control(ip: Ip) -> Iterator[Fault]:
    name = ip.congestion_control
    if name is None:
        return
    there = namespaces.available()
    if name not in there and kernel_name(name) not in there:
        first = f"`elephan kernel load {name}` first; there is {', '.join(there)}"
        yield ("ip", "congestion_control"), f"not in this kernel: {first}"


def _certificates(file: Path, config: Config) -> Iterator[Fault]:
    tls = config.tls
    if tls is None:
        return
    readable = True
    for key, name in (("certificate", tls.certificate), ("key", tls.key), ("authority", tls.authority)):
        try:
            user_files.read_bytes(file.parent / name, user_files.CERTIFICATE)
        except OSError as error:
            readable = False
            yield ("tls", key), f"a file that can be read: {error.strerror}"
    if not readable:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_verify_locations(file.parent / tls.authority)
    except ssl.SSLError:
        yield ("tls", "authority"), "a certificate in PEM"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file.parent / tls.certificate)
    except ssl.SSLError:
        yield ("tls", "certificate"), "a certificate in PEM"
        return
    try:
        # A key with a password: nobody is there to type it.
        context.load_cert_chain(file.parent / tls.certificate, file.parent / tls.key, password="")
    except (ssl.SSLError, ValueError):
        yield ("tls", "key"), "the certificate's private key, in PEM and without a password"
