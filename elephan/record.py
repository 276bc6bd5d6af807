"""The record: what one run leaves behind, and all that is needed to run it again.

A record is JSON with a format number. Floats are finite; what could not be measured is null, never a made-up zero. Its
`id` names what was run (specification, inputs, version, backend), so that equal runs have equal ids on every machine.
Nothing downstream of a record knows which backend made it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from elephan.errors import StoreError
from elephan.record_upgrade import from_format_1

if TYPE_CHECKING:
    from elephan.run_spec.types import RunSpec as Specification
else:
    # The core has checked what is stored: pydantic does not do so again at each load.
    Specification = dict[str, Any]

FORMAT = 2
"""Form of a record. Raise it when a key changes its name or meaning, and teach `upgrade` the old one."""

HOST_DEPENDENT_METRICS = frozenset({"cpu_s", "wall_s", "peak_memory_bytes"})
"""Metrics that the machine decides, not the scenario. Left out when two records are compared."""

Value = bool | int | float | str | list[Any] | dict[str, Any] | None
"""A parameter's value: as written in the scenario, units and all."""

Metric = int | float | None
"""A metric's value in the unit its name ends with; None when it does not apply or could not be measured."""


def canonical_json(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal text. Raises ValueError on NaN.

    `default` gives what stands for an object that JSON does not know.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=default
    )


def finite(value: Any) -> Any:
    """Return `value` with every NaN and infinity, at any depth, replaced by None, and numpy scalars by Python's."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if hasattr(value, "item"):
        return finite(value.item())
    raise TypeError(f"a record cannot hold {type(value).__name__}: {value!r}")


class ScenarioInfo(BaseModel):
    """The scenario of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str
    """The scenario's own name, or its file's without the ending."""
    title: str = ""
    """Heading of reports; the name when empty."""
    description: str = ""
    """Purpose of the scenario."""
    file: str | None = None
    """File from which it was read."""
    text: str = ""
    """The TOML as it was."""
    overrides: list[str] = []
    """Changes by `--set` and `--seed`, as `key=value`."""


class InputFile(BaseModel):
    """A file that the run read: a trace, a user's own congestion control."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    path: str
    sha256: str
    bytes: int
    text: str | None = None
    """Contents of a congestion control, so that the run can be done again when the file has changed."""


class SeriesInfo(BaseModel):
    """The columns of the time series beside the record."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    flow_rows: int
    link_rows: int
    sha256: str
    """Over names, types and bytes of all columns."""


