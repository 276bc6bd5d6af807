"""Runs of many connections: the work of a report and a record grows with their number, not with its square."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elephan import control_process
from elephan.api import jobs_of, load
from elephan.backends import record_builder as module
from elephan.backends import sim
from elephan.core import native
from elephan.record import Record, run_id, without_places
from elephan.report.html import write_report
from elephan.report.point_table import table_of
from elephan.report.points import MOST_ENTRIES, points_of

Make = Callable[..., Record]


class Counted(dict[str, Any]):
    """A connection's metrics that counts how often its group is asked for."""

    asked = 0

    def get(self, key: str, default: Any = None) -> Any:
        Counted.asked += key == "group"
        return super().get(key, default)


def many(make_record: Make, flows: int, entries: int) -> Record:
    """Get a record of `flows` connections that belong to `entries` flow entries."""
    record = make_record()
    (flow,), (spec,) = record.flows, record.spec["flows"]
    record.flows = [{**flow, "name": f"f.{n}", "group": n % entries} for n in range(flows)]
    record.spec["flows"] = [{**spec, "name": f"f.{n}", "group": n % entries} for n in range(flows)]
    # After validation, which makes plain dicts of them.
    record.__dict__["flows"] = [Counted(one) for one in record.flows]
    return record


@pytest.mark.parametrize("entries", [1, 400])
def test_connections_are_grouped_once_and_not_searched_for(make_record: Make, tmp_path: Path, entries: int) -> None:
    """Each connection counted its siblings among all: 20,000 took minutes of a report."""
    record = many(make_record, 400, entries)
    Counted.asked = 0
    table_of([record])
    assert Counted.asked < 10 * 400
    Counted.asked = 0
    write_report([record], lambda _: None, tmp_path)
    assert Counted.asked < 40 * 400


def test_a_table_lists_a_hundred_flows_and_says_how_many_there_are(make_record: Make) -> None:
    table = table_of([many(make_record, 300, 150)])
    assert len(table.rows) == 1 + MOST_ENTRIES
    assert any(f"the first {MOST_ENTRIES} of 150 flows are listed" in note for note in table.notes)
    few = table_of([many(make_record, 300, MOST_ENTRIES)])
    assert len(few.rows) == 1 + MOST_ENTRIES and not any("are listed" in note for note in few.notes)
    assert len(points_of([many(make_record, 300, 150)])[0].entities()) == 150


class Lists:
    """The core's result, which makes its lists again each time: counts how often."""

    def __init__(self, result: Any) -> None:
        self.result, self.looks = result, 0

    def __getattr__(self, name: str) -> Any:
        self.looks += name in ("flows", "flow_groups")
        return getattr(self.result, name)


def test_a_record_asks_the_core_for_its_flows_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list was made again for each of its flows: after the last simulated second came a minute of silence."""
    file = tmp_path / "many.toml"
    file.write_text(
        '[run]\nduration = "20ms"\n[path]\nbandwidth = "1Gbit/s"\nrtt = "1ms"\n[[flow]]\nconnections = 50\n',
    )
    (job,) = jobs_of(load(file))
    named: list[Any] = []
    label = module.label_of
    monkeypatch.setattr(module, "label_of", lambda transport: named.append(transport) or label(transport))
    lists: list[Lists] = []
    simulate = native.simulate

    class Core:
        def __getattr__(self, name: str) -> Any:
            return getattr(native, name)

        def simulate(self, *given: Any) -> Lists:
            lists.append(Lists(simulate(*given)))
            return lists[0]

    core = Core()
    monkeypatch.setattr(control_process, "native", core)
    record, _ = sim.run(job)
    assert len(record.flows) == 50
    assert lists[0].looks == 2
    assert len(named) == 1


def test_an_id_walks_a_shared_transport_once(make_record: Make) -> None:
    """Connections of a flow have one congestion control, which was walked for each of them."""

    class Walked(dict[str, Any]):
        times = 0

        def items(self) -> Any:
            Walked.times += 1
            return super().items()

    spec = make_record().spec
    (flow,) = spec["flows"]
    apart = {**spec, "flows": [{**flow, "name": f"f{n}", "transport": {**flow["transport"]}} for n in range(50)]}
    transport = Walked(flow["transport"])
    shared = {**spec, "flows": [{**flow, "name": f"f{n}", "transport": transport} for n in range(50)]}
    assert without_places(shared, []) == without_places(apart, [])
    assert Walked.times == 1
    assert run_id(shared, [], "1", "sim") == run_id(apart, [], "1", "sim")
