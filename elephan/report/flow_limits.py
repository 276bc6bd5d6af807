"""The limit of each bulk flow of a run, in one phrase: its losses and where they were, a window, a rate, its start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from elephan import units
from elephan.record import Record
from elephan.report.limits import CHANGES, Entry, entries, held_by_window
from elephan.run_spec.route import header_bytes

BULK = frozenset({"bulk", "copy", "program"})
"""Workloads that take all they get: others are limited by their own load, or have a note that says by what."""

FULL = 0.95
"""Part of a rate from which on it is the limit: the rest is a flow's start and its retransmissions."""

WAITS = 0.5
"""Part of the time with data that a sender waits for a window, by the kernel's account, from which on that is its
limit."""

MINOR = 0.05
"""Part of the drops of the place that drops most, from which on another place is named too."""

START_ROUND_TRIPS = 30
"""Round trips within which a flow without losses is still opening its window: slow start fills 10^6 packets in 17, with
delayed acknowledgments in 28."""

LOSS_BLIND = frozenset({"bbr"})
"""Controls that do not take a loss for congestion: losses below a fifth of the packets do not slow them (Cardwell et
al. 2016). Behind a policer its drops are what their model measures."""

PROBE_INTERVAL_S, PROBE_TIME_S = 10.0, 0.2
"""BBR's PROBE_RTT: when the least round trip is 10 s old, a window of 4 packets for 200 ms and a round trip (Linux
bbr_min_rtt_win_sec, bbr_probe_rtt_mode_ms)."""

JOINT = ", and "
"""Between the places that limit a flow together."""

CAUSES = {
    "dropped_by_policer": "the policer of {}, which dropped packets",
    "dropped_by_queue": "the queue of {}, which overflowed",
    "dropped_by_aqm": "the queue of {}, which dropped early",
    "dropped_by_loss": "losses on {}",
    "dropped_by_outage": "outages of {}",
}
"""Words for the part of a link that drops, by its counter."""


def flow_limits(records: Sequence[Record]) -> list[str]:
    """Return one note for each limit of a point, with the bulk flows that have it; of repetitions that differ, the
    numbers of those that have it."""
    limits: dict[str, Counter[str]] = {}
    for record in records:
        for entry in entries(record):
            limits.setdefault(entry.name, Counter())[_limit(record, entry)] += 1
    found: dict[str, list[str]] = {}
    for name, counts in limits.items():
        if text := _of_repetitions(counts):
            found.setdefault(text, []).append(name)
    return [
        f"{'flow' if len(names) == 1 else 'flows'} {', '.join(names)}: limited {text}" for text, names in found.items()
    ]


def _of_repetitions(counts: Counter[str]) -> str:
    """Return the limits of a flow in words, by the number of repetitions that have each; "" without a limit."""
    total = sum(counts.values())
    parts: Counter[str] = Counter()
    for limit, count in counts.items():
        for part in filter(None, limit.split(JOINT)):
            parts[part] += count
    always = [part for part, count in parts.items() if count == total]
    # The most frequent first; a tie in the order of the repetitions.
    texts = [f"by {JOINT.join(always)}"] if always else []
    texts += [f"in {count} of {total} repetitions by {part}" for part, count in parts.most_common() if count < total]
    return JOINT.join(texts)


def _limit(record: Record, entry: Entry) -> str:
    """Return the limit of an entry; "" for one that another note explains, or that is none of bulk."""
    workload = entry.specs[0]["workload"]
    if workload["kind"] not in BULK or not any(flow.get("delivered_bytes") for flow in entry.flows):
        return ""
    goodput = _goodput_bps(record, entry)
    if goodput is None:
        return ""
    own = _own_rate(entry, goodput)
    if own:
        return own
    changed = record.spec.get("manager") is not None or any(
        event["action"]["kind"] in CHANGES for event in record.spec["events"]
    )
    if changed:
        return _waits(entry) or _losses(record, entry) or ""
    full = _rate_of_path(record, entry, goodput)
    if full:
        return full
    if held_by_window(entry):
        # Its note says how far that is below the line.
        return ""
    losses = _losses(record, entry)
    found = _waits(entry) or losses or _start(record, entry)
    if found or losses is None:
        return found
    return "its congestion control: it lost nothing and reached no window and no rate"


