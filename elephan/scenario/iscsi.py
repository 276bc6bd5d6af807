"""Workload `iscsi`: one session, its requests, the disk behind the target."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from elephan.run_spec.types import AllegianceSpec
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import Bytes, Whole
from elephan.scenario.table import setting
from elephan.scenario.volume import Volume

_LENGTH = Bytes(512, 2**24 - 1)
"""Range of most lengths of RFC 7143, section 13."""

FIRST_BURST = 65_536
"""Default of FirstBurstLength (RFC 7143, 13.14)."""


class Iscsi(Volume):
    """One iSCSI session (RFC 7143, whose defaults these are): initiator at `from`, target with a disk at `to`. Places
    and sizes on the unit are multiples of 512 B."""

    kind: Literal["iscsi"]
    """Kind of workload."""
    allegiance: AllegianceSpec = setting("round_robin", examples=["least_outstanding"])
    """Connection of a command."""
    command_window: Annotated[int, Whole(1, 4096)] = setting(128, examples=[32])
    """Commands that the target admits (MaxCmdSN - ExpCmdSN + 1: RFC 7143, 4.2.2.1)."""
    initial_r2t: bool = setting(True, examples=[False])
    """InitialR2T: only immediate data goes unasked."""
    immediate_data: bool = setting(True, examples=[False])
    """ImmediateData: data on the command, up to `first_burst` and the target's segment."""
    max_burst: Annotated[int, _LENGTH] = setting("256KiB", examples=["4KiB"])
    """MaxBurstLength: data of one R2T or Data-In sequence."""
    first_burst: Annotated[int, _LENGTH] | None = setting(None, examples=["64KiB"])
    """FirstBurstLength: data of a command that goes unasked. When absent: 64KiB, or `max_burst` if less."""
    max_recv_segment_initiator: Annotated[int, _LENGTH] = setting("8KiB", examples=["256KiB"])
    """Its MaxRecvDataSegmentLength: of a Data-In."""
    max_recv_segment_target: Annotated[int, _LENGTH] = setting("8KiB", examples=["256KiB"])
    """Its MaxRecvDataSegmentLength: of a Data-Out or command."""
    max_outstanding_r2t: Annotated[int, Whole(1, 65_535)] = setting(1, examples=[8])
    """MaxOutstandingR2T: unanswered R2Ts of a command."""
    header_digest: bool = setting(False, examples=[True])
    """HeaderDigest: CRC32C, 4 B each."""
    data_digest: bool = setting(False, examples=[True])
    """DataDigest: CRC32C, 4 B each."""

    @model_validator(mode="after")
    def _consistent(self) -> Iscsi:
        if self.first_burst is not None and self.first_burst > self.max_burst:
            raise wrong(f"at most max_burst, {self.max_burst}B (RFC 7143, 13.14)", "first_burst")
        return self
