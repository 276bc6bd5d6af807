"""The congestion control of live connections, by any of its names."""

from __future__ import annotations

from elephan.errors import InputError


def control(name: str, option: str = "--cc") -> str:
    """Return the kernel's name of a control: its own (cubic), or one of `elephan kernel load` (fast, elephan_fast).

    If both have one of that name, it is the kernel's own; with the mark, elephan's. Raises `InputError`.
    """
    from elephan.kernel import namespaces
    from elephan.kernel.names import kernel_name

    there = namespaces.available()
    for full in (name, kernel_name(name)):
        if full in there:
            return full
    raise InputError(
        f"{option} {name}: not in this kernel: `elephan kernel load {name}` first; there is {', '.join(there)}"
    )
