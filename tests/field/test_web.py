"""docs/howto/web.md: the page at site a, asked by curl: its own name, another one, what a monitor has stored."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.field.network import Field
from tests.hosts.testbed import waited
from tests.processes import free_port

SCENARIO = """\
name = "of-the-field"
[run]
duration = "1s"
[path]
bandwidth = "1Mbit/s"
rtt = "20ms"
[[flow]]
congestion_control = "reno"
"""


def test_the_page_answers_to_its_own_name_alone(field: Field, folder: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    port, store = free_port(), folder / "store.sqlite"
    # A run makes the store.
    scenario = folder / "run.toml"
    scenario.write_text(SCENARIO)
    assert field.elephan("run", scenario, "--store", store, "--no-report").returncode == 0

    def curl(host: str = "localhost", path: str = "/") -> tuple[str, str]:
        words = ["curl", "-s", "-o", folder / "page", "-w", "%{http_code}", "-H", f"Host: {host}:{port}"]
        done = subprocess.run(
            field.a.within(*words, f"http://127.0.0.1:{port}{path}"), capture_output=True, text=True, check=False
        )
        page = (folder / "page").read_text() if (folder / "page").exists() else ""
        return done.stdout, page

    with field.started("web", "--store", store, "--listen", f"127.0.0.1:{port}") as process:
        waited(lambda: curl()[0] == "200" or process.poll() is not None)
        code, page = curl()
        assert code == "200" and "<title>" in page, page[:500]
        code, runs = curl(path="/runs")
        assert code == "200" and "of-the-field" in runs
        for path in ("/alerts", "/backups", "/runs", "/ledger"):
            assert curl(path=path)[0] == "200", path
        assert curl("other.example")[0] not in ("200", "000")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)
