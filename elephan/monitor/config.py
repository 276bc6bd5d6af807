"""The tables and keys of a monitor's file, and what they come to as a `Spec`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, PlainValidator, WithJsonSchema, model_validator

from elephan.measure.target import in_brackets
from elephan.monitor.spec import STAMP_PACKET_BYTES, AlertSpec, PathSpec, Spec, TestSpec
from elephan.scenario.problem import Location, ScenarioError, wrong
from elephan.scenario.quantity import PositiveSpan, Probability, Rate, Size, parse_span, part
from elephan.scenario.table import Name, Table, setting
from elephan.scenario.validated import validated
from elephan.units import pluralize, rate

TESTS = ("stamp", "capacity", "available", "queue", "policer", "loss", "hops", "mtu", "throughput")
STAMP_PORT = 862
"""UDP port that IANA gave STAMP and TWAMP."""
LEAST_PERIOD_NS = 10**8
"""Shortest period of STAMP, ns."""
LEAST_TEST_PERIOD_NS = 10**10
"""Shortest period of all other tests, ns."""
MOST_PATHS = 1000
_AGE = re.compile(r"^\s*([0-9]+)\s*(h|d|w|y)\s*$")
_AGE_S = {"h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_QUIET = re.compile(r"^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])$")


def _text(kind: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "x-type": kind})


def _age(value: Any) -> int:
    expected = 'a number of hours, days, weeks or years, such as "48h", "400d" or "10y"'
    found = _AGE.match(value) if isinstance(value, str) else None
    if found is None or int(found[1]) == 0 or int(found[1]) > 100_000:
        raise wrong(expected)
    return int(found[1]) * _AGE_S[found[2]]


def _quiet(value: Any) -> tuple[int, int]:
    expected = 'hours of the day, such as "22:00-06:00"'
    found = _QUIET.match(value) if isinstance(value, str) else None
    if found is None:
        raise wrong(expected)
    hour, minute, end_hour, end_minute = (int(one) for one in found.groups())
    if (hour, minute) == (end_hour, end_minute):
        raise wrong(expected + "; begin and end differ")
    return hour * 60 + minute, end_hour * 60 + end_minute


def _file_name(value: str) -> str:
    """Refuse a name of which no file name can be made: lock and socket have it."""
    if "/" in value or not value.isprintable() or len(value.encode()) > 64:
        raise wrong('a name of at most 64 bytes without "/", such as "dr"')
    return value


def _towards(value: Any) -> str:
    expected = (
        'the IP address of a STAMP reflector, with a port or without, such as "198.51.100.7:862" or "2001:db8::7"'
    )
    if not isinstance(value, str):
        raise wrong(expected)
    bare = value.strip("[]")
    try:
        return f"{in_brackets(str(ipaddress.ip_address(bare)))}:{STAMP_PORT}"
    except ValueError:
        pass
    host, _, port = value.rpartition(":")
    try:
        if not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65_536:
            raise ValueError
        return f"{in_brackets(str(ipaddress.ip_address(host.strip('[]'))))}:{int(port)}"
    except ValueError:
        raise wrong(expected) from None


def _listen(value: Any) -> tuple[str, int]:
    expected = 'an address of this machine alone with a port, such as "127.0.0.1:9464"'
    match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[0-9.]+):([0-9]{1,5})", value) if isinstance(value, str) else None
    try:
        if match is None or int(match[2]) > 65_535 or not ipaddress.ip_address(match[1].strip("[]")).is_loopback:
            raise wrong(expected)
    except ValueError:
        raise wrong(expected) from None
    return match[1].strip("[]"), int(match[2])


def _file(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise wrong('a path, such as "tonight.toml"')
    return value


def _url(value: Any) -> str:
    if not isinstance(value, str) or "://" not in value or not value.isprintable():
        raise wrong('a URL of apprise, such as "mailtos://USER:PASSWORD@example.com" or "json://127.0.0.1:8080/alerts"')
    return value


def _share(least: int, most: int, expected: str) -> PlainValidator:
    """Return the validator of a share within bounds, parts of 10^6."""

    def convert(value: Any) -> int:
        try:
            found = part(value)
        except ValueError:
            raise wrong(expected) from None
        if not least <= found <= most:
            raise wrong(expected)
        return found

    return PlainValidator(convert)


_BUDGET = _share(1, 500_000, 'a share of the line above 0 and at most 50 %, such as "1%"')
_CHANGE = _share(10_000, 10**6, 'a share from 1 % to 100 %, such as "20%"')


def _duration(value: Any) -> int:
    span: int = parse_span(value)
    if not 10**9 <= span <= 300 * 10**9:
        raise wrong('a time from "1s" to "300s"')
    return span


class Retention(Table):
    """Ages at which data goes: a number of h (hours), d (days), w (weeks) or y (years of 365 days)."""

    raw: Annotated[int, PlainValidator(_age), _text("age")] = setting("400d", examples=["400d"])
    """Single samples, in a file for each path and day."""
    minutes: Annotated[int, PlainValidator(_age), _text("age")] = setting("30d", examples=["30d"])
    """Summaries of minutes. Days that have raw samples are drawn from these."""
    hours: Annotated[int, PlainValidator(_age), _text("age")] = setting("10y", examples=["10y"])
    """Summaries of hours and days, outcomes of path tests, alerts that have ended."""
    free: Size = setting("200MB", examples=["200MB"])
    """Space that stays free on the disk: below it the oldest raw samples go, whatever `raw` says. Summaries stay."""


class Metrics(Table):
    """The endpoint for Prometheus."""

    listen: Annotated[tuple[str, int], PlainValidator(_listen), _text("IP address and port")] = setting(
        examples=["127.0.0.1:9464"]
    )
    """Address of this machine at which /metrics is; it has no authentication."""


class Alerts(Table):
    """Receivers of alerts, and their hours. Without URLs alerts are in the store, on the page and in the metrics."""

    urls: list[Annotated[str, PlainValidator(_url), _text("URL")]] = setting(
        [], examples=[["json://127.0.0.1:8080/alerts"]]
    )
    """Receivers, as apprise writes them: mail, chat, webhooks. Needs the package's extra `alerts`."""
    urls_file: Annotated[str, PlainValidator(_file), _text("path")] | None = setting(None, examples=["alert-urls"])
    """File of further URLs, one a line, so that their secrets stay out of this one; read at each alert."""
    quiet: list[Annotated[tuple[int, int], PlainValidator(_quiet), _text("hours of the day")]] = setting(
        [], examples=[["22:00-06:00"]]
    )
    """Hours of the local day in which nothing is sent but kinds in `urgent`. What is open at their end is sent then."""
    urgent: list[Literal["step", "drift", "agreed_missed", "silent"]] = setting([], examples=[["silent"]])
    """Kinds of alerts that quiet hours do not hold back."""
    repeat: PositiveSpan | None = setting(None, examples=["4h"])
    """Time after which an alert that lasts is sent again; none: once."""


