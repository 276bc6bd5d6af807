"""Path tests between two hosts: an agent reflects, another one measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hosts.conftest import Elephan

STAMP = ("measure", "stamp", "right", "--from", "left", "--count", "20", "--interval", "10ms", "--json")


@pytest.mark.usefixtures("nothing_stays")
def test_an_agent_measures_towards_an_agent_that_reflects(elephan: Elephan) -> None:
    said = elephan(*STAMP)
    assert said.returncode == 0, said.stderr
    outcome = json.loads(said.stdout)
    found = {one["quantity"]: one for one in outcome["estimates"]}
    assert outcome["counts"]["packets"] == 20 and outcome["counts"]["lost"] == 0
    # The path has 32 ms, and the machine its own: no packet may be faster.
    assert 0.032 <= found["rtt_s"]["low"] < 0.2
    for direction in ("forward_delay_s", "reverse_delay_s"):
        assert found[direction]["low"] <= 0.016 <= found[direction]["high"]
    assert outcome["cost"]["packets"] == 20


def test_a_host_with_a_key_of_its_own_takes_no_other(elephan: Elephan, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("00112233445566778899aabbccddeeff\n")
    said = elephan("measure", "stamp", "right", "--from", "left", "--key-file", key)
    assert said.returncode == 2
    assert "no key file is needed" in said.stderr
    said = elephan("measure", "stamp", "right", "--from", "nowhere")
    assert said.returncode == 2
    assert 'no host "nowhere"' in said.stderr
