"""Gateways of the long form, and the workload `fc` between two of them."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema, model_validator

from elephan.core import native
from elephan.run_spec.types import FcProtocolSpec
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import Load, PositiveSize, Whole, rate
from elephan.scenario.table import Name, Table, Tagged, setting
from elephan.scenario.writes import Arrivals, FixedSize, MixedSizes

PAYLOAD_MAX = 2112
"""Most payload of a frame, bytes (FC-FS-2, clause 8)."""
PAIRS_MAX = 100_000


@cache
def port_speeds() -> dict[str, int]:
    """Return the rate of each port speed without its line code, bit/s, by the field's name for it."""
    return dict(native.fc_port_speeds())


def _port_rate(value: Any) -> int:
    if isinstance(value, str) and value in port_speeds():
        return port_speeds()[value]
    try:
        return rate(value)
    except Exception:
        raise wrong(f'one of {", ".join(port_speeds())}, or a rate such as "850Mbit/s"') from None


_DISTANCE = re.compile(r"^\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*(m|km)\s*$")
_DISTANCE_MAX_KM = 100_000


def _distance(value: Any) -> int:
    """Return the delay of a length of fibre, ns."""
    match = _DISTANCE.match(value) if isinstance(value, str) else None
    if match is None:
        raise wrong('a distance with a unit, m or km, such as "100m" or "50km"')
    km = Fraction(match.group(1).replace("_", "")) / (1000 if match.group(2) == "m" else 1)
    if km > _DISTANCE_MAX_KM:
        raise wrong(f"at most {_DISTANCE_MAX_KM}km")
    return round(km * native.FC_NS_PER_KM)


class Gateway(Table):
    """A Fibre Channel gateway. Behind it is one N_Port for each pair of N_Ports of the flows that end here, with a link
    of its own. Simulator only."""

    kind: Literal["gateway"]
    """Kind of node."""
    name: Name = setting(examples=["new-york"])
    """Unique name."""
    rate: Annotated[
        int, PlainValidator(_port_rate), WithJsonSchema({"type": "string", "x-type": "port speed or rate"})
    ] = setting(examples=["8GFC", "850Mbit/s"])
    """Speed of the link to each N_Port: 1GFC to 32GFC, or the rate without line code."""
    credits: Annotated[int, Whole(1, 65_535)] = setting(16, examples=[8])
    """Buffer-to-buffer credits: frames that either end of that link may have unanswered by R_RDY."""
    distance: Annotated[
        int, PlainValidator(_distance), WithJsonSchema({"type": "string", "x-type": "distance"})
    ] = setting("100m", examples=["50km"])
    """Length of that link, 5 us per km."""
    buffer: PositiveSize = setting("256KiB", examples=["8MB"])
    """Bytes of each connection that TCP has not begun to send from which on R_RDY is withheld; on the other side, of
    each port, bytes that wait for its credits from which on the connection is not read."""


FrameSize = Annotated[
    FixedSize | MixedSizes,
    Tagged(
        (("bytes", FixedSize), ("mix", MixedSizes)),
        key=None,
        default=None,
        short="bytes",
        expected='a size such as "2112B", or a table with mix',
    ),
]


class Fc(Table):
    """Pairs of N_Ports over two gateways, `from` and `to`: the first port of each sends frames to the second, the
    latency of each is measured."""

    kind: Literal["fc"]
    """Kind of workload."""
    protocol: FcProtocolSpec = setting("ifcp", examples=["fcip"])
    """"ifcp": a TCP connection for each pair (RFC 4172). "fcip": `connections` that all pairs share (RFC 3821); a pair
    keeps to one of them."""
    pairs: Annotated[int, Whole(1, PAIRS_MAX)] | None = setting(None, examples=[8])
    """Pairs of N_Ports. When absent: as many as `connections`."""
    load: Load = setting(examples=["90%", "450Mbit/s"])
    """Share of the first port's rate that a pair's frames take, delimiters and gaps counted; or the rate of their
    payload."""
    frame: FrameSize = setting("2112B", examples=["2112B", {"mix": {"2112B": 80, "64B": 20}}])
    """Payload of a frame, or sizes and their weights; at most 2112B."""
    arrivals: Arrivals = setting("constant", examples=["poisson"])
    """Times at which frames are generated."""
    queue: Annotated[int, Whole(1, 1_000_000)] = setting(64, examples=[256])
    """Frames that wait at the first port before its generator pauses. The wait counts in the latency."""

    @model_validator(mode="after")
    def _frames_fit(self) -> Fc:
        largest = self.frame.bytes if isinstance(self.frame, FixedSize) else max(self.frame.mix)
        if largest > PAYLOAD_MAX:
            raise wrong(f"at most {PAYLOAD_MAX}B, Fibre Channel's longest payload", "frame")
        return self
