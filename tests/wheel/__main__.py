"""Install a wheel where no compiler is in reach, and run README's commands from it.

    make wheel                             # builds wheels, and does this with each
    python -m tests.wheel out/wheel/elephan-*_x86_64.whl

A wheel for this machine goes into a fresh virtual environment. As root, commands that use the running kernel are among
its commands, and what they load is unloaded again. A wheel for aarch64 runs emulated on another machine.
"""

from __future__ import annotations

import platform
import sys
import tempfile
from pathlib import Path

from tests.wheel import emulated, native


def main() -> int:
    """Check one wheel."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    wheel = Path(sys.argv[1]).resolve()
    if not wheel.stem.endswith((platform.machine(), "_aarch64")):
        print(f"{wheel.name}: no wheel for {platform.machine()} or aarch64", file=sys.stderr)
        return 2
    here = wheel.stem.endswith(platform.machine())
    with tempfile.TemporaryDirectory(prefix="elephan-") as folder:
        (native if here else emulated).check(wheel, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
