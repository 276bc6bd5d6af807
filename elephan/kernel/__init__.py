"""Congestion controls in the running kernel: load, list, unload, what this machine lacks, a namespace's default.

Nothing is pinned, and what is loaded is written down nowhere. A struct_ops map that is updated without a link stays
registered when its process ends, so that the one record of what is loaded is the kernel's own list of maps: there is no
moment at which something is registered that `list` and `clean` do not find. **Invariant: only what carries elephan's
mark, and is a struct_ops map of that name, is ever touched.** (saved_default.py notes what a default was.)
"""

from elephan.kernel.control import Removed, clean, default, load, unload, values_of
from elephan.kernel.machine import check
from elephan.kernel.maps import MARK, Loaded, loaded

__all__ = ["MARK", "Loaded", "Removed", "check", "clean", "default", "load", "loaded", "unload", "values_of"]
