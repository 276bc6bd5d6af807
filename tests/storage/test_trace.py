"""`elephan trace`, and traces of every format in a scenario."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elephan.blocktrace import formats, read
from elephan.cli.main import call
from elephan.errors import InputError
from elephan.scenario import load

ROOT = Path(__file__).resolve().parents[2]

WRITES = {
    "alibaba": "0,R,4096,4096,7\n0,W,8192,4096,500007\n",
    "blkparse": "8,0 1 1 0.000000001 9 Q R 8 + 8 [a]\n8,0 1 2 0.5 9 Q W 16 + 8 [a]\n8,0 1 3 0.5 9 D W 16 + 8 [a]\n",
    "disksim": "0.0 0 8 8 1\n500.0 0 16 8 0\n",
    "disksim-validate": "R Hit 8 8 1000.0 499000.0\nW Hit 16 8 1000.0 1.0\n",
    "fio": "fio version 3 iolog\n0 f add\n0 f read 4096 4096\n500000 f write 8192 4096\n",
    "fiu": "7 1 p 8 8 R 8 0 aa\n500000007 1 p 16 8 W 8 0 bb\n",
    "mqsim": "0 0 8 8 1\n500000000 0 16 8 0\n",
    "msr": "128166372000000000,h,0,Read,4096,4096,7\n128166372005000000,h,0,Write,8192,4096,9\n",
    "systor": "10.0,0.1,R,0,4096,4096\n10.5,,W,0,8192,4096\n",
    "spc": "0,8,4096,R,0.0\n0,16,4096,W,0.5\n",
}


@pytest.mark.parametrize("form", sorted(WRITES))
def test_each_format_says_the_same(form: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(WRITES[form])
    found = read(path)
    assert found["format"] == form
    assert (found["requests"], found["reads"], found["writes"], found["sequential"]) == (2, 1, 1, 1)
    assert (found["read_bytes"], found["written_bytes"], found["end_lba"]) == (4096, 4096, 24)
    assert abs(found["span_ns"] - 500_000_000) <= 1


@pytest.mark.parametrize("form", sorted(WRITES))
def test_replicate_mirrors_each_format(form: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(WRITES[form])
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        '[run]\nduration = "1s"\n[path]\nbandwidth = "1Gbit/s"\nrtt = "10ms"\n'
        '[[flow]]\nworkload = { kind = "replicate", trace = "x" }\n'
    )
    (point,) = load(scenario).points()
    assert point.to_spec()["flows"][0]["workload"]["trace"]["format"] == form


def test_a_name_overrides_what_the_content_tells(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(WRITES["mqsim"])
    assert read(path, "disksim")["span_ns"] == 500_000_000 * 1_000_000
    with pytest.raises(InputError, match=r'trace format "srt" is unknown: use one of alibaba, blkparse, .*hp-srt'):
        read(path, "srt")
    with pytest.raises(InputError, match=r"x, line 1: .*seven fields"):
        read(path, "msr")


def test_the_formats_are_those_of_the_core() -> None:
    # Tencent's times are whole seconds.
    assert set(formats()) == {*WRITES, "tencent", "hp-srt"}


def test_the_command_prints_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(ROOT / "examples/traces/tpcc-small.trace")
    assert call(["trace", trace]) == 0
    text = capsys.readouterr().out
    for part in ("mqsim", "6,999", "2,618 (37.4 %), 23.4 MB", "136 ms", "sequential"):
        assert part in text
    assert call(["trace", trace, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written_bytes"] == 23_403_520


def test_what_is_wrong_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.csv"
    path.write_text(WRITES["msr"] + "128166372005000000,h,0,Wri")
    for arguments, part in (
        (["trace", str(path)], "cut.csv, line 3: "),
        (["trace", str(path)], "is the file cut off? (2 requests read before it)"),
        (["trace", str(tmp_path)], "a trace is a file"),
        (["trace", str(tmp_path / "no")], "cannot be opened"),
    ):
        assert call(arguments) == 2
        error = capsys.readouterr().err
        assert part in error
        assert error.count("\n") == 1
