"""Congestion controls: the congestion controls that a scenario can name, what they say of themselves, and what they do.

What it does: lists and describes them, compiles and checks a user's own, writes the first file of one, draws a window
after a loss and the response to loss by simulation. **Invariant: what is said of a congestion control comes from its C
file or from a run; nothing is typed in twice but what a paper says of it (`published`).**
"""

from elephan.congestion_control.catalogue import (
    CannotCompile,
    CongestionControl,
    Parameter,
    compiled_once,
    congestion_controls,
    find,
    label_of,
)

__all__ = [
    "CannotCompile",
    "Parameter",
    "CongestionControl",
    "compiled_once",
    "find",
    "label_of",
    "congestion_controls",
]
