"""Queues, losses, jitter and policers of a network's lines, as the core takes them."""

from __future__ import annotations

from typing import Any

from elephan.run_spec.types import JitterSpec, LossSpec, PolicerSpec, QueueSpec
from elephan.scenario import line as models
from elephan.scenario.problem import Location, Problem
from elephan.scenario.quantity import Limit
from elephan.scenario.spec.network import ACCESS_QUEUE_BYTES, Network

_NS_PER_S = 1_000_000_000
#: A queue beyond this is a slip: at 400 Gbit/s it takes twelve hours to drain.
QUEUE_MAX_BYTES = 1 << 51


def _bytes(limit: Limit, network: Network, index: int, rtt_ns: int) -> int:
    """A queue limit in bytes; packets count as MTU-sized, and one packet always fits."""
    line = network.lines[index]
    if limit.unit == "packets":
        return int(limit.amount) * line.mtu_bytes
    if limit.unit == "bytes":
        return int(limit.amount)
    return max(line.mtu_bytes, int(limit.amount * line.rate_bps * rtt_ns / (8 * _NS_PER_S)))


def queue_specs(network: Network) -> list[QueueSpec]:
    """The queue of every line. Raises `Problem` for one that no packet fits in."""
    longest = network.longest_round_trips()
    return [_queue(network, index, longest) for index in range(len(network.lines))]


def _queue(network: Network, index: int, longest: dict[int, int]) -> QueueSpec:
    line = network.lines[index]
    queue = line.queue
    if queue is None:
        return {"kind": "drop_tail", "limit_bytes": ACCESS_QUEUE_BYTES, "limit_packets": None}
    own = sum(network.lines[i].delay_ns for i in network.lines_named(line.link))
    limit = _bytes(queue.limit, network, index, longest.get(index, own))
    if limit < line.mtu_bytes:
        where = _line_location(network, index, "queue")
        raise Problem(where, f"room for at least one packet of the MTU ({line.mtu_bytes}B)")
    if limit > QUEUE_MAX_BYTES:
        raise Problem(_line_location(network, index, "queue"), f"at most {QUEUE_MAX_BYTES}B; here it is {limit}B")
    packets = int(queue.limit.amount) if queue.limit.unit == "packets" else -(-limit // line.mtu_bytes)
    match queue:
        case models.DropTail():
            if queue.limit.unit == "packets":
                return {"kind": "drop_tail", "limit_bytes": None, "limit_packets": packets}
            return {"kind": "drop_tail", "limit_bytes": limit, "limit_packets": None}
        case models.Red():
            largest = queue.max if queue.max is not None else max(1, limit // 4)
            least = queue.min if queue.min is not None else max(1, largest // 3)
            if not least < largest <= limit:
                where = _line_location(network, index, "queue")
                raise Problem(where, f"min < max <= limit; here they are {least}B, {largest}B and {limit}B")
            return {
                "kind": "red",
                "limit_bytes": limit,
                "min_bytes": least,
                "max_bytes": largest,
                "max_probability_ppm": round(queue.max_probability / 10**6),
                "weight_shift": queue.weight_shift,
                "ecn": queue.ecn,
            }
        case models.Codel():
            return {
                "kind": "codel",
                "limit_packets": packets,
                "target_ns": queue.target,
                "interval_ns": queue.interval,
                "ecn": queue.ecn,
            }
        case models.FqCodel():
            return {
                "kind": "fq_codel",
                "limit_packets": packets,
                "flows": queue.flows,
                "quantum_bytes": queue.quantum,
                "target_ns": queue.target,
                "interval_ns": queue.interval,
                "ecn": queue.ecn,
            }
    raise AssertionError(f"a queue discipline without a case: {queue!r}")


def _line_location(network: Network, index: int, key: str) -> Location:
    line = network.lines[index]
    if network.short_form:
        return ("path", key)
    links = list(dict.fromkeys(other.link for other in network.lines))
    return ("link", links.index(line.link), key)


def loss_spec(loss: Any) -> LossSpec:
    """A loss model; None is none."""
    match loss:
        case None:
            return {"kind": "none"}
        case models.IndependentLoss():
            if loss.probability == 0:
                return {"kind": "none"}
            return {"kind": "independent", "probability_e12": loss.probability}
        case models.GilbertElliottLoss():
            return {
                "kind": "gilbert_elliott",
                "good_to_bad_e12": loss.good_to_bad,
                "bad_to_good_e12": loss.bad_to_good,
                "loss_good_e12": loss.loss_good,
                "loss_bad_e12": loss.loss_bad,
            }
        case models.RunsLoss():
            return {"kind": "runs", "begins_e12": loss.begins, "length": loss.run}
        case models.PeriodicLoss():
            return {"kind": "every_nth", "n": loss.every}
        case models.BitErrorLoss() if loss.burst is not None and loss.bit_error_rate > 0:
            return {
                "kind": "bit_error_bursts",
                "good_to_bad_e18": loss.good_to_bad_e18,
                "bad_to_good_e18": 10**18 // loss.burst,
                "error_bad_e18": loss.burst_error_rate,
            }
        case models.BitErrorLoss():
            return {"kind": "bit_error_rate", "probability_e18": loss.bit_error_rate}
        case models.ListedLoss():
            return {"kind": "list", "packets": loss.packets}
    raise AssertionError(f"a loss model without a case: {loss!r}")


def jitter_spec(jitter: models.Jitter | None) -> JitterSpec | None:
    """Jitter; None is none."""
    if jitter is None:
        return None
    return {"distribution": jitter.distribution, "scale_ns": jitter.scale, "reordering": jitter.reordering}


def policer_specs(network: Network) -> list[PolicerSpec | None]:
    """The policer of every line; None is none. Raises `Problem` for one that no packet passes."""
    return [_policer(network, index) for index in range(len(network.lines))]


def _policer(network: Network, index: int) -> PolicerSpec | None:
    line = network.lines[index]
    if line.policer is None:
        return None
    if line.policer.burst < line.mtu_bytes:
        key = ("policer", "burst") if line.forward else ("reverse", "policer", "burst")
        where = (*_line_location(network, index, key[0]), *key[1:])
        raise Problem(where, f"at least a packet of the MTU ({line.mtu_bytes}B): a larger one never passes")
    return {"rate_bps": line.policer.rate, "burst_bytes": line.policer.burst}
