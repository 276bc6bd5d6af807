"""Wrong input of `elephan copy`: one line that names it, exit code 2, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from elephan.copy.request import Place
from elephan.errors import InputError
from tests.copy.conftest import Copy


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["a"], "a source and a destination are needed"),
        (["a", "host:"], "a path is missing after the colon"),
        (["one:a", "two:b", "c"], "sources are on one and two"),
        (["--streams", "0", "a", "b"], "--streams 0: 1 to 256"),
        (["--streams", "257", "a", "b"], "--streams 257: 1 to 256"),
        (["--transport", "udp", "a", "b"], "--transport udp: tcp or quic is needed"),
        (["--transport", "quic", "--plaintext", "a", "b"], "QUIC is always encrypted"),
        (["--transport", "quic", "--over-ssh", "a", "host:b"], "--over-ssh carries TCP"),
        (["--over-ssh", "one:a", "two:b"], "run the copy on one of them"),
        (["--over-ssh", "a", "b"], "no side of this copy is remote"),
        (["--listen", "remote", "a", "b"], "no side of this copy is remote"),
        (["--transport", "quic", "--cc", "nonsense", "a", "b"], "no congestion control 'nonsense'"),
        (["--set", "beta=1", "a", "b"], "name it by --cc"),
        (["--cc", "cubic", "--set", "nonsense=1", "a", "b"], "--set nonsense"),
        (["--cc", "./none.c", "a", "b"], "no file ./none.c"),
        (["--rate", "fast", "a", "b"], "--rate fast"),
        (["--rate", "0bit/s", "a", "b"], "--rate"),
        (["--window", "1x", "a", "b"], "--window 1x"),
        (["--window", "0B", "a", "b"], "--window: above 0 B"),
        (["--harm", "150%", "a", "b"], "--harm 150%: a share above 0% and below 100%"),
        (["--retry-for", "ever", "a", "b"], "--retry-for ever"),
        (["--verify", "twice", "a", "b"], "--verify twice: write or read is needed"),
        (["--sign", "./none", "a", "b"], "--sign none: the file of an SSH key"),
        (["--sign", "/etc/hosts", "a", "b"], "--sign /etc/hosts: the file of an SSH key"),
        (["a b@:c", "d"], "a host of `elephan hosts`, or a destination of ssh"),
        (["host:~other/x", "d"], "an absolute path, or one from your own home there"),
        (["verify", "./none"], "none: cannot be read"),
        (["forget", "abc"], "no unfinished copy has a name that begins so"),
        (["./none", "b"], "none"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    copy_alone: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = copy_alone(*arguments)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done
    assert text in done.stderr and done.stdout == "", done
    assert not (tmp_path / "b").exists()


def test_a_receipt_that_cannot_be_written_ends_the_copy_at_once(copy_alone: Copy, tmp_path: Path, state: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    done = copy_alone(tmp_path / "file", tmp_path / "there", "--receipt", "/proc/none/receipt.json")
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert "all is copied, but the receipt is not: /proc/none/receipt.json: cannot be written" in done.stderr
    assert (tmp_path / "there").read_bytes() == b"content" and not list((state / "unfinished").glob("*"))


def test_a_place_is_what_scp_takes_it_for() -> None:
    for text, host, path in (
        ("a", None, "a"),
        ("./a:b", None, "./a:b"),
        ("/a:b", None, "/a:b"),
        ("nyc:/backup", "nyc", "/backup"),
        ("me@nyc:backup/x y", "me@nyc", "backup/x y"),
        ("[fe80::1]:/x", "fe80::1", "/x"),
        ("me@[2001:db8::1]:x:y", "me@2001:db8::1", "x:y"),
    ):
        place = Place.parse(text)
        assert (place.host, place.path) == (host, path)
        assert Place.parse(str(place)) == place
    for text in ("", "nyc:", "-oProxyCommand=x:/a", "a\0b"):
        with pytest.raises(InputError):
            Place.parse(text)
