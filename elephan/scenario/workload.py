"""Workloads of a flow."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import model_validator

from elephan.run_spec.types import TraceFormatSpec
from elephan.scenario.active import Active
from elephan.scenario.copy import Copy
from elephan.scenario.fcp import Fcp
from elephan.scenario.gateway import Fc
from elephan.scenario.iscsi import Iscsi
from elephan.scenario.problem import wrong
from elephan.scenario.program import Program
from elephan.scenario.quantity import U32_MAX, U64_MAX, AtMost, Load, Positive, PositiveSize, PositiveSpan, Size, Whole
from elephan.scenario.table import Table, Tagged, setting
from elephan.scenario.writes import Arrivals, WriteSize


class Bulk(Table):
    """All that the connection takes. Short: `workload = "bulk"`."""

    kind: Literal["bulk"]
    """Kind of workload."""
    bytes: PositiveSize | None = setting(None, examples=["1GB"])
    """Data to send. When absent: without end."""
    duration: PositiveSpan | None = setting(None, examples=["30s"])
    """Time for which it sends. When absent: until `stop`, or the run's end."""
    buffer: PositiveSize | None = setting(None, examples=["2048B"])
    """Application buffer: most bytes of a write to the socket, on the backend kernel. No effect in the simulator, whose
    application has always written what the window allows. When absent: as many as the socket takes."""

    @model_validator(mode="after")
    def _one_end(self) -> Bulk:
        if self.bytes is not None and self.duration is not None:
            raise wrong("either bytes or duration, not both", "duration")
        return self


class ConstantRate(Table):
    """One frame every so often; the latency of each is measured."""

    kind: Literal["constant_rate"]
    """Kind of workload."""
    load: Load = setting(examples=["90%", "450Mbit/s"])
    """Frame bits per second, or share of the route's slowest line."""
    frame: PositiveSize = setting("2112B", examples=["2048B"])
    """Payload of a frame; Fibre Channel's largest (FC-FS)."""
    credits: Annotated[int, Whole(1, U64_MAX)] | None = setting(None, examples=[256])
    """Frames on their way before the generator waits, which counts as latency (buffer-to-buffer credits). When absent:
    no limit."""
    active: Active | None = setting(None, examples=[{"on": "5s", "off": "55s"}, "22:00-06:00"])
    """Exact periods, or hours of the day, in which frames are issued; `load` is that while active. When absent:
    always."""


class Replicate(Table):
    """Writes of a block trace, or drawn at `rate`, mirrored to the other site; the lag is measured."""

    kind: Literal["replicate"]
    """Kind of workload."""
    trace: str | None = setting(None, examples=["traces/tpcc-small.trace"])
    """Trace file. Either `trace` or `rate`."""
    format: TraceFormatSpec = setting("auto", examples=["msr"])
    """With `trace`: its form (docs/reference/traces.md)."""
    time_scale: Annotated[Fraction, Positive(1_000_000, "4.5")] = setting(1, examples=[4.5])
    """With `trace`: factor on all times; 2 is half as fast."""
    loop: bool = setting(False, examples=[True])
    """With `trace`: begin again at its end."""
    rate: Load | None = setting(None, examples=["180MB/s", "60%"])
    """Data written per second on average, or share of the route's slowest line."""
    size: WriteSize = setting("64KiB", examples=["8KiB", {"mix": {"4KiB": 70, "64KiB": 30}}])
    """With `rate`: data of a write."""
    arrivals: Arrivals = setting("poisson", examples=["constant", {"process": "on_off", "on": "100ms", "off": "400ms"}])
    """With `rate`: times of writes."""
    active: Active | None = setting(None, examples=[{"on": "5s", "off": "55s"}, "22:00-06:00"])
    """With `rate`: exact periods, or hours of the day, in which writes are issued; `rate` is that while active. When
    absent: always."""
    header: Annotated[Size, AtMost(U32_MAX, f"{U32_MAX}B")] = setting("48B", examples=["48B"])
    """Beside each write's data; iSCSI's header (RFC 7143, 11.2.1)."""

    @model_validator(mode="after")
    def _one_source(self) -> Replicate:
        if self.trace is None and self.rate is None:
            raise wrong('trace (a file), or rate (such as "180MB/s")')
        if self.trace is not None and self.rate is not None:
            raise wrong("absent, because trace says when writes come; time_scale changes their rate", "rate")
        own = ("size", "arrivals", "active") if self.trace is not None else ("format", "time_scale", "loop")
        for key in own:
            if key in self.model_fields_set:
                raise wrong(f"absent: it goes with {'rate' if self.trace is not None else 'trace'}", key)
        return self


class ShortFlows(Table):
    """Many short TCP flows that begin at random (Poisson), counted together. Simulator only."""

    kind: Literal["short_flows"]
    """Kind of workload."""
    arrivals: Annotated[Fraction, Positive(1_000_000, "50")] = setting(examples=[50])
    """Flows per second on average."""
    min: PositiveSize = setting("10kB", examples=["4kB"])
    """Smallest flow: P(size > x) = (min / x)^pareto_shape ..."""
    max: PositiveSize = setting("1GB", examples=["100MB"])
    """... cut at the largest flow."""
    pareto_shape: Annotated[Fraction, Positive(1_000, "1.2")] = setting(1.2, examples=[1.1])
    """Tail index (transfers: 1.0 to 1.5)."""
    median: PositiveSize | None = setting(None, examples=["30kB"])
    """Instead: lognormal with this median ..."""
    sigma: Annotated[Fraction, Positive(10, "2")] = setting(2, examples=[1.5])
    """... and this standard deviation of the logarithm."""
    active: Active | None = setting(None, examples=[{"on": "5s", "off": "55s"}, "08:00-18:00"])
    """Exact periods, or hours of the day, in which flows begin; `arrivals` is that while active. When absent:
    always."""

    @model_validator(mode="after")
    def _consistent(self) -> ShortFlows:
        if self.min >= self.max:
            raise wrong("a size above min", "max")
        return self


Workload = Annotated[
    Bulk | ConstantRate | Replicate | Copy | Program | Iscsi | Fc | Fcp | ShortFlows,
    Tagged(
        (
            ("bulk", Bulk),
            ("constant_rate", ConstantRate),
            ("replicate", Replicate),
            ("copy", Copy),
            ("program", Program),
            ("iscsi", Iscsi),
            ("fc", Fc),
            ("fcp", Fcp),
            ("short_flows", ShortFlows),
        ),
        key="kind",
        default=None,
        short="kind",
        expected='"bulk", or a table whose kind is "bulk", "constant_rate", "replicate", "copy", "program", '
        '"iscsi", "fc", "fcp" or "short_flows"',
    ),
]
