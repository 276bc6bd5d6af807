"""The scenario that facts of a path make, as a file that `elephan run` takes."""

from __future__ import annotations

from elephan.advise.candidate import Candidate
from elephan.advise.draws import middle
from elephan.advise.facts import PathFacts
from elephan.advise.simulation import FASTER, Path


def scenario_of(facts: PathFacts, candidate: Candidate, duration_s: float = 30.0) -> str:
    """Return the path by its facts with its competing flows and the candidate's, TOML."""
    path = middle(facts)
    policed = path.policer_rate_bps is not None
    names = ["here", "edge", "far"] if policed else ["here", "far"]
    lines = ["[run]", f'duration = "{duration_s:g}s"', ""]
    for name in names:
        lines += ["[[node]]", f'name = "{name}"', ""]
    if policed:
        lines += _link(path, "here", "edge", FASTER * path.rate_bps, with_policer=True)
    lines += _link(path, names[-2], "far", path.rate_bps, with_policer=False)
    if path.background_bps > 0:
        lines += ["[[background]]", 'name = "others"', f'from = "{names[-2]}"', 'to = "far"']
        lines += [f'rate = "{round(2 * path.background_bps)}bit/s"', 'on = "5ms"', 'off = "5ms"', ""]
    for index, control in enumerate(path.competitors):
        lines += ["[[flow]]", f'name = "other-{index + 1}"', f'from = "{names[-2]}"', 'to = "far"']
        lines += [f'congestion_control = "{control}"', ""]
    lines += ["[[flow]]", 'name = "copy"', 'from = "here"', 'to = "far"', f'congestion_control = "{candidate.control}"']
    lines.append(f"connections = {candidate.streams}")
    lines.append(f'window = "{candidate.window_bytes}B"')
    if candidate.stream_pacing_bps is not None:
        lines.append(f'max_pacing_rate = "{candidate.stream_pacing_bps}bit/s"')
    return "\n".join(lines) + "\n"


def _link(path: Path, start: str, end: str, rate_bps: float, *, with_policer: bool) -> list[str]:
    hops = 2 if path.policer_rate_bps is not None else 1
    depth = round(max(8 * path.mtu_bytes, path.queue_bytes) * rate_bps / path.rate_bps)
    lines = ["[[link]]", f'from = "{start}"', f'to = "{end}"', f'bandwidth = "{round(rate_bps)}bit/s"']
    lines += [f'delay = "{round(path.rtt_s / 2 / hops * 1e9)}ns"', f'queue = "{depth}B"', f'mtu = "{path.mtu_bytes}B"']
    if with_policer:
        burst = round(path.policer_burst_bytes or 2 * path.mtu_bytes)
        lines.append(f'policer = {{ rate = "{round(path.policer_rate_bps or 0)}bit/s", burst = "{burst}B" }}')
    elif path.loss > 0 and path.loss_burst > 1.05:
        leave = 1 / path.loss_burst
        enter = path.loss * leave / (1 - path.loss)
        chances = f"good_to_bad = {enter:.6g}, bad_to_good = {leave:.6g}, loss_bad = 1.0"
        lines.append(f"loss = {{ {chances} }}")
    elif path.loss > 0:
        lines.append(f"loss = {path.loss:.6g}")
    return [*lines, ""]
