"""The Python API with the real core."""

from pathlib import Path

import numpy as np
import pytest

import elephan
from elephan.backends import Job, sim
from elephan.record import ScenarioInfo

SCENARIO = """
[run]
duration = "2s"
repetitions = 2
[path]
bandwidth = "10Mbit/s"
rtt = "20ms"
[[flow]]
name = "copy"
connections = 2
[measure]
series = "100ms"
[sweep]
"path.loss" = [0, 1e-3]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "results.sqlite"))
    (tmp_path / "api.toml").write_text(SCENARIO)
    return tmp_path / "api.toml"


def test_run_to_pandas(file: Path) -> None:
    results = elephan.run(file, set={"flow.congestion_control": "cubic"}, seed=5, workers=2)
    frame = results.to_pandas()
    assert list(frame["seed"]) == [5, 6, 5, 6]
    assert list(frame["path.loss"]) == [0, 0, 1e-3, 1e-3]
    assert set(frame["flow.copy.congestion_control"]) == {"cubic"}
    assert (frame["goodput_bps"] > 1e6).all()
    assert len(results.table().rows) == 2
    assert "<table>" in results._repr_html_()


def test_printing_results_shows_the_table(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = elephan.run(file, set={"flow.congestion_control": "reno", "run.repetitions": 1})
    print(results)
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert lines[0].split()[:2] == ["loss", "goodput"] and lines[1].startswith("0 ") and lines[2].startswith("0.001 ")
    assert "Mbit/s" in lines[1] and "\x1b" not in shown and repr(results) == shown.rstrip("\n")
    assert "one run per row" in shown
    assert str(elephan.open_results(scenario="nothing")) == "no runs"


def test_a_long_table_is_cut_where_it_is_printed(file: Path) -> None:
    sweep = 'sweep={ "path.loss" = { from = 0.001, to = 0.07, step = 0.001 } }'
    many = elephan.run(file, set=[sweep, "run.duration=1s", "run.repetitions=1"])
    text = str(many)
    assert (
        "and 10 more rows; to_pandas() has all" in text
        and len([line for line in text.splitlines() if "note:" not in line]) == 1 + 60 + 2
    )
    assert many._repr_html_().count("<tr>") == 71


def test_series_come_from_memory_and_from_the_store_alike(file: Path) -> None:
    fresh = elephan.run(file)
    stored = elephan.open_results()
    for index, record in enumerate(fresh):
        other = next(item for item in stored if item.id == record.id)
        one, two = fresh.series_of(record), stored.series_of(other)
        assert one is not None and two is not None
        assert one.digest() == two.digest() == record.series.sha256
        assert fresh.series(index).column_names[:3] == ["time_s", "flow", "cwnd_packets"]
        assert set(fresh.series(index).column("flow").to_pylist()) == {0, 1}


def test_series_share_the_cores_memory(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = elephan.check(file).points()[0]
    given: dict[str, np.ndarray] = {}
    original = sim.Series.from_columns

    def spying(flow: dict[str, np.ndarray], link: dict[str, np.ndarray]) -> sim.Series:
        given.update(flow)
        return original(flow, link)

    monkeypatch.setattr(sim.Series, "from_columns", spying)
    job = Job(0, point.to_spec(), point.parameters, point.seed, ScenarioInfo(name="x"))
    _, series = sim.run(job)
    for name, values in given.items():
        assert series.flow.column(name).chunk(0).buffers()[1].address == values.ctypes.data


def test_check_returns_the_scenario_and_ccs_are_listed(file: Path) -> None:
    assert len(elephan.check(file, set=["run.repetitions=3"]).points()) == 6
    assert {"reno", "cubic", "storage_friendly"} <= {cc.name for cc in elephan.congestion_controls()}


def test_an_error_is_one_that_can_be_caught(file: Path) -> None:
    with pytest.raises(elephan.InputError, match=r"path\.rtt"):
        elephan.run(file, set={"path.rtt": "fast"})
    with pytest.raises(elephan.InputError, match='"flow" or "link"'):
        elephan.run(file).series(0, kind="disk")
