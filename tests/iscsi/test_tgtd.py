"""Our initiator on the target of others: Debian's tgtd."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from elephan.cli.main import call
from evaluation.performance.iscsi import NAME, Missing, Peer, tgtd

BYTES = 16 << 20

SECRET = ("reader", "a secret of 18 bytes")


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """Start a tgtd on a port of its own."""
    yield from started(tmp_path_factory.mktemp("tgtd"), None)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """Start one that demands a secret."""
    yield from started(tmp_path_factory.mktemp("guarded"), SECRET)


def started(folder: Path, chap: tuple[str, str] | None) -> Iterator[Peer]:
    if os.geteuid() != 0:
        pytest.skip("needs root: tgtd does not start without")
    image = folder / "lun.img"
    image.touch()
    os.truncate(image, BYTES)
    try:
        with tgtd(image, chap=chap) as running:
            yield running
    except Missing as why:
        pytest.skip(f"needs tgtd (Debian package tgt): {why}")


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["header_digest=preferred", "data_digest=preferred"],
        ["initial_r2t=yes", "immediate_data=no"],
        ["initial_r2t=yes", "immediate_data=yes"],
        ["initial_r2t=no", "immediate_data=no"],
        ["initial_r2t=no", "immediate_data=yes", "first_burst=16KiB", "max_burst=64KiB", "max_recv=8KiB"],
        ["max_outstanding_r2t=8", "max_connections=2"],
    ],
    ids=lambda settings: ",".join(settings) or "as usual",
)
def test_reads_and_writes_are_done_whatever_is_negotiated(
    peer: Peer, settings: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = [part for setting in settings for part in ("--set", setting)]
    load = ["--size", "256KiB", "--depth", "8", "--connections", "1", "--duration", "200ms"]
    load += ["--reads", "50", "--overwrite", "--random"]
    assert call(["iscsi", "bench", peer.url, *load, *options]) == 0
    text = capsys.readouterr().out
    assert "reads: " in text
    assert "writes: " in text
    assert "failed" not in text
    assert "lost" not in text


def test_discovery_finds_its_target(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    portal = peer.url.split("/")[2]
    assert call(["iscsi", "discover", portal]) == 0
    assert f"{NAME}  {portal},1" in capsys.readouterr().out


def test_a_secret_is_shown_by_a_hash_that_both_mean(
    guarded: Peer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    user, secret = SECRET
    url = guarded.url.replace("iscsi://", f"iscsi://{user}@")
    load = ["--size", "64KiB", "--depth", "8", "--connections", "1", "--duration", "100ms"]
    monkeypatch.setenv("ELEPHAN_CHAP_SECRET", secret)
    assert call(["iscsi", "bench", url, *load]) == 0
    assert "reads: " in capsys.readouterr().out
    monkeypatch.setenv("ELEPHAN_CHAP_SECRET", "some other secret")
    assert call(["iscsi", "bench", url, *load]) == 1
    assert "status 02" in capsys.readouterr().err