def own_limit(record: Record) -> str:
    """Return the rates of their own that all flow entries of a run reach, in words; "" where one reaches none."""
    found = []
    for entry in entries(record):
        goodput = _goodput_bps(record, entry)
        found.append("" if goodput is None else _own_rate(entry, goodput))
    return " and ".join(dict.fromkeys(found)) if all(found) else ""


def _goodput_bps(record: Record, entry: Entry) -> float | None:
    """Return the goodput of an entry's connections together, bit/s."""
    group = entry.specs[0]["group"]
    shared = [found["goodput_bps"] for found in record.flow_groups if found.get("group") == group]
    each = [flow["goodput_bps"] for flow in entry.flows if flow.get("goodput_bps") is not None]
    own = [*shared[:1]] if shared and shared[0] is not None else each
    return sum(own) if own else None


def _own_rate(entry: Entry, goodput_bps: float) -> str:
    """Return a rate of the flow's own that it reaches."""
    tcp, workload = entry.specs[0]["transport"], entry.specs[0]["workload"]
    paced = tcp.get("max_pacing_bps")
    if paced is not None and goodput_bps >= FULL * paced * len(entry.specs) * _payload_share(tcp):
        return "its pacing rate (flow.max_pacing_rate)"
    rates = {name: workload.get(f"{name}_bps") for name in ("limit", "read", "hash", "write")}
    reached = [name for name, rate in rates.items() if rate is not None and goodput_bps >= FULL * rate]
    return f"its own rate (workload.{reached[0]})" if reached else ""


def _payload_share(tcp: Mapping[str, Any]) -> float:
    mtu = int(tcp["mtu_bytes"])
    return (mtu - header_bytes(tcp)) / mtu


def _rate_of_path(record: Record, entry: Entry, goodput_bps: float) -> str:
    """Return the link, or the policer, whose rate is full, by this flow or by all together."""
    links = record.spec["links"]
    tcp = entry.specs[0]["transport"]
    for hop in entry.specs[0]["route"]:
        policer = links[hop].get("policer")
        if policer is not None and goodput_bps >= FULL * policer["rate_bps"] * _payload_share(tcp):
            return f"the rate of the policer of link {links[hop]['name']}"
    lasted = min(1.0, _lasted_s(record, entry) / max(record.metrics.get("simulated_s") or 1e-9, 1e-9))
    for hop in entry.specs[0]["route"]:
        spec = links[hop]
        carried = (record.links[hop].get("carried_bps") if hop < len(record.links) else None) or 0.0
        framing: Mapping[str, Any] = spec.get("framing") or {}
        added = int(framing.get("header_bytes", 0)) + int(framing.get("gap_bytes", 0))
        mtu = int(tcp["mtu_bytes"])
        packets = mtu / (mtu + added)
        alone = goodput_bps >= FULL * spec["rate_bps"] * packets * _payload_share(tcp)
        # A run that ends with this flow: the link is idle neither before nor after.
        if alone or (lasted > FULL and carried >= FULL * spec["rate_bps"] * packets):
            return f"the rate of {_place(record, spec['name'])}" + ("" if alone else ", beside other traffic")
    return ""


def _place(record: Record, name: str) -> str:
    """Return the words for a link: a host that takes time is one too."""
    node, dot, side = name.rpartition(".")
    if dot and side in ("send", "receive") and node in record.spec["nodes"]:
        return f"host {node} ({side})"
    return f"link {name}"


