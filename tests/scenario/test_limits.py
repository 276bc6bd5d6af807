"""Files that no parser likes: nested too deeply, with numbers or characters that nothing holds, from other editors."""

from __future__ import annotations

from pathlib import Path

import pytest

from elephan.scenario import ScenarioError, load
from tests.scenario.conftest import BASE, Load

NESTED = "[" * 5_000 + "]" * 5_000
TABLES = "{ a = " * 5_000 + "1" + " }" * 5_000
DOTTED = ".".join("a" * 3_000)

HOSTILE = {
    "arrays": f"x = {NESTED}\n",
    "arrays in a sweep": f'[sweep]\n"path.loss" = {NESTED}\n',
    "tables": f"x = {TABLES}\n",
    "a dotted key": f"{DOTTED} = 1\n",
    "a dotted key in a table": f"[path.{DOTTED}]\nx = 1\n",
    "a dotted key in a sweep": f"[sweep]\n{DOTTED} = [1]\n",
    "a few too many arrays": "x = " + "[" * 40 + "]" * 40 + "\n",
    "digits": f"x = {'9' * 5_000}\n",
    "hex digits": f"x = 0x{'f' * 5_000}\n",
    "an escape": 'name = "red\\u001b[31m"\n',
    "an escape in a key": '"red\\u001b[31m" = 1\n',
    "a control character of the second set": 'name = "red\\u009b31m"\n',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_cannot_be_read_is_one_line(scenario: Load, text: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(text + BASE)
    told = str(error.value)
    assert "demo.toml" in told and told.isprintable() and len(told) < 1000


@pytest.mark.parametrize(
    "override",
    [
        f"path.loss={NESTED}",
        f"path.loss={TABLES}",
        f"path.{DOTTED}=1",
        f"{DOTTED}=1",
        f"sweep.path.{DOTTED}=[1, 2]",
        f"run.seed={'9' * 5_000}",
        f"run.seed=0x{'f' * 5_000}",
        "flow.name=red\x1b[31m",
        'flow.name="red\\u001b[31m"',
        "path.\x1b[31m=1",
    ],
    ids=lambda override: override[:30].encode("unicode_escape").decode(),
)
def test_what_cannot_be_set_is_one_line(scenario: Load, override: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(BASE, override)
    told = str(error.value)
    assert told.startswith("--set: ") and told.isprintable() and len(told) < 100_000


def test_lines_of_a_description_stay(scenario: Load) -> None:
    assert scenario('description = """\nfirst\n\tsecond\n"""\n' + BASE).description == "first\n\tsecond\n"


def test_a_number_below_all_others_is_not_taken_for_zero(scenario: Load) -> None:
    for text in ("1e-400", "0.1e-330", "-1e-400", "1_0e-400"):
        with pytest.raises(ScenarioError, match=rf"demo.toml:\d+: path.loss = {text}: a probability"):
            scenario(BASE.replace('rtt = "67ms"', f'rtt = "67ms"\nloss = {text}'))
    for text in ("0.0", "0e-400", "0.000e9"):
        scenario(BASE.replace('rtt = "67ms"', f'rtt = "67ms"\nloss = {text}'))


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    """Editors on Windows write one; the record has the text without it."""
    file = tmp_path / "windows.toml"
    file.write_bytes(b"\xef\xbb\xbf" + BASE.replace("\n", "\r\n").encode())
    assert load(file).text == BASE
    file.write_bytes(BASE.encode("utf-16"))
    with pytest.raises(ScenarioError, match="not UTF-8, as TOML must be"):
        load(file)


def test_the_command_line_is_blamed_for_what_it_set_and_the_file_for_what_it_says(scenario: Load) -> None:
    text = BASE.replace('rtt = "67ms"', 'rtt = "67"')
    with pytest.raises(ScenarioError, match=r"^--set: path.bandwidth = 1: a rate"):
        scenario(BASE, "path.bandwidth=1")
    with pytest.raises(ScenarioError, match=r"demo.toml:6: path.rtt = \"67\": a time") as error:
        scenario(text, "path.loss=0")
    assert not str(error.value).startswith("with")
    with pytest.raises(ScenarioError, match=r"^--set: sweep.path.loss: at least one value|^--set: sweep.path.loss = "):
        scenario(BASE, "sweep.path.loss=[]")
    with pytest.raises(ScenarioError, match=r"^--set: path.loss = 3: a probability"):
        scenario(BASE, "sweep.path.loss=[0, 3]")


def test_a_change_that_does_not_go_with_the_file_is_named_beside_the_key_of_the_file(scenario: Load) -> None:
    text = BASE + 'start = "5s"\n'
    with pytest.raises(ScenarioError, match=r'^with --set run.duration=1s: .*demo.toml:10: flow.backup.start = "5s": '):
        scenario(text, "run.duration=1s")


@pytest.mark.parametrize(
    ("ends", "values"),
    [
        ('from = "1ms", to = "1s", factor = 10', ["1ms", "10ms", "100ms", "1000ms"]),
        ('from = "1s", to = "1ms", factor = 0.1', ["1000ms", "100ms", "10ms", "1ms"]),
        ('from = "990ms", to = "1s", step = "5000us"', ["990000us", "995000us", "1000000us"]),
        ('from = "100us", to = "1ms", count = 2', ["100us", "1000us"]),
    ],
)
def test_a_range_may_be_written_in_several_units(scenario: Load, ends: str, values: list[str]) -> None:
    (axis,) = scenario(BASE + f'[sweep]\n"path.rtt" = {{ {ends} }}\n').axes
    assert list(axis.values) == values


def test_a_range_of_sizes_and_of_rates_too(scenario: Load) -> None:
    text = '[sweep]\n"path.queue" = { from = "64kB", to = "1MB", count = 2 }\n'
    text += '"path.bandwidth" = { from = "100Mbit/s", to = "1Gbit/s", factor = 10 }\n'
    queue, bandwidth = scenario(BASE + text).axes
    assert tuple(queue.values) == ("64kB", "1000kB") and bandwidth.values == ("100Mbit/s", "1000Mbit/s")
