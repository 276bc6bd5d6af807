"""The reader of a user's files, and the bound on the parts of a TOML key."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from elephan import user_files
from elephan.scenario.toml import DEPTH_MAX, NotToml, parse

SMALL = user_files.Kind("a small file", 10)


def test_a_file_of_the_bound_is_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert user_files.read_bytes(path, SMALL) == b"0123456789"
    path.write_bytes(b"0123456789a")
    with pytest.raises(user_files.UnfitFile) as found:
        user_files.read_bytes(path, SMALL)
    assert found.value.strerror == "it has 11 B; a small file has at most 10 B"


def test_a_file_without_a_size_is_read_up_to_the_bound() -> None:
    # Those of /proc have the size 0.
    assert user_files.read_bytes("/proc/sys/kernel/ostype", SMALL) == b"Linux\n"
    with pytest.raises(user_files.UnfitFile, match="a small file has at most 10 B"):
        user_files.read_bytes("/proc/version", SMALL)


def test_a_link_to_a_pipe_is_refused_though_a_writer_has_it(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b"x")
        (tmp_path / "link").symlink_to(f"/proc/self/fd/{reader}")
        with pytest.raises(user_files.UnfitFile, match="a FIFO or pipe"):
            user_files.read_bytes(tmp_path / "link", SMALL)
    finally:
        os.close(reader)
        os.close(writer)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    (tmp_path / "large").write_bytes(bytes(11))
    for path in (tmp_path, tmp_path / "large", tmp_path / "none", Path("/dev/zero")):
        with pytest.raises(OSError, match=r"."):
            user_files.read_bytes(path, SMALL)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * DEPTH_MAX) + " = 1",
        f'x = "{"a." * 100}"',
        f"x = '{'a.' * 100}'",
        f'x = """{"a." * 100}\n{"a." * 100}"""',
        f"x = '''{'a.' * 100}'''",
        f"x = 1 # {'a.' * 100}",
        "x = [" + "1.5, " * 100 + "]",
        "x = '''\n" + 'a"b.' * 100 + "\n'''",
    ],
)
def test_dots_in_texts_comments_and_numbers_are_no_parts_of_a_key(text: str) -> None:
    parse(text)


@pytest.mark.parametrize(
    "key",
    [
        ".".join("a" * (DEPTH_MAX + 1)),
        " . ".join("a" * (DEPTH_MAX + 1)),
        ".".join(['"a"'] * (DEPTH_MAX + 1)),
        ".".join(["'a'", "b"] * DEPTH_MAX),
    ],
)
def test_a_key_of_too_many_parts_is_refused_wherever_it_stands(key: str) -> None:
    for text in (f"{key} = 1", f"[{key}]", f"[[{key}]]", f"x = {{ {key} = 1 }}", f'y = "a"\n{key} = 1'):
        with pytest.raises(NotToml, match="too many parts"):
            parse(text)


def test_texts_that_are_no_toml_take_little_time() -> None:
    began_s = time.monotonic()
    for text in ('"' * 100_000, "'" * 99_999, '"\\' * 50_000, '"""' + "\\" * 100_001, "a" * 1_000_000, "a " * 500_000):
        with pytest.raises(NotToml):
            parse("x." * 40 + text)
    # Some 0.1 s; minutes where the search for keys took the square of the length.
    assert time.monotonic() - began_s < 10
