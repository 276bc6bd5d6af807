"""The kernel's numbers beside the simulator's: by claim, with reasons where there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from elephan.papers.claims import Reference
from elephan.papers.spread import Measured
from elephan.record import Record


@dataclass(frozen=True)
class KernelColumn:
    """Measured quantities of the kernel, by claim, and the reasons why other claims have none."""

    measured: Mapping[str, Mapping[str, Measured]] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    """For people: what differs, what the emulator did not honour, and what does not run there."""
    label: str = ""
    """The kernel's name."""
    records: tuple[Record, ...] = ()

    def of(self, claim: str, quantity: str) -> Measured | None:
        """Return a quantity of a claim, None where it was not measured."""
        return self.measured.get(claim, {}).get(quantity)

    def instead_of(self, reference: Reference) -> Reference:
        """Return the numbers of this kernel in place of those that were measured once and written down."""
        measured = self.measured.get(reference.claim)
        if measured is None:
            return reference
        provenance = f"{self.label}, over the emulated path, measured by this command."
        return reference.model_copy(update={"label": self.label, "provenance": provenance, "value": dict(measured)})
