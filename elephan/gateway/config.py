"""The tables and keys of a gateway's file."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, model_validator

from elephan.core import native
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import Whole, parse_span
from elephan.scenario.table import Name, Table, setting

PRIORITY = 3
"""Priority of FCoE's and FIP's tags (802.1p), as Linux's fcoeadm and switches have it."""
NS_PER_MS = 10**6
NS_PER_S = 10**9
Address = tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]
"""IP address and port."""
INTERFACE_CHARACTERS = 15
"""Longest name of an interface (IFNAMSIZ)."""
ISNS_PORT = 3205
"""TCP port that IANA gave iSNS."""
ENTITY_BYTES = 255
"""Longest name of an entity (RFC 4171, 6.2.1), bytes."""


def _wwn(value: Any) -> int:
    if isinstance(value, str):
        try:
            name: int = native.parse_wwn(value)
        except ValueError:
            name = 0
        # A name of zeros stands for none (FC-FS-2, 14.1).
        if name:
            return name
    raise wrong('a world wide name of 16 hexadecimal digits, such as "10:00:00:1b:32:0a:0b:0c"')


def wwn_text(name: int) -> str:
    """Return a world wide name as eight bytes with colons."""
    return name.to_bytes(8, "big").hex(":")


def _fc_map(value: Any) -> int:
    if not isinstance(value, str) or not re.fullmatch("[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){2}", value):
        raise wrong('three bytes in hexadecimal digits, such as "0e:fc:00"')
    number = int(value.replace(":", ""), 16)
    if number >> 16 != 0x0E:
        # FC-BB-5, 7.8: the range of locally administered addresses that T11 set aside.
        raise wrong('a value from "0e:fc:00" to "0e:fc:ff"')
    return number


def _keep_alive(value: Any) -> int:
    ms, rest = divmod(parse_span(value), NS_PER_MS)
    # FC-BB-5 has a field of milliseconds; Linux takes a shorter one than 500 for 8 s (FCOE_CTLR_MIN_FKA).
    if rest or not 500 <= ms <= 90_000:
        raise wrong('a time of whole milliseconds from "500ms" to "90s"')
    return ms


def _drain(value: Any) -> int:
    span_ns: int = parse_span(value)
    if span_ns > 300 * 10**9:
        raise wrong('a time from "0s" to "5min"')
    return span_ns


def _interface(value: Any) -> str:
    if not isinstance(value, str) or not value or len(value.encode()) > INTERFACE_CHARACTERS:
        raise wrong('the name of an Ethernet interface, such as "eth1"')
    return value


