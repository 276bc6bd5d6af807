"""Texts about a congestion control: its header, a verifier's log in plain words, values read off a window."""

from __future__ import annotations

import re

import numpy as np
import pytest

from elephan.cli.cc_text import described, with_unit
from elephan.congestion_control import congestion_controls, find, header
from elephan.congestion_control.verifier_messages import explained
from elephan.loss_response.curves import after_loss, mean_window
from elephan.loss_response.published import RESPONSES
from elephan.report import textplot
from elephan.report.timeline import Line

CODE = """/* SPDX-License-Identifier: MIT */
/*
 * Mine: in one line.
 *
 * Idea. Grow
 * and shrink.
 *
 * Equations (W = cwnd)
 *\tloss:\tW = W / 2
 *\t\tat least 2
 * At equilibrium: none.
 *
 * Kernel: as BPF struct_ops,
 * Linux 5.6 and later.
 */
#include "cc.h"
/* not of the header */
while (cc_snd_cwnd(sk))
	acked = 1;
CC_ALGORITHM(mine, "x", "y");
"""


def test_a_header_is_paragraphs_with_equations_as_they_were() -> None:
    found = header.paragraphs(CODE)
    assert [(item.section, item.verbatim, item.apart) for item in found] == [
        ("", False, False),
        ("Idea", False, True),
        ("Equations", False, True),
        ("", True, False),
        ("", False, False),
        ("Kernel", False, True),
    ]
    assert found[1].text == "Idea. Grow and shrink."
    # The tab stops of the file, two columns of frame less... the text of both lines begins where it did.
    assert [line.index(word) for line, word in zip(found[3].lines, ("W = W", "at least"), strict=True)] == [13, 13]
    assert header.said_of(CODE, "Kernel") == "as BPF struct_ops, Linux 5.6 and later."
    assert header.said_of(CODE, "Source") == ""
    assert header.comment_of('#include "cc.h"') == ""


@pytest.mark.parametrize("cc", congestion_controls(), ids=lambda cc: cc.name)
def test_every_built_in_cc_says_what_it_is_and_where_it_runs(cc) -> None:  # type: ignore[no-untyped-def]
    found = header.paragraphs(cc.code)
    assert {"Idea", "Equations"} <= {item.section for item in found}
    assert found[0].text.endswith(".")
    # In Linux 6.10 cong_control took the arguments that it has here.
    if "cong_control" in cc.hooks and "as BPF" in cc.kernel:
        assert "6.10" in cc.kernel


def test_a_default_that_a_variant_decides_is_no_number() -> None:
    bic = find("bic")
    beta = next(item for item in bic.parameters if item.name == "beta")
    assert beta.is_by_variant and beta.text(beta.default) == "by variant" and with_unit(beta) == "by variant"
    assert {item["name"]: item["default"] for item in described(bic)["parameters"]} == {
        "variant": 0,
        "beta": None,
        "low_window": 14,
        "max_increment": None,
        "min_increment": 10,
        "smooth_part": 20,
        "delayed_ack": 1,
        "fast_convergence": 1,
    }
    assert bic.as_linux == {"variant": 1} and find("reno").as_linux == {}


def answer(log: str, program: str = "hook_cong_avoid") -> dict[str, object]:
    return {"passed": False, "error": "Invalid argument", "program": program, "log": log}


def test_a_verifiers_log_gives_line_meaning_and_its_own_words() -> None:
    new = "0: R1=ctx()\n; CC_ALGORITHM(mine, @ mine.c:20\n; while (cc_snd_cwnd(sk)) @ mine.c:18\n8: (2e) if w5\n"
    new += "; CC_WRITE_AS_(u32, x) @ env.h:170\ninfinite loop detected at insn 6\ncur state: R1\nold state: R1\n"
    new += "processed 9 insns (limit 1000000)\n"
    found = explained(answer(new), "mine.c", CODE)
    assert (found["line"], found["code"]) == (18, "while (cc_snd_cwnd(sk))")
    assert found["what"] == "a loop whose end the kernel cannot see (in the hook cong_avoid)"
    assert found["said"] == "infinite loop detected at insn 6"
    # Before Linux 6.10 the log has the line's text alone.
    old = "; acked = 1;\n3: (63) *(u32 *)(r2 +1672) = r1\nno write support to tcp_sock at off 1672\n"
    found = explained(answer(old), "mine.c", CODE)
    assert (found["line"], found["what"][:27]) == (19, "writes what the kernel lets")


