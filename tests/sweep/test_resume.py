"""A sweep that is killed at random goes on where it was: whole runs, none twice, in the order of its loops."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from elephan import api
from elephan.record import canonical_json
from elephan.store import Store
from tests.sweep.conftest import ROOT

SWEEP = """
name = "killed"
[run]
duration = "30s"
repetitions = 2
[path]
bandwidth = "50Mbit/s"
rtt = "20ms"
loss = 1e-4
[[flow]]
name = "copy"
[sweep]
"flow.congestion_control" = ["reno", "cubic"]
"path.rtt" = { from = "10ms", to = "19ms", step = "1ms" }
"""

KILLS = int(os.environ.get("ELEPHAN_KILLS", "3"))


def test_kills_at_random_lose_no_stored_run_and_repeat_none(tmp_path: Path) -> None:
    file, place = tmp_path / "killed.toml", tmp_path / "results.sqlite"
    file.write_text(SWEEP)
    draw = random.Random(os.getpid())
    made: dict[str, str] = {}
    for _ in range(KILLS):
        running = subprocess.Popen(
            [sys.executable, "-c", "from elephan.cli import main; main()"]
            + ["run", str(file), "--store", str(place), "--no-report"],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # So that kills fall into all of it, however fast the machine is: a few runs, and then some moment.
        with Store(str(place)) as store:
            wanted = min(38, store.count() + draw.randint(0, 8))
            until_s = time.monotonic() + 60
            while store.count() < wanted and running.poll() is None:
                assert time.monotonic() < until_s
                time.sleep(0.002)
            time.sleep(draw.uniform(0, 0.1))
            running.send_signal(draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
            running.wait()
            found = {record.id: record.to_json() for record in store.list()}
            assert all(found[run_id] == text for run_id, text in made.items())
            for record in store.list():
                series = store.series(record.id)
                assert series is not None and record.series is not None and series.digest() == record.series.sha256
            made = found
    whole = api.run(file, store=str(place))
    reused = {outcome.record.id for outcome in whole.outcomes if outcome.reused}
    assert reused == set(made)
    with Store(str(place)) as store:
        assert store.count() == len(whole) == 40
        assert all(store.get(run_id).to_json() == text for run_id, text in made.items())
    anew = api.run(file, store="none")
    assert [canonical_json(one.reproducible()) for one in whole] == [canonical_json(one.reproducible()) for one in anew]
    order = [(one.parameters["flow.congestion_control"], one.parameters["path.rtt"], one.seed) for one in whole]
    assert order == [(cc, f"{rtt}ms", seed) for cc in ("reno", "cubic") for rtt in range(10, 20) for seed in (1, 2)]
