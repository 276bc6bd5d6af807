"""The record: finite, canonical, versioned."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from elephan.errors import StoreError
from elephan.record import FORMAT, InputFile, Record, canonical_json, finite, run_id

Make = Callable[..., Record]


def test_json_round_trip_is_equal_to_the_byte(make_record: Make) -> None:
    record = make_record(reduction=128)
    assert Record.from_json(record.to_json()).to_json() == record.to_json()


def test_what_is_not_finite_becomes_null() -> None:
    given = {"a": float("nan"), "b": [float("inf"), 1.5], "c": 2**63}
    assert finite(given) == {"a": None, "b": [None, 1.5], "c": 2**63}


def test_a_record_refuses_what_json_cannot_hold() -> None:
    with pytest.raises(TypeError, match="a record cannot hold object"):
        finite({"a": object()})


def test_a_newer_format_is_refused_with_both_numbers(make_record: Make) -> None:
    newer = json.loads(make_record().to_json()) | {"format": FORMAT + 1}
    with pytest.raises(StoreError, match=f"format {FORMAT + 1}; this elephan reads up to {FORMAT}"):
        Record.from_json(json.dumps(newer))


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1}', '{"format": "x"}'])
def test_a_damaged_record_is_one_error(text: str) -> None:
    with pytest.raises(StoreError):
        Record.from_json(text)


def test_every_format_that_was_ever_written_is_still_read() -> None:
    files = sorted((Path(__file__).parent / "formats").glob("record-*.json"))
    assert len(files) == FORMAT
    for file in files:
        assert Record.from_json(file.read_text()).format == FORMAT


def test_the_id_depends_on_contents_and_not_on_places() -> None:
    def at(path: str, digest: str = "d" * 64, version: str = "1") -> str:
        spec = {"flows": [{"workload": {"trace": {"path": path}}}], "measure": {"pcap": path}}
        return run_id(spec, [InputFile(path=path, sha256=digest, bytes=3)], version, "sim")

    assert at("/a/x.trace") == at("/b/y.trace")
    assert at("/a/x.trace") != at("/a/x.trace", digest="e" * 64)
    assert at("/a/x.trace") != at("/a/x.trace", version="2")


def test_reproducible_leaves_out_host_and_time(make_record: Make) -> None:
    one = make_record()
    other = one.model_copy(update={"created": "2030-01-01T00:00:00Z", "host": {"cpu": "another"}})
    other.metrics = {**one.metrics, "cpu_s": 99.0}
    assert canonical_json(one.reproducible()) == canonical_json(other.reproducible())
    other.metrics = {**one.metrics, "goodput_bps": 1.0}
    assert canonical_json(one.reproducible()) != canonical_json(other.reproducible())
