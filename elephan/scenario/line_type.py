"""Lines that carriers and switches have: rates, and the bytes that they add to each IP packet.

The one definition of both. A line's rate here is that at which frames and what lies between them pass; coding, section,
line and path overhead are taken off already. IEEE 802.3 is the edition of 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema

from elephan.run_spec.types import FramingSpec
from elephan.scenario.problem import unknown, wrong
from elephan.scenario.quantity import AtMost, PositiveSize, Whole
from elephan.scenario.table import Table, Tagged, setting

MAC_BYTES = 14
"""Destination, source and type of an Ethernet frame (IEEE 802.3, 3.1.1)."""
FCS_BYTES = 4
"""Frame check sequence, CRC-32 (IEEE 802.3, 3.2.9)."""
VLAN_BYTES = 4
"""A VLAN tag (IEEE 802.1Q, 9.5)."""
MIN_FRAME_BYTES = 64
"""Shortest Ethernet frame, check sequence included (IEEE 802.3, 4A.4.2: minFrameSize of 512 bits)."""
PREAMBLE_BYTES = 8
"""Preamble and start of frame (IEEE 802.3, 3.1.1)."""
GAP_BYTES = 12
"""Gap between frames (IEEE 802.3, 4A.4.2: interPacketGap of 96 bits; from 10 Gbit/s on its mean, 46.3.1.4)."""
PPP_BYTES = 8
"""Address 1, control 1, protocol 2, check sequence 4 (RFC 1662, 3.1; of 32 bits by RFC 2615)."""
FLAG_BYTES = 1
"""The flag between two frames (RFC 1662, 3.1). Bytes escaped in a payload (4.2) are not counted: 1 in 128 at random."""
GFP_BYTES = 8
"""Core header 4, payload header 4 (ITU-T G.7041, 6.1); the Ethernet frame in it has no preamble and no gap (7.1)."""
MAX_FRAME_BYTES = 9252
"""Longest frame of the switch in Meirosu and others, *Native 10 Gigabit Ethernet Experiments*, 4."""

Layer = Literal["ethernet", "ppp", "gfp"]


@dataclass(frozen=True)
class LineType:
    """A kind of line."""

    layer: Layer
    """Protocol that puts packets into frames."""
    line: str
    """Rate of the signal on the fibre, and its source."""
    rate_bps: int
    """Rate of frames and what lies between them, bit/s, rounded."""
    source: str
    """Derivation of that rate."""


def _sonet(n: int) -> int:
    """Payload of STS-nc, bit/s: 9 rows of 87 n columns without path overhead and fixed stuff, 8000 times a second."""
    return 9 * (87 * n - 1 - (n // 3 - 1)) * 8 * 8000


def _pos(n: int, signal: str) -> LineType:
    what = f"STS-{n}c / VC-4{'' if n == 3 else f'-{n // 3}c'} payload (ITU-T G.707, table 7-1; RFC 2615)"
    return LineType("ppp", signal, _sonet(n), what)


def _ethernet(gigabit: int, line: str, clause: int) -> LineType:
    return LineType("ethernet", line, gigabit * 10**9, f"MAC rate (IEEE 802.3, clause {clause})")


#: 238/239 of ODU2 (ITU-T G.709, table 7-2) is what OPU2 leaves: 238/237 of STM-64.
_OPU2 = round(Fraction(238, 237) * 9_953_280_000)

LINE_TYPES: dict[str, LineType] = {
    "1gbe": _ethernet(1, "1.25 Gbit/s, 8B/10B", 36),
    "10gbe-lan-phy": _ethernet(10, "10.3125 Gbit/s, 64B/66B", 49),
    "10gbe-wan-phy": LineType(
        "ethernet",
        "9.95328 Gbit/s, STS-192c / VC-4-64c",
        round(Fraction(64, 66) * _sonet(192)),
        "64/66 of the payload, 9.58464 Gbit/s (IEEE 802.3, clauses 49 and 50)",
    ),
    "25gbe": _ethernet(25, "25.78125 Gbit/s, 64B/66B", 107),
    "40gbe": _ethernet(40, "4 x 10.3125 Gbit/s, 64B/66B", 82),
    "100gbe": _ethernet(100, "4 x 25.78125 Gbit/s, 64B/66B", 82),
    "200gbe": _ethernet(200, "8 x 26.5625 Gbit/s, 256B/257B and RS(544,514)", 119),
    "400gbe": _ethernet(400, "16 x 26.5625 Gbit/s, 256B/257B and RS(544,514)", 119),
    "oc-3": _pos(3, "155.52 Mbit/s, STM-1"),
    "oc-12": _pos(12, "622.08 Mbit/s, STM-4"),
    "oc-48": _pos(48, "2.48832 Gbit/s, STM-16"),
    "oc-192": _pos(192, "9.95328 Gbit/s, STM-64"),
    "odu2": LineType(
        "gfp",
        "10.709225 Gbit/s, OTU2",
        _OPU2,
        "OPU2 payload: 238/237 of 9.95328 Gbit/s (ITU-T G.709, table 7-3), GFP-F",
    ),
    "odu2e": LineType(
        "ethernet",
        "11.0957 Gbit/s, OTU2e",
        10 * 10**9,
        "MAC rate (IEEE 802.3, clause 49): ODU2e carries the coded signal bit by bit (ITU-T G.709, table 7-2)",
    ),
}


def _type(value: Any) -> str:
    if not isinstance(value, str) or value not in LINE_TYPES:
        raise wrong(unknown("line", str(value), list(LINE_TYPES)))
    return value


class Line(Table):
    """A line by its type, in place of `bandwidth`. Short: `line = "10gbe-wan-phy"`. Frames take their bytes of it:
    Ethernet adds 38 to a packet (and fills a short one up to 84), PPP over SONET 9, GFP 26."""

    type: Annotated[str, PlainValidator(_type), WithJsonSchema({"enum": [*LINE_TYPES]})] = setting(
        examples=["10gbe-wan-phy"]
    )
    """Kind of line, of those in the table Lines of the reference."""
    vlan_tags: Annotated[int, Whole(0, 2)] = setting(0, examples=[1])
    """VLAN tags of each frame, 4 B each; not with PPP."""
    max_frame: Annotated[PositiveSize, AtMost(65535, "65535B")] = setting("9252B", examples=["1518B"])
    """Longest Ethernet frame that the equipment takes, without tags; the MTU is at most 18 B less. Not with PPP."""

    @property
    def rate_bps(self) -> int:
        """Rate of frames and what lies between them, bit/s."""
        return LINE_TYPES[self.type].rate_bps

    @property
    def framing(self) -> FramingSpec:
        """Bytes that the line adds to each packet."""
        tags = self.vlan_tags * VLAN_BYTES
        ethernet = MAC_BYTES + FCS_BYTES + tags
        match LINE_TYPES[self.type].layer:
            case "ethernet":
                gap = PREAMBLE_BYTES + GAP_BYTES
                return {"header_bytes": ethernet, "min_frame_bytes": MIN_FRAME_BYTES, "gap_bytes": gap}
            case "gfp":
                return {"header_bytes": ethernet, "min_frame_bytes": MIN_FRAME_BYTES, "gap_bytes": GFP_BYTES}
            case "ppp":
                return {"header_bytes": PPP_BYTES, "min_frame_bytes": 0, "gap_bytes": FLAG_BYTES}

    def problem(self, mtu_bytes: int) -> tuple[str, str] | None:
        """Return the key that is wrong for packets of up to `mtu_bytes`, and what would be right; None: none is."""
        if LINE_TYPES[self.type].layer == "ppp":
            for key in ("vlan_tags", "max_frame"):
                if key in self.model_fields_set:
                    return key, f'absent: "{self.type}" carries PPP, not Ethernet'
            return None
        if mtu_bytes + MAC_BYTES + FCS_BYTES > self.max_frame:
            most = self.max_frame - MAC_BYTES - FCS_BYTES
            return "mtu", f"at most {most}B, for a frame of {self.max_frame}B (line.max_frame)"
        return None


def table() -> str:
    """Return the lines as a table in Markdown."""
    rows = [
        "| line | signal | rate of frames, Gbit/s | 1500 B packets, Gbit/s | how the rate follows |",
        "|---|---|---|---|---|",
    ]
    for name, line in LINE_TYPES.items():
        framing = Line(type=name).framing
        frame = max(1500 + framing["header_bytes"], framing["min_frame_bytes"]) + framing["gap_bytes"]
        rates = f"{line.rate_bps / 1e9:.6g} | {line.rate_bps * 1500 / frame / 1e9:.6g}"
        rows.append(f"| `{name}` | {line.line} | {rates} | {line.source} |")
    return "\n".join(rows) + "\n"


LineOrText = Annotated[
    Line,
    Tagged(
        (("line", Line),),
        key=None,
        default="line",
        short="type",
        expected='a line such as "10gbe-wan-phy", or a table such as { type = "10gbe-lan-phy", vlan_tags = 1 }',
    ),
]


def check_line(bandwidth: int | None, line: Line | None, mtu_bytes: int, reverse_bandwidth: int | None) -> None:
    """Raise the problem of a path or link that has not exactly one of `bandwidth` and `line`, or a line that its
    packets do not fit."""
    if line is None:
        if bandwidth is None:
            raise wrong('a rate such as "1Gbit/s", or line = "10gbe-wan-phy" in place of it', "bandwidth")
        return
    if bandwidth is not None:
        raise wrong("absent: line says the rate", "bandwidth")
    if reverse_bandwidth is not None:
        raise wrong("absent: line is of both directions", "reverse", "bandwidth")
    found = line.problem(mtu_bytes)
    if found is not None:
        key, expected = found
        raise wrong(expected, *(("mtu",) if key == "mtu" else ("line", key)))
