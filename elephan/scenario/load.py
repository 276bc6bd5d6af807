"""Read a scenario file: TOML in, validated points out, one clear error where it cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from pydantic import ValidationError

from elephan import user_files
from elephan.printable import one_line
from elephan.run_spec.types import RunSpec
from elephan.scenario import keys
from elephan.scenario.combinations import RUNS_MAX, Runs
from elephan.scenario.document import Document
from elephan.scenario.problem import ABSENT, Location, Problem, ScenarioError, expected_of
from elephan.scenario.quantity import U64_MAX
from elephan.scenario.run import REPETITIONS_MAX
from elephan.scenario.spec import specify
from elephan.scenario.spec.transport import label
from elephan.scenario.sweep import Axis, Mode, parse_axes, parse_max_runs
from elephan.scenario.toml import DEPTH_MAX, NotToml, flaw_of, format_value, key_lines, parse, parse_value

OnProgress = Callable[["Scenario", int], None]
"""Called, while a scenario is validated, with the number of combinations of its sweep that were checked."""

Value = bool | int | float | str


@dataclass(frozen=True)
class Point:
    """One run of a scenario: every key has one value, and the seed is known."""

    scenario: Scenario
    index: int
    """Place among all points of the scenario, from 0; repetitions of one combination stand together."""
    repetition: int
    """From 0."""
    seed: int
    swept: Mapping[str, Any]
    """Swept keys as the file writes them, with this point's values."""
    document: Document

    @cached_property
    def parameters(self) -> dict[str, Value]:
        """All keys that the file or the command line sets, dotted, with values as written; swept keys come first."""
        raw, places = self.scenario._substituted(self.swept)
        result = {key: flat(key, value) for key, value in self.swept.items()}
        covered = [location for location in places if places[location] in self.swept]
        for location, value in keys.flatten(raw).items():
            is_label = location[0] in ("name", "title", "description") or location[-1:] == ("name",)
            if not is_label and not any(location[: len(place)] == place for place in covered):
                result[keys.dotted(location, raw)] = flat(str(location[-1]), value)
        return result

    def to_spec(self, pcap: Path | None = None, *, runs_programs: bool = False) -> RunSpec:
        """The specification of the run for `elephan._native.simulate`; `pcap` names a capture to write. A backend that
        runs real programs takes it with `runs_programs`.

        Raises `ScenarioError` when an input (a trace, a C file) is no longer what it was at loading.
        """
        try:
            return specify(self.document, self.scenario.base, self.seed, pcap, runs_programs=runs_programs)
        except Problem as problem:
            raise self.scenario._error(problem.location, problem.expected, self.swept) from None


class Points(Sequence[Point]):
    """All points of a scenario; each is made when it is asked for, and none is kept."""

    def __init__(self, scenario: Scenario) -> None:
        """Make none yet."""
        self._scenario = scenario
        self._last: tuple[int, dict[str, Any], Document] | None = None
        """The combination asked for last: its repetitions follow."""

    def __len__(self) -> int:
        return self._scenario.runs.count

    @overload
    def __getitem__(self, index: int) -> Point: ...

    @overload
    def __getitem__(self, index: slice) -> list[Point]: ...

    def __getitem__(self, index: int | slice) -> Point | list[Point]:
        """Raises `ScenarioError` for a point that was not checked when the scenario was read, and cannot run."""
        number = range(len(self))[index]
        return self._point(number) if isinstance(number, int) else [self._point(one) for one in number]

    def _point(self, number: int) -> Point:
        run = self._scenario.runs.run(number)
        last = self._last
        if last is None or last[0] != run.combination:
            values = self._scenario.runs.values(run.combination)
            self._last = last = (run.combination, values, self._scenario.document(run.combination, values))
        _, values, document = last
        return Point(self._scenario, number, run.repetition, document.run.seed + run.repetition, values, document)


