"""Mixes of frame sizes, and the rates of a line and of its frames as integers.

A size is that of the MAC frame with its check sequence. On the line each takes 20 bytes more: preamble and gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from elephan.errors import InputError
from elephan.scenario.line_type import FCS_BYTES, GAP_BYTES, MAC_BYTES, MAX_FRAME_BYTES, MIN_FRAME_BYTES, PREAMBLE_BYTES

BETWEEN_BYTES = PREAMBLE_BYTES + GAP_BYTES
"""Preamble, start of frame and gap of each frame."""
RFC_2544_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""Frame sizes of Ethernet (RFC 2544, 9.1)."""
TAG_BYTES = 4
"""Tag of a virtual LAN (802.1Q): a frame's payload stays as long as without."""
ROUND_MAX = 100_000
"""Frames of one round: those of a mix are spread in a fixed order, as long as the weights' sum by its divisor."""

IMIX = ((64, 7), (594, 4), (1518, 1))
"""Packets of 40, 576 and 1500 B at 7:4:1, the simple IMIX of traffic generators (RFC 6985 is about such mixes, and
prescribes none), as Ethernet frames: 18 B more each, the shortest filled up to 64."""
PAPER = ((1518, 9), (64, 1))
"""90 % of 1518 B, 10 % of 64 B (Meirosu and others, *Native 10 Gigabit Ethernet Experiments*, 3)."""


@dataclass(frozen=True)
class Mix:
    """Frames of some sizes."""

    sizes: tuple[tuple[int, int], ...]
    """Bytes of a frame, and its weight by frames."""
    name: str = ""
    """Name that a user gave: "imix"; empty: its sizes say all."""

    @staticmethod
    def of(frame_bytes: int) -> Mix:
        """Return frames of one size."""
        return Mix(((frame_bytes, 1),))

    def __str__(self) -> str:
        """Return it as a user writes it."""
        if len(self.sizes) == 1:
            return f"{self.sizes[0][0]} B"
        return self.name or ",".join(f"{size}:{weight}" for size, weight in self.sizes)

    @property
    def weights(self) -> int:
        """Frames of one round of the mix."""
        return sum(weight for _, weight in self.sizes)

    @property
    def frame_bytes(self) -> int:
        """Bytes of the frames of one round."""
        return sum(size * weight for size, weight in self.sizes)

    @property
    def line_bytes(self) -> int:
        """Bytes that one round takes on the line."""
        return self.frame_bytes + BETWEEN_BYTES * self.weights

    def frame_bps(self, line_bps: int) -> int:
        """Return the bit/s of frames (layer 2) at a rate of the line (layer 1), rounded down."""
        return line_bps * self.frame_bytes // self.line_bytes

    def line_bps(self, frame_bps: int) -> int:
        """Return the bit/s of the line that frames of so many bit/s take, rounded up."""
        return -(-frame_bps * self.line_bytes // self.frame_bytes)

    def frames(self, line_bps: int, span_ns: int) -> int:
        """Return the whole frames that a line carries in a time."""
        return line_bps * span_ns * self.weights // (8 * self.line_bytes * 10**9)

    def frames_per_s(self, line_bps: int) -> float:
        """Return the frames per second at a rate of the line."""
        return line_bps * self.weights / (8 * self.line_bytes)

    def check(self, option: str, mtu_bytes: int, has_vlan: bool = False) -> None:
        """Raise `InputError` for a size that the interface does not take."""
        most = longest(mtu_bytes, has_vlan)
        for size, _ in self.sizes:
            _size(option, size, has_vlan)
            if size > most:
                raise InputError(
                    f"{option}: {size} B; the interface's MTU of {mtu_bytes} B takes frames up to {most} B"
                )


def longest(mtu_bytes: int, has_vlan: bool = False) -> int:
    """Return the longest frame of an interface, bytes: a tag is beside its MTU."""
    return min(mtu_bytes + MAC_BYTES + FCS_BYTES + TAG_BYTES * has_vlan, MAX_FRAME_BYTES)


def least_bytes(has_vlan: bool = False) -> int:
    """Return the shortest frame, bytes: 46 B of payload, with a tag as without."""
    return MIN_FRAME_BYTES + TAG_BYTES * has_vlan


def sweep(mtu_bytes: int, has_vlan: bool = False) -> tuple[int, ...]:
    """Return RFC 2544's sizes as far as the MTU lets them through, and the longest frame where that is longer.

    With a tag the shortest is 68 B in place of 64 B.
    """
    most = longest(mtu_bytes, has_vlan)
    fitting = tuple(max(size, least_bytes(has_vlan)) for size in RFC_2544_SIZES if size <= most)
    return fitting if most <= RFC_2544_SIZES[-1] and most in fitting else (*fitting, most)


def parse_mix(option: str, text: str, mtu_bytes: int = 1500, has_vlan: bool = False) -> Mix:
    """Return the mix that a text names; with a tag its shortest frames have 68 B. Raises `InputError`."""
    name = text.strip()
    match name:
        case "imix" | "paper":
            sizes = IMIX if name == "imix" else PAPER
            return Mix(tuple((max(size, least_bytes(has_vlan)), weight) for size, weight in sizes), name)
        case "sweep":
            return Mix(tuple((size, 1) for size in sweep(mtu_bytes, has_vlan)), name)
    expected = "imix, paper, sweep or sizes are needed, such as 1518 or 64:1,1518:9"
    listed = []
    for part in text.split(","):
        size, colon, weight = part.strip().partition(":")
        if not size.isdecimal() or len(size) > 9 or (colon and not (weight.isdecimal() and len(weight) < 9)):
            raise InputError(f"{option} {text}: {expected}")
        listed.append((_size(option, int(size), has_vlan), int(weight) if colon else 1))
        if not listed[-1][1]:
            raise InputError(f"{option} {text}: weights of 1 to {ROUND_MAX} are needed")
    frames = sum(weight for _, weight in listed) // gcd(*(weight for _, weight in listed))
    if frames > ROUND_MAX:
        raise InputError(f"{option} {text}: its weights repeat after {frames} frames; {ROUND_MAX} at most are needed")
    return Mix(tuple(listed))


def parse_sizes(option: str, text: str | None, mtu_bytes: int, has_vlan: bool = False) -> tuple[int, ...]:
    """Return the sizes of a list, or RFC 2544's for None. Raises `InputError`."""
    if text is None or text.strip() == "sweep":
        return sweep(mtu_bytes, has_vlan)
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise InputError(f"{option} {text}: sizes of frames are needed, such as 64,512,1518, or sweep")
    return tuple(dict.fromkeys(_size(option, int(part), has_vlan) for part in parts))


def _size(option: str, size: int, has_vlan: bool) -> int:
    least = least_bytes(has_vlan)
    if not least <= size <= MAX_FRAME_BYTES:
        tag = " and tag" if has_vlan else ""
        raise InputError(f"{option}: {size} B; {least} to {MAX_FRAME_BYTES} B with check sequence{tag} are needed")
    return size
