"""Diagnoses and forecasts as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from elephan.diagnose.forecast import Forecast
from elephan.diagnose.watching import Watched
from elephan.units import duration, pluralize, rate, size

LIMITS = {
    "application": "the application",
    "receiving_application": "the receiving application",
    "send_buffer": "the sender's buffer",
    "receive_window": "the receiver's window",
    "pacing": "its pacing limit",
    "loss": "losses of the path",
    "queue": "the bottleneck and its queue",
    "policer": "a policer",
    "start_up": "its own start",
}
"""Name of each limit, as diagnosis::Limit has them."""


def lines(watched: Watched, forecasts: Sequence[Forecast | None]) -> list[str]:
    """Return a line per flow, one below it for its forecast, and one about the rest."""
    found = []
    for flow, forecast in zip(watched.flows, forecasts, strict=True):
        found.append(_flow(flow))
        if forecast is not None:
            found.append(f"    {_forecast(forecast)}")
    if not watched.flows:
        found.append(f"{pluralize(watched.connections, 'connection')}, and none carried anything meanwhile")
    elif watched.idle > 0:
        found.append(f"{pluralize(watched.idle, 'other connection')} carried nothing meanwhile")
    return found


def _flow(flow: Mapping[str, Any]) -> str:
    way = ("{0} > {1}" if flow["role"] == "sender" else "{1} > {0}").format(flow["local"], flow["remote"])
    control = flow["congestion_control"] or "unknown control"
    head = f"{way}  {size(flow['bytes'])} at {rate(flow['goodput_bps'])}, {control}"
    if flow["limit"] is None:
        return f"{head}: not decided: {flow['because']}"
    sure = "limited by" if flow["confidence"] == "clear" else "likely limited by"
    return f"{head}: {sure} {LIMITS[flow['limit']]}: {flow['because']}"


def _forecast(forecast: Forecast) -> str:
    if forecast.none_because is not None:
        return f"no forecast: {forecast.none_because}"
    assert forecast.as_it_is is not None and forecast.line_rate_bps is not None, "a forecast has both"
    parts = []
    for outcome in forecast.outcomes:
        rtt = f", round trips of {duration(outcome.rtt_s)}" if outcome.rtt_s else ""
        parts.append(f"{outcome.change}: {rate(outcome.goodput_bps)}{rtt}")
    own = forecast.as_it_is
    if forecast.is_own_rate:
        # Simulated as it is it has that rate by construction, which is no check: not printed as one.
        path = f"path of {rate(forecast.line_rate_bps)}"
        parts.append(f"{path}, the flow's own goodput with headers: nothing checks that")
    else:
        rtt = f", round trips of {duration(own.rtt_s)}" if own.rtt_s else ""
        parts.append(f"simulated as it is: {rate(own.goodput_bps)}{rtt} ({_path(forecast)})")
    return "; ".join(parts)


def _path(forecast: Forecast) -> str:
    """Return the simulated path in words, with the origin of its rate."""
    if (policer := forecast.policer) is not None:
        bucket = f"policer of {rate(policer.rate_bps)}, burst {size(policer.burst_bytes)}"
        return f"{bucket}, on a path of {rate(forecast.line_rate_bps)}"
    origin = f", {forecast.assumed}" if forecast.assumed else ", as measured"
    return f"path of {rate(forecast.line_rate_bps)}{origin}"


def as_json(watched: Watched, forecasts: Sequence[Forecast | None]) -> dict[str, Any]:
    """Return everything, for machines."""
    flows = [
        {**flow, "forecast": None if forecast is None else asdict(forecast)}
        for flow, forecast in zip(watched.flows, forecasts, strict=True)
    ]
    return {
        "flows": flows,
        "connections": watched.connections,
        "idle": watched.idle,
        "samples": watched.samples,
        "cost_s": watched.cost_s,
    }
