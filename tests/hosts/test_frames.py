"""Bytes of an agent's channel that are no frame end it, in one line that names the host."""

from __future__ import annotations

import io
import json
import os
import platform
from pathlib import Path

import pytest

from elephan.errors import RunError
from elephan.hosts import Host, boot
from elephan.hosts.agent import Agent, Inbox
from elephan.hosts.frame import MalformedFrameError, frame_of
from tests.hosts import testbed

ANSWER = {"id": 1, "answer": {"a": 1}}


def framed(body: bytes) -> bytes:
    """Return the bytes of a frame."""
    return len(body).to_bytes(4, "big") + body


def test_frames_come_until_the_channel_ends() -> None:
    error = {"id": 0, "error": {"kind": "protocol", "text": "no request"}}
    event = {"id": 2, "event": "progress", "now_s": 1.5}
    source = io.BytesIO(b"".join(framed(json.dumps(one).encode()) for one in (ANSWER, error, event)) + b"\0\0\0\x09{")
    assert [frame_of(source) for _ in range(4)] == [ANSWER, error, event, None]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"[1]", "no object"),
        (b"null", "no object"),
        (b"{", "no JSON"),
        (b"\xff\xfe\xfd", "no JSON"),
        (b"1" * 10_000, "no JSON"),
        (b"[" * 100_000, "too deep"),
        (b'{"answer": {}}', "no id"),
        (b'{"id": [1], "answer": {}}', "no id"),
        (b'{"id": true, "answer": {}}', "no id"),
        (b'{"id": 1}', "no event, answer or error"),
        (b'{"id": 1, "answer": 7}', "no event, answer or error"),
        (b'{"id": 1, "event": {}}', "no event, answer or error"),
        (b'{"id": 0, "error": "bad"}', "no event, answer or error"),
        (b'{"id": 0, "error": {"kind": "input"}}', "no event, answer or error"),
    ],
)
def test_what_is_no_frame_is_named(body: bytes, says: str) -> None:
    with pytest.raises(MalformedFrameError, match=says):
        frame_of(io.BytesIO(framed(body)))


def test_a_text_in_place_of_a_frame_is_named() -> None:
    with pytest.raises(MalformedFrameError, match="its length would be 1466264675 bytes"):
        frame_of(io.BytesIO(b"Welcome"))


@pytest.mark.parametrize(
    ("sends", "says"),
    [
        ("printf '\\000\\000\\000\\003[1]'", "it is no object"),
        ("printf '\\000\\001\\206\\240'; head -c 100000 /dev/zero | tr '\\000' '['", "it is too deep"),
        ("echo Welcome", "its length would be"),
    ],
)
@pytest.mark.usefixtures("nothing_stays")
def test_an_agent_that_sends_no_frame_is_a_fault_of_its_host(
    hosts: testbed.Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sends: str, says: str
) -> None:
    script = tmp_path / "agent"
    script.write_text(f"#!/bin/sh\n{sends}\nexec cat >/dev/null\n")
    machine = platform.machine()
    monkeypatch.setenv("PATH", hosts.environment["PATH"])
    monkeypatch.setattr("elephan.hosts.agent.agent_files", lambda: {machine: boot.agent_file(machine, script)})
    with pytest.raises(RunError, match=f"^left: its agent sent what is no frame: {says}"):
        Agent(Host("left", "root@left"))


@pytest.mark.usefixtures("nothing_stays")
def test_an_end_before_the_agent_shares_an_inbox_is_heard_there(
    hosts: testbed.Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", hosts.environment["PATH"])
    agent = Agent(Host("left", "root@left"))
    try:
        os.kill(agent.session.pid, 9)
        agent._reader.join(testbed.PATIENCE_S)
        inbox = Inbox()
        agent.deliver_to(inbox)
        assert inbox.take(0.0) and not agent.is_alive()
    finally:
        agent.close()
