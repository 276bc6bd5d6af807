"""Candidates for a path: control x streams x window, and bounded rates; the likely ones first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from elephan.advise.candidate import OPEN_WINDOW_BYTES, Candidate
from elephan.advise.harm import ORDINARY
from elephan.advise.simulation import Path

CONTROLS = ("cubic", "bbr", "storage_friendly", "ledbat_plus_plus")
STREAMS = {
    "cubic": (4, 8, 16, 2, 1, 32, 6),
    "bbr": (1, 4, 2, 8),
    "storage_friendly": (4, 8, 1, 16, 2),
    "ledbat_plus_plus": (1, 4),
}
OTHER_STREAMS = (4, 1, 8)
"""Of a control that is not in `STREAMS`, as a user's own."""
WINDOW_BDP = 1.0
"""Windows of all streams together, where they are bounded, in bandwidth-delay products of the free path."""
BOUNDED_STREAMS = (8, 16, 32)
RATES = (0.9, 0.75)
"""Bounded rates, of what the path gives."""
PACED_STREAMS = (8, 32)
POLICED = (0.97, 0.92)
"""Bounded rates before a policer, of the policer's."""
POLICED_STREAMS = (1, 4)


def ordinary(streams: int) -> Candidate:
    """Return `streams` ordinary flows: CUBIC, which Linux, Windows and macOS have as default (RFC 9438)."""
    return Candidate("cubic", streams, OPEN_WINDOW_BYTES)


def usual_of(path: Path, has_others: bool) -> Candidate:
    """Return the ordinary flows whose harm is the limit.

    Before a policer they have lost their windows to its drops and do little: where nobody else was seen, those that use
    the contract count, as its rate is what the copy may take.
    """
    four = ordinary(ORDINARY)
    if path.policer_rate_bps is None or has_others:
        return four
    return replace(four, pacing_bps=_paced_bps(path, POLICED[0]))


def is_below_policer(candidate: Candidate, path: Path) -> bool:
    """Return True if a candidate's rate stays below the path's policer."""
    if path.policer_rate_bps is None or candidate.pacing_bps is None:
        return False
    return candidate.pacing_bps <= _paced_bps(path, POLICED[0])


def _paced_bps(path: Path, part: float) -> int:
    """Return a part of the policer's rate, as payload."""
    return round(part * path.payload_share * (path.policer_rate_bps or path.rate_bps))


def candidates_of(path: Path, free_bps: float, controls: Sequence[str] = CONTROLS) -> list[Candidate]:
    """Return the candidates for a path of which others leave `free_bps`, the likely ones first."""
    counts = {control: STREAMS.get(control, OTHER_STREAMS) for control in controls}
    plain = [Candidate(control, n, OPEN_WINDOW_BYTES) for control in controls for n in counts[control]]
    plain.sort(key=lambda one: counts[one.control].index(one.streams))
    payload = path.payload_share
    bound = min(free_bps, path.bound_bps)
    first = "cubic" if "cubic" in controls else controls[0]
    others = []
    if path.policer_rate_bps is not None:
        others += [
            Candidate(first, n, OPEN_WINDOW_BYTES, pacing_bps=_paced_bps(path, part))
            for part in POLICED
            for n in POLICED_STREAMS
        ]
    window = WINDOW_BDP * bound * path.rtt_s / 8
    # Windows bound the rate only on average: bursts of them go beyond a policer's bucket.
    for n in BOUNDED_STREAMS if path.policer_rate_bps is None else ():
        each = round(window / n * payload)
        if each >= 4 * path.mtu_bytes:
            others.append(Candidate(first, n, each))
    others += [
        Candidate(first, n, OPEN_WINDOW_BYTES, pacing_bps=round(share * payload * bound))
        for share in RATES
        for n in PACED_STREAMS
    ]
    # One of the plain ones, one of the others, in turns.
    mixed = [one for pair in zip(plain, others, strict=False) for one in pair]
    rest = plain[len(others) :] + others[len(plain) :]
    return mixed + rest


def text_of(candidate: Candidate) -> str:
    """Return a candidate in words."""
    from elephan.units import rate, size

    streams = "1 stream" if candidate.streams == 1 else f"{candidate.streams} streams"
    words = f"{streams} of {candidate.control}"
    if candidate.pacing_bps is not None:
        words += f", together at most {rate(candidate.pacing_bps)}"
    if candidate.window_bytes < OPEN_WINDOW_BYTES:
        words += f", window {size(candidate.window_bytes)} each"
    return words