class Benchmark(Table):
    """Agreed values of the path. Absent ones are learned."""

    rtt: PositiveSpan | None = setting(None, examples=["32ms"])
    """Round-trip time without load."""
    loss: Probability | None = setting(None, examples=[1e-5])
    """Share of packets that are lost."""
    available: Rate | None = setting(None, examples=["400Mbit/s"])
    """Bandwidth that is left to new traffic."""
    capacity: Rate | None = setting(None, examples=["1Gbit/s"])
    """Rate of the narrowest link."""
    throughput: Rate | None = setting(None, examples=["700Mbit/s"])
    """Rate of a bulk flow."""

    def values(self) -> dict[str, float]:
        """Return the agreed values by quantity."""
        found = {
            "rtt_s": None if self.rtt is None else self.rtt / 1e9,
            "loss": None if self.loss is None else self.loss / 1e12,
            "available_bps": self.available,
            "capacity_bps": self.capacity,
            "throughput_bps": self.throughput,
        }
        return {name: float(value) for name, value in found.items() if value is not None}


class Test(Table):
    """A path test, again and again."""

    __test__ = False

    test: Literal["stamp", "capacity", "available", "queue", "policer", "loss", "hops", "mtu", "throughput"] = setting(
        examples=["stamp"]
    )
    """`stamp`: delay, loss and TTL, a packet each period. The others are measurements that take seconds:
    `capacity`, `available` bandwidth, depth of the `queue`, `policer`, `loss` of a steady stream, `hops`, `mtu`,
    `throughput`."""
    period: PositiveSpan = setting(examples=["1s", "5min"])
    """Time from one to the next: at least 100 ms of `stamp`, 10 s of the others."""
    duration: Annotated[int, PlainValidator(_duration), _text("time")] | None = setting(None, examples=["10s"])
    """Time for which `throughput` sends. When absent: 10 s."""

    @model_validator(mode="after")
    def _fits(self) -> Test:
        if self.test == "stamp" and self.period < LEAST_PERIOD_NS:
            raise wrong('at least "100ms"', "period")
        if self.test != "stamp" and self.period < LEAST_TEST_PERIOD_NS:
            raise wrong('at least "10s": a measurement takes seconds', "period")
        if self.duration is not None and self.test != "throughput":
            raise wrong("a key of test throughput alone", "duration")
        return self


