"""Delimited traces of public collections and of any order of columns, plain and compressed, by the command."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from elephan.cli.main import call

SECTOR = 512


@dataclass(frozen=True)
class Request:
    """A request as a tracer would record it."""

    us: int
    device: int
    write: bool
    offset: int
    size: int


def drawn(rng: random.Random, number: int) -> list[Request]:
    """Requests on whole sectors, in order of time; two in a row may share a microsecond."""
    requests, us = [], rng.randrange(10**15)
    for _ in range(number):
        us += rng.choice([0, 1, rng.randrange(10**6)])
        sectors = rng.randrange(1, 300)
        offset = rng.randrange(2**31) * SECTOR
        requests.append(Request(us, rng.randrange(12), rng.random() < 0.6, offset, sectors * SECTOR))
    return requests


def expected(requests: list[Request]) -> dict[str, Any]:
    """The summary by a plain count."""
    written = [r.size for r in requests if r.write]
    read = [r.size for r in requests if not r.write]
    return {
        "requests": len(requests),
        "reads": len(read),
        "writes": len(written),
        "read_bytes": sum(read),
        "written_bytes": sum(written),
        "smallest_bytes": min(r.size for r in requests),
        "largest_bytes": max(r.size for r in requests),
        "end_lba": max((r.offset + r.size) // SECTOR for r in requests),
    }


def seconds(us: int) -> str:
    """A time as seconds with six digits."""
    return f"{us // 10**6}.{us % 10**6:06d}"


def alibaba(r: Request) -> str:
    return f"{r.device},{'W' if r.write else 'R'},{r.offset},{r.size},{r.us}"


def tencent(r: Request) -> str:
    return f"{r.us // 10**6},{r.offset // SECTOR},{r.size // SECTOR},{int(r.write)},{r.device}"


def systor(r: Request) -> str:
    return f"{seconds(r.us)},0.000250,{'W' if r.write else 'R'},{r.device},{r.offset},{r.size}"


def fiu(r: Request) -> str:
    operation = "W" if r.write else "R"
    return f"{r.us * 1000} 812 kjournald {r.offset // SECTOR} {r.size // SECTOR} {operation} 8 {r.device} {'0a' * 16}"


FORMATS = {"alibaba": alibaba, "tencent": tencent, "systor": systor, "fiu": fiu}
HEADINGS = {"systor": "Timestamp,Response,IOType,LUN,Offset,Size\n"}


def summary(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert call(["trace", *arguments, "--json"]) == 0, capsys.readouterr().err
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def device_counts(requests: list[Request], form: str) -> dict[str, int]:
    """Requests of each device; FIU's are of major number 8."""
    major = "8," if form == "fiu" else ""
    return {f"{major}{device}": number for device, number in Counter(r.device for r in requests).items()}


