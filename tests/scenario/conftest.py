"""A small scenario to change, and a way to load changed ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from elephan.scenario import Scenario, load

BASE = """\
[run]
duration = "10s"

[path]
bandwidth = "1Gbit/s"
rtt = "67ms"

[[flow]]
name = "backup"
"""

# Two routes from a to d: over b, and with less delay over c; and a direct link that is slow.
NETWORK = """\
[run]
duration = "10s"
[[node]]
name = "a"
[[node]]
name = "b"
[[node]]
name = "c"
[[node]]
name = "d"
[[link]]
from = "a"
to = "b"
bandwidth = "1Gbit/s"
delay = "5ms"
[[link]]
from = "b"
to = "d"
bandwidth = "200Mbit/s"
delay = "5ms"
[[link]]
from = "a"
to = "c"
bandwidth = "1Gbit/s"
delay = "2ms"
[[link]]
from = "c"
to = "d"
bandwidth = "100Mbit/s"
delay = "4ms"
loss = 1e-3
reverse = { delay = "40ms", bandwidth = "10Mbit/s" }
[[flow]]
name = "one"
from = "a"
to = "d"
"""

Load = Callable[..., Scenario]


@pytest.fixture
def scenario(tmp_path: Path) -> Load:
    """Load a text as a scenario file called demo.toml, with overrides."""

    def make(text: str = BASE, *overrides: str) -> Scenario:
        file = tmp_path / "demo.toml"
        file.write_text(text, encoding="utf-8")
        return load(file, overrides)

    return make
