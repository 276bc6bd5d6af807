"""The store: every run is in it as soon as it has ended, whole or not at all.

Records are rows of a database (SQLite unless a URL says otherwise); time series are Parquet files beside it. Everything
is imported when it is first used: SQLAlchemy and Arrow take longer than many a command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elephan.store.database import Damaged, Filter, Store, open_store, store_for
    from elephan.store.place import default_location
    from elephan.store.series import Series

__all__ = ["Damaged", "Filter", "Series", "Store", "default_location", "open_store", "store_for"]

_PLACES = {"default_location": "elephan.store.place", "Series": "elephan.store.series"}


def __getattr__(name: str) -> Any:
    import importlib

    if name in __all__:
        return getattr(importlib.import_module(_PLACES.get(name, "elephan.store.database")), name)
    raise AttributeError(f"module 'elephan.store' has no attribute {name!r}")
