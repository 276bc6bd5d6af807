"""Flows: a congestion control, a workload, a place on the path and a time."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema, model_validator

from elephan.run_spec.defaults import TRANSPORT
from elephan.run_spec.types import CountSpec, JitterKind, LostRetransmissionsSpec, ReceiveBuffersSpec, RecoverySpec
from elephan.scenario.copy import Copy
from elephan.scenario.fcp import Fcp
from elephan.scenario.gateway import Fc
from elephan.scenario.iscsi import Iscsi
from elephan.scenario.problem import wrong
from elephan.scenario.program import PROGRAMS, Program
from elephan.scenario.quantity import (
    U32_MAX,
    AtMost,
    Mtu,
    PositiveSize,
    PositiveSpan,
    Rate,
    Span,
    Whole,
    parse_size,
    span_text,
)
from elephan.scenario.receive_buffers import NEWEST
from elephan.scenario.table import Name, Table, Tagged, setting
from elephan.scenario.workload import Workload

#: RFC 7323, 2.3: the largest shift is 14, on a field of 16 bits.
WINDOW_FIELD_MAX = 65_535
WINDOW_SHIFT_MAX = 14
WINDOW_MAX = WINDOW_FIELD_MAX << WINDOW_SHIFT_MAX
# Without that bound: the limit of the core's packets, which is below 2^31.
WINDOW_MAX_UNBOUND = WINDOW_FIELD_MAX << 15

CONNECTIONS_MAX = 100_000


def _window(value: Any) -> int | None:
    expected = '"auto", or a size with a unit such as "8MB" or "64KiB"'
    if value == "auto":
        return None
    try:
        window = parse_size(value)
    except Exception:
        raise wrong(expected) from None
    if not 0 < window <= WINDOW_MAX_UNBOUND:
        raise wrong(_LARGEST)
    return window


_LARGEST = f'"auto", or a size from 1B to {WINDOW_MAX}B, the largest that TCP can express (RFC 7323)'


def _cc(value: Any) -> dict[str, Any]:
    expected = (
        'a congestion control\'s name such as "cubic", a C file such as "./mine.c", or a table such as '
        '{ name = "storage_friendly", reduction = "1/8" }'
    )
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, dict):
        raise wrong(expected)
    if not isinstance(value.get("name"), str) or not value["name"]:
        raise wrong('a name such as "cubic" or "./mine.c"', "name")
    for key, item in value.items():
        if not isinstance(item, str | int | float):
            raise wrong('a number, a fraction such as "1/8", or true or false', key)
    return value


_CC_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}},
                "additionalProperties": {"type": ["string", "number", "boolean"]},
            },
        ],
        "x-type": "name, C file, or table",
    }
)
_WINDOW_SCHEMA = WithJsonSchema({"type": "string", "x-type": "size or auto"})


class SendOverhead(Table):
    """Random time that the sender takes for each packet, one after the other, so that their order stays (ns-2's
    overhead_; Floyd and Jacobson 1992 against phase effects). Short: `send_overhead = "1ms"`, uniform up to 1 ms."""

    scale: Annotated[PositiveSpan, AtMost(3_600_000_000_000, "1h")] = setting(examples=["1ms"])
    """As of jitter: largest (uniform), mean (exponential), or standard deviation (normal; absolute value, cut at 4
    sigma)."""
    distribution: JitterKind = setting("uniform", examples=["exponential"])
    """Shape."""


_SendOverhead = Annotated[
    SendOverhead,
    Tagged(
        (("send_overhead", SendOverhead),),
        key=None,
        default="send_overhead",
        short="scale",
        expected='a time such as "1ms", or a table such as { scale = "1ms", distribution = "exponential" }',
    ),
]


class FlowSettings(Table):
    """Keys that a flow has and `[defaults]` may set for all flows."""

    # Defaults of the transport are the core's: crates/tcp/src/config.rs has them with their sources.

    congestion_control: Annotated[dict[str, Any], PlainValidator(_cc), _CC_SCHEMA] = setting(
        TRANSPORT["congestion_control"], examples=["reno", "./mine.c", {"name": "storage_friendly", "reduction": "1/8"}]
    )
    """A name that `elephan cc` lists, a C file of yours, or a table of `name` and parameters."""
    transport: Literal["tcp", "udt4", "udt-2003"] = setting("tcp", examples=["udt4"])
    """TCP; UDT4 as libudt 4.11; the UDT of 2003. UDT takes `window`, `mtu`, `ip_version` and `send_buffer`, carries
    workloads without sessions, and is simulated: keys of TCP mean nothing to it. Absent with the programs udt and srt,
    which run it."""
    workload: Workload = setting({"kind": "bulk"}, examples=["bulk", {"kind": "constant_rate", "load": "90%"}])
    """Data that the flow carries."""
    start: Span = setting("0s", examples=["5s"])
    """Opening of the connection."""
    stop: Span | None = setting(None, examples=["25s"])
    """The application stops writing. When absent: the end of its workload."""
    connections: Annotated[int, Whole(1, CONNECTIONS_MAX)] = setting(1, examples=[4])
    """Parallel connections; of workload `iscsi`: those of its one session; of `fc` and `fcp`: between the gateways; of
    `copy`: the streams of each job."""
    distribution: Literal["striped", "each"] = setting("striped", examples=["each"])
    """"striped": connections share the workload (see Several connections). "each": every one carries all of it."""
    stagger: Span = setting("0s", examples=["100ms"])
    """Between the starts of two connections."""
    direction: Literal["forward", "reverse"] = setting("forward", examples=["reverse"])
    """Short form: data from left to right, or back."""
    window: Annotated[int | None, PlainValidator(_window), _WINDOW_SCHEMA] = setting("auto", examples=["8MB"])
    """Largest receive window. "auto": twice the bandwidth-delay product and the route's queues; where a line loses
    packets, four times both, room for a copy that is lost twice. With `receive_autotuning` no more than Linux's own
    tcp_rmem allows, see `receive_buffers`. Without window scaling at most 65,535 B, or "64KiB"."""
    window_bound: Literal["rfc7323", "none"] = setting(
        "rfc7323" if TRANSPORT["window_bound"] else "none", examples=["none"]
    )
    """Largest possible window: RFC 7323's 1,073,725,440 B, or twice that, which no real TCP has."""
    window_scaling: bool = setting(TRANSPORT["window_scaling"], examples=[False])
    """RFC 7323."""
    window_scale: Annotated[int, Whole(0, WINDOW_SHIFT_MAX)] | None = setting(TRANSPORT["window_scale"], examples=[10])
    """Shift to announce. When absent: the least for the window."""
    receive_autotuning: bool = setting(TRANSPORT["receive_autotuning"], examples=[True])
    """Grow the advertised window with use (Linux tcp_moderate_rcvbuf); off: all at once."""
    receive_buffers: ReceiveBuffersSpec = setting(NEWEST, examples=["linux-6.15"])
    """With `receive_autotuning`: the Linux that tunes. "linux-6.16": 6.16 and later, buffers up to 32 MiB, room behind
    a hole, RTTs while data is unread are skipped. "linux-6.15": 6.15 and earlier, up to 6 MiB, none of these.
    `window = "auto"` then stays within the buffer: 21.0 or 3.93 MB of window."""
    send_buffer: PositiveSize | None = setting(TRANSPORT["send_buffer_bytes"], examples=["4MB"])
    """Bytes written and not acknowledged. When absent: no limit."""
    mtu: Mtu | None = setting(None, examples=["1500B"])
    """Largest IP packet. When absent: the smallest MTU on the route."""
    ip_version: Literal[4, 6] = setting(4, examples=[6])
    """Version of IP: a header of 20 bytes, or with 6 of 40, which leave a full segment 20 bytes less payload. IPv6
    takes an MTU of 1280 B or more (RFC 8200, 5). A capture has packets of it, the backend kernel sockets. UDT then has
    a UDT_MSS of 20 B less than `mtu`, because libudt counts an IPv4 header in it."""
    recovery: RecoverySpec = setting(TRANSPORT["recovery"], examples=["sack"])
    """"reno": RFC 2581 without SACK, leaves fast recovery at the first new ACK, go-back-N after a time-out, as ns-2's
    FullTcp; "newreno": RFC 6582 without SACK; "sack": RFC 6675; "rack": RACK-TLP (RFC 8985) with PRR (RFC 6937)."""
    lost_retransmissions: LostRetransmissionsSpec = setting("era", examples=["never"])
    """With "sack". "era": a retransmission is lost when data first sent after it is SACKed (Linux 2.6
    tcp_mark_lost_retrans). "never": the time-out repairs (RFC 6675). "repeatedly": on each ACK anew, so that the sender
    resends what it has just resent, as ns-2's TCP-Linux, for comparison."""
    cwnd_validation: bool = setting(True, examples=[False])
    """Grow the congestion window only while it is the limit (RFC 7661, Linux); off: on each new ACK, used or not (ns-2
    opencwnd)."""
    count: CountSpec = setting("segments", examples=["acks"])
    """Unit in which a congestion control is told of acknowledgments: segments (Linux), or one for each ACK (RFC 2581,
    3.1; ns-2 opencwnd)."""
    nagle: bool = setting(False, examples=[True])
    """Hold back a short segment while data is unacknowledged (RFC 896; RFC 1122, 4.2.3.4)."""
    initial_cwnd: Annotated[int, Whole(1, 65535)] = setting(TRANSPORT["initial_cwnd"], examples=[1])
    """Segments (RFC 6928)."""
    initial_ssthresh: Annotated[int, Whole(2, U32_MAX)] | None = setting(TRANSPORT["initial_ssthresh"], examples=[64])
    """Segments. When absent: infinite."""
    cwnd_clamp: Annotated[int, Whole(1, U32_MAX)] | None = setting(TRANSPORT["cwnd_clamp"], examples=[1000])
    """Largest congestion window, segments. When absent: none."""
    timestamps: bool = setting(TRANSPORT["timestamps"], examples=[False])
    """RFC 7323."""
    delayed_ack: bool = setting(TRANSPORT["delayed_ack"], examples=[False])
    """ACK every second full segment, or when the timer fires (RFC 5681, 4.2)."""
    sack_compression: bool = setting(TRANSPORT["sack_compression"], examples=[False])
    """With "rack": from the fourth duplicate ACK for a hole on, one for up to 45 segments of 1 ms or, if less, RTT/20
    (Linux tcp_comp_sack_delay_ns, tcp_comp_sack_nr)."""
    quickack_segments: Annotated[int, Whole(0, 65535)] = setting(TRANSPORT["quickack_segments"], examples=[0])
    """First segments, acknowledged at once (Linux TCP_MAX_QUICKACKS)."""
    ecn: bool = setting(TRANSPORT["ecn"], examples=[True])
    """RFC 3168."""
    pacing: bool = setting(TRANSPORT["pacing"], examples=[True])
    """Pace even if the congestion control does not ask."""
    tso_autosizing: bool = setting(TRANSPORT["tso_autosizing"], examples=[False])
    """With "rack": send in bursts, of a millisecond at the pacing rate, 2 segments to 64 KiB (Linux since 3.12,
    tcp_tso_autosize, tcp_tso_should_defer). Off: each segment as soon as there is room for it, as without segmentation
    offload."""
    max_pacing_rate: Rate | None = setting(None, examples=["190Mbit/s"])
    """Most payload that each connection sends, evenly spaced (`SO_MAX_PACING_RATE`). When absent: no limit."""
    slow_start_after_idle: bool = setting(TRANSPORT["slow_start_after_idle"], examples=[False])
    """Initial window after idle (RFC 5681, 4.1)."""
    rto_min: PositiveSpan = setting(span_text(TRANSPORT["rto_min_ns"]), examples=["1s"])
    """Least retransmission time-out (RFC 6298: 1 s; Linux: 200 ms)."""
    rto_max: PositiveSpan = setting(span_text(TRANSPORT["rto_max_ns"]), examples=["60s"])
    """Largest retransmission time-out."""
    reordering: Annotated[int, Whole(1, 1000)] = setting(TRANSPORT["reordering"], examples=[3])
    """First duplicate ACK threshold (Linux tcp_reordering)."""
    max_reordering: Annotated[int, Whole(1, 1_000_000)] = setting(TRANSPORT["max_reordering"], examples=[3])
    """Largest threshold (Linux tcp_max_reordering)."""
    undo: bool = setting(TRANSPORT["undo"], examples=[False])
    """Take a reduction back when timestamps, DSACK or F-RTO prove that nothing was lost (RFC 3522, 3708, 5682); ns-2
    does not."""
    limited_transmit: bool = setting(TRANSPORT["limited_transmit"], examples=[False])
    """Send new data on the first duplicate ACKs (RFC 3042)."""
    frto: bool = setting(TRANSPORT["frto"], examples=[False])
    """Detect spurious time-outs (RFC 5682)."""
    fast_retransmit: bool = setting(TRANSPORT["fast_retransmit"], examples=[False])
    """Off: only the time-out repairs."""
    send_overhead: _SendOverhead | None = setting(None, examples=["1ms"])
    """Random time that the sender takes for each packet, simulated. When absent: none."""

    @property
    def carried_by(self) -> Literal["tcp", "udt4", "udt-2003"]:
        """The transport, that of a program which brings its own included."""
        own = isinstance(self.workload, Program) and PROGRAMS[self.workload.program].over_udp
        return "udt4" if own else self.transport

    @model_validator(mode="after")
    def _consistent(self) -> FlowSettings:
        if self.stop is not None and self.stop <= self.start + (self.connections - 1) * self.stagger:
            raise wrong("a time after the start of the last connection", "stop")
        if self.stop is not None and getattr(self.workload, "duration", None) is not None:
            raise wrong("either stop or workload.duration, not both", "stop")
        if isinstance(self.workload, Program) and PROGRAMS[self.workload.program].over_udp:
            if self.transport != "udt4" and "transport" in self.model_fields_set:
                raise wrong(f"absent: {self.workload.program} brings its own transport", "transport")
        elif self.transport != "tcp" and isinstance(self.workload, Iscsi | Fc | Fcp | Program):
            raise wrong(
                '"tcp": UDT carries bulk, constant_rate, replicate, copy and short_flows; real UDT is program = "udt"',
                "transport",
            )
        if isinstance(self.workload, Iscsi) and self.distribution == "each":
            raise wrong("absent: the connections of a session share its requests", "distribution")
        if isinstance(self.workload, Fc | Fcp):
            if self.distribution == "each":
                raise wrong("absent: workload.pairs says how many pairs there are", "distribution")
            if self.stagger and self.workload.protocol == "fcip":
                raise wrong("0s: the connections of a tunnel are opened together", "stagger")
        if isinstance(self.workload, Copy):
            if self.distribution == "each":
                raise wrong("absent: the connections of a copy share its files", "distribution")
            if self.connections * self.workload.jobs > CONNECTIONS_MAX:
                most = CONNECTIONS_MAX // self.workload.jobs
                raise wrong(f"at most {most}: each of {self.workload.jobs} jobs has so many connections", "connections")
        if isinstance(self.workload, Program) and self.connections > 1:
            if self.workload.streams > 1:
                raise wrong("1, as workload.streams says how many one program has; or streams = 1", "connections")
            if (self.workload.bytes or U32_MAX) // self.workload.files < self.connections:
                most = (self.workload.bytes or U32_MAX) // self.workload.files
                raise wrong(f"at most {most}: each connection sends a part of workload.bytes", "connections")
        if isinstance(self.workload, Iscsi) and self.stagger:
            raise wrong("0s: the session's first connection logs in, then the others", "stagger")
        if self.stop is not None and isinstance(self.workload, Program):
            raise wrong("absent: a program ends by itself, by workload.bytes or workload.duration", "stop")
        if self.window is not None and self.window > WINDOW_MAX and self.window_bound == "rfc7323":
            raise wrong(_LARGEST, "window")
        if self.receive_buffers != NEWEST and not self.receive_autotuning:
            raise wrong(f'"{NEWEST}", as only receive_autotuning = true has others', "receive_buffers")
        if self.lost_retransmissions != "era" and self.recovery != "sack":
            raise wrong('"era", as only recovery = "sack" has others', "lost_retransmissions")
        if self.nagle and self.carried_by != "tcp":
            raise wrong(f"false: {self.carried_by} has no Nagle's algorithm, only TCP has", "nagle")
        if self.max_reordering < self.reordering and "max_reordering" in self.model_fields_set:
            raise wrong("a number not below reordering", "max_reordering")
        if self.rto_max < self.rto_min:
            raise wrong("a time not below rto_min", "rto_max")
        if not self.window_scaling:
            if self.window_scale is not None:
                raise wrong("absent, because window_scaling is false", "window_scale")
            # 64 KiB is how people name the unscaled limit; the field ends one byte below.
            if self.window is not None and self.window > WINDOW_FIELD_MAX + 1:
                raise wrong("at most 65535B, because window_scaling is false", "window")
        elif self.window_scale is not None and self.window is not None:
            limit = WINDOW_FIELD_MAX << self.window_scale
            if self.window > limit:
                raise wrong(f"at most {limit}B, because window_scale is {self.window_scale}", "window")
        return self


class Flow(FlowSettings):
    """A flow of one or more connections."""

    name: Name | None = setting(None, examples=["backup"])
    """Unique name. When absent: flow1, flow2, ... by place."""
    from_: Name | None = setting(None, alias="from", examples=["host1"])
    """Long form, required: sending node."""
    to: Name | None = setting(None, examples=["host2"])
    """Long form, required: receiving node."""
    route: list[str] | None = setting(None, examples=[["host1", "r1", "r2", "host2"]])
    """Long form: nodes that data passes; a link's name between two nodes chooses one of several. When absent: fewest
    links, then least delay, then first in the file."""
    return_route: list[str] | None = setting(None, examples=[["host2", "r2", "r1", "host1"]])
    """Long form: nodes that ACKs pass. When absent: `route` backwards."""
