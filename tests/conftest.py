"""Fixtures for all tests. Records here are made by hand: only for tests of code that reads records."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elephan.record import Record, ScenarioInfo, SeriesInfo, run_id
from elephan.store.series import Series

KERNEL = ("copy", "field", "hosts", "kernel", "kernel_backend", "kernel_path", "parity")
"""Folders of tests that touch the running kernel."""

APART = frozenset(
    {
        *(f"copy/test_{name}.py" for name in ("model", "nothing_lost", "refusals", "reports", "text")),
        *(f"hosts/test_{name}.py" for name in ("book", "demands", "found", "frames", "program_demands", "refusals")),
        "kernel/test_deployment.py",
        "kernel_backend/test_mapping.py",
    }
)
"""Files of these folders whose tests neither load anything into the kernel nor measure time: they wait for no other."""

for ended_by, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    # A shell's background job ignores these, and so would every program that a test starts and then interrupts.
    if signal.getsignal(ended_by) is signal.SIG_IGN:
        signal.signal(ended_by, usual)

REQUIRED = os.environ.get("ELEPHAN_REQUIRE_KERNEL") == "1"
"""Set by .ci/run where root, /dev/net/tun and BTF are there: nothing of KERNEL may then be skipped."""


@pytest.fixture(autouse=True)
def fresh_console() -> None:
    """Forget the console of an earlier test: it writes to that test's captured output, which is closed."""
    module = sys.modules.get("elephan.cli.console")
    if module is not None:
        module.console.cache_clear()


def is_alone(path: Path) -> bool:
    """Return True if the tests of a file run one at a time."""
    return path.parent.name in KERNEL and f"{path.parent.name}/{path.name}" not in APART


def touches_kernel(item: pytest.Item) -> bool:
    """Return True if a test is in one of those folders, or marked as one that reads the kernel's state."""
    return item.path.parent.name in KERNEL or item.get_closest_marker("looks_at_kernel") is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let one such test run at a time: they share the list of what is loaded, and need the processor in time."""
    if not is_alone(item.path) and item.get_closest_marker("looks_at_kernel") is None:
        return (yield)
    with open(Path(tempfile.gettempdir()) / "elephan-tests.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with usual_niceness():
            return (yield)


@contextmanager
def usual_niceness() -> Iterator[None]:
    """Run this process, and those that it starts, before other tests, where scripts/check.py has lowered all of them.

    Only root may go back to the priority that scripts/check.py itself has.
    """
    usual, lowered = os.environ.get("ELEPHAN_USUAL_NICENESS"), os.getpriority(os.PRIO_PROCESS, 0)
    if usual is None or os.geteuid() != 0:
        yield
        return
    os.setpriority(os.PRIO_PROCESS, 0, int(usual))
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, lowered)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give all files that touch the kernel to one worker: on two, one would do nothing but wait for the other."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class KernelTogether(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "kernel" if is_alone(Path(file)) else file

    return KernelTogether(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip for a missing requirement into a failure on a machine that must have everything."""
    report = yield
    if REQUIRED and report.skipped and touches_kernel(item) and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"ELEPHAN_REQUIRE_KERNEL=1, and yet: {reason}"
    return report


def spec_of(cc: str = "reno", seed: int = 1, flows: int = 1, **parameters: int) -> dict[str, Any]:
    """A specification with the keys that readers of records use."""
    return {
        "format": 2,
        "seed": seed,
        "duration_ns": 60 * 10**9,
        "measure": {"warmup_ns": 0},
        "links": [
            {"name": name, "rate_bps": 10**9, "delay_ns": 33_500_000, "loss": {"kind": "none"}}
            for name in ("local->far", "far->local")
        ],
        "flows": [
            {
                "name": f"mirror.{index}" if flows > 1 else "mirror",
                "group": 0,
                "route": [0],
                "return_route": [1],
                "start_ns": 0,
                "stop_ns": None,
                "transport": {
                    "congestion_control": cc,
                    "parameters": parameters,
                    "window_bytes": 16 * 10**6,
                    "send_buffer_bytes": None,
                    "mtu_bytes": 1500,
                    "timestamps": True,
                },
                "workload": {"kind": "replicate"},
            }
            for index in range(flows)
        ],
        "events": [],
    }


