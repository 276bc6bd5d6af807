"""Wrong commands of `elephan diagnose`: one line, exit code 2."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from elephan.cli.main import call

CASES = [
    ("--port 0", "--port 0: from 1 to 65535"),
    ("--port 70000", "--port 70000: from 1 to 65535"),
    ("--pid 0", "--pid 0: the number of a process, from 1 on"),
    ("--pid 99999999", "--pid 99999999: no such process"),
    ("--peer gateway", '--peer gateway: an IP address, such as "192.0.2.7" or "2001:db8::7"'),
    ("--peer 203.0.113.9", "--peer 203.0.113.9: no TCP connection in this network namespace"),
    ("--seconds 0", "--seconds 0: from 0.1 to 3600"),
    ("--seconds nan", "--seconds nan: from 0.1 to 3600"),
    ("--line-rate 1000", '--line-rate 1000: "1000" is not a rate with a unit'),
    ("--line-rate 0bit/s", "--line-rate 0bit/s: more than nothing"),
]


@pytest.mark.parametrize(("arguments", "said"), CASES)
def test_a_wrong_command_is_refused_in_one_line(arguments: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = [] if "--seconds" in arguments else ["--seconds", "0.1"]
    assert call(["diagnose", *shlex.split(arguments), *seconds]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ") and said in err and err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process is one of root's, or root gives its rights up")
def test_another_user_s_process_needs_its_rights() -> None:
    # Loaded before: nobody may not be let into the folder of the packages.
    program = (
        "import os, sys, elephan.api, elephan.cli.diagnose, elephan.diagnose.text, elephan.signals; "
        "from elephan.cli.main import call; os.setgid(65534); os.setuid(65534); "
        f"sys.exit(call(['diagnose', '--pid', '{os.getpid()}', '--seconds', '0.1']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: --pid {os.getpid()}: only root and its own user may see its files: use sudo, or --port\n"
    )
