"""What a stack does in this machine's kernel, recorded call by call while it carries connections."""

from __future__ import annotations

import ctypes
import mmap
import os
import secrets
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from elephan.core import native
from elephan.errors import InputError
from elephan.kernel.prepare import prepared
from elephan.parity.bpf import Object
from elephan.parity.paths import Case, carry
from elephan.stack import Stack

LOOK_S = 0.02
"""Between two looks into the ring buffer: 8 MB hold 8,000 calls, at 50 Mbit/s more than a second's."""

TAKE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
"""What libbpf calls for each record: ring_buffer_sample_fn."""


@dataclass(frozen=True)
class Recording:
    """The calls of one stack on one path."""

    case: Case
    stack: Stack
    values: Mapping[str, int]
    calls: bytes
    """Each before and after, as `native().replay_calls` takes them."""
    missed: int
    """Records for which the ring buffer had no room."""
    told: bytes | None
    """What TCP_INFO said of the connection at its end."""


class _Recorder:
    """One stack in the kernel, under a name of its own, and its calls as they come."""

    def __init__(self, stack: Stack, values: Mapping[str, int]) -> None:
        """Load and register it."""
        self.stack, self.values = stack, values
        # Not elephan's mark: `list` and `clean` are for what stays, and this ends with the process.
        self.name = f"elpar_{secrets.token_hex(4)}"
        file = stack.path or f"{stack.name}.c"
        compiled, _, _ = native().compile_bpf(file, stack.code, self.name, "record")
        self._object = Object(Path(file).name, prepared(compiled, self.name, values), linked=True)
        self._taken: list[bytes] = []
        self._take = TAKE(self._on_record)
        bpf = self._object.bpf
        self._ring = bpf.ring_buffer__new(
            self._object.map_fd("cc_ring"), ctypes.cast(self._take, ctypes.c_void_p), None, None
        )
        if not self._ring:
            self._object.close()
            raise InputError(f"cannot read the ring buffer: {os.strerror(ctypes.get_errno())}")
        try:
            self._link = self._object.register()
        except InputError:
            bpf.ring_buffer__free(self._ring)
            self._object.close()
            raise

    def _on_record(self, _context: int, data: int, size: int) -> int:
        self._taken.append(ctypes.string_at(data, size))
        return 0

    def look(self) -> None:
        """Take over what has been recorded so far."""
        self._object.bpf.ring_buffer__consume(self._ring)

    def taken(self) -> tuple[bytes, int]:
        """Return what was recorded since the last time, and how many records found no room in all."""
        self.look()
        calls = b"".join(self._taken)
        self._taken.clear()
        with mmap.mmap(self._object.map_fd(".bss"), mmap.PAGESIZE) as variables:
            (missed,) = struct.unpack_from("=Q", variables)
        return calls, missed

    def close(self) -> None:
        """Unregister and unload it."""
        os.close(self._link)
        self._object.bpf.ring_buffer__free(self._ring)
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


def record(stacks: Sequence[tuple[Stack, Mapping[str, int]]], cases: Sequence[Case]) -> list[Recording]:
    """Carry one connection of each stack, with its parameters, over the path of each case, all at once; return what
    each did. Raises `InputError` where the machine lacks something or the kernel refuses one.
    """
    recordings = []
    with ExitStack() as held:
        recorders = []
        for stack, values in stacks:
            one = _Recorder(stack, values)
            held.callback(one.close)
            recorders.append(one)
        for case in cases:
            with _looked_into(recorders):
                told = carry(case, [one.name for one in recorders])
            for one in recorders:
                calls, missed = one.taken()
                recordings.append(Recording(case, one.stack, one.values, calls, missed, told.get(one.name)))
    return recordings
