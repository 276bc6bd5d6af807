"""`elephan kernel`: variants side by side carry data in a private network namespace, and nothing stays."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from elephan.core import native
from elephan.errors import InputError
from elephan.kernel import clean, control, load, loaded, unload
from elephan.kernel.maps import remove
from elephan.kernel.prepare import prepared
from elephan.stack import find, verify

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from elephan.cli.main import main; main()", "kernel"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}

CARRY = """
import socket, subprocess, sys, threading
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server = socket.create_server(("127.0.0.1", 0))
got = []
def take():
    peer, _ = server.accept()
    total = 0
    while part := peer.recv(1 << 16):
        total += len(part)
    got.append(total)
taker = threading.Thread(target=take)
taker.start()
client = socket.socket()
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
client.connect(server.getsockname())
client.sendall(bytes(20_000_000))
shown = subprocess.run(["ss", "-tin", "dport", "=", str(server.getsockname()[1])], capture_output=True, text=True)
used = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode()
client.close()
taker.join()
print(used, got[0], sys.argv[1] in shown.stdout)
"""

DEFAULTS = """
from elephan.kernel import control
from pathlib import Path
import sys
print(*control.default(sys.argv[1]), control.current())
try:
    control.unload(sys.argv[1])
except Exception as error:
    print(error)
print(*control.default("reno"))
"""


def in_namespace(code: str, *arguments: str) -> str:
    """Run Python code in a network namespace of its own and return what it prints."""
    command = ["unshare", "--net", sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=ENVIRONMENT).stdout


@pytest.fixture
def kernel() -> Iterator[None]:
    """Take out what a test has put in; what was there before stays."""
    if lacking := verify.lacks() or ("" if shutil.which("unshare") and shutil.which("ss") else "no unshare, ss"):
        pytest.skip(lacking)
    before = {one.map_id for one in loaded()}
    yield
    for one in loaded():
        if one.map_id not in before and one.registered:
            remove(one)


def ours() -> set[str]:
    return {name for name in control.available() if name.startswith(control.MARK)}


def test_two_variants_carry_data_and_go(kernel: None) -> None:
    before, pins = ours(), sorted(Path("/sys/fs/bpf").rglob("*"))
    names = [
        load("storage_friendly=qa_four", ["reduction=1/4"])[0],
        load("storage_friendly=qa_two", ["reduction=1/2"])[0],
    ]
    assert names == ["elephan_qa_four", "elephan_qa_two"]
    assert set(names) <= {one.name for one in loaded() if one.registered}
    assert ours() == before | set(names)
    for name in names:
        assert in_namespace(CARRY, name).split() == [name, "20000000", "True"]
    with pytest.raises(InputError, match="loaded already"):
        load("reno=qa_two")
    for name in names:
        assert unload(name) == name
    assert ours() == before
    assert sorted(Path("/sys/fs/bpf").rglob("*")) == pins
    with pytest.raises(InputError, match="is not loaded"):
        unload("qa_two")


def test_default_is_of_one_namespace(kernel: None) -> None:
    outside = control.current()
    name, _ = load("reno=qa_def")
    first, refused, last = in_namespace(DEFAULTS, name).splitlines()
    assert first.split()[1:] == [name, name]
    assert "is the default here" in refused
    assert last == f"{name} reno"
    assert control.current() == outside


def test_killed_at_any_time_nothing_is_hidden(kernel: None) -> None:
    if loaded():
        pytest.skip("elephan has something loaded here: `clean` would take it away")
    for number, wait_s in enumerate((0.05, 0.4, 0.8, 1.2, 2.0)):
        child = subprocess.Popen(
            [*COMMAND, "load", f"reno=qk{number}"],
            env=ENVIRONMENT,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(wait_s)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        time.sleep(0.2)
        listed = {one.name for one in loaded() if one.registered}
        assert listed == ours()
    subprocess.run([*COMMAND, "load", "reno=qk_last"], env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    assert "elephan_qk_last" in {one.name for one in clean()}
    assert not ours()
    assert not loaded()


def test_a_refused_file_says_why_and_leaves_nothing(kernel: None, tmp_path: Path) -> None:
    before = ours()
    code = find("reno").code
    file = tmp_path / "bad.c"
    at = code.index("CC_ALGORITHM(")
    loop = "static void bad(struct cc_sock *sk)\n{\n\twhile (cc_snd_cwnd(sk))\n\t\tcc_set_snd_cwnd(sk, 5);\n}\n"
    rest = code[at:].rstrip()
    end = rest.rindex(")")
    file.write_text(code[:at] + loop + rest[:end].rstrip().rstrip(",") + ", (init, bad)" + rest[end:] + "\n")
    with pytest.raises(InputError, match="refuses it"):
        load(str(file))
    assert ours() == before


def test_without_root_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from elephan.cli.main import call

    monkeypatch.setattr(verify, "effective_capabilities", lambda: 0)
    assert call(["kernel", "load", "reno=qa_none"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and "root" in error and error.count("\n") == 1
    assert call(["kernel", "check"]) == 2
    said = capsys.readouterr().out
    assert "CAP_NET_ADMIN" in said and "still works: simulation" in said
    assert call(["kernel", "load", "reno", "--set", "nonsense=1"]) == 2
    assert call(["kernel", "load", "reno=Upper"]) == 2


def test_parameters_are_set_in_the_object_and_nothing_else_is() -> None:
    try:
        compiled, _, _ = native().compile_bpf("s.c", find("storage_friendly").code, "elephan_qa")
    except native().NoClang as error:
        pytest.skip(str(error))
    (reduction,) = [item for item in find("storage_friendly").parameters if item.name == "reduction"]
    value = reduction.maximum - 1
    done = prepared(compiled, "elephan_qa", {"reduction": value})
    differ = [at for at, (a, b) in enumerate(zip(compiled, done, strict=True)) if a != b]
    at = next(place for place in differ if struct.unpack_from("<q", done, place)[0] == value)
    assert struct.unpack_from("<q", compiled, at)[0] == reduction.default
    # Beside it only the flag that lets every program choose it.
    (flag,) = [place for place in differ if not at <= place < at + 8]
    assert done[flag] == compiled[flag] | 1
    with pytest.raises(InputError, match="no parameter"):
        prepared(compiled, "elephan_qa", {"nonsense": 1})
