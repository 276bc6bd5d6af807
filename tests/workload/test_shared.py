"""A flow's workload over several connections, from the scenario file to the record and the table."""

from __future__ import annotations

from pathlib import Path

import pytest

import elephan
from elephan.report.metrics import CATALOGUE

TRACE = Path(__file__).parents[2] / "examples" / "traces" / "tpcc-small.trace"

SCENARIO = f"""
[run]
duration = "4s"
[path]
bandwidth = "200Mbit/s"
rtt = "40ms"
loss = 1e-4
[[flow]]
name = "mirror"
workload = {{ kind = "replicate", trace = "{TRACE}", loop = true, time_scale = 10 }}
[measure]
series = "50ms"
[sweep]
"flow.connections" = [1, 2, 4, 8]
"""

OFFERED = '{ kind = "constant_rate", load = "20%" }'


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "shared.toml").write_text(SCENARIO)
    return str(tmp_path / "shared.toml")


@pytest.mark.parametrize("workload", [None, OFFERED])
def test_a_sweep_over_connections_offers_the_same_load_everywhere(file: str, workload: str | None) -> None:
    results = elephan.run(file, set={} if workload is None else {"flow.workload": workload}, store="none")
    assert len({record.metrics["offered_bytes"] for record in results}) == 1
    assert len({record.metrics["messages"] for record in results}) == 1
    assert "connections share the load of mirror" in results.table().caption
    each = elephan.run(
        file,
        set={"flow.distribution": "each"} | ({} if workload is None else {"flow.workload": workload}),
        store="none",
    )
    assert each[3].metrics["messages"] == 8 * each[0].metrics["messages"]
    assert "each connection carries the whole load of mirror" in each.table().caption


def test_the_record_has_the_lag_of_the_flow_and_says_how_its_load_was_carried(file: str) -> None:
    (record,) = elephan.run(file, set={"flow.connections": 4}, store="none")
    (entry,) = record.flow_groups
    assert (entry["name"], entry["group"], entry["distribution"], entry["connections"]) == ("mirror", 0, "striped", 4)
    known = {"name", "group", "distribution", "connections", "lag_quantiles_s"}
    assert set(entry) - known <= CATALOGUE.keys()
    for name in ("lag_p99_s", "lag_max_bytes", "drain_s"):
        assert entry[name] == record.metrics[name] and name not in record.flows[0]
    assert sum(flow["messages"] for flow in record.flows) == record.metrics["messages"]


def test_a_copy_of_one_size_takes_less_time_over_more_connections_of_small_windows(file: str) -> None:
    changes = {
        "flow.workload": '{ kind = "bulk", bytes = "20MB" }',
        "flow.window": "200kB",
        "path.loss": 0,
        "run.duration": "60s",
        "sweep.flow.connections": "[1, 4]",
    }
    one, four = elephan.run(file, set=changes, store="none")
    assert one.metrics["delivered_bytes"] == four.metrics["delivered_bytes"] == 20_000_000
    # 200 kB per 40 ms: four seconds, or one; the last blocks go one after the other.
    assert one.flows[0]["completion_s"] == pytest.approx(4.1, rel=0.05)
    assert four.flow_groups[0]["completion_s"] == pytest.approx(1.2, rel=0.1)