def _path(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise wrong('a path, such as "state/room-a.addresses"')
    return value


def _control(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch("[a-z0-9_]+", value):
        raise wrong('the name of a congestion control, such as "cubic"')
    return value


def _address_of(value: Any, expected: str) -> Address:
    match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[0-9.]+):([0-9]{1,5})", value) if isinstance(value, str) else None
    if match is None or int(match[2]) > 65535:
        raise wrong(expected)
    try:
        return ipaddress.ip_address(match[1].strip("[]")), int(match[2])
    except ValueError:
        raise wrong(expected) from None


def _address(value: Any) -> Address:
    """IP address and port: peers are known by their addresses, so that no DNS server can change who they are."""
    return _address_of(value, 'an IP address with a port, such as "10.0.0.2:3420" or "[2001:db8::2]:3420"')


def _loopback(value: Any) -> Address:
    """IP address and port on this machine: statistics have no authentication."""
    expected = 'an address of this machine alone with a port, such as "127.0.0.1:9325"'
    address = _address_of(value, expected)
    if not address[0].is_loopback:
        raise wrong(expected)
    return address


def _server(value: Any) -> Address:
    """IP address of a name server, with a port or without."""
    expected = 'an IP address, or one with a port, such as "10.0.0.9" or "10.0.0.9:3205"'
    has_port = isinstance(value, str) and re.search(r"\]:|^[^:]*:[^:]*$", value)
    if isinstance(value, str) and not has_port:
        is_bare_ipv6 = ":" in value and not value.startswith("[")
        value = f"[{value}]:{ISNS_PORT}" if is_bare_ipv6 else f"{value}:{ISNS_PORT}"
    address = _address_of(value, expected)
    if address[1] == 0 or address[0].is_unspecified:
        raise wrong(expected)
    return address


def _entity(value: Any) -> str:
    is_text = isinstance(value, str) and value.isprintable() and value.strip() == value
    if not is_text or not 1 <= len(value.encode()) <= ENTITY_BYTES:
        raise wrong(f'a name of 1 to {ENTITY_BYTES} bytes, such as "room-a.example.com"')
    return str(value)


def _refresh(value: Any) -> int:
    span_ns: int = parse_span(value)
    if span_ns % NS_PER_MS or not 1 * NS_PER_S <= span_ns <= 3600 * NS_PER_S:
        raise wrong('a time of whole milliseconds from "1s" to "60min"')
    return span_ns


def _registration_period(value: Any) -> int:
    span_ns: int = parse_span(value)
    if span_ns % NS_PER_S or not 2 * NS_PER_S <= span_ns <= 86_400 * NS_PER_S:
        raise wrong('a time of whole seconds from "2s" to "1440min"')
    return span_ns


def _fc_id(value: Any) -> int:
    if not isinstance(value, str) or not re.fullmatch("[0-9a-fA-F]{6}", value):
        raise wrong('six hexadecimal digits, such as "020100"')
    return int(value, 16)


class Fabric(Table):
    """The fabric that the gateway serves."""

    name: Annotated[int, PlainValidator(_wwn)] = setting(examples=["10:00:00:1b:32:0a:0b:0c"])
    """World wide name of the fabric and its switch."""
    domain: Annotated[int, Whole(1, 239)] = setting(1, examples=[1, 7])
    """Upper byte of the addresses of its ports."""
    addresses: Annotated[str, PlainValidator(_path)] | None = setting(None, examples=["room-a.addresses"])
    """File of the addresses that ports have had; default: beside this file, with the ending `.addresses`."""
    fc_map: Annotated[int, PlainValidator(_fc_map)] = setting("0e:fc:00", examples=["0e:fc:00"])
    """Upper half of the Ethernet addresses that ports get."""
    priority: Annotated[int, Whole(0, 255)] = setting(128, examples=[128])
    """Rank among forwarders on one Ethernet; nodes prefer the lowest number."""
    keep_alive: Annotated[int, PlainValidator(_keep_alive)] = setting("8s", examples=["8s"])
    """Time between advertisements and between a node's keep-alives."""
    drain_timeout: Annotated[int, PlainValidator(_drain)] = setting("10s", examples=["10s"])
    """Longest wait for exchanges under way when the gateway is told to stop. None begins meanwhile."""


class Ethernet(Table):
    """The interface behind which the nodes are."""

    interface: Annotated[str, PlainValidator(_interface)] = setting(examples=["eth1"])
    """Its name."""
    vlan: Annotated[int, Whole(1, 4094)] | None = setting(None, examples=[100])
    """Virtual LAN of FCoE and FIP; none: frames without a tag."""
    pause: bool = setting(True, examples=[False])
    """Sends PAUSE frames (IEEE 802.3x) while the gateway takes nothing, so that hosts wait and no frame is lost. They
    hold everything that the other end of the link sends, other traffic too."""


class Socket(Table):
    """A UNIX datagram socket on which each datagram is an Ethernet frame."""

    local: Annotated[str, PlainValidator(_path)] = setting(examples=["a.gateway"])
    """Path to which the node sends."""
    remote: Annotated[str, PlainValidator(_path)] = setting(examples=["a.node"])
    """Path of the node's own socket."""


class Ip(Table):
    """The way to other gateways: iFCP over TCP."""

    listen: Annotated[Address, PlainValidator(_address)] = setting(examples=["10.0.0.1:3420"])
    """Address to listen on; connections to peers go out from it. The port that IANA gave iFCP is 3420."""
    mode: Literal["transparent", "translation"] = setting("transparent", examples=["transparent"])
    """`transparent`: addresses are the same at all gateways, whose domains differ. `translation`: each gateway gives
    remote ports addresses of its own domain; RFC 6172 deprecates it. The same at all gateways."""
    congestion_control: Annotated[str, PlainValidator(_control)] | None = setting(
        None, examples=["cubic", "storage_friendly"]
    )
    """Congestion control of the connections: the kernel's own or one of `elephan kernel load`; none: the network
    namespace's default."""
    plaintext: bool = setting(False, examples=[True])
    """Allows connections beyond this machine, which are neither encrypted nor authenticated but by IP addresses."""


class Tls(Table):
    """Certificates of both sides, PEM: TLS 1.3 between elephan's own gateways; the standard has IPsec (RFC 3723)."""

    certificate: Annotated[str, PlainValidator(_path)] = setting(examples=["room-a.crt"])
    """This gateway's certificate: it names the address of `listen` (subjectAltName, IP)."""
    key: Annotated[str, PlainValidator(_path)] = setting(examples=["room-a.key"])
    """Its private key."""
    authority: Annotated[str, PlainValidator(_path)] = setting(examples=["gateways.crt"])
    """Certificate of the authority that signs those of all gateways, and no others'."""


class PeerPort(Table):
    """A port behind a peer, which this gateway presents to its own nodes."""

    name: Annotated[int, PlainValidator(_wwn)] = setting(examples=["20:00:00:1b:32:0a:0b:0c"])
    """Its world wide name."""
    node: Annotated[int, PlainValidator(_wwn)] | None = setting(None, examples=["10:00:00:1b:32:0a:0b:0c"])
    """World wide name of its node; default: that of the port."""
    id: Annotated[int, PlainValidator(_fc_id)] | None = setting(None, examples=["020100"])
    """Address that its own gateway gives it; mode `transparent` needs it."""
    role: Literal["initiator", "target", "both"] = setting("both", examples=["target"])
    """Its part in SCSI, as the name server tells."""

    def features(self) -> int:
        """Return the name server's features of SCSI (FC-GS, RFF_ID): 1 target, 2 initiator."""
        return {"target": 1, "initiator": 2, "both": 3}[self.role]


class Peer(Table):
    """Another gateway."""

    name: Name = setting(examples=["room-b"])
    """Its name here, for people."""
    address: Annotated[Address, PlainValidator(_address)] = setting(examples=["10.0.0.2:3420"])
    """Its `listen`."""
    port: list[PeerPort] = setting([], examples=[[{"name": "20:00:00:1b:32:0a:0b:0c"}]])
    """The ports behind it."""


class Isns(Table):
    """A name server that lists other gateways and their ports (iSNS, RFC 4171), and where this gateway registers."""

    server: Annotated[Address, PlainValidator(_server)] = setting(examples=["10.0.0.9"])
    """Its IP address, with a port where that is not 3205."""
    entity: Annotated[str, PlainValidator(_entity)] | None = setting(None, examples=["room-a.example.com"])
    """Name of this gateway at the server, which no other has; default: that of the fabric."""
    source: Literal["control_node", "ports"] = setting("control_node", examples=["control_node"])
    """Source of requests: `control_node`, the gateway, which sees all ports; `ports`, each of its ports, which sees
    those of its discovery domains. open-isns 0.101 takes the first alone."""
    scn_port: Annotated[int, Whole(1, 65535)] | None = setting(None, examples=[3206])
    """TCP port at `listen` at which the server connects to send notifications; none: any that is free."""
    refresh: Annotated[int, PlainValidator(_refresh)] = setting("15s", examples=["15s"])
    """Time between two queries without a notification."""
    registration_period: Annotated[int, PlainValidator(_registration_period)] = setting("5min", examples=["5min"])
    """Time after which the server forgets a gateway that does not ask, and a gateway what a silent server listed; at
    least twice `refresh`."""


class Statistics(Table):
    """Ways to read the counters."""

    prometheus: Annotated[Address, PlainValidator(_loopback)] | None = setting(None, examples=["127.0.0.1:9325"])
    """Address of this machine at which /metrics is, in Prometheus' text format; none: nowhere."""


class Config(Table):
    """A gateway."""

    fabric: Fabric = setting(examples=[{"name": "10:00:00:1b:32:0a:0b:0c"}])
    ethernet: Ethernet | None = setting(None, examples=[{"interface": "eth1"}])
    socket: list[Socket] = setting([], examples=[[{"local": "a.gateway", "remote": "a.node"}]])
    ip: Ip | None = setting(None, examples=[{"listen": "10.0.0.1:3420"}])
    tls: Tls | None = setting(None, examples=[{"certificate": "a.crt", "key": "a.key", "authority": "ca.crt"}])
    peer: list[Peer] = setting([], examples=[[{"name": "room-b", "address": "10.0.0.2:3420"}]])
    isns: Isns | None = setting(None, examples=[{"server": "10.0.0.9"}])
    statistics: Statistics = setting({}, examples=[{"prometheus": "127.0.0.1:9325"}])

    @model_validator(mode="after")
    def _one_way(self) -> Config:
        if (self.ethernet is None) == (not self.socket):
            raise wrong("one [ethernet] with an interface, or [[socket]] tables: one of the two is needed")
        return self

    @model_validator(mode="after")
    def _peers(self) -> Config:
        if self.ip is None:
            if self.peer or self.tls is not None or self.isns is not None:
                raise wrong("[ip] with listen is needed beside [[peer]], [isns] and [tls]")
            return self
        if self.ip.plaintext and self.tls is not None:
            raise wrong("one of [tls] and plaintext", "ip", "plaintext")
        is_open = not self.ip.plaintext and self.tls is None
        refused = (
            "[tls] with certificates, or plaintext = true in [ip] where a closed network or IPsec protects the frames "
            "(RFC 3723): an address beyond this machine needs one of them"
        )
        if is_open and not self.ip.listen[0].is_loopback:
            raise wrong(refused, "ip", "listen")
        if self.isns is not None:
            self._check_isns(self.ip, self.isns, refused if is_open else None)
        names: set[str] = set()
        ports: set[int] = set()
        for number, peer in enumerate(self.peer):
            if is_open and not peer.address[0].is_loopback:
                raise wrong(refused, "peer", number, "address")
            if peer.name in names:
                raise wrong("a name that no other peer has", "peer", number, "name")
            names.add(peer.name)
            for place, port in enumerate(peer.port):
                at = ("peer", number, "port", place)
                if port.name in ports:
                    raise wrong("a port that is behind one peer, once", *at, "name")
                ports.add(port.name)
                if self.ip.mode == "transparent" and port.id is None:
                    raise wrong("missing; mode transparent needs the address that the peer gives the port", *at, "id")
                if port.id is not None and port.id >> 16 == self.fabric.domain:
                    raise wrong(f"an address of another domain than this fabric's, {self.fabric.domain}", *at, "id")
        return self

    @staticmethod
    def _check_isns(ip: Ip, isns: Isns, refused: str | None) -> None:
        """Check [isns] against [ip]; `refused` says why addresses beyond this machine are refused, or is None."""
        if refused is not None and not isns.server[0].is_loopback:
            raise wrong(refused, "isns", "server")
        if ip.listen[0].is_unspecified:
            raise wrong("an address at which others reach this gateway: [isns] registers it", "ip", "listen")
        if isns.registration_period < 2 * isns.refresh:
            raise wrong("a time of at least twice refresh", "isns", "registration_period")

    def vlan_tag(self) -> int | None:
        """Return the tag of frames, with its priority; None where they have none."""
        vlan = None if self.ethernet is None else self.ethernet.vlan
        return None if vlan is None else PRIORITY << 13 | vlan


def address_text(address: Address) -> str:
    """Return ADDRESS:PORT, an IPv6 address in brackets."""
    host, port = address
    return f"[{host}]:{port}" if host.version == 6 else f"{host}:{port}"


def addresses_file(file: Path, config: Config) -> Path:
    """Return the file of the addresses that ports have had, of the gateway with a file."""
    own = config.fabric.addresses
    return file.with_suffix(".addresses") if own is None else file.parent / own
