"""An object of BPF in this process, by libbpf: loaded, its programs and maps at hand, gone when closed."""

from __future__ import annotations

import ctypes
import os
from types import TracebackType

from elephan.errors import InputError
from elephan.kernel.maps import library as kernel_library
from elephan.stack.kconfig import options

LINKED = 1 << 13
"""BPF_F_LINK: a struct_ops map that is registered by a link (Linux 6.4)."""

STRUCT_OPS = 44
"""BPF_STRUCT_OPS, the link's kind (enum bpf_attach_type)."""


def library() -> ctypes.CDLL:
    """Return libbpf with the types of what is used here. Raises `InputError` when it is not installed."""
    bpf = kernel_library()
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in (
        ("bpf_object__open_mem", pointer, (text, ctypes.c_size_t, pointer)),
        ("bpf_program__fd", number, (pointer,)),
        ("bpf_map__fd", number, (pointer,)),
        ("bpf_map__value_size", ctypes.c_uint32, (pointer,)),
        ("bpf_map__set_map_flags", number, (pointer, ctypes.c_uint32)),
        ("bpf_link_create", number, (number, number, number, pointer)),
        ("bpf_prog_test_run_opts", number, (number, pointer)),
        ("ring_buffer__new", pointer, (number, pointer, pointer, pointer)),
        ("ring_buffer__consume", number, (pointer,)),
        ("ring_buffer__free", None, (pointer,)),
        ("libbpf_set_print", pointer, (pointer,)),
    ):
        function = getattr(bpf, name)
        function.restype, function.argtypes = result, list(arguments)
    return bpf


class Object:
    """One object, from open to `close`."""

    def __init__(self, what: str, data: bytes, linked: bool = False) -> None:
        """Load it. `linked`: its struct_ops map is for a link. Raises `InputError` when the kernel refuses."""
        self.bpf = library()
        said = self.bpf.libbpf_set_print(None)
        try:
            self._object = self.bpf.bpf_object__open_mem(data, len(data), ctypes.byref(options()))
            if not self._object:
                raise InputError(f"{what}: libbpf cannot read the object: {os.strerror(ctypes.get_errno())}")
            if linked:
                self.bpf.bpf_map__set_map_flags(self._map("cc_algorithm"), LINKED)
            error = self.bpf.bpf_object__load(self._object)
        finally:
            self.bpf.libbpf_set_print(said)
        if error:
            self.close()
            raise InputError(
                f"{what}: the kernel refuses it: {os.strerror(-error)}; `elephan stacks check` says why, unless it is "
                "the recording that the verifier finds too large"
            )

    def programs(self) -> dict[str, int]:
        """Return each program's file descriptor by its name."""
        found = {}
        program = self.bpf.bpf_object__next_program(self._object, None)
        while program:
            found[self.bpf.bpf_program__name(program).decode()] = self.bpf.bpf_program__fd(program)
            program = self.bpf.bpf_object__next_program(self._object, program)
        return found

    def map_fd(self, name: str) -> int:
        """Return a map's file descriptor; ".bss" are the variables."""
        return int(self.bpf.bpf_map__fd(self._map(name)))

    def value_bytes(self, name: str) -> int:
        """Return the size of a map's value."""
        return int(self.bpf.bpf_map__value_size(self._map(name)))

    def register(self) -> int:
        """Register the congestion control; return the link, which ends it when it is closed."""
        # Fills the map; with LINKED that registers nothing yet.
        if not self.bpf.bpf_map__attach_struct_ops(self._map("cc_algorithm")):
            raise InputError(f"cannot fill the map of operations: {os.strerror(ctypes.get_errno())}")
        link = self.bpf.bpf_link_create(self.map_fd("cc_algorithm"), 0, STRUCT_OPS, None)
        if link < 0:
            raise InputError(f"the kernel does not register it: {os.strerror(-link)} (by a link: Linux 6.4)")
        return int(link)

    def close(self) -> None:
        """Let go of programs and maps."""
        if self._object:
            self.bpf.bpf_object__close(self._object)
            self._object = None

    def _map(self, name: str) -> int:
        found = self.bpf.bpf_object__find_map_by_name(self._object, name.encode())
        if not found:
            raise InputError(f"the compiled object has no map {name}")
        return int(found)

    def __enter__(self) -> Object:
        """See `close`."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """See `close`."""
        self.close()