def test_a_log_without_a_place_names_the_loops_and_a_silent_one_libbpfs_words() -> None:
    found = explained(answer("9: (0f) r0 += r5\nBPF program is too large. Processed 1000001 insn\n"), "mine.c", CODE)
    assert found["line"] == 18 and "given up" in found["what"]
    twice = CODE.replace("acked = 1;", "for (;;)\n\t;")
    found = explained(answer("BPF program is too large.\n"), "mine.c", twice)
    assert found["line"] is None and "loops are in lines 18, 19" in found["what"]
    messages = ["libbpf: failed to find BTF for extern 'rand' [23] section: -2"]
    found = explained({"error": "No such file", "log": "", "messages": messages}, "mine.c", CODE)
    assert found["what"] == "calls a function that is not there" and "extern 'rand'" in found["said"]
    unknown = explained(answer("R7 is of an unheard-of kind\n"), "mine.c", CODE)
    assert (unknown["what"], unknown["hint"]) == ("R7 is of an unheard-of kind (in the hook cong_avoid)", None)


def test_a_window_around_a_loss_is_measured() -> None:
    time_s = np.arange(0, 30, 0.01)
    window = np.where(time_s < 4, 500.0, np.minimum(500.0, 300 + 20 * (time_s - 4)))
    found = after_loss(Line(time_s, window), 4.0)
    assert (found.before, found.kept) == (500.0, pytest.approx(300, abs=0.3))
    assert found.back_s == pytest.approx(10.0, abs=0.02)
    assert found.time_s[0] == pytest.approx(-1.0, abs=0.011) and found.time_s[-1] == pytest.approx(12.5, abs=0.02)
    assert (
        found.sentence == "The window falls from 500 to 300 packets (60 %) and is back after 10.0 s (200 round trips)."
    )
    steady = after_loss(Line(time_s, np.full_like(time_s, 80.0)), 4.0)
    assert steady.sentence == "The window stays at 80 packets."
    never = after_loss(Line(time_s, np.where(time_s < 4, 500.0, 1.0)), 4.0)
    assert never.back_s is None and "is not back within 26 s" in never.sentence


def test_a_mean_window_leaves_out_the_start_and_says_when_it_is_not_steady() -> None:
    time_s = np.arange(1, 301) * 0.1
    rate = np.full(300, 100 * 1448 * 8 / 0.1)
    assert mean_window(time_s, rate) == (pytest.approx(100.0), True)
    rate[:50] *= 2
    window, steady = mean_window(time_s, rate)
    assert steady and window == pytest.approx(100.0)
    window, steady = mean_window(time_s, rate * np.linspace(1, 30, 300))
    assert not steady


def test_published_windows_are_those_of_their_sources() -> None:
    reno = RESPONSES["reno"].window(1e-4, 0.1)
    assert reno == pytest.approx(122.47, abs=0.01)
    assert RESPONSES["storage_friendly"].window(1e-4, 0.1) / reno == pytest.approx(5**0.5)
    # RFC 3649, table 1: windows of 83 and 83,981 segments at 1e-3.5... its own rows: 1e-4 -> 263, 1e-7 -> 83,981.
    assert RESPONSES["highspeed"].window(1e-4, 0.1) == pytest.approx(263, rel=0.01)
    assert RESPONSES["highspeed"].window(1e-7, 0.1) == pytest.approx(83981, rel=0.01)
    # RFC 9438, table 2, RTT 0.1 s: 1e-4 -> 187, 1e-6 -> 5926 (Reno-friendly at 1e-3: 38).
    assert RESPONSES["cubic"].window(1e-4, 0.1) == pytest.approx(187, rel=0.01)
    assert RESPONSES["cubic"].window(1e-6, 0.1) == pytest.approx(5926, rel=0.01)
    # Kelly: 800 when a loss comes; 700 after it, and 1.01 times as much after each of 13.42 round trips.
    assert RESPONSES["scalable"].window(1e-4, 0.1) == pytest.approx(1e4 / 13.42, rel=0.001)


def test_a_plot_of_dots_and_one_of_stars_show_the_same_line() -> None:
    x, y = [0.0, 1.0, 2.0, 3.0], [0.0, 10.0, 5.0, 10.0]
    for dots in (True, False):
        lines = textplot.line(x, y, "s", lambda value: f"{value:.0f}", width=24, height=6, dots=dots).splitlines()
        assert len(lines) == 7
        assert re.match(r"10 [|┤]", lines[0]) and re.match(r" 5 ", lines[3]) and re.match(r" 0 ", lines[5])
        assert lines[6].split() == ["0", "s", "3"]
        marks = [len(line[4:].replace(" ", "").replace("\u2800", "")) for line in lines[:6]]
        assert all(marks), "the steps are drawn as lines from value to value"
    assert textplot.line([1.0], [float("nan")], "s", str) == "nothing to draw"
    assert (textplot.bar(0.5, 10, True), textplot.bar(0.05, 10, True), textplot.bar(2, 4, False)) == (
        "█████",
        "▌",
        "####",
    )
