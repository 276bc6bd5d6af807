"""Every built-in congestion control in this kernel carries a transfer over a path with loss, and goes again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from elephan.congestion_control import congestion_controls
from elephan.kernel import load, loaded, unload
from elephan.path import testbed

Elephan = Callable[..., subprocess.CompletedProcess[str]]

BYTES = 4_000_000

SCENARIO = """\
[run]
duration = "1s"

[path]
bandwidth = "100Mbit/s"
rtt = "10ms"
loss = 2e-3

[[flow]]
congestion_control = "reno"
"""

CARRY = """
import json, os, socket, struct, subprocess, sys
size, far = int(sys.argv[1]), os.environ["ELEPHAN_PATH_FAR"]
receiver = '''
import socket, sys
with socket.create_server(("0.0.0.0", 9000)) as server:
    print("ready", flush=True)
    for _ in sys.argv[1:]:
        peer, _ = server.accept()
        total = 0
        while part := peer.recv(1 << 16):
            total += len(part)
        peer.close()
        print(total, flush=True)
'''
command = ["ip", "netns", "exec", os.environ["ELEPHAN_PATH_FAR_NETNS"], sys.executable, "-c", receiver, *sys.argv[2:]]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as there:
    there.stdout.readline()
    for name in sys.argv[2:]:
        with socket.socket() as sender:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            sender.connect((far, 9000))
            sender.sendall(bytes(size))
            shown = subprocess.run(["ss", "-tinH", "dport", "=", ":9000"], capture_output=True, text=True).stdout
            sender.shutdown(socket.SHUT_WR)
            arrived = int(there.stdout.readline())
            # The other end's FIN acknowledges all.
            sender.recv(1)
            # struct tcp_info: tcpi_total_retrans, tcpi_bytes_acked
            info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 248)
            used = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(bytes(1)).decode()
            retransmitted, acked = struct.unpack_from("=I", info, 100)[0], struct.unpack_from("=Q", info, 120)[0]
        print(json.dumps([name, used, name in shown.split(), arrived, acked, retransmitted]), flush=True)
"""


@pytest.mark.slow
def test_every_cc_carries_a_transfer_with_losses(kernel: None, tmp_path: Path) -> None:
    if problem := testbed.missing():
        pytest.skip(f"the path {problem}")
    scenario = tmp_path / "lossy.toml"
    scenario.write_text(SCENARIO)
    names = {load(f"{cc.name}=qt{number:02}")[0]: cc.name for number, cc in enumerate(congestion_controls())}
    assert len(names) == len(congestion_controls()) >= 14
    code = "from elephan.cli import main; main()"
    command = [sys.executable, "-c", code, "path", "shell", str(scenario), "--"]
    done = subprocess.run(
        [*command, sys.executable, "-c", CARRY, str(BYTES), *names],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert [result[0] for result in results] == list(names)
    for name, used, shown, arrived, acked, _ in results:
        cc = names[name]
        assert used == name and shown, cc
        assert arrived == BYTES, cc
        # The SYN and the FIN count.
        assert BYTES <= acked <= BYTES + 2, cc
    # 14 x 2,763 segments of which one in 500 is lost: 77, so that what follows a loss was run as well.
    assert sum(result[5] for result in results) > 20
    assert sum(result[5] > 0 for result in results) > len(names) / 2
    for name in names:
        unload(name)
    assert not {one.name for one in loaded() if one.registered} & set(names)
