"""A path by netem, the kernel's own network emulator, in place of elephan's (tc-netem(8)).

Between the hosts stand three routers, namespaces of their own: `left`, where the hosts at the line's one end are,
`right`, and `middle`. Towards the other end, the first router has the line's rate and its queue, the middle one what
comes after it: delay, jitter and loss. One netem for both would count what is on its way as waiting, and so would
drop at the wrong place.

Devices have one address and no ARP, as TUN devices have none: the first packet of a path is the program's.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.errors import InputError, RunError
from elephan.network_namespace import within
from elephan.path import report, testbed
from elephan.path.changes import STATE_KEYS, Change
from elephan.path.testbed import DEVICE, IPV6_NETWORK, IPV6_SYSCTLS, NETWORK, Host, Site, ip

ETHERNET_BYTES = 14
"""Bytes that the kernel counts with each packet, and elephan does not."""
MAC = "02:00:00:00:00:01"
"""Of every device: what is sent without ARP carries its sender's address, and the receiver takes it for its own."""
LINE = "line"
ROUTERS = ("left", "middle", "right")
ROOM_PACKETS = 1_000_000
"""Limit of the packets in flight; the queue is bounded before."""
UNBOUNDED_BPS = 100_000_000_000
"""A rate that delays nothing: a netem that has one keeps packets in order, whatever their jitter."""


@dataclass(frozen=True)
class Direction:
    """Settings of netem for one direction of the line, as words of tc-netem(8)."""

    line: tuple[str, ...]
    """Of the router where it begins: rate and queue."""
    way: tuple[str, ...]
    """Of the one in the middle: delay, jitter, loss."""
    queue_packets: int
    """Limit of the queue, packets."""


def wanted(spec: Mapping[str, Any]) -> bool:
    """Return True if a specification asks for netem."""
    return spec.get("emulator") == "netem"


