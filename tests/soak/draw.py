"""A scenario drawn at random from a seed: topology, lines, queues, losses, workloads, controls, events, manager.

Everything that is drawn is valid, and small: a run takes about a second. The same seed gives the same text everywhere.
"""

from __future__ import annotations

import random
from typing import Any

from elephan.core import native
from elephan.scenario.toml import format_value

Table = dict[str, Any]

DURATION_MS = (500, 4000)
PACKETS = 60_000
"""About so many full packets fit through the fastest line in a run."""


SANS_EVERY = 8
"""One seed in so many has Fibre Channel gateways."""

POLICED_EVERY = 5
"""One seed in so many may have policers."""

LINES_EVERY = 7
"""One seed in so many may have lines by their type, hosts that take time, and mixes of frames."""

COPIES_EVERY = 11
"""One seed in so many copies files."""

HOSTS_EVERY = 3
"""One seed in so many names two hosts."""

ERAS_EVERY = 4
"""One seed in so many has senders as of 2002 to 2006 and a line that loses packets in runs."""

FIXED_EVERY = 4
"""One seed in so many, 2 and up, has lines that never change and drop what finds no room: the core takes horizons."""

PERIODS_EVERY = 6
"""Every so many draws, sources have exact periods."""

IPV6_EVERY = 5
"""One seed in so many, 3 and up, has flows over IPv6."""

WINDOWS_EVERY = 13
"""One seed in so many has windows of the measurement, and a wait for a flow whose sender takes its time."""


def drawn(seed: int) -> str:
    """Return the scenario of a seed as TOML."""
    return as_toml(scenario(random.Random(seed), seed))


def as_toml(top: Table) -> str:
    """Return a scenario as TOML: a table per section, inline below that."""
    lines = [f"{key} = {format_value(value)}" for key, value in top.items() if not sections(value)]
    for key, value in top.items():
        for table in sections(value):
            lines.append(f"\n[[{key}]]" if isinstance(value, list) else f"\n[{key}]")
            lines += [f"{name} = {format_value(item)}" for name, item in table.items()]
    return "\n".join(lines) + "\n"


def sections(value: Any) -> list[Table]:
    """Return the tables that a top-level key has sections for."""
    return [value] if isinstance(value, dict) else value if isinstance(value, list) else []