def metrics_of(goodput: float, lag: float) -> dict[str, float]:
    """Metrics of a replication."""
    return {
        "goodput_bps": goodput,
        "line_share": goodput / 1e9,
        "delivered_bytes": int(goodput * 7.5),
        "retransmitted_segments": int(1e10 / goodput),
        "dropped_packets": 97,
        "lag_p50_s": lag / 8,
        "lag_p99_s": lag,
        "lag_max_s": lag * 1.3,
        "lag_max_bytes": int(lag * goodput / 8),
        "drain_s": lag / 2,
        "simulated_s": 60.0,
        "cpu_s": 0.81,
    }


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as in a file, whatever the caller's terminal or the test runner."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="session")
def make_record() -> Callable[..., Record]:
    """Make a record of one run."""

    def make(
        cc: str = "reno",
        seed: int = 1,
        goodput: float = 3e8,
        lag: float = 2.0,
        name: str = "replicate-oltp",
        parameters: dict[str, Any] | None = None,
        notes: list[str] | None = None,
        series: Series | None = None,
        **own: int,
    ) -> Record:
        spec = spec_of(cc, seed, **own) | {"varied": parameters or {}}
        label = ", ".join([cc, *(f"{key} {value}" for key, value in own.items())])
        return Record(
            id=run_id(spec, [], "0.1.0", "sim"),
            scenario=ScenarioInfo(name=name, file=f"{name}.toml", text=f'name = "{name}"\n'),
            backend="sim",
            parameters={"flow.congestion_control": cc, "path.loss": 1e-4, **(parameters or {})},
            seed=seed,
            version="0.1.0",
            metrics=metrics_of(goodput, lag),
            flows=[
                {
                    "name": flow["name"],
                    "group": 0,
                    "congestion_control": label,
                    "workload": "replicate",
                    **metrics_of(goodput, lag),
                }
                for flow in spec["flows"]
            ],
            links=[{"name": link["name"], "dropped_packets": 97} for link in spec["links"]],
            notes=notes or [],
            host={"kernel": "Linux", "cpu": "test", "cores": 2, "python": "3.11", "build": "b" * 16},
            created="2026-01-02T03:04:05Z",
            spec=spec,
            series=None
            if series is None
            else SeriesInfo(flow_rows=series.flow.num_rows, link_rows=series.link.num_rows, sha256=series.digest()),
        )

    return make


@pytest.fixture(scope="session")
def make_series() -> Callable[..., Series]:
    """Make the series of a sawtooth, `count` instants 10 ms apart."""

    def make(count: int = 6000, scale: float = 1.0, flows: int = 1) -> Series:
        instant = np.arange(count) * 0.01
        saw = (np.arange(count) % 700) / 700
        cwnd = 2000 + 3500 * saw * scale

        def spread(values: Any, kind: Any = np.float64) -> Any:
            return np.repeat(np.asarray(values), flows).astype(kind)

        flow = {
            "time_s": spread(instant),
            "flow": np.tile(np.arange(flows, dtype=np.int32), count),
            "cwnd_packets": spread(cwnd, np.uint32),
            "ssthresh_packets": spread(np.where(instant < 3, np.nan, 2000.0)),
            "srtt_s": spread(0.067 + 0.03 * saw),
            "in_flight_bytes": spread(cwnd * 1448, np.uint64),
            "goodput_bps": spread(cwnd * 1448 * 8 / 0.067 / 2),
            "retransmitted_segments": spread(np.arange(count) // 700, np.uint64),
            "lag_s": spread(np.abs(np.sin(instant / 9)) * 4 * scale + 0.034),
            "lag_bytes": spread(np.abs(np.sin(instant / 9)) * 4e7 * scale, np.uint64),
        }
        link = {
            "time_s": np.repeat(instant, 2),
            "link": np.tile(np.arange(2, dtype=np.int32), count),
            "queue_packets": np.stack([saw * 300, saw * 0], axis=1).ravel().astype(np.uint64),
            "queue_bytes": np.stack([saw * 450000, saw * 0], axis=1).ravel().astype(np.uint64),
            "dropped_packets": np.zeros(2 * count, np.uint64),
            "delivered_bytes": np.zeros(2 * count, np.uint64),
        }
        return Series.from_columns(flow, link)

    return make