def missing() -> str | None:
    """Return what this machine lacks for netem, as one line; None when nothing."""
    try:
        done = subprocess.run(
            ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return f"needs the commands unshare and tc (Debian packages util-linux, iproute2): {error.strerror}"
    if done.returncode != 0:
        return f"needs netem, which this kernel has not (modprobe sch_netem): {' '.join(done.stderr.split())}"
    return None


def require(spec: Mapping[str, Any]) -> None:
    """Raise `InputError` where a specification asks for netem and it or this machine is not one for it."""
    if not wanted(spec):
        return
    directions(spec)
    # Without the rights for a path the check is impossible; that is reported before anything is made.
    problem = missing() if testbed.missing() is None else None
    if problem is not None:
        raise InputError(f'path.emulator = "netem": {problem}; "elephan" needs none')


def directions(spec: Mapping[str, Any]) -> tuple[Direction, Direction]:
    """Return netem's settings, from left to right and back. Raises `InputError` for a setting that it lacks."""
    if len(spec["links"]) != 2:
        raise _refused('access: netem emulates the line alone: access = "none"')
    for what in ("events", "background", "short_flows"):
        if spec.get(what):
            name = {"events": "[[event]]", "background": "[[background]]", "short_flows": "short_flows"}[what]
            raise _refused(f"{name}: netem's line stays as it is, and nothing but the flows is on it")
    mtu_bytes = max(flow["transport"]["mtu_bytes"] for flow in spec["flows"])
    forward, reverse = (_direction(link, mtu_bytes) for link in spec["links"])
    return forward, reverse


def _direction(link: Mapping[str, Any], mtu_bytes: int) -> Direction:
    name, queue = link["name"], link["queue"]
    if queue["kind"] != "drop_tail":
        raise _refused(f'{name}: queue "{queue["kind"]}": netem drops at the tail: a number of packets or bytes')
    if "policer" in link:
        raise _refused(f"{name}: policer: netem has none: leave it out")
    # Its queue is one of packets, and counts the one that is being sent.
    packets = queue["limit_packets"] or -(-queue["limit_bytes"] // mtu_bytes)
    framing = link.get("framing") or {}
    overhead = framing.get("header_bytes", 0) + framing.get("gap_bytes", 0) - ETHERNET_BYTES
    line = ("rate", f"{link['rate_bps']}bit", str(overhead), "limit", str(packets + 1))
    way = (*_delay(link), *_loss(name, link["loss"]), "limit", str(ROOM_PACKETS))
    return Direction(line, way, packets)


def _delay(link: Mapping[str, Any]) -> tuple[str, ...]:
    jitter = link["jitter"]
    if jitter is None:
        return ("delay", _us(link["delay_ns"]))
    if jitter["distribution"] != "uniform":
        raise _refused(f'{link["name"]}: jitter "{jitter["distribution"]}": with netem it is uniform: jitter = "1ms"')
    # From nothing to the whole of it is the middle, more or less half.
    half_ns = jitter["scale_ns"] / 2
    delay = ("delay", _us(link["delay_ns"] + half_ns), _us(half_ns))
    return delay if jitter["reordering"] else (*delay, "rate", f"{UNBOUNDED_BPS}bit")


def _loss(name: str, loss: Mapping[str, Any]) -> tuple[str, ...]:
    match loss["kind"]:
        case "none":
            return ()
        case "independent":
            return ("loss", "random", _percent(loss["probability_e12"]))
        case "gilbert_elliott":
            order = ("good_to_bad_e12", "bad_to_good_e12", "loss_bad_e12", "loss_good_e12")
            return ("loss", "gemodel", *(_percent(loss[part]) for part in order))
        case kind:
            raise _refused(
                f'{name}: loss "{kind}": netem draws losses: a probability, or {{ model = "gilbert_elliott", ... }}'
            )


def _refused(text: str) -> InputError:
    return InputError(f'path.emulator = "netem": {text}; emulator = "elephan" does it')


def _us(ns: float) -> str:
    return f"{ns / 1000:.3f}us"


def _percent(e12: int) -> str:
    return f"{e12 / 10**10:.10f}%"


class Netem:
    """The routers of one run's line, from `made`: its devices come and go with the namespaces."""

    def __init__(self, place: Site, spec: Mapping[str, Any]) -> None:
        """Take the hosts' namespaces, which are there, for a specification that `require` has checked."""
        self.place = place
        self.directions = directions(spec)
        left, middle, right = (f"{place.prefix}{name}" for name in ROUTERS)
        self._stages = (((left, LINE), (middle, "right")), ((right, LINE), (middle, "left")))
        """Namespace and device of both qdiscs, of both directions."""
        self._ends = (left, right)
        self._middle = middle
        self._backlog = _backlog_drops()

    def make(self) -> None:
        """Make routers and devices, with everything but the hosts' addresses. Raises `RunError`."""
        ip(lines=[f"netns add {name}" for name in (*self._ends, self._middle)])
        for name in (*self._ends, self._middle):
            within(Path("/run/netns") / name, _forwarding)
        mtu_bytes = max(host.mtu_bytes for host in self.place.hosts)
        networks = (NETWORK, *((IPV6_NETWORK,) if any(host.has_ipv6 for host in self.place.hosts) else ()))
        for router, side in zip(self._ends, ("left", "right"), strict=True):
            _joined(router, LINE, self._middle, side, mtu_bytes)
            ip("-n", router, lines=[f"route add {network} dev {LINE}" for network in networks])
        for number, (host, name) in enumerate(zip(self.place.hosts, self.place.names, strict=True)):
            router, side = self._ends[host.node], ("left", "right")[host.node]
            _joined(name, DEVICE, router, f"h{number}", host.mtu_bytes)
            # One packet per frame of the line: netem would lose or delay 64 KB at once.
            ip("-n", name, lines=[f"link set {DEVICE} gso_max_segs 1"])
            targets = (f"{host.address}/32", *((f"{host.ipv6_address}/128",) if host.has_ipv6 else ()))
            ip("-n", router, lines=[f"route add {target} dev h{number}" for target in targets])
            ip("-n", self._middle, lines=[f"route add {target} dev {side}" for target in targets])
        for name in (*self._ends, self._middle):
            # Only now that the devices are without multicast: a router would report its groups on them (RFC 3810).
            within(Path("/run/netns") / name, _forwarding_ipv6)
        self._set("replace", self.directions)

    @property
    def carrier(self) -> Callable[[], list[dict[str, int]]]:
        """Return the carrier for `_native.run_on_kernel`: a function that reads the counters of the links."""
        return self.counters

    def event_times(self) -> list[float | None]:
        """Return the times of its events: there are none."""
        return []

    def change(self, change: Change, present: Mapping[str, Any]) -> None:
        """Change the line, which is `present` then: packets that wait or are on their way stay. Raises `InputError`."""
        if change["mtus"]:
            raise _refused("mtu: its routers keep theirs")
        if any(action["kind"] in STATE_KEYS for action in change["actions"]):
            raise _refused("link_down, link_up: its line is always up; path.loss=1 loses all")
        before, wanted = self.directions, directions(present)
        try:
            self._set("change", wanted)
        except RunError as error:
            self._set("change", before)
            raise InputError(f"the path keeps what it has: {error}") from error
        self.directions = wanted

    def _set(self, act: str, settings: tuple[Direction, Direction]) -> None:
        for stages, direction in zip(self._stages, settings, strict=True):
            for (namespace, device), words in zip(stages, (direction.line, direction.way), strict=True):
                tc("-n", namespace, "qdisc", act, "dev", device, "root", "netem", *words)

    def start(self, spec: Mapping[str, Any]) -> None:
        """Nothing: it carries as soon as it is made."""

    def stop(self, spec: Mapping[str, Any]) -> report.NetemReport:
        """Return the report; the end of the namespaces ends netem."""
        return self.report(spec, {})

    def report(self, spec: Mapping[str, Any], core: Mapping[str, Any]) -> report.NetemReport:
        """Return the report so far."""
        queues = tuple(direction.queue_packets for direction in self.directions)
        return report.NetemReport([link["name"] for link in spec["links"]], self.counters(), queues, self.own_drops())

    def counters(self) -> list[dict[str, int]]:
        """Return what each direction has carried and lost so far, under the names of a record's links."""
        return [_counted(*(_qdisc(*stage) for stage in stages)) for stages in self._stages]

    def own_drops(self) -> int:
        """Return the packets lost beside netem: in devices, and in the kernel's backlog before its protocols."""
        found = _backlog_drops() - self._backlog
        for name in (*self.place.names, *self._ends, self._middle):
            for device in json.loads(ip("-n", name, "-j", "-s", "link", "show")):
                found += sum(int(device["stats64"][way]["dropped"]) for way in ("rx", "tx"))
        return found


@contextmanager
def carried(hosts: Sequence[Host], spec: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[Netem]:
    """Make hosts and the line between them, and remove them with their processes. Raises `RunError`."""
    place = Site(hosts, about)
    try:
        place.make()
        path = Netem(place, spec)
        path.make()
        place.configure()
        yield path
    finally:
        place.remove()


def _joined(near: str, near_device: str, far: str, far_device: str, mtu_bytes: int) -> None:
    ends = f"{near_device} netns {near} type veth peer name {far_device} netns {far}"
    ip(lines=[f"link add {ends}"])
    for name, device in ((near, near_device), (far, far_device)):
        ip("-n", name, lines=[f"link set {device} address {MAC} arp off multicast off mtu {mtu_bytes} up"])


def _forwarding() -> None:
    for name, value in (("ip_forward", "1"), ("conf/all/rp_filter", "0"), ("conf/default/rp_filter", "0")):
        (Path("/proc/sys/net/ipv4") / name).write_text(value)
    if IPV6_SYSCTLS.exists():
        # As on the hosts' devices: no packets of the kernel's own.
        (IPV6_SYSCTLS / "default" / "addr_gen_mode").write_text("1")


def _forwarding_ipv6() -> None:
    if IPV6_SYSCTLS.exists():
        (IPV6_SYSCTLS / "all" / "forwarding").write_text("1")


def tc(*arguments: str) -> str:
    """Run tc(8). Raises `RunError` with its words."""
    # As ip() of testbed.py, out of the terminal's reach.
    done = subprocess.run(["tc", *arguments], capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode != 0:
        raise RunError(f"tc {' '.join(arguments)}: {' '.join(done.stderr.split())}")
    return done.stdout


def _qdisc(namespace: str, device: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(tc("-n", namespace, "-s", "-j", "qdisc", "show", "dev", device))
    return found[0]


def _counted(line: Mapping[str, Any], way: Mapping[str, Any]) -> dict[str, int]:
    return {
        "delivered_packets": way["packets"],
        "delivered_bytes": way["bytes"] - ETHERNET_BYTES * way["packets"],
        "dropped_by_queue": line["drops"],
        "dropped_by_loss": way["drops"],
    }


def _backlog_drops() -> int:
    """Packets that any processor's backlog had no room for, since the machine started (second column, hexadecimal)."""
    lines = Path("/proc/net/softnet_stat").read_text().splitlines()
    return sum(int(line.split()[1], 16) for line in lines)