def scenario(rng: random.Random, seed: int) -> Table:
    """Return a scenario as tables."""
    # By the seed, so that the other seeds draw what they drew before there were gateways.
    net = sans(rng) if seed % SANS_EVERY == 0 else rng.choice([short_form, dumbbell, hybrid])(rng)
    if seed % POLICED_EVERY == 0:
        policed(random.Random(seed), net)
    duration = rng.randint(*DURATION_MS)
    fastest = net.pop("fastest_bps")
    duration = max(50, min(duration, PACKETS * 1500 * 8 * 1000 // fastest))
    top: Table = {
        "name": f"soak-{seed}",
        "run": {
            "duration": f"{duration}ms",
            "seed": rng.randrange(2**64),
            "stop_when_done": rng.random() < 0.8,
            "exact": rng.random() < 0.5,
        },
    }
    ends, routes = net.pop("ends"), net.pop("routes")
    links = net.pop("line_names")
    top |= net
    top["flow"] = [flow(rng, number, duration, rng.choice(ends), routes) for number in range(rng.randint(1, 5))]
    if seed % SANS_EVERY == 0:
        top["flow"] = [between_gateways(rng, one) for one in top["flow"]]
    if rng.random() < 0.5:
        top["background"] = [background(rng, number, duration, rng.choice(ends)) for number in range(rng.randint(1, 2))]
    events = [event(rng, duration, links, top, routes) for _ in range(rng.choice([0, 0, 1, 2, 4]))]
    # A source that is switched off twice, or a link that comes up before it went down, is as valid as the usual order.
    top["event"] = sorted(events, key=lambda one: int(one.get("at", "0ms")[:-2]))
    if routes and rng.random() < 0.5:
        top |= managed(rng)
    top["measure"] = {"series": rng.choice([f"{max(1, duration // 40)}ms", False])}
    if rng.random() < 0.5:
        top["measure"]["warmup"] = f"{duration // 4}ms"
    if seed % HOSTS_EVERY == 0:
        # Of the backend hosts alone: the others pass over it.
        top["hosts"] = {"left": "nyc", "right": "lax"}
    if seed % COPIES_EVERY == 0:
        copied(random.Random(seed), top["flow"])
    if seed % LINES_EVERY == 0:
        lined(random.Random(seed), top)
    if seed % ERAS_EVERY == 1:
        of_the_eras(random.Random(seed), top)
    if seed % WINDOWS_EVERY == 0:
        windowed(random.Random(seed), top, duration, links)
    if seed % FIXED_EVERY == 2:
        fixed(top)
    if seed % PERIODS_EVERY == 1:
        periodic(random.Random(seed), top, duration)
    if seed % IPV6_EVERY == 3:
        over_ipv6(random.Random(seed), top)
    top["sweep"] = {"flow.0.congestion_control": rng.sample(controls(), 2)}
    return {key: value for key, value in top.items() if value != []}


def periodic(rng: random.Random, top: Table, duration: int) -> None:
    """Give sources exact periods or hours of the day, and background traffic speech."""
    top["run"]["time_of_day"] = "21:59:59"

    def active() -> Any:
        lengths = {key: f"{rng.randint(1, duration)}ms" for key in ("on", "off")}
        return rng.choice([lengths, "22:00-06:00", {"hours": "08:00-22:00"}])

    for source in top.get("background", []):
        source |= {"active": active()}
        if "mix" not in source:
            source["codec"] = rng.choice(["g711", "g711_without_plc", "g729a", "none"])
    for one in top["flow"]:
        workload = one["workload"]
        if workload["kind"] in ("constant_rate", "short_flows") or (
            workload["kind"] == "replicate" and "rate" in workload
        ):
            workload["active"] = active()


def over_ipv6(rng: random.Random, top: Table) -> None:
    """Let most flows go over IPv6, which takes an MTU of 1280 B or more."""
    for line in [top["path"]] if "path" in top else top["link"]:
        if line.get("mtu") == "576B":
            line["mtu"] = "1280B"
    for one in top["flow"]:
        if rng.random() < 0.7:
            one["ip_version"] = 6


def fixed(top: Table) -> None:
    """Take away whatever decides on a packet when it comes, or changes a line or a route."""
    for line in [top["path"]] if "path" in top else top["link"]:
        for side in (line, line.get("reverse", {})):
            side.pop("jitter", None)
            side.pop("policer", None)
            if "queue" in side:
                side["queue"] = side["queue"]["limit"]
    for node in top.get("node", []):
        node.pop("send", None)
        node.pop("receive", None)
    kept = [one for one in top["event"] if {"background_on", "background_off"} & one.keys()]
    if len(kept) != len(top["event"]):
        windows = top["measure"].get("windows", [])
        top["measure"]["windows"] = [one for one in windows if "event" not in one]
    top["event"] = kept
    top.pop("manager", None)
    top.pop("lightpath", None)


def of_the_eras(rng: random.Random, top: Table) -> None:
    """Give flows the options of older senders, and a line losses in runs."""
    for one in top["flow"]:
        if one["workload"]["kind"] == "short_flows" or rng.random() < 0.3:
            continue
        for key, value in (("cwnd_validation", False), ("count", "acks"), ("nagle", True)):
            if rng.random() < 0.5 and (key != "nagle" or one.get("transport", "tcp") == "tcp"):
                one[key] = value
        if rng.random() < 0.5:
            one |= {"recovery": "sack", "lost_retransmissions": rng.choice(["era", "never", "repeatedly"])}
    line = top["path"] if "path" in top else rng.choice(top["link"])
    line["loss"] = {"run": rng.randint(1, 30), "begins": 10.0 ** -rng.randint(2, 4)}


def windowed(rng: random.Random, top: Table, duration: int, links: list[str]) -> None:
    """Add windows of the measurement, a sender that takes time for each packet, and an event that waits for it."""
    elastic = [one for one in top["flow"] if one["workload"]["kind"] != "short_flows"]
    if not elastic:
        return
    waiting = rng.choice(elastic)
    waiting["send_overhead"] = {"scale": f"{rng.randint(1, 500)}us", "distribution": rng.choice(["uniform", "normal"])}
    windows = [{"name": "early", "from": "0s", "to": f"{max(1, duration // 3)}ms"}]
    if top["event"]:
        left = duration - int(top["event"][0]["at"][:-2])
        windows.append({"name": "wake", "event": 0, "from": "0s", "to": f"{left}ms"})
    top["measure"]["windows"] = windows
    if waiting.get("connections", 1) == 1 and waiting["workload"]["kind"] == "bulk":
        when = {"flow": waiting["name"], "reaches": rng.choice(["10%", "2Mbit/s"]), "settled": f"{duration // 4}ms"}
        top["event"].append({"when": when, "link_down": rng.choice(links)})


def controls() -> list[str]:
    """Return the names of the congestion controls that are built in."""
    return sorted(one["name"] for one in native.congestion_controls())


def line(rng: random.Random, most_bps: int = 200_000_000) -> Table:
    """Return the keys of a line, without its delay."""
    made: Table = {"bandwidth": f"{rng.randint(1_000_000, most_bps) // 1000}kbit/s", "queue": queue(rng)}
    if rng.random() < 0.4:
        made["loss"] = loss(rng)
    if rng.random() < 0.25:
        made["jitter"] = {
            "scale": f"{rng.randint(1, 3000)}us",
            "distribution": rng.choice(["uniform", "exponential", "normal"]),
            "reordering": rng.random() < 0.5,
        }
    if rng.random() < 0.25:
        made["mtu"] = rng.choice(["576B", "1500B", "9000B"])
    if rng.random() < 0.3:
        back: Table = {"bandwidth": f"{rng.randint(500_000, most_bps) // 1000}kbit/s"}
        if rng.random() < 0.5:
            back["queue"] = queue(rng)
        if rng.random() < 0.5:
            back["loss"] = loss(rng)
        made["reverse"] = back
    return made


def policed(rng: random.Random, net: Table) -> None:
    """Give some lines a policer, forward or back."""
    for one in [net["path"]] if "path" in net else net["link"]:
        if rng.random() < 0.5:
            continue
        # The least burst passes a packet of every MTU that is drawn.
        policer = {
            "rate": f"{max(1, rate_of(one) * rng.randint(10, 200) // 100_000)}kbit/s",
            "burst": rng.choice(["9000B", "32KiB", "1MB"]),
        }
        if rng.random() < 0.8:
            one["policer"] = policer
        else:
            one["reverse"] = one.get("reverse", {}) | {"policer": policer}


def lined(rng: random.Random, top: Table) -> None:
    """Give some links a line in place of their bandwidth, a host a cost, and a source several sizes."""
    for link in [top["path"]] if "path" in top else top["link"]:
        if rng.random() < 0.5 and "bandwidth" not in link.get("reverse", {}):
            del link["bandwidth"]
            link["line"] = "oc-3"
    ends = {flow.get("from") for flow in top["flow"]}
    for node in top.get("node", []):
        if node["name"] in ends and node.get("kind", "host") == "host" and rng.random() < 0.5:
            node["send"] = {"packet": f"{rng.randint(0, 50)}us", "rate": f"{rng.randint(50, 500)}Mbit/s"}
            node["receive"] = {"rate": "500Mbit/s", "ring": f"{rng.randint(1, 200)} packets"}
            offloaded(rng, node)
    for source in top.get("background", []):
        source.pop("packet", None)
        source["mix"] = {"500B": rng.randint(1, 9), "46B": rng.randint(1, 9)}


def offloaded(rng: random.Random, node: Table) -> None:
    """Give some hosts offloads and interrupt coalescing."""
    if rng.random() < 0.3:
        node["send"]["tso"] = f"{rng.randint(1, 100)}KiB"
    if rng.random() < 0.3:
        node["receive"]["gro"] = f"{rng.randint(1, 100)}KiB"
    if rng.random() < 0.3:
        node["receive"]["coalesce"] = f"{rng.randint(1, 500)}us"
        if rng.random() < 0.5:
            node["receive"]["coalesce_packets"] = rng.randint(1, 100)


def queue(rng: random.Random) -> Any:
    """Return a queue of any discipline."""
    limit = rng.choice(["5 packets", "50 packets", "1000 packets", "0.3bdp", "1bdp", "2bdp", "100kB"])
    kind = rng.choice(["droptail", "droptail", "red", "codel", "fq_codel"])
    made: Table = {"discipline": kind, "limit": "1000 packets" if kind == "fq_codel" else limit}
    if kind != "droptail":
        made["ecn"] = rng.random() < 0.5
    return made


def loss(rng: random.Random) -> Any:
    """Return losses of any kind."""
    return rng.choice(
        [
            10.0 ** -rng.randint(2, 5),
            {"good_to_bad": 10.0 ** -rng.randint(2, 5), "bad_to_good": rng.choice([0.05, 0.3, 0.9])},
            {"every": rng.randint(20, 5000)},
            {"bit_error_rate": 10.0 ** -rng.randint(6, 9)},
            {"bit_error_rate": 10.0 ** -rng.randint(6, 9), "burst": rng.choice([1, 100, 10_000])},
            {"packets": sorted(rng.sample(range(1, 2000), rng.randint(1, 40)))},
        ]
    )


def rate_of(link: Table) -> int:
    """Return the rate of a drawn line, bit/s."""
    return int(link["bandwidth"].removesuffix("kbit/s")) * 1000


def short_form(rng: random.Random) -> Table:
    """Return two sites with a line between them."""
    path = line(rng) | {"rtt": f"{rng.randint(0, 120_000)}us"}
    path["access"] = rng.choice(["none", "none", "2x", "1Gbit/s"])
    return {"path": path, "fastest_bps": rate_of(path), "ends": [{}], "routes": [], "line_names": ["path"]}


def dumbbell(rng: random.Random) -> Table:
    """Return two sites that share a line to a third."""
    trunk = line(rng) | {"name": "trunk", "from": "r1", "to": "r2", "delay": f"{rng.randint(0, 40_000)}us"}
    nodes = ["near", "far", "r1", "r2", "vault"]
    links = [
        line(rng) | {"name": "l1", "from": "near", "to": "r1", "delay": "1ms"},
        line(rng) | {"name": "l2", "from": "far", "to": "r1", "delay": f"{rng.randint(1, 60)}ms"},
        trunk,
        line(rng) | {"name": "l3", "from": "r2", "to": "vault"},
    ]
    ends = [{"from": "near", "to": "vault"}, {"from": "far", "to": "vault"}, {"from": "vault", "to": "near"}]
    return {
        "node": [{"name": name} for name in nodes],
        "link": links,
        "fastest_bps": max(rate_of(link) for link in links),
        "ends": ends,
        "routes": [],
        "line_names": [link["name"] for link in links],
    }


def hybrid(rng: random.Random) -> Table:
    """Return routers with a shorter line past one of them, which events and the manager may use."""
    links = [
        line(rng) | {"name": "access", "from": "host", "to": "r1"},
        line(rng) | {"name": "r1-r2", "from": "r1", "to": "r2", "delay": f"{rng.randint(1, 40)}ms"},
        line(rng) | {"name": "r2-r3", "from": "r2", "to": "r3", "delay": f"{rng.randint(1, 40)}ms"},
        line(rng) | {"name": "light", "from": "r1", "to": "r3", "delay": f"{rng.randint(0, 60)}ms"},
        line(rng) | {"name": "exit", "from": "r3", "to": "vault"},
    ]
    return {
        "node": [{"name": name} for name in ("host", "r1", "r2", "r3", "vault")],
        "link": links,
        "fastest_bps": max(rate_of(link) for link in links),
        "ends": [{"from": "host", "to": "vault"}],
        "routes": [["host", "r1", "r2", "r3", "vault"], ["host", "r1", "r3", "vault"]],
        "line_names": [link["name"] for link in links],
    }


def sans(rng: random.Random) -> Table:
    """Return two gateways with a router between."""
    gateways: list[Table] = [
        {
            "name": name,
            "kind": "gateway",
            "rate": rng.choice(["1GFC", "8GFC", "100Mbit/s"]),
            "credits": rng.choice([1, 4, 64]),
            "distance": rng.choice(["10m", "1.5km", "200km"]),
            "buffer": rng.choice(["1B", "20kB", "256KiB"]),
        }
        for name in ("near", "far")
    ]
    links = [
        line(rng) | {"name": "l1", "from": "near", "to": "r1", "delay": "1ms"},
        line(rng) | {"name": "l2", "from": "r1", "to": "far", "delay": f"{rng.randint(0, 40_000)}us"},
    ]
    return {
        "node": [*gateways, {"name": "r1", "kind": "host"}],
        "link": links,
        "fastest_bps": max(rate_of(link) for link in links),
        "ends": [{"from": "near", "to": "far"}, {"from": "far", "to": "near"}],
        "routes": [],
        "line_names": [link["name"] for link in links],
    }


def between_gateways(rng: random.Random, made: Table) -> Table:
    """Return a flow with pairs of N_Ports as its workload, or as it was."""
    if made["workload"]["kind"] == "short_flows" or rng.random() < 0.3:
        return made
    connections = made.get("connections", 1)
    protocol = rng.choice(["ifcp", "fcip"])
    workload = scsi(rng, protocol) if rng.random() < 0.5 else frames(rng, protocol)
    if protocol == "fcip":
        workload["pairs"] = connections + rng.randint(0, 3)
    return {key: value for key, value in made.items() if key not in ("distribution", "stagger", "transport")} | {
        "workload": workload
    }


def frames(rng: random.Random, protocol: str) -> Table:
    """Return a load of frames as a workload."""
    return {
        "kind": "fc",
        "protocol": protocol,
        "load": rng.choice(["5%", "60%", "3MB/s"]),
        "frame": rng.choice(["2112B", "36B", {"mix": {"2112B": 4, "65B": 1}}]),
        "arrivals": rng.choice(["constant", "poisson"]),
        "queue": rng.choice([1, 64]),
    }


def scsi(rng: random.Random, protocol: str) -> Table:
    """Return initiators and targets as a workload."""
    return {
        "kind": "fcp",
        "protocol": protocol,
        "queue_depth": rng.choice([1, 8, 64]),
        "disk": rng.choice(["none", "nvme", "cheetah-9lp"]),
        "frame": rng.choice(["2048B", "256B"]),
        "max_burst": rng.choice(["256KiB", "4KiB"]),
        "write_acceleration": rng.random() < 0.5,
        "source": {"kind": "mix", "reads": f"{rng.randint(0, 100)}%", "size": rng.choice(["512B", "8KiB", "1MiB"])},
    }


def flow(rng: random.Random, number: int, duration: int, ends: Table, routes: list[list[str]]) -> Table:
    """Return a flow, or an entry of short flows."""
    made: Table = {"name": f"f{number}", **ends, "workload": workload(rng, number)}
    if routes:
        made["route"] = routes[0]
    if made["workload"]["kind"] == "short_flows":
        return made
    if not ends and rng.random() < 0.3:
        made["direction"] = "reverse"
    # The first flow's is swept.
    if number:
        made["congestion_control"] = rng.choice(controls())
    if rng.random() < 0.4:
        made["connections"] = rng.randint(2, 4)
        if made["workload"]["kind"] != "iscsi":
            made["stagger"] = f"{rng.randint(0, duration // 20)}ms"
            made["distribution"] = rng.choice(["striped", "each"])
    if rng.random() < 0.3:
        made["start"] = f"{rng.randint(0, duration // 3)}ms"
    if rng.random() < 0.2:
        made["stop"] = f"{rng.randint(duration // 2, duration)}ms"
    if rng.random() < 0.3:
        made["window"] = rng.choice(["64kB", "300kB", "4MB"])
    for key in ("receive_autotuning", "ecn", "timestamps", "sack_compression", "undo"):
        if rng.random() < 0.2:
            made[key] = rng.random() < 0.5
    # Chances of their own: the scenarios of a seed stay those that they were.
    old = random.Random(f"old/{rng.getstate()[1][0]}")
    if made.get("receive_autotuning") and old.random() < 0.5:
        made["receive_buffers"] = "linux-6.15"
    paced = random.Random(f"paced/{rng.getstate()[1][0]}")
    if paced.random() < 0.1:
        made["max_pacing_rate"] = paced.choice(["500kbit/s", "3Mbit/s", "40Mbit/s"])
    if rng.random() < 0.4:
        made["recovery"] = rng.choice(["reno", "newreno", "sack", "rack"])
    if made["workload"]["kind"] == "bulk" and not {"connections", "stop"} & made.keys() and rng.random() < 0.3:
        made["workload"] = program(rng)
    if made["workload"]["kind"] in ("bulk", "constant_rate", "replicate") and rng.random() < 0.2:
        made["transport"] = rng.choice(["udt4", "udt-2003"])
    return made


def program(rng: random.Random) -> Table:
    """Return a real program, of which the simulator plays the streams, as a workload."""
    return {
        "kind": "program",
        "program": rng.choice(["scp", "rclone", "pget"]),
        "bytes": f"{rng.randint(100, 3000)}kB",
        "files": rng.choice([1, 3]),
        "streams": rng.choice([1, 4]),
    }


def workload(rng: random.Random, number: int) -> Table:
    """Return a workload of any kind that the simulator plays; the first flow is none of short ones alone."""
    kind = rng.choice(["bulk", "bulk", "bulk", "replicate", "constant_rate", "iscsi", *["short_flows"] * (number > 0)])
    if kind == "bulk":
        # Every other flow's writes are small, which takes no number of the others' draws.
        made: Table = {"kind": kind} | ({"buffer": "2048B"} if number % 2 else {})
        return made | ({"bytes": f"{rng.randint(1, 5000)}kB"} if rng.random() < 0.4 else {})
    if kind == "replicate":
        arrivals = rng.choice(["constant", "poisson", {"process": "on_off", "on": "20ms", "off": "50ms"}])
        size = rng.choice(["4KiB", "64KiB", {"median": "16KiB", "sigma": 1.0}])
        return {"kind": kind, "rate": f"{rng.randint(50, 8000)}kB/s", "size": size, "arrivals": arrivals}
    if kind == "constant_rate":
        return {"kind": kind, "frame": rng.choice(["512B", "2112B", "9000B"]), "load": f"{rng.randint(1, 60)}%"}
    if kind == "short_flows":
        sizes: Table = {"min": "5kB", "max": f"{rng.randint(1, 10)}MB", "pareto_shape": rng.choice([1.1, 1.5])}
        return {"kind": kind, "arrivals": rng.randint(2, 60)} | (
            sizes if rng.random() < 0.6 else {"median": "20kB", "sigma": 1.5}
        )
    return {
        "kind": kind,
        "disk": rng.choice(["none", "nvme", "cheetah-9lp"]),
        "queue_depth": rng.choice([1, 8, 64]),
        "initial_r2t": rng.random() < 0.5,
        "immediate_data": rng.random() < 0.5,
        "max_outstanding_r2t": rng.choice([1, 4]),
        "header_digest": rng.random() < 0.3,
        "data_digest": rng.random() < 0.3,
        "allegiance": rng.choice(["round_robin", "least_outstanding"]),
        "source": {
            "kind": "mix",
            "reads": rng.choice([0, 0.5, 1]),
            "size": rng.choice(["4KiB", "64KiB", "512KiB"]),
            "order": rng.choice(["random", "sequential"]),
        },
    }


def copied(rng: random.Random, flows: list[Table]) -> None:
    """Give the flows that carry bulk a set of files."""
    for flow in flows:
        if flow["workload"]["kind"] != "bulk" or "distribution" in flow:
            continue
        made: Table = {"kind": "copy", "files": rng.randint(1, 50), "size": "10kB", "max": f"{rng.randint(10, 200)}kB"}
        if rng.random() < 0.5:
            made["more"] = [{"size": f"{rng.randint(1, 3000)}kB"}, {"files": 3, "size": "0B"}]
        if rng.random() < 0.5:
            made |= {"changed": rng.choice(["0%", "3%", "80%"]), "hash": "800Mbit/s"}
        for key in ("read", "write", "limit"):
            if rng.random() < 0.3:
                made[key] = f"{rng.randint(1, 300)}Mbit/s"
        if rng.random() < 0.3:
            made |= {"jobs": 2, "every": f"{rng.randint(10, 300)}ms", "file_time": "100us", "chunk": "64KiB"}
        flow["workload"] = made


def background(rng: random.Random, number: int, duration: int, ends: Table) -> Table:
    """Return a source that does not react."""
    made: Table = {"name": f"b{number}", **ends, "rate": f"{rng.randint(1, 90)}%", "enabled": rng.random() < 0.8}
    # Passes every MTU that is drawn.
    made["packet"] = rng.choice(["64B", "576B"])
    if rng.random() < 0.5:
        made |= {"on": f"{rng.randint(1, duration)}ms", "off": f"{rng.randint(1, duration)}ms"}
    if not ends and rng.random() < 0.3:
        made["direction"] = "reverse"
    return made


def event(rng: random.Random, duration: int, links: list[str], top: Table, routes: list[list[str]]) -> Table:
    """Return a change: of a line, of a source, of a flow's route."""
    made: Table = {"at": f"{rng.randint(0, duration - 1)}ms"}
    elastic = [one["name"] for one in top["flow"] if one["workload"]["kind"] != "short_flows"]
    kinds = ["bandwidth", "loss", "link_down", "link_up", "delay"]
    kinds += ["background"] * ("background" in top) + ["move"] * (2 if routes and elastic else 0)
    kind = rng.choice(kinds)
    if kind == "move":
        made |= {"move": rng.choice(elastic), "route": rng.choice(routes)}
        if rng.random() < 0.7:
            made["mitigation"] = rng.choice(
                [
                    "hold_buffer",
                    {"kind": "hold_buffer", "release": "bottleneck", "buffer": "200kB"},
                    {"kind": "hold_buffer", "queue": "path", "error": "10%"},
                    "delay_equalization",
                    "cwnd_reduction",
                    ["hold_buffer", "cwnd_reduction"],
                    "reordering_tolerance",
                ]
            )
        return made
    if kind == "background":
        made[rng.choice(["background_on", "background_off"])] = rng.choice(top["background"])["name"]
    elif kind in ("link_down", "link_up"):
        made[kind] = rng.choice(links)
    elif kind == "bandwidth":
        made |= {"link": rng.choice(links), "bandwidth": f"{rng.randint(500, 200_000)}kbit/s"}
    elif kind == "loss":
        made |= {"link": rng.choice(links), "loss": rng.choice([0, loss(rng)])}
    elif "path" in top:
        made["rtt"] = f"{rng.randint(0, 120)}ms"
    else:
        made |= {"link": rng.choice(links), "delay": f"{rng.randint(0, 60)}ms"}
    return made


def managed(rng: random.Random) -> Table:
    """Return a manager with the lightpath of `hybrid`."""
    manager: Table = {
        "rate": rng.choice(["500kbit/s", "5Mbit/s"]),
        "volume": rng.choice(["0B", "100kB"]),
        "interval": rng.choice(["50ms", "200ms"]),
        "sampling_rate": rng.choice([1, 10]),
        "min_dwell_time": rng.choice(["100ms", "1s"]),
        "lightpath_timeout": "200ms",
        "refuse": rng.random() < 0.5,
    }
    if rng.random() < 0.5:
        manager["mitigations"] = rng.choice(
            [["hold_buffer"], ["cwnd_reduction"], [{"kind": "hold_buffer", "buffer": "400kB"}, "cwnd_reduction"]]
        )
    return {"manager": manager, "lightpath": [{"name": "lambda", "route": ["r1", "light", "r3"], "set_up": "100ms"}]}