def _waits(entry: Entry) -> str:
    """Return what the kernel says that its senders waited for."""
    busy_s = sum(flow.get("busy_s") or 0.0 for flow in entry.flows)
    if busy_s <= 0:
        return ""
    for name, what in (
        ("limited_by_receive_window_s", "its receive window (flow.window), as the kernel counts"),
        ("limited_by_send_buffer_s", "its send buffer (flow.send_buffer), as the kernel counts"),
    ):
        if sum(flow.get(name) or 0.0 for flow in entry.flows) >= WAITS * busy_s:
            return what
    return ""


def _losses(record: Record, entry: Entry) -> str | None:
    """Return the places on its route that dropped most, "" if the flow lost nothing. None: its losses are no limit,
    since its congestion control does not reduce its window for them."""
    lost = sum(flow.get("dropped_packets") or flow.get("retransmitted_segments") or 0 for flow in entry.flows)
    if not lost:
        return ""
    drops = [
        (record.links[hop].get(counter) or 0, _place(record, record.spec["links"][hop]["name"]), words)
        for hop in entry.specs[0]["route"]
        if hop < len(record.links)
        for counter, words in CAUSES.items()
    ]
    most = max((count for count, _, _ in drops), default=0)
    if not most:
        return "losses on the path"
    # An overflow takes hundreds of packets at once, random losses come one by one: a few may limit as much.
    # In the order of the route, so that runs that differ in the numbers alone share a line.
    named = [drop for drop in drops if drop[0] > 0 and drop[0] >= MINOR * most]
    found = [
        f"{place}, whose ring overflowed" if place.startswith("host") else words.format(place)
        for _, place, words in named
    ]
    text = JOINT.join(found) + (", beside other traffic" if _has_others(record, entry) else "")
    control = entry.specs[0]["transport"].get("congestion_control")
    if control in LOSS_BLIND and "policer" not in text:
        return _probes(record, entry, control)
    return text


def _probes(record: Record, entry: Entry, control: str) -> str | None:
    """Return the words for a control that empties the path at times to see its round trip, if that takes more of the
    time than `FULL` leaves; else None."""
    parameters = entry.specs[0]["transport"].get("parameters", {})
    interval_s = parameters.get("min_rtt_window", 1e3 * PROBE_INTERVAL_S) / 1e3
    probe_s = parameters.get("probe_rtt_time", 1e3 * PROBE_TIME_S) / 1e3
    lasted_s = _lasted_s(record, entry)
    if not probe_s or lasted_s < 2 * interval_s or (probe_s + entry.rtt_s) / (interval_s + probe_s) < 1 - FULL:
        return None
    links = [record.links[hop] for hop in entry.specs[0]["route"] if hop < len(record.links)]
    lost = any(link.get(counter) for link in links for counter in ("dropped_by_loss", "dropped_by_outage"))
    return (
        f"its congestion control: {control} sends 4 packets per round trip for {units.duration(probe_s)} and a round "
        f"trip of every {units.duration(interval_s)} (PROBE_RTT)"
        + ("; losses do not reduce its window" if lost else "")
    )


def _has_others(record: Record, entry: Entry) -> bool:
    route = set(entry.specs[0]["route"])
    groups = {spec["group"] for spec in record.spec["flows"] if route.intersection(spec["route"])}
    return len(groups) > 1 or any(route.intersection(source["route"]) for source in record.spec["background"])


def _lasted_s(record: Record, entry: Entry) -> float:
    first = entry.specs[0]
    ends = [flow.get("completion_s") for flow in entry.flows]
    if all(end is not None for end in ends):
        return max(float(end) for end in ends if end is not None)
    end_ns = min(record.spec["duration_ns"], first["stop_ns"] or record.spec["duration_ns"])
    return float(end_ns - first["start_ns"]) / 1e9


def _start(record: Record, entry: Entry) -> str:
    """Return the words for a flow that ends before its window fills the path."""
    if entry.rtt_s <= 0 or _lasted_s(record, entry) >= START_ROUND_TRIPS * entry.rtt_s:
        return ""
    return "its start: it ends before its window fills the path"
