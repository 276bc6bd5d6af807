"""Wrong commands of `elephan line`: one line, exit code 2, and nothing is sent."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from elephan.cli.main import call

CASES = [
    ("send lo", "lo: a line test needs an Ethernet interface, and this is loopback"),
    ("send nope0", "nope0: no such interface; there"),
    ("receive lo", "lo: a line test needs an Ethernet interface"),
    ("receive lo --method dpdk", "--method dpdk: af-xdp or packet-mmap is needed"),
    ("receive lo --vlan 5000", "--vlan 5000: 1 to 4094 is needed"),
    ("receive lo --address 52:54:00:00:00:0g", "--address 52:54:00:00:00:0g: a MAC address is needed"),
    ("receive lo --duration 5", '--duration: "5" is not a time with a unit'),
    ("send lo --to here", "--to here: a MAC address is needed, such as 02:11:22:33:44:55"),
    ("send lo --far lo", "--far lo: another interface is needed"),
    ("send lo --far lo2 --to 02:00:00:00:00:01", "--far and --to: one of the two is needed"),
    ("send lo --pcp 3", "--pcp 3: a priority is a part of the tag; name its --vlan"),
    ("send lo --count 3 --duration 1s", "--duration and --count: one of the two is needed"),
    ("send lo --count 100000000000000000000000", ": 1 to 1000000000000000000 is needed"),
    ("send lo --duration 400d", "--duration 400d: 365d or less is needed"),
    ("send lo --vlan 7 --mix 64:1,1518:9", "--mix: 64 B; 68 to 9252 B with check sequence and tag are needed"),
    ("test rfc2544 lo --vlan 7 --sizes 64,1518", "--sizes: 64 B; 68 to 9252 B with check sequence and tag are needed"),
    ("test y1564 lo --cir 1bit/s", "--cir 1bit/s: 4kbit/s or more is needed"),
    ("send lo --mix bulk", "--mix bulk: imix, paper, sweep or sizes are needed"),
    ("send lo --payload noise", "--payload noise: one of crpat, cjpat, prbs31, zeros, ones, counter is needed"),
    ("send lo --within 0s", "--within 0s: more than 0 is needed"),
    ("test rfc2544 lo --tests speed", "--tests speed: some of throughput, latency, loss, back-to-back are needed"),
    ("test rfc2544 lo --sizes 64,big", "--sizes 64,big: sizes of frames are needed, such as 64,512,1518"),
    ("test rfc2544 lo --resolution 0%", "--resolution 0%: 0.001% to 100% is needed"),
    ("test rfc2544 lo --least 2", "--least 2: 0.0001% to 100% is needed"),
    ("test rfc2544 lo --report out.pdf", "--report out.pdf: a name that ends in .html is needed"),
    ("test y1564 lo --cir 0bit/s", "--cir 0bit/s: a rate above 0 is needed"),
    ("test y1564 lo --cir fast", '--cir: "fast"'),
    ("test y1564 lo --cir 1Gbit/s --performance 1ms", "--performance 1ms: 1s or more is needed"),
    ("test ber lo --target 2", "--target 2: 1e-18 or more and below 1 is needed"),
    ("soak lo --for 1h --into soak --every 1ms", "--every 1ms: 0.1s or more is needed"),
    ("soak lo --for 1h --into soak", "lo: a line test needs an Ethernet interface"),
]


@pytest.mark.parametrize(("command", "expected"), CASES, ids=[command for command, _ in CASES])
def test_a_wrong_command_is_refused_in_one_line(
    command: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["line", *shlex.split(command)]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("error: ") and expected in err and err.count("\n") == 1 and not out
