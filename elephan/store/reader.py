"""Base of readers that take rows out of a store which others write meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from elephan.store.place import Place, default_location

if TYPE_CHECKING:
    from elephan.store.database import Store
    from elephan.store.sql import Execute


class StoreReader:
    """A store that is opened when it is first read. Raises `StoreError` where it cannot be read."""

    def __init__(self, place: str | None = None) -> None:
        """`place` as `--store` takes it; None: the user's own store. Nothing is made where there is none."""
        self.location = place or default_location()
        self.place = Place.of(self.location)
        self._store: Store | None = None

    def close(self) -> None:
        """Close the database."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[Execute | None]:
        """Give what executes; None where there is no store yet."""
        if self._store is None:
            if not self.place.exists:
                yield None
                return
            from elephan.store.database import Store

            self._store = Store(self.location)
        with self._store._reading() as execute:
            yield execute
