"""A host of another architecture: its agent is started under qemu-user, and is one end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from elephan.hosts.agents import agent_files
from tests.hosts import testbed
from tests.hosts.conftest import here, made
from tests.hosts.test_runs import records, scenario


def test_a_flow_to_a_host_of_aarch64(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "aarch64" not in agent_files() or testbed.where("qemu-aarch64-static") is None:
        pytest.skip("needs the agent for aarch64 (make agent) and qemu-user-static: scripts/packages.sh cross")
    with made('bandwidth = "20Mbit/s"\nrtt = "10ms"\nqueue = "1bdp"', right_is_aarch64=True) as hosts:
        for name in ("PATH", "ELEPHAN_HOSTS", "ELEPHAN_STORE"):
            monkeypatch.setenv(name, hosts.environment[name])
        elephan = here(capsys)
        checked = elephan("hosts", "check", "right")
        assert checked.returncode == 0 and "aarch64" in checked.stdout, checked
        file = scenario(tmp_path, more='workload = { kind = "bulk", bytes = "1MB" }', stop="true")
        (record,) = records(elephan("run", file, "--on", "hosts", "--hosts", "left,right", "--yes", "--json"))
    assert record["metrics"]["delivered_bytes"] == 1_000_000
    assert record["host"]["right"]["machine"] == "aarch64"
    # Absent, because its kernel does not tell: qemu-user cuts TCP_INFO to 4 bytes.
    assert record["host"]["receiver_ends"] == [None] and "acks" not in record["metrics"]
