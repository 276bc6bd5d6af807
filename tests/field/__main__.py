"""Brings the field up for a person, and takes it down at Ctrl-C: `python -m tests.field`, as root."""

from __future__ import annotations

import sys

from elephan.signals import termination_requested
from tests.field.network import ELEPHAN, field_of_two_sites, missing


def main() -> int:
    """Run it."""
    problem = missing()
    if problem is not None:
        print(f"the field {problem}", file=sys.stderr)
        return 2
    with termination_requested() as wait, field_of_two_sites() as field:
        names = " ".join(
            f"{name}={field.environment[name]}" for name in ("PATH", "HOME", "ELEPHAN_HOSTS", "ELEPHAN_STORE")
        )
        print(f"at site a:  env {names} {' '.join(field.a.within(ELEPHAN))} ...")
        print(f"the path:   {ELEPHAN} path set {field.run} path.loss=1e-3", flush=True)
        wait(None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
