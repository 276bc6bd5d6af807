"""Goodput of a long copy from a simulated part of it: the study that `elephan run` makes of a long copy, on one path.

The core looks at the copy after as many packets as may tell, cuts its start-up off and returns the goodput of the rest
with its 95 % interval, or the reason why there is none, with bounds (crates/experiment/src/copy_study.rs).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from elephan.advise.candidate import Candidate
from elephan.advise.measure import window_of
from elephan.advise.simulation import Horizon, simulated, spec_of
from elephan.advise.simulation import Path as SimulatedPath
from elephan.backends.copy_bounds import with_agreement
from elephan.errors import InputError
from elephan.run_spec.types import CopyWorkloadSpec, RunSpec
from elephan.scenario.copy import mean_sent_bytes
from elephan.scenario.spec.extrapolate import EPISODES, RANDOM_EPISODES

FIRST_SHARE = 16
"""The first look is after so small a part of the packets that may be simulated."""
ERROR_PPM = 30_000
"""Half of the 95 % interval that ends a simulation before: 3 %."""
BOTTLENECK_SHARE = 2.0
"""Packets of a full bottleneck that are simulated beside others at most, in times of those of the copy."""
BEFORE_RTTS = 60.0
"""Round trips that others have before the copy starts: their own start-up is over."""
LONGER = 2.5
"""Time of a run in times of that until the last look: a copy that has little left then may end."""
BETA = {"reno": 0.5, "cubic": 0.7}
"""Part of the window that a loss leaves (RFC 5681, 3.1; RFC 9438, 4.6)."""
LEAST_RTTS = 200.0
"""Round trips of a copy that are simulated at least, unless packets forbid it."""
INTERVAL_PACKETS = 64
TWENTY_YEARS_NS = 20 * 365 * 86_400 * 10**9


@dataclass(frozen=True)
class LongRun:
    """One simulated copy, and what follows of its rest."""

    simulated_s: float
    simulated_bytes: int
    seconds: tuple[float, float, float]
    """Time of the whole copy: low, expected, high."""
    rate_bps: tuple[float, float, float]
    """Rate of the rest, or of the whole where all was simulated: low, expected, high."""
    is_complete: bool
    """All of it was simulated."""
    refused: str | None = None
    """Reason why the part is no sample of the rest: the rates are bounds then."""


def long_run(
    path: SimulatedPath,
    candidate: Candidate,
    copy: CopyWorkloadSpec,
    packets: int,
    seed: int,
    deadline_s: float | None = None,
) -> LongRun:
    """Simulate a copy on one path, at most about `packets` of it. Raises `InputError`, and `native.Stopped` when
    `deadline_s` of time.monotonic has passed.
    """
    shortest_s = LEAST_RTTS * path.rtt_s
    until_s = max(BOTTLENECK_SHARE * packets * path.mtu_bytes * 8 / path.bound_bps, shortest_s)
    while True:
        spec = studied(path, candidate, copy, packets, until_s, seed)
        try:
            result = simulated(spec, deadline_s)
        except ValueError as error:
            raise InputError(f"the copy cannot be simulated: {error}") from None
        mine = result.flows[: candidate.streams]
        delivered = sum(int(cast(int, flow["delivered_bytes"])) for flow in mine)
        how = with_agreement(result.extrapolation)
        group = result.flow_groups[0] if result.flow_groups else mine[0]
        if how is None:
            if (done_s := group.get("completion_s")) is None:
                # Little was left at the last look, and has not arrived yet.
                until_s *= LONGER
                continue
            seconds = float(cast(float, done_s))
            rate = mean_sent_bytes(copy) * 8 / max(seconds, 1e-9)
            return LongRun(seconds, delivered, (seconds,) * 3, (rate,) * 3, True)
        # A mean of data that is delivered in order, and its interval, may exceed what the line carries.
        most = path.bound_bps * path.payload_share
        rest, low, high = (min(most, float(cast(float, how[f"rest{end}_bps"]))) for end in ("", "_low", "_high"))
        if "refused" in how:
            low = min(high, max(low, _low_of_loss(path, candidate, how)))
            rest = max(low, rest)
        left_bits = 8 * max(0, int(cast(int, how["bytes"])) - int(cast(int, how["simulated_bytes"])))
        simulated_s = float(cast(float, how["simulated_s"])) - spec["flows"][0]["start_ns"] / 1e9
        times = tuple(simulated_s + left_bits / max(rate, 1.0) for rate in (high, rest, low))
        why = how.get("refused")
        return LongRun(
            simulated_s,
            delivered,
            (times[0], times[1], times[2]),
            (low, rest, high),
            False,
            None if why is None else str(why),
        )


def _low_of_loss(path: SimulatedPath, candidate: Candidate, how: Mapping[str, Any]) -> float:
    """Return the least goodput of a copy at the loss rate of its path, bit/s; 0 where that does not tell it.

    The core knows the counted losses alone: of none or a few in a short part follows a bound of a thousandth of the
    line. The simulated path's own rate is known: each connection holds the window of its control's response (RFC 9438,
    5.2; Mathis et al. 1997; few controls are slower than Reno's), and a full queue leaves it `BETA` of path and queue.
    """
    if path.competitors or path.policer_rate_bps is not None:
        return 0.0
    left_bps = max(0.0, path.rate_bps - path.background_bps)
    held = left_bps * path.rtt_s / 8 / path.mtu_bytes
    full = held + path.queue_bytes / path.mtu_bytes
    share = min(1.0, BETA.get(candidate.control, BETA["reno"]) * full / held)
    if path.loss > 0:
        episodes = path.loss / path.loss_burst
        each = window_of(episodes, path.rtt_s) if candidate.control == "cubic" else math.sqrt(1.5 / episodes)
        window = candidate.streams * min(each, candidate.window_bytes / path.mtu_bytes)
        # Beyond what the empty path holds, a window waits in the queue, as in crates/experiment/src/rate_bound.rs.
        share = min(share, max(window / full, min(window / held, held / full)))
    goodput_bps = share * left_bps * path.payload_share
    # A control that was slower has its reason: it yields, or is not in equilibrium yet. Before any loss it still grows.
    return min(goodput_bps, float(how["second_half_bps"])) if how["episodes"] else goodput_bps


def studied(
    path: SimulatedPath, candidate: Candidate, copy: CopyWorkloadSpec, packets: int, until_s: float, seed: int
) -> RunSpec:
    """Return the run of a copy and its study: as the advice simulates it, with the file set as what the candidate's
    streams carry. `until_s`: beside others the study ends by then, however little the copy has got.
    """
    is_alone = not path.competitors and path.background_bps <= 0
    packet_s = path.mtu_bytes * 8 / path.bound_bps
    before_s = 0.0 if is_alone else BEFORE_RTTS * path.rtt_s
    spec = spec_of(path, candidate, Horizon(before_s, LONGER * until_s), seed, with_references=False)
    for number, flow in enumerate(spec["flows"][: candidate.streams]):
        flow["name"] = f"copy.{number + 1}"
        flow["group"] = 0
        flow["workload"] = copy
        flow["distribution"] = "striped"
    first = spec["flows"][0]["start_ns"] + candidate.streams * 1_000_000
    spec["extrapolate"] = {
        "from_ns": first,
        "interval_ns": max(round(path.rtt_s * 1e9), 1_000_000, round(INTERVAL_PACKETS * packet_s * 1e9)),
        "first_packets": max(1, packets // FIRST_SHARE),
        "most_packets": packets,
        # Drops of a queue alone may take the connections one after the other.
        "least_episodes": RANDOM_EPISODES if path.loss > 0 or not is_alone else EPISODES * candidate.streams,
        "error_ppm": ERROR_PPM,
    }
    if is_alone:
        spec["duration_ns"] = TWENTY_YEARS_NS
        spec["stop_when_done"] = True
    else:
        spec["extrapolate"]["until_ns"] = first + round(until_s * 1e9)
    return spec