class Path(Table):
    """A path to watch."""

    name: Name = setting(examples=["vienna"])
    """Its name in the store and in alerts."""
    towards: Annotated[str, PlainValidator(_towards), _text("IP address, with a port or without")] | None = setting(
        None, examples=["198.51.100.7:862"]
    )
    """A STAMP reflector (RFC 8762) or a TWAMP-Light one, by IP address; without a port: 862."""
    host: str | None = setting(None, examples=["vienna"])
    """In place of `towards`: a name of `elephan hosts`, where elephan's agent reflects."""
    key_file: Annotated[str, PlainValidator(_file), _text("path")] | None = setting(None, examples=["vienna.key"])
    """File of the key that this end and the reflector share, in hexadecimal digits: STAMP's authenticated mode."""
    line_rate: Rate = setting(examples=["1Gbit/s"])
    """Rate of the line, of which `budget` is a share."""
    budget: Annotated[int, _BUDGET, _text("share")] = setting("1%", examples=["1%"])
    """Share of the line's rate that all tests together may use. A test that does not fit waits."""
    bottleneck: Name | None = setting(None, examples=["atlantic"])
    """Name of a line that several paths share: tests other than `stamp` of paths with the same name never overlap."""
    benchmark: Benchmark = setting({}, examples=[{"rtt": "32ms", "loss": 1e-5}])
    """Agreed values."""
    change: Annotated[int, _CHANGE, _text("share")] = setting("20%", examples=["20%"])
    """Relative change that is worth an alert."""
    transfers: list[Annotated[str, PlainValidator(_file), _text("path")]] = setting([], examples=[["tonight.toml"]])
    """Scenarios of transfers over this path: an alert forecasts, by simulation, how long each takes now."""
    paused: bool = setting(False, examples=[True])
    """Keeps what is stored of the path, and tests nothing."""
    test: list[Test] = setting([], examples=[[{"test": "stamp", "period": "1s"}]])
    """The tests; each kind once."""

    @model_validator(mode="after")
    def _one_end(self) -> Path:
        if (self.towards is None) == (self.host is None):
            raise wrong("one of towards and host")
        if self.host is not None and self.key_file is not None:
            raise wrong("absent: an agent has a key of its own", "key_file")
        kinds: set[str] = set()
        for number, one in enumerate(self.test):
            if one.test in kinds:
                raise wrong("a test that the path does not have yet", "test", number, "test")
            kinds.add(one.test)
            if one.test == "stamp":
                self._check_stamp(number, one)
            if one.test == "throughput":
                self._check_throughput(number, one)
        if not self.test and not self.paused:
            raise wrong("missing; a path needs [[path.test]] tables, or paused = true", "test")
        return self

    def _bytes_per_s(self) -> float:
        return self.line_rate * self.budget / 8e6

    def _check_stamp(self, number: int, one: Test) -> None:
        least_s = STAMP_PACKET_BYTES / self._bytes_per_s()
        if one.period < least_s * 1e9:
            raise wrong(
                f"at least {least_s:.3g} s: a packet of {STAMP_PACKET_BYTES} bytes each period is more than "
                f"{self.budget / 1e4:g} % of {rate(self.line_rate)}",
                "test", number, "period",
            )  # fmt: skip

    def _check_throughput(self, number: int, one: Test) -> None:
        sent = self.line_rate / 8 * (one.duration or 10 * 10**9) / 1e9
        least_s = sent / self._bytes_per_s()
        if one.period < least_s * 1e9:
            raise wrong(
                f"at least {least_s:.0f} s: at the line's rate it sends {sent / 1e6:.3g} MB, and budget gives "
                f"{self._bytes_per_s() / 1e6:.3g} MB/s",
                "test", number, "period",
            )  # fmt: skip

    def spec(self, folder: FilePath) -> PathSpec:
        """Return it as plain data; names of files are those of `folder`."""
        tests = tuple(TestSpec(one.test, one.period, one.duration) for one in self.test)
        return PathSpec(
            self.name,
            self.towards,
            self.host,
            None if self.key_file is None else str((folder / self.key_file).absolute()),
            self.line_rate,
            self.budget,
            # A path's own has a sign that no name has.
            self.bottleneck or f"*{self.name}",
            self.benchmark.values(),
            tuple(str((folder / one).absolute()) for one in self.transfers),
            self.paused,
            tests,
            self.change,
        )


