"""Files that the kernel refuses, through `elephan kernel load`: the reason in plain words, and nothing stays loaded."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from elephan.core import native
from elephan.kernel import loaded

Elephan = Callable[..., subprocess.CompletedProcess[str]]

FILE = """\
#include "cc.h"

CC_NO_PARAMS;

struct own {
	u32 acks;
	u32 table[8];
};
CC_STATE(struct own);

static u32 half(struct cc_sock *sk)
{
	return (u32)cc_max(cc_snd_cwnd(sk) / 2, 2);
}
BEFORE
static void grow(struct cc_sock *sk, u32 ack, u32 acked)
{
	(void)ack;
BODY
}

CC_ALGORITHM(bad, "bad", "none", (ssthresh, half), (cong_avoid, grow), (undo_cwnd, cc_undo_cwnd));
"""
LINE = 19
"""Line of BODY's beginning when BEFORE is an empty line."""

DEEP = """
static __attribute__((noinline)) u32 deeper(u32 acked)
{
	volatile u64 more[40];
	for (int i = 0; i < 40; i++)
		more[i] = acked;
	return (u32)more[5];
}
"""

BAD = {
    "unbounded loop": (
        "",
        # On one line: the kernel names an instruction, and which of a loop's lines that is of is the compiler's choice.
        "\twhile (cc_snd_cwnd(sk) > acked) cc_state(sk)->acks++;",
        [f"line {LINE}: a loop whose end the kernel cannot see", "while (cc_snd_cwnd(sk) > acked)", "constant bound"],
    ),
    "beyond the private state": (
        "",
        "\t((u32 *)cc_state(sk))[acked ? 26 : 27] = 1;",
        [f"line {LINE}: writes what the kernel lets no algorithm write", "cc_state(sk)"],
    ),
    "index from data": (
        "",
        "\tcc_state(sk)->table[acked & 7] = 1;",
        [f"line {LINE}: an address that depends on data", "table[acked & 7]"],
    ),
    "stack of one function": (
        "",
        "\tvolatile u64 seen[80];\n\tfor (int i = 0; i < 80; i++)\n\t\tseen[i] = acked;\n"
        "\tcc_set_snd_cwnd(sk, (u32)seen[acked & 7]);",
        ["too much on the stack: all variables of functions that call each other have 512 bytes together"],
    ),
    "stack of two functions": (
        DEEP,
        "\tvolatile u64 seen[60];\n\tfor (int i = 0; i < 60; i++)\n\t\tseen[i] = acked;\n"
        "\tcc_set_snd_cwnd(sk, deeper(acked) + (u32)seen[3]);",
        ["too much on the stack", "512 bytes together"],
    ),
    "library function": (
        "",
        "\tcc_set_snd_cwnd(sk, (u32)sqrt(acked));",
        [f"{LINE}: ", "sqrt", "linked with nothing"],
    ),
}


def written(folder: Path, before: str, body: str) -> Path:
    file = folder / "bad.c"
    file.write_text(FILE.replace("BEFORE", before).replace("BODY", body))
    return file


@pytest.fixture(autouse=True)
def with_clang() -> None:
    try:
        native.compile_bpf("empty.c", "")
    except native.NoClang as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("what", list(BAD))
def test_the_reason_stands_in_plain_words_and_nothing_stays(
    kernel: None, elephan: Elephan, tmp_path: Path, what: str
) -> None:
    before, body, expected = BAD[what]
    folders = sorted(tmp_path.iterdir())
    work = tmp_path / "tmp"
    work.mkdir()
    done = elephan("load", f"{written(tmp_path, before, body)}=qr_bad", TMPDIR=str(work))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    for words in expected:
        assert words in done.stderr, done.stderr
    assert "elephan_qr_bad" not in {one.name for one in loaded()}
    assert not folders and not list(work.iterdir())


def test_a_division_that_may_be_by_zero_is_warned_of_and_loads(kernel: None, elephan: Elephan, tmp_path: Path) -> None:
    # The kernel lets it pass, since BPF gives 0. The simulator would stop, so there is a warning with the line.
    file = written(tmp_path, "", "\tcc_set_snd_cwnd(sk, acked / cc_srtt_us(sk));")
    done = elephan("load", f"{file}=qr_div")
    assert done.returncode == 0 and done.stdout.startswith("elephan_qr_div: "), done.stderr
    assert done.stderr.startswith(f"warning: {file}:{LINE}: divides by cc_srtt_us(sk): may that be 0?")
    assert "cc_div(n, d)" in done.stderr and done.stderr.count("\n") == 1


def test_a_good_file_of_ones_own_loads_under_its_own_name(kernel: None, elephan: Elephan, tmp_path: Path) -> None:
    file = written(tmp_path, "", "\tcc_state(sk)->acks += acked;\n\tcc_reno_cong_avoid(sk, acked);")
    done = elephan("load", f"{file}=qr_good")
    assert done.returncode == 0 and done.stderr == ""
    assert "bad=qr_good" in {one.label for one in loaded()}
