"""Congestion controls: those that a scenario can name, and what they say of themselves.

What it does: lists and describes them, compiles and checks a user's own, writes the first file of one. What it does
not: run one (`elephan.loss_response`). **Invariant: what is said of a congestion control comes from its C file.**
"""

from elephan.congestion_control.catalogue import (
    CannotCompile,
    CongestionControl,
    Parameter,
    compiled_once,
    congestion_controls,
    find,
    label_of,
    parts_of,
)

__all__ = [
    "CannotCompile",
    "Parameter",
    "CongestionControl",
    "compiled_once",
    "find",
    "label_of",
    "parts_of",
    "congestion_controls",
]
