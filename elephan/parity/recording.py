"""Record a congestion control in this machine's kernel, call by call, while it carries connections."""

from __future__ import annotations

import secrets
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from elephan.congestion_control import CongestionControl
from elephan.core import native
from elephan.parity.paths import Case, run_flows
from elephan.parity.refusal import refused

LOOK_S = 0.02
"""Between two looks into the ring buffer: 8 MB hold 8,000 calls, at 50 Mbit/s more than a second's."""

RING = "cc_ring"
"""Name of the ring buffer (congestion/bpf/record.h)."""


@dataclass(frozen=True)
class Recording:
    """The calls of one congestion control on one path."""

    case: Case
    cc: CongestionControl
    values: Mapping[str, int]
    calls: bytes
    """Each before and after, as `native.replay_calls` takes them."""
    missed: int
    """Records for which the ring buffer had no room."""
    tcp_info: bytes | None
    """TCP_INFO of the connection at its end."""


class _Recorder:
    """One congestion control in the kernel, under a name of its own, and its calls as they come."""

    def __init__(self, cc: CongestionControl, values: Mapping[str, int]) -> None:
        """Load and register it."""
        self.cc, self.values = cc, values
        # Not elephan's mark: `list` and `clean` are for what stays, and this ends with the process.
        self.name = f"elpar_{secrets.token_hex(4)}"
        file = cc.path or f"{cc.name}.c"
        compiled, _, _ = native.compile_bpf(file, cc.code, self.name, "record")
        try:
            self._object = native.BpfObject(compiled, native.ControlSettings(self.name, dict(values), linked=True))
            self._object.record(RING)
            self._object.register()
        except native.BpfError as error:
            # A link needs Linux 6.4.
            raise refused(Path(file).name, error) from error

    def look(self) -> None:
        """Take over the calls recorded so far."""
        self._object.collect()

    def taken(self) -> tuple[bytes, int]:
        """Return the calls recorded since the last time, and the number of all calls that found no room."""
        (missed,) = struct.unpack_from("=Q", self._object.variables())
        return self._object.records(RING), missed

    def close(self) -> None:
        """Unregister and unload it."""
        self._object.close()


@contextmanager
def _looked_into(recorders: Sequence[_Recorder]) -> Iterator[None]:
    """Empty the ring buffers while something else goes on."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_S):
            for one in recorders:
                one.look()

    thread = threading.Thread(target=look, name="ring buffers")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def record(
    congestion_controls: Sequence[tuple[CongestionControl, Mapping[str, int]]], cases: Sequence[Case]
) -> list[Recording]:
    """Carry one connection of each congestion control, with its parameters, over the path of each case, all at once;
    return what each did. Raises `InputError` where the machine lacks something or the kernel refuses one.
    """
    recordings = []
    with ExitStack() as held:
        recorders = []
        for cc, values in congestion_controls:
            one = _Recorder(cc, values)
            held.callback(one.close)
            recorders.append(one)
        for case in cases:
            with _looked_into(recorders):
                tcp_info = run_flows(case, [one.name for one in recorders])
            for one in recorders:
                calls, missed = one.taken()
                recordings.append(Recording(case, one.cc, one.values, calls, missed, tcp_info.get(one.name)))
    return recordings
