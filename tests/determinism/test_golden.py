"""Golden records: this build simulates them as every build before it did. `make golden` adds aarch64."""

from __future__ import annotations

import pytest

from tests.determinism.digest import digest_of
from tests.determinism.golden import digests, specs

SPECS = specs()


def test_every_golden_record_has_a_digest() -> None:
    assert sorted(digests()) == sorted(SPECS)


@pytest.mark.parametrize("name", SPECS)
def test_a_golden_record_is_the_same(name: str) -> None:
    """A change that is meant to change records runs python -m tests.determinism.golden --write, and says so."""
    assert digest_of(SPECS[name]) == digests()[name]
