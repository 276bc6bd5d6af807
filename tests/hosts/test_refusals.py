"""Scenarios and options that no two hosts can follow: one line that says what would be right, before anyone is asked.

The hosts' names are in no book: a scenario that got further than the refusal would fail by another line.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.conftest import Elephan

ROOT = Path(__file__).resolve().parents[2]
HEAD = '[run]\nduration = "4s"\n[path]\nbandwidth = "100Mbit/s"\nrtt = "32ms"\n'
FLOW = "[[flow]]\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + FLOW + '[[event]]\nat = "1s"\nloss = 0.1\n', "--on kernel emulates it"),
        (HEAD + FLOW + '[[event]]\nat = "1s"\nrtt = "40ms"\n', "--on kernel emulates it"),
        (HEAD + FLOW + '[[event]]\nat = "1s"\nlink_down = "path"\n', "link down"),
        (HEAD + FLOW + '[[background]]\nrate = "10%"\n', "background1: a real path has the traffic"),
        (
            HEAD + FLOW + 'name = "a"\n[[flow]]\nname = "b"\ndirection = "reverse"\n',
            "flow b: goes the other way than a",
        ),
        (HEAD + FLOW + 'workload = { kind = "iscsi" }\n', '"iscsi" runs on --on sim alone'),
        (HEAD + FLOW + 'workload = { kind = "program", program = "udt", bytes = "1MB" }\n', "this goes over UDP"),
        (HEAD + FLOW + 'workload = { kind = "program", program = "srt", bytes = "1MB" }\n', "this goes over UDP"),
        (HEAD + FLOW + 'name = "a"\n[[flow]]\nworkload = { kind = "short_flows", arrivals = 10 }\n', "short_flows"),
        (HEAD + FLOW + "initial_cwnd = 20\n", "ip route change ... initcwnd 20"),
        (HEAD + FLOW + 'rto_min = "100ms"\n', "rto_min 100ms"),
        (HEAD + FLOW + "initial_ssthresh = 10\n", "initial_ssthresh has no switch"),
        (HEAD + FLOW + 'name = "a"\n[[flow]]\nname = "b"\nfrto = false\n', "a host has one value for all"),
    ],
)
def test_what_no_real_path_does_is_refused_in_one_line(
    elephan_alone: Elephan, tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "one.toml"
    file.write_text(text)
    done = elephan_alone("check", file, "--on", "hosts", "--hosts", "a,b")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert says in done.stderr and str(file) in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("example", "says"),
    [
        ("dumbbell", "background web: a real path has the traffic that it has"),
        ("events", "--on kernel emulates it"),
        ("hybrid-manager", "a real path has no lightpaths"),
        ("san-three-sites", "--on sim"),
        ("two-way", "goes the other way"),
    ],
)
def test_examples_with_more_than_one_path_between_two_ends_are_refused(
    elephan_alone: Elephan, tmp_path: Path, example: str, says: str
) -> None:
    done = elephan_alone("check", ROOT / "examples" / f"{example}.toml", "--on", "hosts", "--hosts", "a,b")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert says in done.stderr


LONG = """\
[run]
duration = "4s"
[[node]]
name = "a"
[[node]]
name = "b"
[[node]]
name = "c"
[[link]]
from = "a"
to = "b"
bandwidth = "100Mbit/s"
delay = "5ms"
[[link]]
from = "b"
to = "c"
bandwidth = "100Mbit/s"
delay = "5ms"
[[link]]
name = "direct"
from = "a"
to = "c"
bandwidth = "50Mbit/s"
delay = "5ms"
[[flow]]
name = "one"
from = "a"
to = "c"
[[flow]]
name = "two"
from = "a"
to = "{to}"
{more}
"""


@pytest.mark.parametrize(
    ("to", "more", "says"),
    [
        ("b", "", "two hosts are two ends; --on kernel emulates it"),
        ("c", 'route = ["a", "b", "c"]', "two hosts have one path; --on kernel emulates it"),
        # Nothing is wrong with it but the hosts' names.
        ("c", "", 'no host "x"'),
    ],
)
def test_a_long_form_has_two_ends_and_one_path(
    elephan_alone: Elephan, tmp_path: Path, to: str, more: str, says: str
) -> None:
    file = tmp_path / "long.toml"
    file.write_text(LONG.format(to=to, more=more))
    done = elephan_alone("check", file, "--on", "hosts", "--hosts", "x,y")
    assert done.returncode == 2 and says in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--on", "hosts"), "--hosts LEFT,RIGHT, or [hosts]"),
        (("--on", "hosts", "--hosts", "a"), "two names"),
        (("--on", "hosts", "--hosts", "a,a"), "two names"),
        (("--on", "hosts", "--hosts", "a,b"), 'no host "a"'),
        (("--on", "hosts", "--hosts", "a,b", "--rate-limit", "5"), "a rate such as"),
        (("--on", "hosts", "--hosts", "a,b", "--max-time", "0s"), "a time such as"),
        (("--on", "hosts", "--hosts", "a,b", "--max-time", "1ns"), "at least 100ms"),
        (("--on", "hosts", "--hosts", "a,b", "--max-time", "319ms"), "at least 320 ms here, 10 expected round trips"),
        (("--on", "hosts", "--hosts", "a,b", "--max-loss", "2"), "a probability"),
        (("--on", "kernel", "--hosts", "a,b"), "--hosts: is for --on hosts"),
        (("--yes",), "--yes: is for --on hosts"),
        (("--on", "host"), "there are sim, kernel, hosts"),
    ],
)
def test_a_wrong_option_is_one_line_and_nothing_is_stored(
    elephan_alone: Elephan, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    file = tmp_path / "one.toml"
    file.write_text(HEAD + FLOW)
    done = elephan_alone("run", file, *arguments)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert says in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.toml"]


def test_hosts_in_the_file_are_those_of_the_run_unless_the_command_line_names_others(
    elephan_alone: Elephan, tmp_path: Path
) -> None:
    file = tmp_path / "one.toml"
    file.write_text(HEAD + FLOW + '[hosts]\nleft = "x"\nright = "y"\n')
    assert 'no host "x"' in elephan_alone("check", file, "--on", "hosts").stderr
    assert 'no host "a"' in elephan_alone("check", file, "--on", "hosts", "--hosts", "a,b").stderr
    assert elephan_alone("check", file).returncode == 0
    file.write_text(HEAD + FLOW + '[hosts]\nleft = "x"\nright = "x"\n')
    assert "another host than left" in elephan_alone("check", file).stderr
