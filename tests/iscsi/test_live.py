"""`elephan iscsi target` and `bench`: against libiscsi's tools where they are installed, and through kill -9."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elephan.cli.main import call
from tests.iscsi.conftest import NAME, Target

SUITES = ["ALL"]
"""Families of iscsi-test-cu: this one holds all tests. The URL twice gives those of several paths their second."""
UNPASSED = {"GetLBAStatus.UnmapSingle"}
"""With its reason in docs/results/iscsi.md."""

libiscsi = pytest.mark.skipif(
    shutil.which("iscsi-test-cu") is None, reason="needs iscsi-test-cu (Debian package libiscsi-bin)"
)


@libiscsi
def test_libiscsi_s_tests_pass_but_those_with_a_reason(target: Target) -> None:
    failed, ran = set(), 0
    for suite in SUITES:
        command = ["iscsi-test-cu", "-d", "-n", "-t", suite, target.url, target.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        text = done.stdout
        summary = re.search(r"tests\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", text)
        assert summary is not None, text[-2000:] + done.stderr[-2000:]
        ran += int(summary[2])
        failed |= {".".join(pair) for pair in re.findall(r"Suite (\S+), Test (\S+) had failures", text)}
        assert int(summary[4]) == len(failed), text[-3000:]
    assert ran >= 200
    assert failed <= UNPASSED


@libiscsi
def test_libiscsi_finds_the_target(target: Target) -> None:
    portal = target.url.rsplit("/", 2)[0]
    done = subprocess.run(["iscsi-ls", "-s", portal], capture_output=True, text=True, timeout=60, check=True)
    assert f"Target:{NAME}" in done.stdout
    assert "Lun:0" in done.stdout


def test_a_load_runs_over_a_target_and_says_what_came_of_it(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--duration", "300ms", "--size", "4KiB", "--depth", "4", "--connections", "2"]
    assert call(["iscsi", "bench", target.url, *options, "--reads", "50", "--overwrite", "--random"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"reads: \S+ .B/s, \d+ per second; latency p50 \S+ .?s, p99", text)
    assert "writes: " in text
    assert "failed" not in text


def test_each_side_has_the_congestion_control_that_was_asked_for(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Reno is in every Linux.
    running = Target(image, "--cc", "reno")
    try:
        options = ["--duration", "100ms", "--depth", "8", "--connections", "2", "--cc", "reno", "--json"]
        assert call(["iscsi", "bench", running.url, *options]) == 0
        (result,) = json.loads(capsys.readouterr().out)["points"]
        assert result["congestion_control"] == "reno"
        assert result["reads"]["done"] > 0
        host, port = running.url.split("/")[2].split(":")
        with socket.create_connection((host, int(port))) as ours:
            # The target's end of this connection, by its addresses.
            here = "{}:{}".format(*ours.getsockname())
            shown = subprocess.run(["ss", "-tinH", "dst", here], capture_output=True, text=True, check=True).stdout
        assert " reno " in shown
    finally:
        running.kill()


def test_a_load_reads_alone_unless_it_may_overwrite(image: Path, target: Target) -> None:
    assert call(["iscsi", "bench", target.url, "--reads", "0"]) == 2
    assert call(["iscsi", "bench", target.url, "--duration", "20ms"]) == 0
    target.kill()
    assert not any(image.read_bytes())


def test_a_load_says_when_the_targets_command_window_and_not_its_depth_was_the_limit(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Target(image, "--command-window", "8")
    try:
        for depth, is_limit in ((8, False), (32, True)):
            options = ["--duration", "300ms", "--size", "4KiB", "--depth", str(depth), "--connections", "1"]
            assert call(["iscsi", "bench", running.url, *options]) == 0
            text = capsys.readouterr().out
            assert ("command window of 8, not the depth, was the limit" in text) == is_limit, text
    finally:
        running.kill()


def test_the_target_ends_well_when_told(target: Target) -> None:
    assert target.kill(signal.SIGTERM) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_load_that_is_told_to_end_says_what_it_measured(target: Target, number: signal.Signals) -> None:
    load = _load(target)
    load.send_signal(number)
    text, error = load.communicate(timeout=30)
    assert load.returncode == 130
    assert "reads: " in text
    assert error.strip() == "stopped before its time"


def test_a_load_whose_target_dies_says_what_it_measured_and_that_it_is_no_whole_one(target: Target) -> None:
    load = _load(target)
    target.kill()
    text, error = load.communicate(timeout=60)
    assert load.returncode == 1
    assert "reads: " in text
    assert "before its time" in error
    assert "\n" not in error.strip()


READ_BYTES = 1_000_000
"""Far more than the login brings."""


def _load(target: Target, *options: str) -> subprocess.Popen[str]:
    """Start a load without end, and wait until it has read something."""
    command = [sys.executable, "-c", "from elephan.cli import main; main()", "iscsi", "bench", target.url]
    command += ["--duration", "1h", "--depth", "1", "--connections", "1", *options]
    load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    port = target.url.split("/")[2].split(":")[1]
    received = 0
    while received < READ_BYTES:
        assert load.poll() is None
        time.sleep(0.1)
        # With -p: whose sockets they are; -O: with their counters on one line.
        established = ["ss", "-tnpiOH", "state", "established", "dport", f":{port}"]
        shown = subprocess.run(established, capture_output=True, text=True, check=True).stdout
        own = [line for line in shown.splitlines() if f"pid={load.pid}," in line]
        received = sum(int(number) for line in own for number in re.findall(r"bytes_received:(\d+)", line))
    return load


def test_a_load_whose_commands_fail_is_no_success(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = Target(image, "--read-only")
    try:
        options = ["--duration", "100ms", "--reads", "0", "--overwrite", "--depth", "1", "--connections", "1"]
        assert call(["iscsi", "bench", running.url, *options]) == 1
        done = capsys.readouterr()
        assert "sense key 7, code 27/00" in done.out
        assert "not all commands" in done.err
    finally:
        running.kill()


def test_two_loads_on_one_target_do_not_take_each_others_place(target: Target) -> None:
    loads = [_load(target, "--json") for _ in range(2)]
    for load in loads:
        load.send_signal(signal.SIGTERM)
    for load in loads:
        (result,) = json.loads(load.communicate(timeout=30)[0])["points"]
        assert result["lost"] == 0
        assert result["reads"]["done"] > 0


def test_secrets_come_from_the_environment_or_a_file(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "secret"
    file.write_text("hosthosthost\n")
    running = Target(image, "--chap", f"host={file}")
    try:
        assert call(["iscsi", "bench", running.url, "--duration", "100ms"]) == 1
        assert "secret" in capsys.readouterr().err
        monkeypatch.setenv("ELEPHAN_CHAP_SECRET", "hosthosthost")
        url = running.url.replace("iscsi://", "iscsi://host@")
        assert call(["iscsi", "bench", url, "--duration", "20ms"]) == 0
    finally:
        running.kill()


def test_a_file_without_a_block_is_refused_and_what_is_behind_the_last_one_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "odd.img"
    file.touch()
    assert call(["iscsi", "target", "--lun", str(file)]) == 2
    assert "0 bytes long; a block of 512 is needed" in capsys.readouterr().err
    os.truncate(file, 100_000)
    running = Target(file)
    running.kill()
    assert running.said == [f"LUN 0: {file}, its first 99840 bytes: the 160 behind are no whole block"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["target", "--lun", "no-such.img"], ["no-such.img", "truncate"]),
        (["target", "--lun", "/"], ["--lun /", "a file or block device"]),
        (["target", "--lun", "/dev/null"], ["--lun /dev/null", "a file or block device"]),
        (["target", "--lun", __file__, "--chap", f"host={__file__}", "--mutual-chap", "disk"], ["--mutual-chap disk"]),
        (
            ["target", "--lun", __file__, "--chap", f"host={__file__}", "--mutual-chap", f"disk={__file__}"],
            ["--mutual-chap disk", "--chap host", "the same", "RFC 7143, 12.1.3"],
        ),
        (["target", "--lun", __file__, "--name", "disk"], ["--name disk", "iqn."]),
        (["target", "--lun", __file__, "--command-window", "5000"], ["--command-window 5000", "1 to 4096"]),
        (["target", "--lun", __file__, "--block", "1000"], ["--block 1000", "512 or 4096"]),
        (["target", "--lun", __file__, "--portal", "a:b:c"], ["a:b:c", "HOST"]),
        (["target", "--lun", __file__, "--set", "first_burst=64"], ["--set first_burst=64", "unit"]),
        (["target", "--lun", __file__, "--set", "max_burst=100B"], ["--set max_burst=100B", "512 B to 16 MiB"]),
        (["target", "--lun", __file__, "--set", "max_recv=1GiB"], ["--set max_recv=1GiB", "512 B to 16 MiB"]),
        (["target", "--lun", __file__, "--set", "first_burst=2MiB"], ["first_burst", "1048576"]),
        (["target", "--lun", __file__, "--set", "speed=9"], ["speed", "max_burst"]),
        (["target", "--lun", __file__, "--chap", "host"], ["ELEPHAN_CHAP_SECRET"]),
        (["bench", "iscsi://host/target"], ["iscsi://host/target", "LUN"]),
        (["bench", "iscsi://127.0.0.1:99999/target/0"], ["99999", "65535"]),
        (["bench", "iscsi://127.0.0.1/target/0", "--depth", "0"], ["--depth 0", "65536"]),
        (["bench", "iscsi://127.0.0.1/target/0", "--depth", "1,65537"], ["--depth 65537", "65536"]),
        (["bench", "iscsi://127.0.0.1/target/0", "--depth", "1,,4"], ["--depth 1,,4", "such as 1,2,4"]),
        (["bench", "iscsi://127.0.0.1/target/0", "--connections", "2,x"], ["--connections 2,x", "such as 1,2,4"]),
        (["bench", "iscsi://127.0.0.1/target/0", "--size", "64"], ["--size", "64"]),
        (["bench", "iscsi://127.0.0.1/target/0", "--duration", "0s"], ["--duration 0", "above 0"]),
        (["bench", "iscsi://127.0.0.1/target/0", "--cc", "nosuch"], ["--cc nosuch", "reno"]),
        (["target", "--lun", __file__, "--cc", "nosuch"], ["--cc nosuch", "elephan kernel load"]),
    ],
)
def test_wrong_input_is_one_line_that_says_what_would_be_right(
    arguments: list[str], parts: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ELEPHAN_CHAP_SECRET", raising=False)
    assert call(["iscsi", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    for part in parts:
        assert part in error