class Record(BaseModel):
    """One run. See the module's text; docs/reference/metrics.md describes each metric."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    format: int = FORMAT
    id: str
    """16 hex digits, see `run_id`."""
    scenario: ScenarioInfo
    backend: str
    """Backend of the run: "sim", "kernel" or "hosts"."""
    parameters: dict[str, Value]
    """Flat, dotted; the swept keys among them."""
    seed: int = Field(ge=0, lt=2**64)
    version: str
    metrics: dict[str, Metric]
    flows: list[dict[str, Any]]
    """Per connection: `name`, `group`, `congestion_control` and its metrics."""
    links: list[dict[str, Any]]
    """Per one-way link: `name` and its metrics."""
    background: list[dict[str, Any]] = []
    """Per source of background traffic: `name` and its counters."""
    event_times_s: list[float | None] = []
    """Per event of `spec`: when it happened, s since the run began; None: it did not. Empty in records of before."""
    windows: list[dict[str, Any]] = []
    """Per window of the measurement: `name`, `from_s` and `to_s` (None: it did not begin), `metrics` of the run in it,
    and `flows`, the metrics per connection. Empty in records of before."""
    cwnd_reductions: list[dict[str, Any]] = []
    """Per sender that had to reduce its window: `event` (its index), `flow`, `at_s`, and its answer."""
    flow_groups: list[dict[str, Any]] = []
    """Per flow whose connections share one workload: `name`, `group`, `distribution`, `connections`, and the metrics
    that are of the flow and not of a connection. Empty in records of before."""
    extrapolation: dict[str, Any] | None = None
    """Of a long copy of which a part was simulated: how much, from when on it was steady, what follows for the whole,
    or under `refused` why nothing does. Completion and goodput are then those of the whole, all other metrics of the
    part. None for other runs."""
    short_flows: list[dict[str, Any]] = []
    """Per entry of short flows: `name` and their metrics."""
    quantiles: dict[str, list[float]] = Field(default_factory=dict)
    """Distributions over the whole run: `per_mille`, and per name, such as `lag_s`, the value for each of these. Flows
    have theirs as `lag_quantiles_s`. Empty in records of before, and where nothing was counted."""
    manager: dict[str, Any] | None = None
    """Results of the manager: `metrics`, `lightpaths`, `move_log` and the columns of its `timeline`."""
    notes: list[str] = []
    """Notes that a reader needs to trust the numbers; the report shows every one."""
    host: dict[str, Any]
    created: str
    """UTC, ISO 8601, seconds."""
    spec: Specification
    """The complete specification that the backend was given; see the crate spec."""
    inputs: list[InputFile] = []
    series: SeriesInfo | None = None

    @field_validator(
        "parameters",
        "metrics",
        "flows",
        "links",
        "background",
        "windows",
        "cwnd_reductions",
        "flow_groups",
        "extrapolation",
        "short_flows",
        "manager",
        "host",
        mode="before",
    )
    @classmethod
    def _finite(cls, value: Any) -> Any:
        return finite(value)

    def to_json(self) -> str:
        """Return the record as one line of canonical JSON."""
        # All in it is JSON already but for the models inside: pydantic's copy of it would be a third of the time.
        return canonical_json(vars(self), default=vars)

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Read a record of this or an older format. Raises `StoreError` for a newer or a damaged one."""
        try:
            data = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(f"its record is damaged: {error}") from error
        try:
            return cls.model_validate(upgrade(data))
        except ValueError as error:
            first = str(error).splitlines()
            raise StoreError(f"its record is damaged: {' '.join(line.strip() for line in first[:3])}") from error

    def reproducible(self) -> dict[str, Any]:
        """Return what equal scenario, seed and version make equal to the byte, on every machine.

        Left out: the host, the date, the time it took, and where files lie.
        """
        data = self.model_dump(mode="json")
        for key in ("host", "created"):
            del data[key]
        for name in HOST_DEPENDENT_METRICS:
            data["metrics"].pop(name, None)
        del data["scenario"]["file"]
        data["spec"] = without_places(self.spec, self.inputs)
        for item in data["inputs"]:
            del item["path"]
        return data


def upgrade(data: dict[str, Any]) -> dict[str, Any]:
    """Return `data` in the present format. Raises `StoreError` when it is newer than this elephan."""
    found = data.get("format") if isinstance(data, dict) else None
    if not isinstance(found, int) or found < 1:
        raise StoreError(f"its record is damaged: its format is {found!r}, expected a number from 1 to {FORMAT}")
    if found > FORMAT:
        raise StoreError(
            f"its record has format {found}; this elephan reads up to {FORMAT}: it was written by a newer one, update"
        )
    return from_format_1(data) if found == 1 else data


_PLAIN = frozenset({int, float, bool, type(None)})


def without_places(spec: Mapping[str, Any], inputs: list[InputFile]) -> dict[str, Any]:
    """Return `spec` with each input's path replaced by its digest, and without outputs that change no result."""
    places = {item.path: f"sha256:{item.sha256}" for item in inputs}
    # Connections of a flow share their congestion control, routes and workload: each is walked once.
    result = _without_places(spec, places, {})
    assert isinstance(result, dict)
    return result


def _without_places(value: Any, places: Mapping[str, str], walked: dict[int, Any]) -> Any:
    # By type first, which nearly all values are told by: it is a third of the time.
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return places.get(value, value)
    if type(value) is not dict and not isinstance(value, (list, tuple, Mapping)):
        return value
    found = walked.get(id(value))
    if found is None:
        if type(value) is dict or isinstance(value, Mapping):
            found = {
                key: item if type(item) in _PLAIN else _without_places(item, places, walked)
                for key, item in value.items()
                if not key.startswith("pcap")
            }
        else:
            found = [_without_places(item, places, walked) for item in value]
        walked[id(value)] = found
    return found


def run_id(spec: Mapping[str, Any], inputs: list[InputFile], version: str, backend: str) -> str:
    """Return the id of a run: 16 hex digits (64 bits; a store of 10^6 runs collides with probability 3e-8)."""
    what = {"backend": backend, "spec": without_places(spec, inputs), "version": version}
    return hashlib.sha256(canonical_json(what).encode()).hexdigest()[:16]
