"""The simulator's TCP and this kernel's under the same losses: thresholds and windows, with the difference.

Losses by number strike the same segment in both.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elephan import control_process
from elephan.congestion_control import CongestionControl
from elephan.core import native
from elephan.parity.paths import Case
from elephan.parity.recording import Recording
from elephan.record import canonical_json
from elephan.scenario import load

PATH = 'bandwidth = "50Mbit/s"\nrtt = "40ms"\nqueue = "4bdp"\nloss = {{ packets = {} }}'
RTT_S = 0.04
LOSSES = (200, 1500, 4000)
"""Packets that the simulator loses, counted from the SYN. One lies in slow start, two behind it."""
HANDSHAKE = 1
"""The kernel ends the handshake with a packet of its own, the simulator with the first segment: one more."""
SECONDS = 2.0
BUFFER_BYTES = 8_000_000
"""So that the sender never waits for the program: a window that the application limits does not grow."""
STEP_S = 0.005
"""Between two windows that are compared, s."""
INFINITE_SSTHRESH = 2**31 - 1
"""The kernel's threshold where there is none yet."""
SOCK_BYTES = 368
"""struct cc_sock, the end of a record (congestion/native/sock.h)."""


@dataclass(frozen=True)
class Windows:
    """The windows of both after the same losses."""

    simulated: tuple[int, ...]
    """Slow start thresholds, one after the other, segments."""
    recorded: tuple[int, ...]
    """Those of the kernel."""
    median: float
    """Of the windows' difference over time, as a part of the simulated one."""
    p90: float
    """The value that 9 of 10 are below."""


def case_of(losses: Sequence[int] = LOSSES) -> Case:
    """Return the kernel's case."""
    numbers = [number + HANDSHAKE for number in losses]
    return Case("same losses", PATH.format(numbers), SECONDS, buffer_bytes=BUFFER_BYTES)


def compare_windows(cc: CongestionControl, values: Mapping[str, int], recording: Recording) -> Windows:
    """Simulate the recording over `case_of()`, and compare."""
    at_s, window, threshold = simulated(cc, values)
    kernel_s, kernel_window, kernel_threshold = of_recording(recording)
    last = np.append(np.flatnonzero(np.diff(np.floor(kernel_s / STEP_S))), len(kernel_s) - 1)
    # Hooks are silent in recovery; where they speak, the window is known to the microsecond.
    last = last[(kernel_s[last] >= 0) & (kernel_s[last] < SECONDS)]
    theirs = window[np.clip(np.searchsorted(at_s, kernel_s[last], side="right") - 1, 0, None)].astype(float)
    difference = np.abs(kernel_window[last] - theirs) / theirs
    return Windows(
        simulated=_changes(threshold),
        recorded=_changes(kernel_threshold[kernel_s < SECONDS]),
        median=float(np.median(difference)),
        p90=float(np.quantile(difference, 0.9)),
    )


def simulated(cc: CongestionControl, values: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times, windows and thresholds of the simulator."""
    text = (
        f'[run]\nduration = "{SECONDS}s"\n\n[path]\n{PATH.format(list(LOSSES))}\n\n'
        '[[flow]]\ncongestion_control = "reno"\n\n'
        '[measure]\nseries = "1ms"\n'
    )
    with tempfile.TemporaryDirectory(prefix="elephan-parity-") as folder:
        file = Path(folder) / "losses.toml"
        file.write_text(text, encoding="utf-8")
        spec = load(file, []).points()[0].to_spec()
    name = str(Path(cc.path).resolve()) if cc.path else cc.name
    spec["flows"][0]["transport"] |= {"congestion_control": name, "parameters": dict(values)}
    series = control_process.simulate(canonical_json(spec), None, 0.1).flow_series
    columns = (np.asarray(series[name]) for name in ("time_s", "cwnd_packets", "ssthresh_packets"))
    at_s, window, threshold = columns
    return at_s, window, threshold


def of_recording(recording: Recording) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times since connect(2), windows and thresholds of the kernel."""
    size, hooks = native.HOOK_CALL_BYTES, native.HOOKS
    calls = recording.calls
    rows = []
    begin_us = None
    for at in range(0, len(calls), size):
        hook, after = struct.unpack_from("=2I", calls, at)
        window, threshold = struct.unpack_from("=2I", calls, at + size - SOCK_BYTES)
        # Behind 19 u32, 4 u8 and the pacing rate.
        (now_us,) = struct.unpack_from("=Q", calls, at + size - SOCK_BYTES + 88)
        if begin_us is None and hooks[hook] in ("cong_avoid", "cong_control"):
            # cong_avoid is first told of data, two round trips after the SYN; cong_control of the SYN.
            begin_us = now_us - (2 if hooks[hook] == "cong_avoid" else 1) * RTT_S * 1e6
        if after:
            rows.append((now_us, window, threshold))
    if begin_us is None:
        raise ValueError("no ACK was recorded")
    table = np.array(rows)
    return (table[:, 0] - begin_us) / 1e6, table[:, 1], table[:, 2]


def _changes(threshold: np.ndarray) -> tuple[int, ...]:
    """Return each new value of a threshold; the simulator has NaN before the first, the kernel its largest number."""
    known = threshold[threshold < INFINITE_SSTHRESH].astype(np.int64)
    changed = np.flatnonzero(np.diff(known, prepend=0))
    return tuple(int(known[at]) for at in changed)