class Monitor(Table):
    """A monitor's file."""

    name: Annotated[Name, AfterValidator(_file_name)] = setting(examples=["dr"])
    """Its name in the store, which no other monitor of the store has."""
    retention: Retention = setting({}, examples=[{"raw": "400d"}])
    """Ages at which data goes."""
    metrics: Metrics | None = setting(None, examples=[{"listen": "127.0.0.1:9464"}])
    """The endpoint for Prometheus; none: no endpoint."""
    alerts: Alerts = setting({}, examples=[{"urls_file": "alert-urls"}])
    """Receivers of alerts."""
    path: list[Path] = setting(examples=[[{"name": "vienna"}]])
    """The paths."""

    @model_validator(mode="after")
    def _paths(self) -> Monitor:
        if not 1 <= len(self.path) <= MOST_PATHS:
            raise wrong(f"1 to {MOST_PATHS} [[path]] tables", "path")
        names: set[str] = set()
        for number, path in enumerate(self.path):
            if path.name in names:
                raise wrong("a name that no other path has", "path", number, "name")
            names.add(path.name)
        if self.retention.minutes > self.retention.hours:
            raise wrong("at most the age of hours", "retention", "minutes")
        return self

    def spec(self, file: FilePath) -> Spec:
        """Return it as plain data."""
        told = self.alerts
        folder = file.parent
        alerts = AlertSpec(
            tuple(told.urls),
            None if told.urls_file is None else str((folder / told.urls_file).absolute()),
            tuple(told.quiet),
            None if told.repeat is None else told.repeat / 1e9,
            tuple(told.urgent),
        )
        keep = self.retention
        return Spec(
            self.name,
            str(file.absolute()),
            tuple(path.spec(folder) for path in self.path),
            float(keep.raw),
            float(keep.minutes),
            float(keep.hours),
            keep.free,
            None if self.metrics is None else self.metrics.listen,
            alerts,
        )


def load(file: FilePath) -> Spec:
    """Read a monitor's file. Raises `InputError` with file, key, value and what would be right."""
    try:
        return validated(file, Monitor, lambda config: _faults(file, config)).spec(file)
    except ScenarioError as error:
        key = error.key or ""
        if key.startswith("alerts") and (key.startswith("alerts.url") or "://" in str(error.value)):
            # URLs hold passwords, and what is said goes into logs.
            raise ScenarioError(file, key, "...", error.expected, error.line) from None
        raise


def _faults(file: FilePath, config: Monitor) -> Iterator[tuple[Location, str]]:
    """Yield what only this machine's files can tell."""
    folder = file.parent
    told = config.alerts
    if told.urls_file is not None and not (folder / told.urls_file).is_file():
        yield ("alerts", "urls_file"), "a file that is there"
    if told.urls or told.urls_file is not None:
        yield from _apprise(config)
    hosts: dict[str, Any] | None = None
    for number, path in enumerate(config.path):
        if path.key_file is not None:
            yield from _key(number, folder / path.key_file)
        if path.host is not None:
            if hosts is None:
                from elephan.hosts.book import Book

                hosts = dict.fromkeys(one.name for one in Book.read())
            if path.host not in hosts:
                known = f"there is {', '.join(hosts)}" if hosts else "there is none yet"
                yield ("path", number, "host"), f"a name of `elephan hosts`; {known}"
        for place, name in enumerate(path.transfers):
            expected = _wrong_with_transfer(folder / name)
            if expected is not None:
                yield ("path", number, "transfers", place), expected


def _key(number: int, file: FilePath) -> Iterator[tuple[Location, str]]:
    from elephan.errors import InputError
    from elephan.measure.target import read_key

    try:
        read_key("key_file", file)
    except InputError as error:
        yield ("path", number, "key_file"), f"a key: {error}"


def _apprise(config: Monitor) -> Iterator[tuple[Location, str]]:
    try:
        from apprise import Apprise
    except ImportError:
        yield ("alerts", "urls"), "apprise to be installed first: pip install 'elephan[alerts]'"
        return
    for number, url in enumerate(config.alerts.urls):
        if not Apprise().add(url):
            yield ("alerts", "urls", number), "a URL that apprise knows: https://github.com/caronc/apprise/wiki"


def tables() -> dict[str, type[Table]]:
    """Return the tables of a monitor's file by their names."""
    return {one.__name__: one for one in (Retention, Metrics, Alerts, Benchmark, Test, Path, Monitor)}


def _wrong_with_transfer(file: FilePath) -> str | None:
    from elephan.errors import InputError
    from elephan.scenario import load as load_scenario

    try:
        scenario = load_scenario(file)
    except InputError as error:
        return f"a scenario that can run: {error}"
    runs = len(scenario.runs)
    return None if runs == 1 else f"a scenario of one run; it has {pluralize(runs, 'run')}"
