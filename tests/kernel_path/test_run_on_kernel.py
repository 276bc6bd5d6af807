"""The core's run with this machine's own TCP, as Python calls it. Needs root and /dev/net/tun."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from elephan.core import native
from elephan.path import testbed
from elephan.record import canonical_json
from elephan.scenario import load

PROBLEM = testbed.missing()
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}")

SCENARIO = """\
[run]
duration = "{duration}"

[path]
bandwidth = "50Mbit/s"
rtt = "20ms"

[measure]
series = "10ms"

[[flow]]
name = "mirror"
congestion_control = "reno"
window = "1MB"
"""


class Backend:
    """Two hosts at the ends of the scenario's only path, and the emulator between them."""

    def __init__(self, folder: Path, duration: str = "1s") -> None:
        file = folder / "scenario.toml"
        file.write_text(SCENARIO.format(duration=duration))
        self.spec = load(file).points()[0].to_spec()
        flow = self.spec["flows"][0]
        nodes = (flow["source"], flow["destination"])
        self.site = testbed.Site([testbed.Host(testbed.address(number), node) for number, node in enumerate(nodes)])
        try:
            self.site.make()
            self.plan: dict[str, Any] = {
                "hosts": self.site.plan(),
                "flows": [self.flow()],
                "routes": [],
                "emulator": {},
            }
            self.emulator = native.Emulator(canonical_json(self.plan["hosts"]))
            self.site.configure()
        except BaseException:
            self.site.remove()
            raise

    def flow(self, **changes: Any) -> dict[str, Any]:
        plan = {
            "source": 0,
            "destination": 1,
            "port": 10_000,
            "congestion_control": "reno",
            "window_clamp_bytes": 1_000_000,
            "receive_buffer_bytes": 1_000_000,
            "send_buffer_bytes": None,
            "max_segment_bytes": None,
            "pacing": False,
            "rto_max_ms": None,
        }
        return plan | changes

    def run(self, progress: Callable[[int, int], object] | None = None, **changes: Any) -> tuple[Any, dict[str, Any]]:
        plan = self.plan | {"flows": [self.flow(**changes)]}
        texts = canonical_json(self.spec), canonical_json(plan)
        done: tuple[Any, dict[str, Any]] = native.run_on_kernel(*texts, self.emulator, progress, 0.05)
        return done

    def remove(self) -> None:
        self.emulator.stop()
        del self.emulator
        self.site.remove()


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    made = Backend(tmp_path)
    yield made
    made.remove()


@pytest.fixture
def long_backend(tmp_path: Path) -> Iterator[Backend]:
    made = Backend(tmp_path, "100s")
    yield made
    made.remove()


def test_it_gives_what_the_simulator_gives_but_for_what_the_kernel_does_not_tell(backend: Backend) -> None:
    seen: list[tuple[int, int]] = []
    result, report = backend.run(lambda now, end: seen.append((now, end)))
    simulated = native.simulate(canonical_json(backend.spec))
    untold = {"cwnd_reductions", "duplicate_acks", "events", "rtt_max_s"}
    assert set(simulated.metrics) - set(result.metrics) == untold
    assert set(result.metrics) <= set(simulated.metrics)
    assert set(result.links[0]) == set(simulated.links[0])
    assert set(simulated.flow_series) - set(result.flow_series) == {"duplicate_acks"}
    assert set(result.flow_series) <= set(simulated.flow_series)
    assert set(result.link_series) == set(simulated.link_series)
    assert 0 < result.metrics["line_share"] <= 1448 / 1500
    assert result.metrics["rtt_min_s"] >= 0.02
    assert report["failure"] is None
    assert report["links"][0]["delivered_bytes"] >= result.links[0]["delivered_bytes"] > 0
    assert seen and all(end == 10**9 for _, end in seen)


def test_a_progress_that_raises_ends_the_run(long_backend: Backend) -> None:
    class Enough(Exception):
        pass

    def progress(now: int, end: int) -> None:
        if now > 10**8:
            raise Enough

    began_s = time.monotonic()
    with pytest.raises(Enough):
        long_backend.run(progress)
    assert time.monotonic() - began_s < 50


def test_a_progress_that_says_stop_stops_it(long_backend: Backend) -> None:
    with pytest.raises(native.Stopped):
        long_backend.run(lambda now, end: now > 10**8)


def test_control_c_ends_a_run_that_nobody_watches(long_backend: Backend) -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        long_backend.run()
    assert time.monotonic() - began_s < 50


def test_a_control_that_the_kernel_does_not_have_is_named(backend: Backend) -> None:
    with pytest.raises(OSError, match=r"flow mirror: TCP_CONGESTION = elephan_none: "):
        backend.run(congestion_control="elephan_none")


def test_a_host_that_is_not_there_is_named(backend: Backend) -> None:
    with pytest.raises(ValueError, match=r"flow mirror: host 7 does not exist, there are 2"):
        backend.run(destination=7)
