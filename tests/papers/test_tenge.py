"""The paper tenge: what counts as back after a burst, figure 10 on its smallest path, hosts and the line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

import elephan
from elephan.papers.catalogue import find, folder
from elephan.papers.verdict import Verdict, judge
from evaluation.papers.tenge import tables
from evaluation.papers.tenge.background import gigabits_of, largest_by_rule, load_of, median_of, setup_of
from evaluation.papers.tenge.burst import above_in, burst_share, figure10, queue_share
from evaluation.papers.tenge.hosts import fit, goodput_of, raw_of
from evaluation.papers.tenge.line import error_rate_of, frame_bytes_of
from evaluation.papers.tenge.recovery import TIMES, Found, Line, Pair, Recoveries, compared, ratio_of
from evaluation.papers.tenge.regions import EMPTY, WINDOW, Fig8, lost_of
from evaluation.papers.tenge.udt import transport_of


def line(rates: list[float], interval_s: float = 0.1) -> Line:
    """A line with a burst from 1 s to 2 s."""
    time_s = np.array([interval_s * number for number in range(1, len(rates) + 1)])
    return Line(time_s, np.array(rates), (1.0, 2.0))


def test_the_time_counts_from_the_end_of_the_burst_to_95_percent_of_what_was_before() -> None:
    rising = [0.5 + 0.05 * step for step in range(11)]
    found = line([1.0] * 10 + [1.0] * 10 + rising + [1.0] * 5)
    assert found.before_bps == pytest.approx(1.0)
    # 0.5 in the interval right after the burst, 0.95 in the tenth.
    assert found.recovery_s() == pytest.approx(0.9)


def test_what_of_the_burst_is_still_queued_does_not_count_as_back() -> None:
    found = line([1.0] * 10 + [1.0] * 10 + [1.0] + [0.5] * 4 + [1.0] * 3)
    assert found.recovery_s() == pytest.approx(0.5)


def test_a_line_that_never_comes_back_gives_no_ratio() -> None:
    found = line([1.0] * 20 + [0.5] * 20)
    assert found.recovery_s() is None
    assert np.isnan(Recoveries((1.0, None)).median)
    assert np.isnan(ratio_of([10.0, None], [1.0, 1.0]))
    # The longest run says that it takes longer than that.
    assert compared([None, 20.0], [1.0, 1.0]) is Found.ABOVE
    assert compared([20.0, 20.0], [1.0, None]) is Found.UNDECIDED


def test_a_set_up_is_above_nine_times_where_every_seed_of_one_is_above_every_seed_of_the_other() -> None:
    assert TIMES == 9
    assert compared([9.1, 9.5], [1.0, 1.0]) is Found.ABOVE
    assert compared([9.1, 9.5], [1.0, 1.02]) is Found.UNDECIDED
    assert compared([8.5, 9.0], [1.0, 1.02]) is Found.BELOW
    assert compared([0.02, 0.1], [0.02, 0.02]) is Found.NOTHING
    times = ([9.1], [1.0]), ([0.02], [0.02]), ([8.5], [1.0]), ([9.1, 8.5], [1.0, 1.0])
    pairs = [Pair(Recoveries(tuple(slow)), Recoveries(tuple(fast))) for slow, fast in times]
    assert above_in(pairs) == [1, 0, 0], "the second has nothing to recover"
    claim = find("tenge").claim("tenge.fig10")
    every = {region.name: 1.0 for region in claim.region}
    assert judge(claim, every).verdict is Verdict.REPRODUCED
    assert judge(claim, every | {"above_hosts": [1.0, 0.0]}).verdict is Verdict.DEPENDS


def test_highspeed_is_back_earlier_than_reno_and_nothing_is_lost_before_the_burst() -> None:
    """A tenth of the rate with packets of 9000 B: a window of 236 packets."""
    changes = {
        "run.repetitions": 1,
        "run.duration": "5s",
        "background.burst.start": "1s",
        "background.burst.stop": "2s",
        "link.line.line": "1gbe",
        "link.sender-port.line": "1gbe",
        "sweep.link.line.queue": '["0.1bdp"]',
        "sweep.background.burst.rate": '["41.3%"]',
        "flow.cwnd_clamp": 238,
        "flow.initial_ssthresh": 238,
    }
    results = elephan.run(folder() / "tenge" / "fig10.toml", changes, store="none", workers=1)
    seconds = []
    for record in results:
        assert burst_share(record) == pytest.approx(0.413)
        assert queue_share(record) == pytest.approx(0.1, rel=0.01)
        series = results.series_of(record)
        assert series is not None
        sent_again = series.flow.column("retransmitted_segments").to_numpy()
        time_s = series.flow.column("time_s").to_numpy()
        assert sent_again[time_s <= 1.0].sum() == 0 < sent_again[-1]
        found = Line.of(record, series)
        assert found.before_bps == pytest.approx(1e9, rel=0.02)
        seconds.append(found.recovery_s())
    reno, highspeed = seconds
    assert reno is not None and highspeed is not None
    assert highspeed < 0.6 * reno


def test_the_readme_has_the_tables_of_the_committed_runs() -> None:
    readme = (folder() / "tenge" / "README.md").read_text(encoding="utf-8")
    for table in tables.tables():
        assert len(table) > 2 and "\n".join(table) in readme, "python -m evaluation.papers.tenge.tables has it"


def test_figure_10_needs_its_two_scenarios() -> None:
    assert figure10.files == ("fig10.toml", "fig10-hosts.toml")


def test_the_queue_has_to_take_what_a_burst_brings_beyond_what_the_background_leaves(tmp_path: Path) -> None:
    """512 kB at 10 Gbit/s onto 2.79 Gbit/s of the line (70 % of background) leave 369 kB in the queue."""
    changes = {
        "run.repetitions": 1,
        "run.duration": "3s",
        "sweep.node.sender.send.tso": '["512kB"]',
        "sweep.link.line.queue": '["350kB", "390kB"]',
        "sweep.background.load.rate": '["70%"]',
    }
    small, large = elephan.run(folder() / "tenge" / "fig8.toml", changes, store=str(tmp_path / "store.sqlite"))
    assert lost_of(small) > 0 == lost_of(large)
    assert setup_of(large) == (False, 512_000, 390_000)
    assert load_of(large) == 0.7
    assert largest_by_rule(512e3, 350e3) < 70 < largest_by_rule(512e3, 390e3)


def test_a_window_in_one_burst_needs_a_queue_even_on_the_empty_line() -> None:
    """4.04 MB at 10 Gbit/s onto a line of 9.29 leave 285 kB."""
    assert [Fig8(WINDOW, queue).loses(EMPTY, seed=1) for queue in ("256kB", "320kB")] == [True, False]
    assert median_of([0, None, None, None, 0]) is None and median_of([0, None, 0]) == 0


def test_a_stream_of_a_fifth_bears_what_it_leaves_of_the_line_and_no_more(tmp_path: Path) -> None:
    changes = {
        "run.repetitions": 1,
        "run.duration": "4s",
        "sweep.node.sender.send.tso": '["8000B"]',
        "sweep.link.line.queue": '["512kB"]',
        "sweep.background.load.rate": '["79%", "80%"]',
    }
    results = elephan.run(folder() / "tenge" / "fig8.toml", changes, store=str(tmp_path / "store.sqlite"))
    borne, beyond = results
    assert lost_of(borne) == 0 < lost_of(beyond)


def test_the_scenarios_of_hosts_have_the_fit_and_nothing_else() -> None:
    packet_us, rate_gbps = fit(find("tenge"))
    expected = {"packet": f"{packet_us:.2f}us", "rate": f"{rate_gbps:.3f}Gbit/s"}
    for name in ("fig4", "fig6", "fig7", "fig9"):
        written = tomllib.loads((folder() / "tenge" / f"{name}.toml").read_text(encoding="utf-8"))
        assert written["node"][0]["send"] == expected, name


def test_a_fitted_host_gives_the_two_numbers_and_predicts_raw_frames(tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite")
    claim = find("tenge").claim("tenge.fig6")
    changes = {"sweep.flow.mtu": '["1500B", "9216B"]', "sweep.flow.window": '["16MB"]'}
    changes |= {"run.duration": "3s", "measure.warmup": "1s"}  # Both are steady within some round trips of 17 ms.
    small, large = elephan.run(folder() / "tenge" / "fig6.toml", changes, store=store)
    assert goodput_of(small) == pytest.approx(claim.paper_value("mtu_1500"), rel=0.005)
    assert goodput_of(large) == pytest.approx(claim.paper_value("mtu_9216"), rel=0.005)
    changes = {"sweep.background.raw.packet": '["9000B"]', "run.duration": "2s"}
    (raw,) = elephan.run(folder() / "tenge" / "fig4.toml", changes, store=store)
    packet_us, rate_gbps = fit(find("tenge"))
    assert raw_of(raw) == pytest.approx(72_000 / (packet_us + 72_000 / rate_gbps / 1e3) / 1e3, rel=1e-3)


def test_the_paper_s_days_of_a_full_line_are_simulated(tmp_path: Path) -> None:
    changes = {"run.repetitions": 1, "sweep.path.loss": "[{ bit_error_rate = 1e-12 }]"}
    records = list(elephan.run(folder() / "tenge" / "line.toml", changes, store=str(tmp_path / "store.sqlite")))
    assert [record.spec["duration_ns"] for record in records] == [327_602_470_000_000, 355_705_300_000_000]
    for record in records:
        assert error_rate_of(record) == 1e-12
        bits = 8 * frame_bytes_of(record)
        # Twelve standard deviations: no chance decides.
        assert record.links[0]["fcs_errors"] == pytest.approx(bits * 1e-12, abs=12 * (bits * 1e-12) ** 0.5)


def test_udt_fills_the_host_as_tcp_does(tmp_path: Path) -> None:
    """A tenth of the rate and time of figure 11; the paper's numbers come from the whole."""
    changes = [
        "run.duration=4s",
        "measure.warmup=2s",
        "link.sender-port.bandwidth=547.8Mbit/s",
        "link.line.bandwidth=929Mbit/s",
    ]
    results = elephan.run(folder() / "tenge" / "fig11.toml", changes, store=str(tmp_path / "store.sqlite"))
    found = {transport_of(record): gigabits_of(record) for record in results.records}
    assert found.keys() == {"tcp", "udt4", "udt-2003"}
    assert all(0.53 < goodput < 0.548 for goodput in found.values()), found
