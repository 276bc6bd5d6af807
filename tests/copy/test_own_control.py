"""A control of the user's that faults at the sending host: the front names hook and host, and nothing is half there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.congestion_control.test_faults import write
from tests.copy.conftest import Copy, same, tree


def test_a_hook_that_faults_at_an_agent_ends_the_copy_and_is_named(copy: Copy, tmp_path: Path) -> None:
    source, destination = tree(tmp_path / "source"), tmp_path / "destination"
    write(tmp_path, inside="if (cc_delivered(sk) > 20) *(volatile u32 *)0 = 1;")
    words = ["--transport", "quic", "--cc", tmp_path / "mine.c", f"left:{source}/", f"right:{destination}"]
    done = copy(*words)
    assert done.returncode == 2, done
    assert re.search(
        r"^error: left \(.*\): congestion control mine: hook cong_avoid of a QUIC connection at \d+\.\d{6} s: "
        r"accesses memory that is not its own, at address 0x0 \(SIGSEGV\)$",
        done.stderr,
        re.MULTILINE,
    ), done.stderr
    write(tmp_path)
    assert copy(*words).returncode == 0
    same(source, destination)
