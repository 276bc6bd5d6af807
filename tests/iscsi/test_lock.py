"""A file is served once: a second target, or a second unit of the same one, is refused unless both share it."""

from __future__ import annotations

from pathlib import Path

import pytest

from elephan.cli.main import call
from tests.iscsi.conftest import Target


def refused(capsys: pytest.CaptureFixture[str], image: Path, *options: str) -> str:
    """Return the one line with which a target on the file is refused."""
    assert call(["iscsi", "target", "--lun", str(image), "--portal", "127.0.0.1:0", *options]) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    assert str(image) in error
    return error


def test_a_file_that_is_served_is_refused_to_a_second_target(
    image: Path, target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in ([], ["--read-only"], ["--shared"]):
        assert "in use by another program" in refused(capsys, image, *options)
    # The lock goes with the process.
    target.kill()
    Target(image).kill()


def test_a_file_that_is_given_twice_is_refused_by_whatever_name(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = image.with_name("other.img")
    other.symlink_to(image)
    assert "given twice" in refused(capsys, image, "--lun", str(image))
    assert call(["iscsi", "target", "--lun", str(image), "--lun", str(other), "--portal", "127.0.0.1:0"]) == 2
    assert str(other) in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--shared", "--read-only"])
def test_those_that_share_a_file_or_only_read_it_serve_it_together(
    image: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    targets = [Target(image, option, "--lun", str(image)) for _ in range(2)]
    try:
        for running in targets:
            assert (
                call(["iscsi", "bench", running.url, "--duration", "100ms", "--depth", "8", "--connections", "1"]) == 0
            )
        capsys.readouterr()
        assert "in use" in refused(capsys, image)
    finally:
        for running in targets:
            running.kill()