class Scenario:
    """A scenario file with its overrides, validated: all of its points can run, or those of `looked_at`. `file` is the
    path as given, `text` the TOML as it is, `overrides` the command line's changes.

    `file` is the path as given, `text` the TOML as it is, `overrides` what the command line changed.
    """

    def __init__(
        self, file: Path, text: str, overrides: Sequence[str] = (), on_progress: OnProgress | None = None
    ) -> None:
        self.file = file
        self.text = text
        self.overrides = tuple(overrides)
        self.base = file.resolve().parent
        self._overridden: dict[Location, str] = {}
        """The override of each place that has one."""
        self._swept_anew: dict[str, str] = {}
        """Keys that the command line sweeps, and by which override."""
        try:
            self._raw: dict[str, Any] = parse(text)
        except NotToml as error:
            raise ScenarioError(file, None, None, str(error)) from None
        flaw = flaw_of(self._raw)
        if flaw is not None:
            key = keys.dotted(flaw.location, self._raw)
            value = ABSENT if flaw.value is None else flaw.value
            raise ScenarioError(file, key, value, flaw.expected, self._line(flaw.location))
        sweep = self._override(self._raw.pop("sweep", {}))
        self.axes: list[Axis]
        self.mode: Mode
        try:
            self.axes, self.mode = parse_axes(sweep)
        except Problem as problem:
            raise self._error(problem.location, problem.expected, {}, {**self._raw, "sweep": sweep}) from None
        self.axes = self._distinct(self.axes)
        self.runs = self._counted(sweep)
        """The runs and their number."""
        self.looked_at = self.runs.sample()
        """Numbers of the combinations that were validated: all, unless the sweep is very large."""
        self._documents: dict[int, Document] = {}
        """Of a sweep that was validated whole, by combination."""
        self._look(on_progress)

    # Properties

    @property
    def name(self) -> str:
        """Its own name, or the file's without the ending."""
        return str(self._raw.get("name", one_line(self.file.stem)))

    @property
    def title(self) -> str:
        """Heading of reports."""
        return str(self._raw.get("title", self.name))

    @property
    def description(self) -> str:
        """Its purpose; may be empty."""
        return str(self._raw.get("description", ""))

    @property
    def swept(self) -> list[str]:
        """The swept keys, as the file writes them."""
        return [axis.key for axis in self.axes]

    def points(self) -> Points:
        """All runs: combinations of the sweep in file order, the last axis fastest; repetitions of each together."""
        return Points(self)

    def points_looked_at(self) -> Iterator[Point]:
        """The first repetition of each combination that was validated."""
        for combination in self.looked_at:
            values = self.runs.values(combination)
            document = self.document(combination, values)
            yield Point(self, combination, 0, document.run.seed, values, document)

    @property
    def is_looked_at_whole(self) -> bool:
        """Return True if every combination was validated."""
        return len(self.looked_at) == self.runs.combinations

    def document(self, combination: int, values: Mapping[str, Any]) -> Document:
        """The document of a combination with these values. Raises `ScenarioError` when it cannot run."""
        known = self._documents.get(combination)
        return self._validated(values) if known is None else known

    # Loading and validation

    @cached_property
    def _lines(self) -> dict[Location, int]:
        return key_lines(self.text)

    def _override(self, sweep: Any) -> Any:
        for override in self.overrides:
            key, equals, text = override.partition("=")
            key = key.strip()
            if not key or not equals:
                raise ScenarioError("--set", None, None, f'"{override}" is not of the form key=value')
            value = parse_value(text.strip())
            flaw = flaw_of(value)
            if flaw is not None or key.count(".") >= DEPTH_MAX:
                expected = flaw.expected if flaw else f"a key of at most {DEPTH_MAX} parts"
                raise ScenarioError(self.file, key, value, expected, change=override)
            if key == "sweep" or key.startswith("sweep."):
                if not isinstance(sweep, dict):
                    sweep = {}
                if key == "sweep":
                    self._swept_anew[""] = override
                    sweep = value if isinstance(value, dict) else {} if value in ("", False) else value
                else:
                    sweep = {**_without(sweep, key[6:]), key[6:]: value}
                    self._swept_anew[key[6:]] = override
                continue
            try:
                for place in keys.assign(self._raw, key, value):
                    self._overridden[place] = override
            except Problem as problem:
                raise ScenarioError(self.file, key, value, problem.expected, change=override) from None
            # A value from the command line stands for the whole axis.
            sweep = _without(sweep, key) if isinstance(sweep, dict) else sweep
        return sweep

    def _distinct(self, axes: list[Axis]) -> list[Axis]:
        """The axes without those that an override stands for; none may undo what another one, or an override, set."""
        kept: list[tuple[Axis, list[Location]]] = []
        for axis in axes:
            _, found = self._substituted({axis.key: axis.values[0]})
            places = list(found)
            overridden = {} if self._change(axis.location) is not None else self._overridden
            if places and all(any(_within(place, other) for other in overridden) for place in places):
                continue
            for other, override in overridden.items():
                if any(_within(other, place) for place in places):
                    expected = f'a key that is not swept; the sweep of "{axis.key}" would undo it'
                    key = override.partition("=")[0].strip()
                    raise ScenarioError(self.file, key, _reach(self._raw, other)[1], expected, change=override)
            for earlier, before in kept:
                if any(_within(other, place) for place in places for other in before):
                    expected = f'a key that does not undo "{earlier.key}", which stands before it'
                    raise self._at(axis.location, ".".join(axis.location), list(axis.values), expected)
            kept.append((axis, places))
        return [axis for axis, _ in kept]

    def _counted(self, sweep: Any) -> Runs:
        """Count the runs, by arithmetic. Raises `ScenarioError` when there are more than `sweep.max_runs`."""
        by = None
        for number, axis in enumerate(self.axes):
            _, places = self._substituted({axis.key: axis.values[0]})
            if any(place in (("run",), ("run", "repetitions")) for place in places):
                by = number
        if by is None:
            repetitions = [_repetitions(self._raw)]
        else:
            axis = self.axes[by]
            repetitions = [_repetitions(self._substituted({axis.key: value})[0]) for value in axis.values]
        runs = Runs(self.axes, self.mode, repetitions, by)
        raw = {**self._raw, "sweep": sweep}
        try:
            most = parse_max_runs(sweep, RUNS_MAX)
        except Problem as problem:
            raise self._error(problem.location, problem.expected, {}, raw) from None
        if runs.count > most:
            place = ("sweep",) if self.axes else ("run", "repetitions")
            expected = f"at most {most} runs, not {runs.count}; max_runs in [sweep] allows more"
            raise self._at(place, ".".join(place), ABSENT, expected)
        return runs

    def _look(self, on_progress: OnProgress | None) -> None:
        """Validate the points of `looked_at`."""
        for number, combination in enumerate(self.looked_at):
            if on_progress is not None:
                on_progress(self, number)
            document = self._validated(self.runs.values(combination))
            if self.is_looked_at_whole:
                self._documents[combination] = document

    def _validated(self, values: Mapping[str, Any]) -> Document:
        raw, _ = self._substituted(values)
        try:
            document = Document.model_validate(raw)
        except ValidationError as error:
            raise self._first(error, raw, values) from None
        if document.run.seed + document.run.repetitions - 1 > U64_MAX:
            expected = f"at most {U64_MAX}, together with the repetitions"
            raise self._error(("run", "seed"), expected, values, raw)
        # Check the rest of the document now (routes, congestion controls, traces), not after half of the sweep.
        try:
            specify(document, self.base, document.run.seed)
        except Problem as problem:
            raise self._error(problem.location, problem.expected, values, raw) from None
        return document

    def _axis(self, key: str) -> Axis:
        return next(axis for axis in self.axes if axis.key == key)

    def _substituted(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[Location, str]]:
        """The parsed file with a point's values in their places, and which place took which swept key's value."""
        raw = _copied(self._raw)
        places: dict[Location, str] = {}
        for key, value in values.items():
            try:
                places |= dict.fromkeys(keys.assign(raw, key, value), key)
            except Problem as problem:
                raise self._at(self._axis(key).location, f"sweep.{key}", value, problem.expected) from None
        return raw, places

    def _first(self, error: ValidationError, raw: dict[str, Any], values: Mapping[str, Any]) -> ScenarioError:
        """The problem that stands first in the file."""
        problems = []
        for item in error.errors(include_url=False):
            location = _location(item)
            problems.append(self._error(location, expected_of(dict(item)), values, raw))
        # Those without a line (missing keys, keys of the command line) come last, in pydantic's order.
        return min(problems, key=lambda problem: problem.line if problem.line is not None else 1 << 30)

    def _error(
        self, location: Location, expected: str, values: Mapping[str, Any], raw: dict[str, Any] | None = None
    ) -> ScenarioError:
        substituted, places = self._substituted(values)
        raw = substituted if raw is None else raw
        asked = location
        location, value = _reach(raw, location)
        if len(location) < len(asked) and expected.startswith("missing"):
            # A short form such as workload = "constant_rate" has no room for the missing key.
            expected = f"a table; it also needs {keys.dotted(asked[len(location) :], raw)}"
        if value is ABSENT and location[:1] == ("flow",) and len(location) > 2:
            location, value = self._from_defaults(raw, location)
        origin = location
        for place, key in places.items():
            if location[: len(place)] == place or place[: len(location)] == location:
                origin = self._axis(key).location
        return self._at(origin, keys.dotted(location, raw) or None, value, expected)

    def _at(self, origin: Location, key: str | None, value: Any, expected: str) -> ScenarioError:
        """The error for a key whose value stands at a place of the file, or in an override."""
        change = self._change(origin)
        line = self._line(origin) if change is None else None
        return ScenarioError(self.file, key, value, expected, line, change)

    def _change(self, location: Location) -> str | None:
        """The override that a value came from, None when it is the file's."""
        for place, override in self._overridden.items():
            if _within(location, place):
                return override
        if location[:1] == ("sweep",):
            swept = ".".join(str(part) for part in location[1:])
            for key, override in self._swept_anew.items():
                if not key or swept == key or swept.startswith(f"{key}."):
                    return override
        return None

    def _from_defaults(self, raw: dict[str, Any], location: Location) -> tuple[Location, Any]:
        place, value = _reach(raw, ("defaults", *location[2:]))
        return (place, value) if value is not ABSENT else (location, ABSENT)

    def _line(self, location: Location) -> int | None:
        """Line of a place, or of the nearest table around it."""
        for end in range(len(location), 0, -1):
            if location[:end] in self._lines:
                return self._lines[location[:end]]
            dotted_key = (location[0], ".".join(str(part) for part in location[1:end]))
            if location[0] == "sweep" and dotted_key in self._lines:
                return self._lines[dotted_key]
        return None


