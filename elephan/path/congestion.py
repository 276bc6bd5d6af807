"""The congestion control of a path's namespaces: the first flow's, loaded for as long as the path lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elephan.congestion_control import label_of, verify
from elephan.kernel.run_controls import in_kernel
from elephan.network_namespace import within
from elephan.path.testbed import Site
from elephan.run_spec.types import RunSpec

SYSCTL = "tcp_congestion_control"
NAMES = Path("/proc/sys/net/ipv4")


@contextmanager
def as_default(place: Site, spec: Mapping[str, Any]) -> Iterator[str]:
    """Make the first flow's congestion control the default of the path's namespaces; give a line that says what it is.

    It is loaded under a name of the run's own and goes with the path, as on the kernel backend. Where nothing may be
    loaded the kernel's own of that name takes its place, else the default that the namespaces have, and the line says
    so. Raises `InputError` when this kernel refuses it, `RunError` when it cannot be made the default.
    """
    transport = spec["flows"][0]["transport"]
    label = label_of(transport)
    lacking = verify.lacks()
    if lacking:
        yield f"congestion control: {_instead(place, transport, label)} ({lacking})"
        return
    with in_kernel(place.id, [(transport["congestion_control"], tuple(sorted(transport["parameters"].items())))]) as (
        name,
    ):
        _make_default(place, name)
        yield f"congestion control: {label}, as {name}"


def _instead(place: Site, transport: Mapping[str, Any], label: str) -> str:
    """Make the kernel's own of that name the default, if there is one; return the present default, in words."""
    name = transport["congestion_control"]
    if name in _read(place, "tcp_allowed_congestion_control").split() and not transport["parameters"]:
        _make_default(place, name)
        return f"the kernel's own {name}, since elephan's cannot be loaded"
    return f"{_read(place, SYSCTL)}, this machine's default, and not {label}, which cannot be loaded"


def _make_default(place: Site, name: str) -> None:
    for host in range(len(place.hosts)):
        place.set(host, SYSCTL, name)


def _read(place: Site, name: str) -> str:
    return within(Path(place.files[0]), lambda: (NAMES / name).read_text().strip())


def left_out(specs: list[RunSpec]) -> str:
    """Return a line about the congestion controls of a sweep that a path does not have; "" when there are none."""
    labels = list(dict.fromkeys(label_of(spec["flows"][0]["transport"]) for spec in specs))
    if len(labels) < 2:
        return ""
    others = ", ".join(labels[1:])
    return f"the sweep's other congestion controls are left out ({others}): --set flow.congestion_control=NAME chooses"
