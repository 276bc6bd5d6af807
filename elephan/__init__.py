"""elephan: storage traffic over long fat networks, simulated, compared and tuned.

    import elephan

    results = elephan.run("examples/replicate-oltp.toml", set={"path.loss": 1e-3})
    results.to_pandas()

Everything is imported when it is first used, so that the command starts at once.
"""

from __future__ import annotations

# As typing's, which takes longer to load than all modules that handle Ctrl-C.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from elephan.api import Results, check, open_results, run
    from elephan.congestion_control import CongestionControl, congestion_controls
    from elephan.errors import ElephanError, InputError, StoreError
    from elephan.record import Record

    __version__: str

__all__ = [
    "ElephanError",
    "InputError",
    "Record",
    "Results",
    "CongestionControl",
    "StoreError",
    "__version__",
    "check",
    "open_results",
    "run",
    "congestion_controls",
]

_PLACES = {
    "Results": "elephan.api",
    "check": "elephan.api",
    "open_results": "elephan.api",
    "run": "elephan.api",
    "ElephanError": "elephan.errors",
    "InputError": "elephan.errors",
    "StoreError": "elephan.errors",
    "Record": "elephan.record",
    "CongestionControl": "elephan.congestion_control",
    "congestion_controls": "elephan.congestion_control",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "__version__":
        from elephan.core import version

        return version()
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'elephan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
