"""The store: every run is in it as soon as it has ended, whole or not at all.

Records are rows of a database (SQLite unless a URL says otherwise); time series are Parquet files beside it.
"""

from elephan.store.database import Damaged, Filter, Store, open_store, store_for
from elephan.store.place import default_location
from elephan.store.series import Series

__all__ = ["Damaged", "Filter", "Series", "Store", "default_location", "open_store", "store_for"]
