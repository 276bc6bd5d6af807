"""The monitor's file: what is wrong is named in one line, with what would be right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elephan.cli.main import call
from elephan.errors import InputError
from elephan.monitor.config import load
from elephan.monitor.reference import FILE, text
from elephan.monitor.spec import Spec

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "monitor" / "dr.toml"
LEAST = """name = "dr"
[[path]]
name = "vienna"
towards = "198.51.100.7"
line_rate = "1Gbit/s"
[[path.test]]
test = "stamp"
period = "1s"
"""


def test_the_example_is_valid_and_comes_back_from_its_plain_form(capsys: pytest.CaptureFixture[str]) -> None:
    spec = load(EXAMPLE)
    assert Spec.from_json(spec.to_json()) == spec
    assert [path.name for path in spec.paths] == ["vienna", "graz"]
    assert spec.paths[0].bottleneck == spec.paths[1].bottleneck == "ring"
    assert spec.paths[0].benchmark == {"rtt_s": 0.032, "loss": 1e-5, "available_bps": 7e8}
    assert spec.paths[1].towards == "203.0.113.9:862"
    assert spec.alerts.quiet == ((22 * 60, 6 * 60),)
    assert call(["monitor", "check", str(EXAMPLE)]) == 0
    assert "valid: 2 paths, 5 tests" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('period = "1s"', 'peroid = "1s"', 'path.0.test.0.peroid = "1s": unknown key; did you mean "period"?'),
        ('period = "1s"', 'period = "1"', 'path.0.test.0.period = "1":'),
        ('period = "1s"', 'period = "10ms"', 'at least "100ms"'),
        ('test = "stamp"', 'test = "ping"', 'path.0.test.0.test = "ping": one of "stamp", "capacity"'),
        ('test = "stamp"', 'test = "available"', 'path.0.test.0.period = "1s": at least "10s"'),
        ('"198.51.100.7"', '"vienna.example.com"', "the IP address of a STAMP reflector"),
        ('"198.51.100.7"', '"198.51.100.7:70000"', "the IP address of a STAMP reflector"),
        ('towards = "198.51.100.7"\n', "", "one of towards and host"),
        ('line_rate = "1Gbit/s"\n', "", "path.0.line_rate: missing; this key is required"),
        ('"1Gbit/s"', '"10kbit/s"', "at least 5.76 s"),
        ('line_rate = "1Gbit/s"', 'line_rate = "1Gbit/s"\nbudget = "80%"', 'at most 50 %, such as "1%"'),
        ('line_rate = "1Gbit/s"', 'line_rate = "1Gbit/s"\nbenchmark = { rrt = "3ms" }', 'did you mean "rtt"?'),
        ('line_rate = "1Gbit/s"', 'line_rate = "1Gbit/s"\ntransfers = ["gone.toml"]', "a scenario that can run"),
        ('line_rate = "1Gbit/s"', 'line_rate = "1Gbit/s"\nkey_file = "gone"', "key_file"),
        ('name = "dr"', 'name = "d/r"', 'without "/"'),
        ('name = "dr"', 'name = "dr"\n[retention]\nraw = "400"', "a number of hours, days, weeks or years"),
        ('name = "dr"', 'name = "dr"\n[metrics]\nlisten = "0.0.0.0:9464"', "an address of this machine alone"),
        ('name = "dr"', 'name = "dr"\n[alerts]\nquiet = ["22-6"]', 'hours of the day, such as "22:00-06:00"'),
        ('name = "dr"', 'name = "dr"\n[alerts]\nurls = ["mail"]', "alerts.urls.0"),
        ('name = "dr"', 'name = "dr"\n[alerts]\nurls = ["nothing://x"]', "a URL that apprise knows"),
        ('period = "1s"', 'period = "1s"\n[[path.test]]\ntest = "stamp"\nperiod = "2s"', "does not have yet"),
        ('period = "1s"', 'period = "1s"\n[[path.test]]\ntest = "throughput"\nperiod = "1min"', "at least 1000 s"),
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


def test_a_transfer_is_one_run(tmp_path: Path) -> None:
    (tmp_path / "many.toml").write_text(
        (ROOT / "examples" / "bulk.toml").read_text() + '[sweep]\n"path.loss"=[0,1e-4]\n'
    )
    (tmp_path / "dr.toml").write_text(LEAST.replace('"1Gbit/s"', '"1Gbit/s"\ntransfers = ["many.toml"]'))
    with pytest.raises(InputError, match="a scenario of one run; it has 2 runs"):
        load(tmp_path / "dr.toml")


def test_the_reference_is_what_the_models_say() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "write it: python -m elephan.monitor.reference --write"


def test_rules_and_dashboard_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["monitor", "rules"]) == 0
    assert "ElephanPathSilent" in capsys.readouterr().out
    assert call(["monitor", "dashboard"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "elephan: paths"


@pytest.mark.parametrize(
    "key", ['urls = ["nothing://u:hunter2@x"]', 'urls = "json://u:hunter2@x"', 'url = "json://u:hunter2@x"']
)
def test_passwords_of_urls_are_not_said(tmp_path: Path, key: str) -> None:
    file = tmp_path / "dr.toml"
    file.write_text(LEAST.replace('name = "dr"', f'name = "dr"\n[alerts]\n{key}', 1))
    with pytest.raises(InputError) as found:
        load(file)
    assert "hunter2" not in str(found.value) and "alerts.url" in str(found.value)
