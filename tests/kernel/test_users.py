"""Permissions of a loaded control: every program may use it, or only those with CAP_NET_ADMIN."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from elephan.kernel import load

Run = Callable[..., str]
Elephan = Callable[..., subprocess.CompletedProcess[str]]

CHOOSE = """
import socket, subprocess, sys
code = '''
import os, socket, sys
some = socket.socket()
try:
    some.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
    used = some.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(bytes(1)).decode()
    print(os.geteuid(), used)
except OSError as error:
    print(os.geteuid(), error.strerror)
'''
nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
for prefix in (nobody, []):
    command = [*prefix, sys.argv[2], "-I", "-S", "-c", code, sys.argv[1]]
    print(subprocess.run(command, capture_output=True, text=True).stdout, end="")
"""

DEFAULT = """
import sys
from elephan.kernel import control, namespaces
from elephan.kernel import saved_default
try:
    control.default(sys.argv[1])
except Exception as error:
    print(error, saved_default.noted(sys.argv[1]))
"""


def interpreter() -> str:
    """Return a Python that another user may start: this one may lie in a home."""
    return "/usr/bin/python3" if sys.base_prefix.startswith(("/root", "/home")) else sys.executable


def test_every_program_may_choose_it(kernel: None, in_namespace: Run) -> None:
    name, _ = load("reno=qu_all")
    assert in_namespace(CHOOSE, name, interpreter()).splitlines() == [f"65534 {name}", f"0 {name}"]


def test_a_restricted_one_is_for_administrators(kernel: None, in_namespace: Run) -> None:
    name, _ = load("reno=qu_few", restricted=True)
    assert in_namespace(CHOOSE, name, interpreter()).splitlines() == ["65534 Operation not permitted", f"0 {name}"]


def test_a_restricted_one_is_no_namespaces_default_and_goes_all_the_same(
    kernel: None, in_namespace: Run, elephan: Elephan
) -> None:
    """Linux 6.18 refuses it, and then counts one user for ever: the kernel must not be asked."""
    name, _ = load("reno=qu_def", restricted=True)
    said = in_namespace(DEFAULT, name)
    assert "--restricted" in said and said.split()[-1] == "None"
    assert elephan("unload", name).returncode == 0
    assert name not in elephan("list").stdout