def read(path: Path) -> str:
    """Return the text of a scenario file. Raises `ScenarioError`."""
    try:
        # Editors on Windows begin a file with a byte order mark.
        return user_files.read_text(path, user_files.TOML, "utf-8-sig")
    except OSError as error:
        raise ScenarioError(path, None, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ScenarioError(path, None, None, f"not UTF-8, as TOML must be: {error}") from None
    except ValueError as error:
        raise ScenarioError(path, None, None, f"not the name of a file: {error}") from None


def load(file: Path | str, overrides: Sequence[str] = (), on_progress: OnProgress | None = None) -> Scenario:
    """Read and validate a scenario; `on_progress` receives each variant with its number.

    `overrides` are `key=value` texts, as after `--set`: the key is dotted, the value TOML or a bare text; a swept key
    that is overridden is no longer swept. Relative paths in them, too, start from the scenario file's folder. Raises
    `ScenarioError`.
    """
    path = Path(file)
    text = read(path)
    try:
        return Scenario(path, text, overrides, on_progress)
    except ScenarioError as error:
        if overrides and error.change is None and _is_valid(path, text):
            # The file alone would run: it is a change elsewhere in it that does not go with this key.
            changes = ", ".join(f"--set {override}" for override in overrides)
            error.args = (one_line(f"with {changes}: {error}"),)
        raise


def _is_valid(path: Path, text: str) -> bool:
    try:
        Scenario(path, text)
    except ScenarioError:
        return False
    return True


def expand(scenario: Scenario) -> Points:
    """All runs of a scenario; see `Scenario.points`."""
    return scenario.points()


def _copied(value: Any) -> Any:
    """Return a copy of a parsed file: tables and arrays are copied, values cannot change. A third of deepcopy's time.
    """
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    if type(value) is list:
        return [_copied(item) for item in value]
    return value


def _repetitions(raw: Mapping[str, Any]) -> int:
    """Repetitions of a parsed file; 1 if the value is wrong, which validation reports."""
    run = raw.get("run")
    said = run.get("repetitions", 1) if isinstance(run, dict) else 1
    allowed = isinstance(said, int) and not isinstance(said, bool) and 1 <= said <= REPETITIONS_MAX
    return said if allowed else 1


def _location(item: Any) -> Location:
    """Return the location of a pydantic error: tags of unions left out, the key that a validator named put on."""
    location = [step for step in item["loc"] if not (isinstance(step, str) and step.startswith("~"))]
    if item["type"] == "scenario":
        location += item["ctx"]["key"]
    return tuple(location)


def _reach(raw: Any, location: Location) -> tuple[Location, Any]:
    """The value at a place. A short form has no keys below it: the place is then its own."""
    value = raw
    for position, step in enumerate(location):
        if isinstance(value, dict):
            if step not in value:
                return location, ABSENT
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return location[:position], value
    return location, value


def _within(place: Location, other: Location) -> bool:
    """Return True if a place is another one or lies inside it."""
    return place[: len(other)] == other


def _without(sweep: dict[str, Any], key: str) -> dict[str, Any]:
    """A sweep table without a key, however it is nested; `flow.congestion_control` does not remove
    `flow.backup.congestion_control`."""
    head, _, rest = key.partition(".")
    result = {name: value for name, value in sweep.items() if name != key}
    if rest and isinstance(result.get(head), dict):
        inner = _without(result[head], rest)
        result = {**result, head: inner} if inner else {name: v for name, v in result.items() if name != head}
    return result


def flat(key: str, value: Any) -> Value:
    """A value as tables show it: numbers and texts as they are, congestion controls by their label, the rest as
    TOML."""
    if key.rsplit(".", 1)[-1] == "congestion_control":
        return flat("", label(value))
    return value if isinstance(value, bool | int | float | str) else format_value(value)
