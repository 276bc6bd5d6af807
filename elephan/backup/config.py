"""The tables and keys of a backup's file, and what they come to as a `Spec`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, PlainValidator, WithJsonSchema, model_validator

from elephan.backup.spec import EVERY_DAY, Data, JobSpec, Keep, PathSpec, Retry, Schedule, Spec, Window
from elephan.copy.request import CopyRequest, Place
from elephan.errors import InputError
from elephan.scenario.problem import Location, wrong
from elephan.scenario.quantity import Mtu, PositiveSpan, Probability, Rate, Size, Whole, part
from elephan.scenario.table import Name, Table, setting
from elephan.scenario.validated import validated

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MOST_JOBS = 1000
LEAST_PERIOD_S = 10.0
"""Shortest period of a job, s: a run begins with a session to each host, which takes a second or more."""
DAY_MIN = 24 * 60

_PERIOD = re.compile(r"^\s*([0-9]+)\s*(s|min|h|d|w|y)\s*$")
_PERIOD_S = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_TIME = re.compile(r"^([01][0-9]|2[0-3]):([0-5][0-9])$")
_HOURS = re.compile(r"^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-4]):([0-5][0-9])$")


def _text(kind: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "x-type": kind})


def _seconds(value: Any, expected: str, units: str) -> float:
    found = _PERIOD.match(value) if isinstance(value, str) else None
    if found is None or found[2] not in units.split() or not 0 < int(found[1]) <= 100_000:
        raise wrong(expected)
    return float(int(found[1]) * _PERIOD_S[found[2]])


def _period(value: Any) -> float:
    expected = 'a time of at least "10s", such as "30min", "2h", "1d" or "1w"'
    seconds = _seconds(value, expected, "s min h d w")
    if seconds < LEAST_PERIOD_S:
        raise wrong(expected)
    return seconds


def _age(value: Any) -> Keep:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= 100_000:
            raise wrong("at least 1 version")
        return Keep(versions=value)
    expected = 'an age, such as "48h", "7d", "8w" or "1y", or a number of versions, such as 14'
    return Keep(age_s=_seconds(value, expected, "h d w y"))


def _time(value: Any) -> int:
    found = _TIME.match(value) if isinstance(value, str) else None
    if found is None:
        raise wrong('a time of the day, such as "02:00"')
    return int(found[1]) * 60 + int(found[2])


def _hours(value: Any) -> tuple[int, int]:
    expected = 'hours of the day, such as "22:00-06:00" or "00:00-24:00"'
    found = _HOURS.match(value) if isinstance(value, str) else None
    if found is None:
        raise wrong(expected)
    begin, end = int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])
    if begin == end or end > DAY_MIN:
        raise wrong(expected + "; begin and end differ")
    return begin, end


def _file_name(value: str) -> str:
    """Refuse a name of which no file name can be made: locks and units have it."""
    if not re.fullmatch(r"[A-Za-z0-9_@-][A-Za-z0-9_@-]{0,63}", value) or value.startswith("-"):
        raise wrong('a name of at most 64 letters, digits, "_", "-" or "@", such as "archive"')
    return value


def _place(value: Any) -> str:
    expected = 'PATH or HOST:PATH, such as "/srv/data/" or "nyc:/backup/data"'
    if not isinstance(value, str) or not value.isprintable():
        raise wrong(expected)
    try:
        Place.parse(value)
    except InputError as error:
        raise wrong(f"{expected}: {error}") from None
    return value


def _file_set(value: Any) -> str:
    from elephan.advise.forecast import FileSet

    expected = 'data as "2TB" or "100000 x 20kB-40kB"'
    if not isinstance(value, str):
        raise wrong(expected)
    try:
        FileSet.of_text(value)
    except InputError:
        raise wrong(expected) from None
    return value


def _harm(value: Any) -> float:
    expected = 'a share above 0 and below 100 %, such as "5%"'
    try:
        found = part(value)
    except ValueError:
        raise wrong(expected) from None
    if not 0 < found < 10**6:
        raise wrong(expected)
    return found / 1e6


Period = Annotated[float, PlainValidator(_period), _text("time")]
FileName = Annotated[Name, AfterValidator(_file_name)]
PlaceText = Annotated[str, PlainValidator(_place), _text("PATH or HOST:PATH")]
FileSetText = Annotated[str, PlainValidator(_file_set), _text("data")]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def _days(days: Sequence[str] | None) -> frozenset[int]:
    return EVERY_DAY if days is None else frozenset(DAYS.index(day) for day in days)


class RetryTable(Table):
    """Attempts of a run. What an attempt has brought to the destination stays, and the next one goes on from there."""

    attempts: Annotated[int, Whole(1, 1000)] = setting(8, examples=[8])
    """Attempts in a row that bring no new byte to the destination, after which the run has failed."""
    wait: PositiveSpan = setting("30s", examples=["30s"])
    """Time from the first attempt to the second; it doubles from one to the next."""
    longest_wait: PositiveSpan = setting("30min", examples=["30min"])
    """Longest time between two attempts."""


class PathTable(Table):
    """A path, by which jobs are forecast."""

    name: Name = setting(examples=["vienna"])
    """Its name, for `path` of a job."""
    rate: Rate = setting(examples=["45Mbit/s"])
    """Rate of its narrowest link."""
    rtt: PositiveSpan = setting(examples=["32ms"])
    """Round-trip time without load."""
    loss: Probability = setting(0, examples=[1e-5])
    """Share of packets that the line loses."""
    queue: Size = setting("0B", examples=["184kB"])
    """Depth of the queue before the narrowest link; 0B: not known, as much as the path holds in flight."""
    mtu: Mtu = setting("1500B", examples=["1500B"])
    """Largest packet."""
    competing_flows: Annotated[int, Whole(0, 1000)] = setting(0, examples=[2])
    """Long flows of others on it."""


class WindowTable(Table):
    """Hours in which a job may send. A run that is not done at their end waits for the next ones, and goes on."""

    hours: Annotated[tuple[int, int], PlainValidator(_hours), _text("hours of the day")] = setting(
        examples=["22:00-06:00"]
    )
    """Begin and end, local time."""
    days: list[Day] | None = setting(None, examples=[["sat", "sun"]])
    """Days on which it begins. When absent: every day."""
    rate: Rate | None = setting(None, examples=["20Mbit/s"])
    """Most that the job sends in it; a lower `rate` of the job holds too."""


class DataTable(Table):
    """Expected data. What is absent is measured: the sources are counted, and earlier runs say what changes."""

    first: FileSetText | None = setting(None, examples=["2TB", "100000 x 20kB-40kB"])
    """All data of the job."""
    change: FileSetText | None = setting(None, examples=["300MB"])
    """Data that a run after the first sends."""


class JobTable(Table):
    """A job."""

    name: FileName = setting(examples=["archive"])
    """Its name in the store."""
    kind: Literal["full", "incremental", "mirror"] = setting(examples=["incremental"])
    """`incremental`: each run makes a version that shares unchanged files with the one before, by hard links, and sends
    what differs. `full`: each run makes a version of its own and sends all. `mirror`: the destination becomes what the
    sources are, removals included, without older versions."""
    sources: list[PlaceText] = setting(examples=[["/srv/data/"]])
    """Files and folders to copy, all on one host. A folder whose path ends in a slash stands for what is in it, as with
    rsync."""
    destination: PlaceText = setting(examples=["nyc:/backup/data"])
    """Folder of the versions; of a mirror the copy itself, which may be a block device. Its parent has to be there."""
    every: Period | None = setting(None, examples=["2h"])
    """Time from one run's due time to the next one's."""
    at: list[Annotated[int, PlainValidator(_time), _text("time of the day")]] = setting([], examples=[["02:00"]])
    """In place of `every`: local times of the day. Without either the job runs when `run JOB` is called."""
    days: list[Day] | None = setting(None, examples=[["sun"]])
    """Days of `at`. When absent: every day."""
    window: list[WindowTable] = setting([], examples=[[{"hours": "22:00-06:00"}]])
    """Hours in which it may send; none: always."""
    keep: Annotated[
        Keep, PlainValidator(_age), WithJsonSchema({"type": ["string", "integer"], "x-type": "age, or number"})
    ] | None = setting(None, examples=["7d", 14])
    """Older versions that stay: an age, since which the state of each moment can be restored, or a number of versions.
    When absent: all. One goes only after a newer one is complete."""
    path: str | None = setting(None, examples=["vienna"])
    """Name of the `[[path]]` that its data takes, for forecasts. When absent: forecasts go by earlier runs."""
    data: DataTable = setting({}, examples=[{"first": "2TB", "change": "300MB"}])
    """Expected data, for forecasts."""
    rate: Rate | None = setting(None, examples=["100Mbit/s"])
    """Most that the job sends."""
    streams: Annotated[int, Whole(1, 256)] | None = setting(None, examples=[8])
    """Data streams. When absent: as `elephan copy` chooses."""
    transport: Literal["tcp", "quic"] = setting("tcp", examples=["quic"])
    """Transport of the data."""
    congestion_control: str | None = setting(None, examples=["storage_friendly"])
    """Congestion control of the streams, as `elephan copy --cc` takes it."""
    auto: bool = setting(False, examples=[True])
    """Measure the path and ask `elephan advise` before each run, and steer while it runs."""
    harm: Annotated[float, PlainValidator(_harm), _text("share")] | None = setting(None, examples=["5%"])
    """Most that a flow beside the job may lose, with `auto`."""
    over_ssh: bool = setting(False, examples=[True])
    """Data goes through ssh, where no port can be opened."""
    plaintext: bool = setting(False, examples=[True])
    """No TLS on the data."""
    listen: Literal["auto", "local", "remote"] = setting("auto", examples=["local"])
    """Side that takes connections."""
    verify: Literal["write", "read"] = setting("write", examples=["read"])
    """`read`: each file is read back from its disk before it gets its name."""
    checksum: bool = setting(False, examples=[True])
    """Unchanged means the same bytes, and not the same size and time."""
    exclude: list[str] = setting([], examples=[["*.tmp", "cache/"]])
    """Names that are left out: patterns of a component, or of a path where they have a slash."""
    owners: bool = setting(True, examples=[False])
    """Owners and groups are set, where the receiving user may."""
    one_file_system: bool = setting(False, examples=[True])
    """Other file systems below a source are left out."""
    may_be_empty: bool = setting(False, examples=[True])
    """A source may have become empty, or it or a folder below it may have lost its mounted file system. Otherwise such
    a run fails: a disk may not be mounted, and a mirror would empty its destination."""
    max_removals: Annotated[int, Whole(0, 2**63 - 1)] | None = setting(None, examples=[1000])
    """Most entries that a run of a mirror removes. When absent: as many as its sources have."""

    @model_validator(mode="after")
    def _fits(self) -> JobTable:
        if not self.sources:
            raise wrong("at least one source", "sources")
        if self.every is not None and self.at:
            raise wrong("one of every and at", "every")
        if self.days is not None and not self.at:
            raise wrong("a key beside at", "days")
        if self.days == []:
            raise wrong("at least one day", "days")
        for number, window in enumerate(self.window):
            if window.days == []:
                raise wrong("at least one day", "window", number, "days")
        if self.kind != "mirror" and self.max_removals is not None:
            raise wrong("absent: a run that makes a version removes nothing from it", "max_removals")
        if self.kind == "mirror" and self.keep is not None:
            raise wrong("absent: a mirror has no older versions; incremental has", "keep")
        hosts = {Place.parse(one).host for one in self.sources}
        if len(hosts) > 1:
            raise wrong("places of one host: make one job of each", "sources")
        return self

    def spec(self, paths: dict[str, PathSpec]) -> JobSpec:
        """Return it as plain data."""
        copy = {
            "transport": self.transport,
            "listen": self.listen,
            "verify": self.verify,
            **{name: True for name in ("auto", "over_ssh", "plaintext") if getattr(self, name)},
            **{
                name: value
                for name in ("streams", "congestion_control", "harm")
                if (value := getattr(self, name)) is not None
            },
        }
        options = {
            "checksum": self.checksum,
            "exclude": self.exclude,
            "owners": self.owners,
            "one_file_system": self.one_file_system,
        }
        defaults = {"checksum": False, "exclude": [], "owners": True, "one_file_system": False}
        return JobSpec(
            self.name,
            self.kind,
            tuple(self.sources),
            self.destination,
            Schedule(self.every, tuple(sorted(self.at)), _days(self.days)),
            tuple(Window(*one.hours, _days(one.days), one.rate) for one in self.window),
            self.keep or Keep(),
            None if self.path is None else paths[self.path],
            Data(self.data.first, self.data.change),
            self.rate,
            copy,
            {name: value for name, value in options.items() if value != defaults[name]},
            self.may_be_empty,
            self.max_removals,
        )


class Backup(Table):
    """A backup's file."""

    name: FileName = setting(examples=["dr"])
    """Its name in the store, which no other backup of the store has."""
    max_running: Annotated[int, Whole(1, 1000)] | None = setting(None, examples=[2])
    """Most jobs that run at once. When absent: all that are due."""
    retry: RetryTable = setting({}, examples=[{"attempts": 8}])
    """Attempts of a run."""
    path: list[PathTable] = setting([], examples=[[{"name": "vienna"}]])
    """Paths, for forecasts."""
    job: list[JobTable] = setting(examples=[[{"name": "archive"}]])
    """The jobs."""

    @model_validator(mode="after")
    def _jobs(self) -> Backup:
        if not 1 <= len(self.job) <= MOST_JOBS:
            raise wrong(f"1 to {MOST_JOBS} [[job]] tables", "job")
        paths = [path.name for path in self.path]
        for number, name in enumerate(paths):
            if name in paths[:number]:
                raise wrong("a name that no other path has", "path", number, "name")
        names: set[str] = set()
        places: list[tuple[str | None, str]] = []
        for number, job in enumerate(self.job):
            if job.name in names:
                raise wrong("a name that no other job has", "job", number, "name")
            names.add(job.name)
            if job.path is not None and job.path not in paths:
                known = f"there is {', '.join(paths)}" if paths else "there is none yet"
                raise wrong(f"the name of a [[path]]; {known}", "job", number, "path")
            place = Place.parse(job.destination)
            own = (place.host, place.path.rstrip("/") + "/")
            for host, path in places:
                if host == own[0] and (path.startswith(own[1]) or own[1].startswith(path)):
                    raise wrong("a place that no other job's destination is, lies in or holds", "job", number,
                                "destination")  # fmt: skip
            places.append(own)
        return self

    def spec(self, file: FilePath) -> Spec:
        """Return it as plain data."""
        paths = {
            one.name: PathSpec(
                one.name, one.rate, one.rtt / 1e9, one.loss / 1e12, one.queue, one.mtu, one.competing_flows
            )
            for one in self.path
        }
        retry = Retry(self.retry.attempts, self.retry.wait / 1e9, self.retry.longest_wait / 1e9)
        jobs = tuple(job.spec(paths) for job in self.job)
        return Spec(self.name, str(file.absolute()), jobs, retry, self.max_running)


def load(file: FilePath) -> Spec:
    """Read a backup's file. Raises `InputError` with file, key, value and what would be right."""
    return validated(file, Backup, _faults).spec(file)


def _faults(config: Backup) -> Iterator[tuple[Location, str]]:
    """Yield what a copy's own check would refuse."""
    for number, job in enumerate(config.job):
        request = CopyRequest(
            [Place.parse(one) for one in job.sources],
            Place.parse(job.destination),
            transport=job.transport,
            over_ssh=job.over_ssh,
            plaintext=job.plaintext,
            listen=job.listen,
        )
        try:
            request.check()
        except InputError as error:
            key = "listen" if "listen" in str(error) else "over_ssh" if "over-ssh" in str(error) else "transport"
            yield ("job", number, key), f"what a copy can be: {error}"


def tables() -> dict[str, type[Table]]:
    """Return the tables of a backup's file by their names."""
    return {one.__name__: one for one in (RetryTable, PathTable, WindowTable, DataTable, JobTable, Backup)}
