"""The backup's file: what is wrong is named in one line, with what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from elephan.backup.config import load
from elephan.backup.reference import FILE, text
from elephan.cli.main import call
from elephan.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "backup" / "dr.toml"
LEAST = """name = "dr"
[[job]]
name = "records"
kind = "incremental"
sources = ["/srv/records/"]
destination = "osc:/backup/records"
every = "1d"
"""
EVERY = 'every = "1d"'


def test_the_example_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    spec = load(EXAMPLE)
    records, scans, checks = spec.jobs
    assert records.keep.age_s == 7 * 86_400 and checks.keep.versions == 42 and not scans.has_versions
    assert records.path is not None and (records.path.rate_bps, records.path.rtt_s) == (45_000_000, 0.032)
    assert [window.rate_bps for window in records.windows] == [None, 10_000_000]
    assert call(["backup", str(EXAMPLE), "check"]) == 0
    assert "valid: 3 jobs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (EVERY, 'evry = "1d"', 'job.0.evry = "1d": unknown key; did you mean "every"?'),
        (EVERY, 'every = "1"', 'job.0.every = "1": a time of at least "10s"'),
        (EVERY, 'every = "1s"', 'a time of at least "10s"'),
        (EVERY, 'every = "1d"\nat = ["02:00"]', "one of every and at"),
        (EVERY, 'at = ["2:00"]', 'a time of the day, such as "02:00"'),
        (EVERY, 'every = "1d"\ndays = ["sun"]', "a key beside at"),
        (EVERY, 'at = ["02:00"]\ndays = ["sunday"]', 'one of "mon", "tue"'),
        (EVERY, 'at = ["02:00"]\ndays = []', "at least one day"),
        (EVERY, 'every = "1d"\nkeep = "7"', 'an age, such as "48h", "7d"'),
        (EVERY, 'every = "1d"\nkeep = 0', "at least 1 version"),
        (EVERY, 'every = "1d"\nrate = "10"', "job.0.rate"),
        (EVERY, 'every = "1d"\nharm = "100%"', "above 0 and below 100 %"),
        (EVERY, 'every = "1d"\npath = "osc"', "the name of a [[path]]; there is none yet"),
        (EVERY, 'every = "1d"\nover_ssh = true\ntransport = "quic"', "job.0.over_ssh"),
        (EVERY, 'every = "1d"\n[[job.window]]\nhours = "22-6"', 'hours of the day, such as "22:00-06:00"'),
        (EVERY, 'every = "1d"\n[[job.window]]\nhours = "06:00-24:30"', "hours of the day"),
        (EVERY, 'every = "1d"\n[job.data]\nchange = "some"', 'data as "2TB" or'),
        ('kind = "incremental"', 'kind = "differential"', 'one of "full", "incremental", "mirror"'),
        ('kind = "incremental"', 'kind = "mirror"\nkeep = "7d"', "a mirror has no older versions"),
        ('["/srv/records/"]', "[]", "at least one source"),
        ('["/srv/records/"]', '["a:/x", "b:/x"]', "places of one host"),
        ('["/srv/records/"]', '["osc:"]', "a path is missing after the colon"),
        ('name = "records"', 'name = "re cords"', "a name"),
        ('name = "records"', 'name = "re/cords"', "at most 64 letters"),
        ("[[job]]", "[retry]\nattempts = 0\n[[job]]", "a whole number from 1 to 1000"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = tmp_path / "dr.toml"
    assert old in LEAST
    file.write_text(LEAST.replace(old, new, 1))
    with pytest.raises(InputError) as found:
        load(file)
    assert said in str(found.value) and "\n" not in str(found.value)
    assert str(found.value).startswith(str(file))


@pytest.mark.parametrize("place", [f"osc:/backup{end}" for end in ("/records", "/records/", "", "/records/a")])
def test_two_jobs_never_share_a_destination(tmp_path: Path, place: str) -> None:
    file = tmp_path / "dr.toml"
    other = LEAST.partition("[[job]]")[2].replace("records", "scans").replace("osc:/backup/scans", place)
    file.write_text(f"{LEAST}[[job]]{other}")
    with pytest.raises(InputError, match=r"job\.1\.destination.*no other job's destination"):
        load(file)


def test_a_command_without_a_file_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["backup", "status"]) == 2
    assert "elephan backup FILE status: the file comes first" in capsys.readouterr().err
    assert call(["backup", str(EXAMPLE)]) == 2
    assert "one of run, status, restore" in capsys.readouterr().err


def test_the_reference_is_what_the_models_say() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "write it: python -m elephan.backup.reference --write"
