"""The whole file as one model, and what must hold between its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import WithJsonSchema, model_validator

from elephan.scenario.fcp import Fcp
from elephan.scenario.flow import Flow, FlowSettings
from elephan.scenario.gateway import Fc
from elephan.scenario.hosts import Hosts
from elephan.scenario.hybrid import Lightpath, Manager
from elephan.scenario.path import AnyNode, Link, Path
from elephan.scenario.problem import unknown, wrong
from elephan.scenario.run import Background, Event, Measure, Run
from elephan.scenario.table import Name, Table, setting
from elephan.scenario.workload import ShortFlows

_VALUES = {
    "anyOf": [
        {"type": "array", "minItems": 1},
        {
            "type": "object",
            "required": ["from", "to"],
            "properties": {
                "from": {"type": ["number", "string"]},
                "to": {"type": ["number", "string"]},
                "step": {"type": ["number", "string"]},
                "factor": {"type": "number"},
                "count": {"type": "integer", "minimum": 2},
                "spacing": {"enum": ["linear", "log"]},
            },
            "additionalProperties": False,
        },
        {"type": "object", "description": "tables that dotted keys without quotes make"},
    ]
}
_SWEEP_SCHEMA = WithJsonSchema(
    {
        "type": "object",
        "properties": {
            "mode": {"enum": ["grid", "zip"], "default": "grid"},
            "max_runs": {"type": "integer", "minimum": 1, "default": 1_000_000},
        },
        "additionalProperties": _VALUES,
        "x-type": "table of lists or ranges",
    }
)


class Document(Table):
    """A scenario file."""

    name: Name | None = setting(None, examples=["replicate-oltp"])
    """Name in tables and store. When absent: the file's name."""
    title: str | None = setting(None, examples=["An OLTP volume mirrored over 67 ms"])
    """Heading of the report. When absent: the name."""
    description: str = setting("", examples=["What does the far copy lag behind?"])
    """Printed by the report."""
    run: Run
    """Length, seed and repetitions."""
    path: Path | None = None
    """Short form of the network."""
    node: list[AnyNode] = setting([], examples=[])
    """Long form: its hosts, routers and gateways."""
    link: list[Link] = setting([], examples=[])
    """Long form: its links."""
    defaults: FlowSettings | None = None
    """Keys for all flows; a flow's own count more."""
    flow: list[Flow] = setting([], examples=[])
    """TCP flows; there may be none beside `[[background]]`."""
    background: list[Background] = setting([], examples=[])
    """Traffic that does not react."""
    event: list[Event] = setting([], examples=[])
    """Changes in the course of the run."""
    manager: Manager | None = None
    """Moves flows to lightpaths."""
    lightpath: list[Lightpath] = setting([], examples=[])
    """Those that the manager may set up, the preferred first."""
    hosts: Hosts | None = None
    """Two machines, for `--on hosts`."""
    measure: Measure = setting({}, examples=[])
    """Series, warm-up and capture."""

    sweep: Annotated[dict[str, Any] | None, _SWEEP_SCHEMA] = setting(
        None, examples=[{"path.loss": [0, 1e-4], "flow.congestion_control": ["reno", "cubic"]}]
    )
    """Keys that take several values."""

    @model_validator(mode="before")
    @classmethod
    def _defaults_into_flows(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("flow"), list):
            return value
        defaults = value.get("defaults", {})
        if not isinstance(defaults, dict):
            return value
        known = set(FlowSettings.keys())
        usable = {key: item for key, item in defaults.items() if key in known}
        flows = [{**usable, **flow} if isinstance(flow, dict) else flow for flow in value["flow"]]
        return {**value, "flow": flows}

    @model_validator(mode="after")
    def _consistent(self) -> Document:
        if not self.flow and not self.background:
            raise wrong("at least one [[flow]] or [[background]]", "flow")
        if self.path is not None and (self.node or self.link):
            raise wrong("either [path], or [[node]] and [[link]]", "node" if self.node else "link")
        if self.path is None and not self.link:
            raise wrong("a [path] (two sites), or [[node]] and [[link]] (a network)", "path")
        self._hybrid()
        self._gateways()
        self._places()
        self._times()
        for key, names in (
            ("node", [node.name for node in self.node]),
            ("link", self.link_names()),
            ("flow", self.flow_names()),
            ("background", self.background_names()),
            ("lightpath", [path.name for path in self.lightpath]),
        ):
            _unique(key, names)
        return self

    def _hybrid(self) -> None:
        if self.lightpath and self.path is not None:
            raise wrong("absent: with [path] there is one way; [[node]] and [[link]] give several", "lightpath", 0)
        if self.manager is not None and not self.lightpath:
            raise wrong("absent, or at least one [[lightpath]] beside it", "manager")
        if self.lightpath and self.manager is None:
            raise wrong("a [manager] beside it: it sets lightpaths up", "lightpath", 0)
        for name in self.manager.priorities if self.manager else ():
            if name not in self.flow_names():
                raise wrong(unknown("flow", name, self.flow_names()), "manager", "priorities", name)
        if self.flow and all(isinstance(flow.workload, ShortFlows) for flow in self.flow):
            raise wrong('at least one flow whose workload is not "short_flows"', "flow", 0, "workload")
        for index, flow in enumerate(self.flow):
            if isinstance(flow.workload, ShortFlows) and flow.connections != 1:
                raise wrong("absent: workload.arrivals says how many there are", "flow", index, "connections")

    def _gateways(self) -> None:
        for index, flow in enumerate(self.flow):
            workload = flow.workload
            if not isinstance(workload, Fc | Fcp):
                continue
            if self.path is not None:
                what = f'another workload: "{workload.kind}" is for [[node]] of kind "gateway" and [[link]]'
                raise wrong(what, "flow", index, "workload", "kind")
            pairs = flow.connections if workload.pairs is None else workload.pairs
            if workload.protocol == "ifcp" and pairs != flow.connections:
                what = f"{flow.connections}, as connections: iFCP has one connection for each pair"
                raise wrong(what, "flow", index, "workload", "pairs")
            if pairs < flow.connections:
                what = f"at least {flow.connections}, as connections: one that no pair uses carries nothing"
                raise wrong(what, "flow", index, "workload", "pairs")

    def _places(self) -> None:
        groups: list[tuple[str, Sequence[Flow | Background]]] = [("flow", self.flow), ("background", self.background)]
        for key, entries in groups:
            for index, entry in enumerate(entries):
                place = {"from": entry.from_, "to": entry.to, "route": entry.route}
                if self.path is not None:
                    place["return_route"] = getattr(entry, "return_route", None)
                    for name, value in place.items():
                        if value is not None:
                            raise wrong("absent: with [path], direction says where it goes", key, index, name)
                else:
                    for name in ("from", "to"):
                        if place[name] is None:
                            raise wrong("missing; required with [[link]]: the name of a node", key, index, name)
                    if "direction" in entry.model_fields_set:
                        raise wrong("absent: with [[link]], from and to say where it goes", key, index, "direction")
        for index, event in enumerate(self.event):
            if self.path is None and event.rtt is not None:
                raise wrong("absent: with [[link]], delay changes a link", "event", index, "rtt")
            if self.path is not None and event.move is not None:
                raise wrong(
                    "absent: with [path] there is one way; [[node]] and [[link]] give several", "event", index, "move"
                )

    def _times(self) -> None:
        end = self.run.duration
        for index, flow in enumerate(self.flow):
            if flow.start + (flow.connections - 1) * flow.stagger >= end:
                key = "start" if flow.start >= end else "stagger"
                raise wrong("every connection opened before the end of the run (run.duration)", "flow", index, key)
        for index, source in enumerate(self.background):
            if source.start >= end:
                raise wrong("a time before the end of the run (run.duration)", "background", index, "start")
        starts = {name: flow.start for name, flow in zip(self.flow_names(), self.flow, strict=True)}
        for index, event in enumerate(self.event):
            if event.at is not None and event.at >= end:
                raise wrong("a time before the end of the run (run.duration)", "event", index, "at")
            if event.when is not None:
                for key in ("settled", "over"):
                    if getattr(event.when, key) >= end:
                        raise wrong("a time shorter than the run (run.duration)", "event", index, "when", key)
                start = starts.get(event.when.flow, starts.get(event.when.flow.rpartition(".")[0], 0))
                if event.when.settled >= end - start:
                    rest = "the rest of the run after the start of the flow (run.duration, flow.start)"
                    raise wrong(f"a time shorter than {rest}", "event", index, "when", "settled")
        if self.measure.warmup >= end:
            raise wrong("a time before the end of the run (run.duration)", "measure", "warmup")
        self._windows()

    def _windows(self) -> None:
        windows = self.measure.windows
        if windows and all(isinstance(flow.workload, ShortFlows) for flow in self.flow):
            raise wrong("absent: there is no [[flow]] whose counters it could have", "measure", "windows")
        for index, window in enumerate(windows):
            where = ("measure", "windows", index)
            if window.name in [other.name for other in windows[:index]]:
                raise wrong(f'another name: "{window.name}" is that of a window before', *where, "name")
            begin = 0
            if window.event is not None:
                if window.event >= len(self.event):
                    places = f"the place of an [[event]], 0 to {len(self.event) - 1}"
                    raise wrong(places if self.event else "absent: there is no [[event]]", *where, "event")
                begin = self.event[window.event].at or 0
            if begin + window.to > self.run.duration:
                raise wrong("a time not after the end of the run (run.duration)", *where, "to")

    def flow_names(self) -> list[str]:
        """Names of the flow entries."""
        return [flow.name or f"flow{index}" for index, flow in enumerate(self.flow, start=1)]

    def background_names(self) -> list[str]:
        """Names of the background sources."""
        return [source.name or f"background{index}" for index, source in enumerate(self.background, start=1)]

    def link_names(self) -> list[str]:
        """Names of the long form's links."""
        return [link.name or f"{link.from_}-{link.to}" for link in self.link]


def _unique(key: str, names: Sequence[str]) -> None:
    taken: dict[str, int] = {}
    for index, name in enumerate(names):
        first = taken.setdefault(name, index)
        if first != index:
            what = f'"{name}" is the name of {key} number {first + 1} already; a name that is not taken'
            raise wrong(what, key, index, "name")
