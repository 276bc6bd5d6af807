"""docs/howto/monitor.md: a monitor at site a, and alerts of changes that the path was given."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from elephan.network_namespace import within
from elephan.path.testbed import NAMESPACES
from tests.field.conftest import REFLECTOR, WHOLE, whole
from tests.field.network import Field
from tests.monitor.receivers import webhook
from tests.processes import until

FILE = """\
name = "{name}"

[alerts]
urls = ["{url}"]

[[path]]
name = "b"
towards = "{towards}"
line_rate = "40Mbit/s"
budget = "20%"
benchmark = {{ {benchmark} }}

[[path.test]]
test = "stamp"
period = "100ms"
{tests}
"""
TEST = '[[path.test]]\ntest = "{}"\nperiod = "10s"\n'


@contextmanager
def monitored(
    field: Field, folder: Path, benchmark: str, tests: str = ""
) -> Iterator[tuple[list[dict[str, Any]], Callable[[], str]]]:
    """Run a monitor of the path; give the alerts that its receiver at site a has got, and its status."""
    file, store = folder / "dr.toml", folder / "store.sqlite"
    with ExitStack() as stack:
        # A receiver's socket is in the namespace in which it is made.
        receiver = lambda: stack.enter_context(webhook())  # noqa: E731
        url, came, _ = within(NAMESPACES / field.a.namespace, receiver)
        towards = f"{field.b.address}:{REFLECTOR}"
        file.write_text(FILE.format(name="field", url=url, towards=towards, benchmark=benchmark, tests=tests))
        checked = field.elephan("monitor", "check", file)
        assert checked.returncode == 0, checked.stderr
        process = stack.enter_context(field.started("monitor", "run", file, "--store", store))

        def status() -> str:
            return field.elephan("monitor", "status", "--store", store).stdout

        until(lambda: "good; RTT " in status(), 40)
        yield came, status
        assert process.poll() is None
        process.terminate()
        assert process.wait(30) == 0


def told(came: list[dict[str, Any]], words: str, within_s: float) -> dict[str, Any]:
    """Return the alert whose text has these words."""
    deadline_s = time.monotonic() + within_s
    while True:
        for one in came:
            if re.search(words, f"{one['title']}\n{one['message']}"):
                return one
        assert time.monotonic() < deadline_s, came
        time.sleep(0.1)


@pytest.mark.timeout(600)
def test_status_has_the_path_s_values_and_a_longer_round_trip_is_told(field: Field, folder: Path) -> None:
    with monitored(field, folder, 'rtt = "20ms"') as (came, status):
        seen = re.search(r"RTT ([\d.]+) ms", status())
        assert seen is not None and 20 <= float(seen[1]) < 26
        assert not came
        field.set("path.rtt=60ms")
        # A minute, and the time of sending it.
        alert = told(came, r"RTT 6\d\.\d ms", 75)
        assert "agreed: 20.0 ms" in alert["title"] + alert["message"]
        assert ": alert; RTT 6" in status()
        if WHOLE:
            # Two minutes as agreed.
            field.set("path.rtt=20ms")
            until(lambda: len(came) == 2, 200)
            assert came[1]["type"] == "success", came


@whole
def test_an_outage_is_told_with_its_end(field: Field, folder: Path) -> None:
    with monitored(field, folder, 'rtt = "20ms"') as (came, status):
        field.set("link_down=path")
        assert "outage" in told(came, "no answer", 60)["message"]
        field.set("link_up=path")
        told(came, "answers again", 60)
        until(lambda: "good; RTT 2" in status(), 60)


@whole
@pytest.mark.measures_time
def test_a_slower_line_is_told(field: Field, folder: Path) -> None:
    with monitored(field, folder, 'rtt = "20ms", capacity = "40Mbit/s"', TEST.format("capacity")) as (came, status):
        until(lambda: "capacity " in status(), 60)
        field.set("path.bandwidth=15Mbit/s")
        told(came, r"capacity 1[45]\.\d Mbit/s", 150)


@whole
def test_a_loss_is_told(field: Field, folder: Path) -> None:
    with monitored(field, folder, 'rtt = "20ms", loss = 1e-4') as (came, _):
        field.set("path.loss=0.05")
        # 1000 packets, of which 50 are lost, where one of 10,000 was agreed; and the time of sending it.
        told(came, "loss", 130)
        time.sleep(60)
        assert len(came) == 1, came


@whole
@pytest.mark.timeout(900)
def test_a_smaller_mtu_is_told(field: Field, folder: Path) -> None:
    with monitored(field, folder, 'rtt = "20ms"', TEST.format("mtu")) as (came, _):
        # Its usual value is learned.
        time.sleep(240)
        field.set("path.mtu=1400B")
        told(came, "MTU", 240)