@pytest.mark.parametrize("form", sorted(FORMATS))
@pytest.mark.parametrize("seed", range(3))
def test_public_formats_are_known_by_their_content(
    form: str, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = drawn(random.Random(f"{form}{seed}"), 500)
    path = tmp_path / "trace.csv"
    path.write_text(HEADINGS.get(form, "") + "".join(FORMATS[form](r) + "\n" for r in requests))
    found = summary(capsys, str(path))
    assert found["format"] == form
    assert {key: found[key] for key in expected(requests)} == expected(requests)
    if form == "tencent":
        assert found["span_ns"] == (requests[-1].us // 10**6 - requests[0].us // 10**6) * 10**9
    else:
        assert found["span_ns"] == (requests[-1].us - requests[0].us) * 1000
    assert found["devices"] == device_counts(requests, form)
    assert found["responses"] == (len(requests) if form == "systor" else 0)


UNITS = {"time": {"us": 1, "ns": 1000, "100ns": 10}, "bytes": {"B": 1, "sectors": SECTOR, "512B": SECTOR}}


@pytest.mark.parametrize("seed", range(30))
def test_columns_of_any_order_unit_and_delimiter(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    requests = drawn(rng, 200)
    time_unit, offset_unit, size_unit = rng.choice(list(UNITS["time"])), *rng.choices(list(UNITS["bytes"]), k=2)
    reads, writes, operation = rng.choice(
        [("R", "W", "op"), ("read", "Write", "op"), ("0", "1", "op:0=read"), ("1", "0", "op:1=read")]
    )
    fields = {
        f"time:{time_unit}": lambda r: r.us * UNITS["time"][time_unit],
        operation: lambda r: writes if r.write else reads,
        "device": lambda r: r.device,
        f"offset:{offset_unit}": lambda r: r.offset // UNITS["bytes"][offset_unit],
        f"size:{size_unit}": lambda r: r.size // UNITS["bytes"][size_unit],
    }
    names = [*fields, *["-"] * rng.randrange(3)]
    rng.shuffle(names)
    delimiter = rng.choice([",", ";", "|", " ", "\t"])
    lines = [delimiter.join(str(fields[name](r)) if name != "-" else "x" for name in names) for r in requests]
    if rng.random() < 0.5:
        lines.insert(0, delimiter.join(f"name{index}" for index in range(len(names))).replace("name", "n_"))
    path = tmp_path / "own.txt"
    path.write_text("\n".join(lines) + "\n")
    found = summary(capsys, str(path), "--columns", ",".join(names))
    assert found["format"] == "columns"
    assert {key: found[key] for key in expected(requests)} == expected(requests)
    assert found["span_ns"] == (requests[-1].us - requests[0].us) * 1000
    assert found["devices"] == device_counts(requests, "columns")


def zstd_frames(data: bytes) -> bytes:
    """Two frames with a skippable one between (RFC 8878, 3.1.2), as pzstd writes them."""
    half = len(data) // 2
    first, second = (pa.compress(part, codec="zstd", asbytes=True) for part in (data[:half], data[half:]))
    return bytes(first + (0x184D2A50).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc" + second)


COMPRESSED = {
    "gz": gzip.compress,
    "members.gz": lambda data: gzip.compress(data[:999]) + gzip.compress(data[999:]),
    "zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    "frames.zst": zstd_frames,
}


@pytest.mark.parametrize("suffix", sorted(COMPRESSED))
def test_compressed_traces_give_the_same_result(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = drawn(random.Random(suffix), 5000)
    text = "".join(alibaba(r) + "\n" for r in requests).encode()
    (tmp_path / "plain").write_bytes(text)
    # The name does not matter.
    packed = tmp_path / "packed"
    packed.write_bytes(COMPRESSED[suffix](text))
    plain = summary(capsys, str(tmp_path / "plain"))
    assert {**summary(capsys, str(packed)), "path": ""} == {**plain, "path": ""}
    for cut in (len(packed.read_bytes()) - 5, len(packed.read_bytes()) // 3):
        short = tmp_path / "short"
        short.write_bytes(packed.read_bytes()[:cut])
        assert call(["trace", str(short)]) == 2
        error = capsys.readouterr().err
        assert str(short) in error and error.count("\n") == 1


def test_other_compression_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.xz"
    path.write_bytes(b"\xfd7zXZ\x00rest")
    assert call(["trace", str(path)]) == 2
    assert "compressed by xz; decompress it first" in capsys.readouterr().err


SCENARIO = """[run]
duration = "2s"
[path]
bandwidth = "1Gbit/s"
rtt = "10ms"
[[flow]]
"""


def test_a_scenario_mirrors_a_trace_by_its_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i / 100:.2f};{'w' if i % 2 else 'r'};{i * 8};4096" for i in range(100)]
    (tmp_path / "own.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    scenario = tmp_path / "s.toml"
    columns = "time:s,op,offset:sectors,size:B"
    scenario.write_text(
        SCENARIO + f'workload = {{ kind = "replicate", trace = "own.gz", columns = "{columns}", header = "0B" }}\n'
    )
    assert call(["run", str(scenario), "--json", "--no-report"]) == 0, capsys.readouterr().err
    (run,) = json.loads(capsys.readouterr().out)
    # 50 writes of 4096 bytes within the first second.
    assert run["flows"][0]["delivered_bytes"] == 50 * 4096

    source = f'{{ kind = "trace", trace = "own.gz", columns = "{columns}" }}'
    scenario.write_text(SCENARIO + f'workload = {{ kind = "iscsi", source = {source} }}\n')
    assert call(["run", str(scenario), "--json", "--no-report"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ('columns = "time:s,op,offset"', "a column size"),
        ('columns = "time:s,op,offset,size", format = "msr"', "absent beside format"),
        ('columns = "time:s,offset,op,size"', "line 1"),
        ('format = "columns"', "such as"),
    ],
)
def test_wrong_columns_in_a_scenario(keys: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.txt").write_text("0.5;w;8;4096\n")
    scenario = tmp_path / "s.toml"
    scenario.write_text(SCENARIO + f'workload = {{ kind = "replicate", trace = "own.txt", {keys} }}\n')
    assert call(["run", str(scenario), "--no-report"]) == 2
    error = capsys.readouterr().err
    assert part in error and "s.toml" in error


def test_wrong_columns_at_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.txt"
    path.write_text("1;W;8;512\n")
    for arguments, part in (
        (["--columns", "time:us,op,offset,size", "--format", "spc"], 'either columns or format "spc"'),
        (["--columns", "time:us,what"], 'not "what"'),
        ([], "or give the columns"),
    ):
        assert call(["trace", str(path), *arguments]) == 2
        error = capsys.readouterr().err
        assert part in error and error.count("\n") == 1
