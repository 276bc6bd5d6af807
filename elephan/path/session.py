"""The hosts of a path with their devices, configured and ready to carry, for as long as a context lasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.path import congestion, netem, report, simulated
from elephan.path.changes import Change
from elephan.path.testbed import ADDRESSES, Host, Site, routers
from elephan.record import canonical_json
from elephan.run_spec.types import RunSpec
from elephan.scenario import Scenario

if TYPE_CHECKING:
    from elephan._native import Emulator


class Opened:
    """A site and the emulator that holds its devices."""

    def __init__(self, place: Site, emulator: Emulator) -> None:
        """Take them over. Nobody else may keep the emulator, since its devices go with it."""
        self.place = place
        self.emulator = emulator

    def start(self, spec: RunSpec) -> None:
        """Carry packets between the ends of the specification's first flow. Raises `RunError`."""
        try:
            self.emulator.start(canonical_json(dict(spec)), canonical_json(two_ended(spec, self.place)))
        except (OSError, ValueError) as error:
            raise RunError(f"the path cannot be made: {error}") from error

    def stop(self, spec: RunSpec) -> report.Report:
        """Carry no more, and say what happened."""
        core = self.emulator.stop()
        assert core is not None, "it was started"
        return self.report(spec, core)

    def event_times(self) -> list[float | None]:
        """Return the time of each event since packets are carried, s; None: it has not happened."""
        return self.emulator.event_times()

    def change(self, change: Change, present: RunSpec) -> None:
        """Change the network, which is `present` then, while packets are inside. Raises `InputError`, `RunError`."""
        routes = (present["flows"][0]["route"], present["flows"][0]["return_route"])
        mtus = [_device_mtu(present, route) for route in routes]
        before = [host.mtu_bytes for host in self.place.hosts]
        try:
            # Devices first: what they refuse is refused before anything has changed.
            self.place.set_mtus(mtus)
            self.emulator.change(canonical_json(change))
        except (RunError, ValueError) as error:
            self.place.set_mtus(before)
            raise InputError(f"the path keeps what it has: {error}") from error

    @property
    def carrier(self) -> Emulator:
        """Return the carrier for `_native.run_on_kernel`."""
        return self.emulator

    def report(self, spec: RunSpec, core: Mapping[str, Any]) -> report.Report:
        """Say what happened, from what the core gave back."""
        return report.of([link["name"] for link in spec["links"]], core, self.place.counters())


@contextmanager
def open_path(hosts: Sequence[Host], spec: RunSpec, about: Mapping[str, Any]) -> Iterator[Opened | netem.Netem]:
    """Make hosts and the carrier between them for a specification, and remove them with their processes.

    Raises `RunError` and `InputError`.
    """
    with netem.carried(hosts, spec, about) if netem.wanted(spec) else _emulated(hosts, about) as path:
        yield path


@contextmanager
def _emulated(hosts: Sequence[Host], about: Mapping[str, Any]) -> Iterator[Opened]:
    place = Site(hosts, about)
    path = None
    try:
        place.make()
        try:
            path = Opened(place, native.Emulator(canonical_json(place.plan())))
        except OSError as error:
            raise RunError(f"the path cannot be made: {error}") from error
        place.configure()
        yield path
    finally:
        if path is not None:
            path.emulator.stop()
            # The devices close with it.
            del path.emulator
        place.remove()


def spec_of(scenario: Scenario) -> tuple[RunSpec, str]:
    """Return the specification of the path that a scenario describes, and a line about what of a sweep is left out.

    Raises `InputError` when there are several paths.
    """
    file = scenario.file
    specs = [point.to_spec() for point in scenario.points_looked_at()]
    spec = specs[0]
    if not spec["flows"]:
        raise InputError(f"{file}: a path is between the ends of a flow, and this scenario has none: add [[flow]]")
    if any(_network(other) != _network(spec) for other in specs[1:]):
        raise InputError(f"{file}: the sweep changes the path: choose one value with --set")
    if any(event["when"]["kind"] == "flow_reaches" for event in spec["events"]):
        raise InputError(f"{file}: event: elephan path runs no flows whose rate an event could wait for: give a time")
    try:
        simulated.require_none(spec)
        netem.require(spec)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    return spec, congestion.left_out(specs)


def _network(spec: RunSpec) -> list[Any]:
    """Return the parts of a specification that make the path."""
    flow = spec["flows"][0]
    ends = [flow["source"], flow["destination"], flow["route"], flow["return_route"]]
    return [spec["links"], spec["events"], spec["background"], ends, spec.get("emulator")]


def ends_of(spec: RunSpec) -> list[Host]:
    """Return the two hosts at the ends of the first flow."""
    flow = spec["flows"][0]
    ends = [(flow["source"], flow["route"]), (flow["destination"], flow["return_route"])]
    return [
        Host(address, node, _device_mtu(spec, route)) for address, (node, route) in zip(ADDRESSES, ends, strict=True)
    ]


def _device_mtu(spec: RunSpec, route: Sequence[int]) -> int:
    """Return the MTU of a host's device, bytes: that of its first link, unless the flow has a smaller one of its
    own."""
    own = spec["flows"][0]["transport"]["mtu_bytes"]
    links = [spec["links"][link] for link in route]
    told = [link["mtu_bytes"] for link in links if "mtu_bytes" in link]
    return own if not told or own < min(told) else told[0]


def two_ended(spec: RunSpec, place: Site) -> dict[str, Any]:
    """Return the plan of a path for any program, in the form of crates/kernel/src/plan.rs."""
    flow = spec["flows"][0]
    routes = [
        {"from": 0, "to": 1, "links": flow["route"]},
        {"from": 1, "to": 0, "links": flow["return_route"]},
    ]
    return {"hosts": place.plan(), "flows": [], "routes": routes, "routers": routers(spec), "emulator": {}}
