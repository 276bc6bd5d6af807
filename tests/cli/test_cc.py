"""`elephan cc` from end to end: list, show, new, check, and a file of one's own in every command."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elephan.congestion_control import congestion_controls, find, verify
from tests.cli.conftest import Run

SCENARIO = """
[run]
duration = "3s"

[path]
bandwidth = "20Mbit/s"
rtt = "20ms"
loss = 1e-3

[[flow]]
name = "copy"
congestion_control = "./mine.c"
"""


def test_the_list_has_every_cc_with_source_parameters_and_where_it_runs(elephan: Run) -> None:
    code, out, err = elephan("cc")
    assert (code, err) == (0, "")
    blocks = {block.split(" ", 1)[0]: " ".join(block.split()) for block in out.split("\n\n")}
    for cc in congestion_controls():
        text = blocks[cc.name]
        assert cc.summary in text and cc.source in text
        assert all(f"{item.name} = " in text for item in cc.parameters)
        assert f"simulator; kernel: {cc.kernel}" in text
    listed = json.loads(elephan("cc", "--json")[1])
    assert [item["name"] for item in listed] == [cc.name for cc in congestion_controls()]
    assert all({"summary", "source", "parameters", "hooks", "kernel", "text"} <= item.keys() for item in listed)


def test_one_cc_shows_its_equations_its_window_and_its_response(elephan: Run, tmp_path: Path) -> None:
    code, out, err = elephan("cc", "reno")
    assert (code, err) == (0, "")
    assert re.search(r"W \+= acked / W", out) and "Idea. Loss is the only sign of congestion." in out
    # Half of 500 packets, regained at one per round trip of 50 ms: 250 of them, and the few of the recovery itself.
    assert re.search(r"falls from 500 to 250 packets \(50 %\) and is back after 12\.[0-9] s", out)
    assert any("\u2801" <= sign <= "\u28ff" for sign in out), "no plot"
    rows = re.findall(r"^1e-([2-5]) +([\d.,]+) +([\d.,]+)", out, re.MULTILINE)
    assert [row[0] for row in rows] == ["2", "3", "4", "5"]
    simulated, published = float(rows[3][1]), float(rows[3][2])
    assert simulated == pytest.approx(published, rel=0.02)
    assert elephan("cc", "show", "reno", "--text")[1] in out
    (shown,) = json.loads(elephan("cc", "reno", "--json")[1])
    assert shown["after_loss"]["kept_packets"] == 250
    assert shown["response"][3]["window_packets"] == pytest.approx(simulated, abs=1)
    code, _, err = elephan("cc", "reno", "--out", "page")
    assert code == 0 and "page: page/reno.html (2 plots beside it)" in err
    assert (tmp_path / "page" / "reno-after-loss.png").read_bytes()[:4] == b"\x89PNG"
    page = (tmp_path / "page" / "reno.html").read_text()
    assert (
        "W += acked / W" in page and page.count("<svg") == 2 and "http" not in re.sub(r'"http://www.w3[^"]*"', "", page)
    )


def test_one_cc_is_simulated_with_other_parameters(elephan: Run) -> None:
    code, out, err = elephan("cc", "storage_friendly", "--set", "reduction=1/4")
    assert (code, err) == (0, "")
    # Published values are of the default: none stands beside it.
    assert "falls from 500 to 375 packets" in out and "10 Gbit/s, reduction=1/4." in out and "Published" not in out
    code, _, err = elephan("cc", "storage_friendly", "--set", "reduction=7")
    assert code == 2 and err.startswith("error: --set reduction = 7") and "from 0.001 to 9/10" in err
    assert "unknown parameter of reno" in elephan("cc", "reno", "--set", "reduction=1/4")[2]


def test_one_cc_says_how_it_is_put_into_use(elephan: Run, tmp_path: Path) -> None:
    (tmp_path / "far.toml").write_text(SCENARIO.replace("20ms", "400ms").replace("./mine.c", "reno"))
    code, out, err = elephan("cc", "storage_friendly", "--set", "reduction=1/4", "--path", "far.toml")
    assert (code, err) == (0, "")
    lines = out.partition("\nIn a kernel, as root\n")[2].splitlines()
    assert lines[0].startswith("elephan kernel load storage_friendly --set reduction=1/4  ")
    assert "a program chooses elephan_storage" in lines[0]
    assert lines[1].startswith("elephan kernel default elephan_storage --host  ")
    assert lines[2].startswith("elephan kernel enable storage_friendly --set reduction=1/4 --default  ")
    # 20 Mbit/s for 400 ms is 1 MB, and its queue as much; the line loses packets: four times both.
    assert "the path holds 1.00 MB; a window of 8.00 MB" in lines[4]
    # The buffer that the window takes, 12,729,282, is less than Linux 6.16 allows.
    assert lines[8:10] == ["  net.ipv4.tcp_rmem = 4096 131072 33554432", "  net.ipv4.tcp_wmem = 4096 16384 16000000"]
    (shown,) = json.loads(elephan("cc", "vegas", "--json")[1])
    assert shown["in_use"][0].startswith("elephan kernel load vegas ")
    assert elephan("cc", "vegas", "--out", "page")[0] == 0
    assert "elephan kernel enable vegas --default" in (tmp_path / "page" / "vegas.html").read_text()
    for words in (("--path", "none.toml"), ("--text", "--path", "far.toml")):
        code, _, err = elephan("cc", "reno", *words)
        assert code == 2 and err.count("\n") == 1


def test_a_new_file_works_in_every_command(elephan: Run, tmp_path: Path) -> None:
    code, out, err = elephan("cc", "new", "mine")
    assert (code, out, err) == (0, "wrote mine.c; next: elephan cc ./mine.c\n", "")
    code, out, _ = elephan("cc", "./mine.c")
    assert code == 0 and "falls from 500 to 250 packets (50 %)" in out and "published" not in out
    (tmp_path / "own.toml").write_text(SCENARIO)
    code, out, err = elephan("run", "own.toml", "--json", "--set", "flow.congestion_control.reduction=1/4")
    assert code == 0, err
    (record,) = json.loads(out)
    assert record["flows"][0]["congestion_control"] == "mine.c(reduction=1/4)"
    assert record["metrics"]["goodput_bps"] > 1e6
    quarter = (tmp_path / "mine.c").read_text().replace("(reduction, 500000,", "(reduction, 250000,")
    (tmp_path / "mine.c").write_text(quarter)
    assert "falls from 500 to 375 packets (75 %)" in elephan("cc", "./mine.c")[1]


def test_a_new_file_overwrites_nothing_and_has_a_name_that_works(elephan: Run, tmp_path: Path) -> None:
    (tmp_path / "taken.c").write_text("mine")
    for name, reason in [
        ("taken", "taken.c is there already, and is not overwritten"),
        ("Mine", "a letter first"),
        ("2fast", "a letter first"),
        ("a-b", "a letter first"),
        ("", "a letter first"),
        ("x" * 41, "it has 41 characters, at most 40"),
        ("check", "is a command"),
        ("cubic", "a built-in congestion control has it"),
        ("no/such/folder/mine.c", "cannot be written: No such file"),
    ]:
        code, out, err = elephan("cc", "new", name)
        assert (code, out) == (2, ""), name
        assert err.startswith("error: ") and reason in err and err.count("\n") == 1
    assert (tmp_path / "taken.c").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["taken.c"]


def new_file(elephan: Run, folder: Path, old: str = "", new: str = "") -> Path:
    """Write mine.c, with a change."""
    assert elephan("cc", "new", "mine")[0] == 0
    path = folder / "mine.c"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def line_with(path: Path, text: str) -> int:
    """Return the number of the line that holds a text."""
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ("* kept / SHARE", "* 0.5", "* 0.5", "a half is x / 2"),
        ("(void)ack;", "(void)ack", "(void)ack", "A semicolon is missing"),
        ('#include "cc.h"', '#include "cc.h"\n#include <math.h>', "<math.h>", "includes cc.h and nothing else"),
        ("(sk, reduction)", "(sk, beta)", "(sk, beta)", "CC_PARAMS declares reduction."),
        (",\n\t(undo_cwnd, cc_undo_cwnd)", "", "CC_ALGORITHM", "it lacks the hook undo_cwnd"),
    ],
)
def test_a_mistake_is_told_with_its_line_by_every_command(
    elephan: Run, tmp_path: Path, old: str, new: str, at: str, says: str
) -> None:
    path = new_file(elephan, tmp_path, old, new)
    number = line_with(path, at)
    (tmp_path / "own.toml").write_text(SCENARIO)
    for arguments in (["cc", "./mine.c"], ["cc", "check", "./mine.c"], ["run", "own.toml"]):
        code, out, err = elephan(*arguments)
        assert (code, out) == (2, ""), arguments
        assert re.search(rf"mine\.c:{number}: ", err), err
        assert says in err and "Traceback" not in err
    code, out, _ = elephan("cc", "check", "./mine.c", "--json")
    (step,) = json.loads(out)
    assert (code, step["state"], step["problems"][0]["line"]) == (2, "failed", number)


def test_a_division_that_may_be_by_zero_is_warned_of(elephan: Run, tmp_path: Path) -> None:
    path = new_file(elephan, tmp_path, "(void)ack;", "acked += 1 / ack;")
    number = line_with(path, "acked += 1 / ack")
    code, out, _ = elephan("cc", "check", "mine.c")
    assert code == 0
    assert f"mine.c:{number}: divides by ack: may that be 0?" in out and "cc_div(n, d)" in out


@pytest.mark.skipif(platform.machine() != "x86_64", reason="this processor gives 0 for a division by 0")
def test_a_division_by_zero_ends_with_a_word_and_not_with_a_core_dump(elephan: Run, tmp_path: Path) -> None:
    path = new_file(elephan, tmp_path, "(void)ack;", "acked += 100 / cc_lost(sk);")
    number = line_with(path, "acked += 100 /")
    command = [sys.executable, "-c", "from elephan.cli import main; main()", "cc", "./mine.c"]
    (tmp_path / "temporary").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "temporary")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert done.returncode == 2, done
    assert list((tmp_path / "temporary").iterdir()) == []
    assert re.match(r"error: .*mine\.c: hook cong_avoid of flow \S+ at \d+\.\d+ s: divides by 0; cc_div", done.stderr)
    assert re.search(rf"look at \S*mine\.c:{number} ", done.stderr)


HAS_CLANG = any(shutil.which(name) for name in ["clang", *(f"clang-{version}" for version in range(11, 26))])

MAY_LOAD = HAS_CLANG and not verify.lacks()


@pytest.mark.looks_at_kernel
@pytest.mark.skipif(not MAY_LOAD, reason=f"nothing is loaded: {verify.lacks() or 'clang is not installed'}")
def test_check_puts_a_file_through_the_kernels_verifier_and_leaves_nothing(elephan: Run, tmp_path: Path) -> None:
    new_file(elephan, tmp_path)
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    before = available.read_text()
    code, out, err = elephan("cc", "check", "./mine.c")
    assert (code, err) == (0, "")
    states = [line.split()[:2] for line in out.splitlines()]
    assert states == [["simulator", "passed"], ["BPF", "passed"], ["kernel", "passed"]]
    assert os.uname().release in out and "3 programs" in out
    assert available.read_text() == before
    assert elephan("cc", "check", "reno")[0] == 0


@pytest.mark.skipif(not MAY_LOAD, reason=f"nothing is loaded: {verify.lacks() or 'clang is not installed'}")
@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "while (cc_snd_cwnd(sk) > acked)\n\t\tcc_set_snd_cwnd_cnt(sk, ack);",
            "a loop whose end the kernel cannot see",
        ),
        ("sk->srtt_us = ack;", "writes what the kernel lets no algorithm write"),
        ("*(volatile u32 *)(u64)ack = 5;", "follows a pointer to where the kernel lets no algorithm look"),
    ],
)
def test_the_verifiers_reason_comes_in_plain_words_with_the_line(
    elephan: Run, tmp_path: Path, code: str, says: str
) -> None:
    path = new_file(elephan, tmp_path, "(void)ack;", code)
    first = line_with(path, code.splitlines()[0].strip())
    exit_code, out, _ = elephan("cc", "check", "./mine.c")
    assert exit_code == 2
    assert re.search(r"^kernel +failed", out, re.MULTILINE)
    found = re.search(rf"mine\.c:(\d+): {says} \(in the hook cong_avoid\)", out)
    assert found and int(found[1]) in (first, first + 1), out
    assert "(the kernel: " in out


def test_what_a_machine_lacks_is_said_and_is_no_failure(
    elephan: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_file(elephan, tmp_path)
    monkeypatch.setattr(verify, "BTF", tmp_path / "none")
    code, out, _ = elephan("cc", "check", "./mine.c")
    assert code == 0
    if HAS_CLANG:
        assert re.search(r"^kernel +not tried +this kernel has no BTF", out, re.MULTILINE)
    # elephan's own congestion controls have their BPF objects with them, and need no clang.
    own = find(str(tmp_path / "mine.c"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", shutil.which("cc", path=os.defpath) or "cc")
    monkeypatch.delenv("CLANG", raising=False)
    steps = verify.check(own)
    assert [step.state for step in steps] == ["passed", "not tried", "not tried"]
    assert "apt-get install clang-16" in steps[1].text


def test_who_may_not_load_is_told_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nCapEff:\t0000000000001000\n")
    assert verify.effective_capabilities(status) == 1 << 12
    assert verify.effective_capabilities(tmp_path / "none") == 0
    (tmp_path / "btf").write_text("")
    monkeypatch.setattr(verify, "BTF", tmp_path / "btf")
    monkeypatch.setattr(verify, "effective_capabilities", lambda: 1 << 12)
    assert verify.lacks().startswith("needs root (CAP_SYS_ADMIN): run it with sudo")
    monkeypatch.setattr(verify, "effective_capabilities", lambda: 1 << 12 | 1 << 21)
    assert verify.lacks() == ""


def test_options_that_say_nothing_are_refused(elephan: Run) -> None:
    assert elephan("cc", "--text")[0] == 2
    assert "--out is for one congestion control" in elephan("cc", "--out", "x")[2]
    assert "without --text" in elephan("cc", "reno", "--text", "--out", "x")[2]
    assert "--set is for one congestion control" in elephan("cc", "--set", "beta=1/2")[2]
    assert "without --text" in elephan("cc", "cubic", "--text", "--set", "beta=1/2")[2]
