"""The command `elephan`: arguments in, text out; what it does is done by the API."""

from __future__ import annotations

import gc
import os
import sys

from elephan.signals import end_interrupts, interrupt_between_imports

GC_THRESHOLD = 200_000
"""Objects made between two garbage collections, instead of Python's 700."""


def main() -> None:
    """Run the command and exit. This module is loaded first, so that Ctrl-C is handled from the start."""
    # Closed by the caller (`>&-`): there is nothing to write to, and much that would.
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")
    interrupt_between_imports()
    # To load a command makes a hundred thousand objects, and none of them is garbage.
    gc.set_threshold(GC_THRESHOLD)
    # OpenBLAS, which comes with numpy, would start a thread per core that spins for a while: no command needs them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from elephan.cli.main import call

        code = call(sys.argv[1:])
        end_interrupts()
    except KeyboardInterrupt:
        end_interrupts()
        print("error: stopped", file=sys.stderr)
        code = 130
    # Python would collect garbage twice more.
    gc.freeze()
    sys.exit(code)


__all__ = ["main"]
