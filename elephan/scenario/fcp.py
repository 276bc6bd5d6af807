"""Workload `fcp`: SCSI between two Fibre Channel gateways."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from elephan.run_spec.types import FcProtocolSpec
from elephan.scenario.gateway import PAIRS_MAX, PAYLOAD_MAX
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import Bytes, Whole
from elephan.scenario.table import setting
from elephan.scenario.volume import Volume

_WORD = 4
"""Bytes of which a frame's payload is a multiple (FC-FS-2, clause 8)."""


class Fcp(Volume):
    """Pairs of N_Ports over two gateways: an FCP initiator behind `from`, a target with a disk of its own behind `to`.
    Places and sizes on the unit are multiples of 512 B."""

    kind: Literal["fcp"]
    """Kind of workload."""
    queue_depth: Annotated[int, Whole(1, 61_440)] = setting(32, examples=[1])
    """Requests in flight, of each pair: as many as a port has exchange numbers for commands."""
    protocol: FcProtocolSpec = setting("ifcp", examples=["fcip"])
    """As of workload `fc`."""
    pairs: Annotated[int, Whole(1, PAIRS_MAX)] | None = setting(None, examples=[8])
    """Pairs of N_Ports. When absent: as many as `connections`."""
    frame: Annotated[int, Bytes(256, PAYLOAD_MAX)] = setting("2048B", examples=["2112B"])
    """Longest payload of a frame that a port takes, a multiple of 4 B; Linux's libfc: 2048 B."""
    max_burst: Annotated[int, Bytes(512, 2**24 - 1)] = setting("256KiB", examples=["64KiB"])
    """Data that one FCP_XFER_RDY asks for."""
    write_acceleration: bool = setting(False, examples=[True])
    """The gateway at `from` answers a write with FCP_XFER_RDY in the target's name, within its `buffer`; the one at
    `to` holds the data, within its own, until the target asks. A round trip less for each write."""

    @model_validator(mode="after")
    def _words(self) -> Fcp:
        if self.frame % _WORD:
            raise wrong(f"a multiple of {_WORD}B", "frame")
        return self
