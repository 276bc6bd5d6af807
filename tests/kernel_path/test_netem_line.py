"""The line between three routers that netem's qdiscs stand on.

The kernel may have no netem: queues of another kind carry here, and tests/netem has the real ones.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elephan.errors import InputError
from elephan.path import netem, report, shell, testbed
from elephan.path.session import spec_of
from elephan.scenario import load
from tests.kernel_path.test_path_shell import SCENARIO

PROBLEM = testbed.missing()

Spec = Callable[..., dict[str, Any]]


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    """Return the specification of a path with netem, from lines of `[path]` and of the rest of the file."""

    def make(*lines: str, more: str = "") -> dict[str, Any]:
        path = {"bandwidth": '"20Mbit/s"', "rtt": '"40ms"', "queue": '"50 packets"', "emulator": '"netem"'}
        path |= dict(line.split(" = ", 1) for line in lines)
        file = tmp_path / "netem.toml"
        text = SCENARIO.format(path="\n".join(f"{key} = {value}" for key, value in path.items()))
        file.write_text(text + more)
        return load(file).points()[0].to_spec()

    return make


def test_what_netem_is_told(spec: Spec) -> None:
    forward, reverse = netem.directions(spec('loss = "0.1%"', "reverse = { bandwidth = '5Mbit/s', queue = '9000B' }"))
    # The one that is being sent counts, and so does the Ethernet header of which elephan knows nothing.
    assert forward.line == ("rate", "20000000bit", "-14", "limit", "51")
    assert forward.way == ("delay", "20000.000us", "loss", "random", "0.1000000000%", "limit", "1000000")
    assert (forward.queue_packets, reverse.queue_packets) == (50, 6)
    assert reverse.line == ("rate", "5000000bit", "-14", "limit", "7")
    assert reverse.way == ("delay", "20000.000us", "limit", "1000000")


def test_frames_of_a_line_are_overhead_to_netem(tmp_path: Path) -> None:
    file = tmp_path / "netem.toml"
    file.write_text(SCENARIO.format(path='line = "oc-3"\nrtt = "40ms"\nqueue = "50 packets"\nemulator = "netem"'))
    forward, _ = netem.directions(load(file).points()[0].to_spec())
    # PPP adds 9 B to the IP packet, netem's is with 14 B of Ethernet.
    assert forward.line == ("rate", "149760000bit", "-5", "limit", "51")


def test_jitter_goes_from_nothing_to_the_whole_of_it_and_keeps_the_order_unless_told(spec: Spec) -> None:
    ordered, _ = netem.directions(spec('jitter = "3ms"'))
    assert ordered.way[:5] == ("delay", "21500.000us", "1500.000us", "rate", "100000000000bit")
    overtaking, _ = netem.directions(spec('jitter = { scale = "3ms", reordering = true }'))
    assert overtaking.way == ("delay", "21500.000us", "1500.000us", "limit", "1000000")


def test_bursts_of_losses_are_netems_gilbert_elliott_model(spec: Spec) -> None:
    model = "{ good_to_bad = 0.01, bad_to_good = 0.3, loss_bad = 0.5, loss_good = 0.001 }"
    forward, _ = netem.directions(spec(f"loss = {model}"))
    # tc-netem(8): p, r, 1-h (in the bad state), 1-k (in the good one).
    shares = ("1.0000000000%", "30.0000000000%", "50.0000000000%", "0.1000000000%")
    assert forward.way[2:8] == ("loss", "gemodel", *shares)


@pytest.mark.parametrize(
    ("line", "more", "words"),
    [
        (
            'queue = { discipline = "codel", limit = "100 packets" }',
            "",
            ["path.forward", 'queue "codel"', "packets or bytes"],
        ),
        ("loss = { packets = [3] }", "", ["path.forward", 'loss "list"', "a probability"]),
        ("loss = { every = 100 }", "", ['loss "every_nth"']),
        ('jitter = { scale = "1ms", distribution = "normal" }', "", ['jitter "normal"', 'jitter = "1ms"']),
        ('access = "4x"', "", ["access", '"none"']),
        ("mtu = '1500B'", '[[event]]\nat = "500ms"\nloss = 0.5\n', ["[[event]]"]),
        ("mtu = '1500B'", '[[background]]\nrate = "1Mbit/s"\n', ["[[background]]"]),
    ],
)
def test_what_netem_cannot_do_is_refused_in_one_line(spec: Spec, line: str, more: str, words: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        netem.require(spec(line, more=more))
    text = str(refused.value)
    assert text.startswith('path.emulator = "netem": ') and text.endswith('emulator = "elephan" does it')
    assert "\n" not in text
    for word in words:
        assert word in text


def test_other_scenarios_are_what_they_were(spec: Spec) -> None:
    assert "emulator" not in spec('emulator = "elephan"')
    netem.require(spec('emulator = "elephan"', "loss = { every = 100 }"))


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Have the kernel's TBF and a plain queue in netem's place; return the settings that netem would have."""
    told: list[tuple[str, ...]] = []
    real = netem.tc

    def tc(*arguments: str) -> str:
        if "netem" in arguments:
            at = arguments.index("netem")
            words = arguments[at + 1 :]
            told.append(words)
            kind = ("tbf", "rate", words[1], "burst", "5kb", "limit", "75kb") if words[0] == "rate" else ("pfifo",)
            arguments = (*arguments[:at], *kind)
        return real(*arguments)

    monkeypatch.setattr(netem, "tc", tc)
    monkeypatch.setattr(netem, "missing", lambda: None)
    return told


@pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}")
def test_every_packet_through_the_routers_is_counted_and_nothing_else_is_there(
    spec: Spec, tmp_path: Path, another: list[tuple[str, ...]], capfd: pytest.CaptureFixture[str]
) -> None:
    spec('mtu = "1500B"')
    script = tmp_path / "script"
    # Reports of groups leave within a second (RFC 3810, 9.11).
    script.write_text(
        "sleep 1.5\nping -c 20 -i 0.01 -s 972 $ELEPHAN_PATH_FAR\n"
        "ip netns exec elephan-$ELEPHAN_PATH_ID-middle ip -br link\n"
    )
    code, told = shell.run(tmp_path / "netem.toml", ["sh", str(script)])
    out = capfd.readouterr().out
    assert code == 0, out
    assert len(another) == 4 and another[1][:2] == ("delay", "20000.000us")
    assert "20 packets transmitted, 20 received" in out and "ttl=61" in out
    assert "left@" in out and "right@" in out
    assert isinstance(told, report.NetemReport) and not told.faults(), told.text()
    # No ARP, no IPv6, no Ethernet header.
    pings = {"delivered_packets": 20, "delivered_bytes": 20_000, "dropped_by_queue": 0, "dropped_by_loss": 0}
    assert told.links == [pings, pings]
    assert (
        "path.forward: 20 packets, 20000 B delivered" in told.text() and "how late it was is not known" in told.text()
    )
    assert not list(testbed.NAMESPACES.glob("elephan-*-middle"))


@pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}")
def test_a_change_goes_to_netem_and_what_it_cannot_do_is_refused(
    spec: Spec, tmp_path: Path, another: list[tuple[str, ...]], capfd: pytest.CaptureFixture[str]
) -> None:
    spec('mtu = "1500B"')
    script = tmp_path / "script"
    policer = "path.policer={ rate = '1Mbit/s', burst = '9kB' }"
    wrong = ("path.mtu=1400B", "link_down=path", policer, "path.loss={ every = 9 }")
    lines = ['"$@" path set $ELEPHAN_PATH_ID path.rtt=80ms path.bandwidth=10Mbit/s path.loss=1%; echo code $?']
    lines += [f'"$@" path set $ELEPHAN_PATH_ID path.rtt=20ms "{one}"; echo code $?' for one in wrong]
    script.write_text("\n".join([*lines, '"$@" path show', ""]))
    elephan = [sys.executable, "-c", "from elephan.cli import main; main()"]
    code, told = shell.run(tmp_path / "netem.toml", ["sh", str(script), *elephan])
    out, err = capfd.readouterr()
    assert code == 0 and re.findall(r"code (\d)", out) == ["0", "2", "2", "2", "2"], out + err
    forward, way, reverse, way_back = another[4:8]
    # The queue keeps its 50 packets.
    assert forward == ("rate", "10000000bit", "-14", "limit", "51") and reverse[:2] == ("rate", "10000000bit")
    assert way[:5] == ("delay", "40000.000us", "loss", "random", "1.0000000000%")
    assert way_back == ("delay", "40000.000us", "limit", "1000000") and len(another) == 8
    for words in ("mtu: its routers keep theirs", "link_down, link_up", "policer: netem has none", 'loss "every_nth"'):
        assert words in err, err
    assert "path.forward: 10 Mbit/s, 40 ms, loss 0.01" in out.rpartition("code 2")[2]
    assert "path.rtt=80ms path.bandwidth=10Mbit/s path.loss=1%" in told.text()


@pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}")
def test_a_connection_is_cut_into_packets_before_the_line(
    spec: Spec, tmp_path: Path, another: list[tuple[str, ...]], capfd: pytest.CaptureFixture[str]
) -> None:
    spec('mtu = "1500B"')
    script = tmp_path / "script"
    script.write_text(
        "ip netns exec $ELEPHAN_PATH_FAR_NETNS iperf3 -s -D -1; sleep 0.5; iperf3 -c $ELEPHAN_PATH_FAR -n 4M -f k\n"
    )
    code, told = shell.run(tmp_path / "netem.toml", ["sh", str(script)])
    out = capfd.readouterr().out
    rate = re.search(r"([\d.]+) Kbits/sec +receiver", out)
    assert code == 0 and rate is not None, out
    assert 16_000 < float(rate[1]) < 20_500
    there, back = told.links
    assert 1400 < there["delivered_bytes"] / there["delivered_packets"] <= 1500
    assert 40 <= back["delivered_bytes"] / back["delivered_packets"] < 100
    assert there["dropped_by_queue"] > 0


@pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}")
def test_a_run_says_who_carried_it_and_nothing_that_nobody_counted(
    spec: Spec, tmp_path: Path, another: list[tuple[str, ...]]
) -> None:
    import elephan

    spec('mtu = "1500B"')
    record = elephan.run(tmp_path / "netem.toml", on="kernel", store="none").records[0]
    plain = elephan.run(tmp_path / "netem.toml", {"path.emulator": "elephan"}, on="kernel", store="none").records[0]
    assert record.id != plain.id
    assert any(
        note.startswith("netem carried the packets: queues of 50 packets (path.forward)") for note in record.notes
    )
    forward, _ = record.links
    assert forward["delivered_packets"] > 100 and "queue_max_packets" not in forward and "marked_packets" not in forward
    assert {"queue_max_packets", "marked_packets"} <= set(plain.links[0])
    assert "emulator_late_p99_s" not in record.metrics and record.metrics["emulator_own_drops"] == 0
    # TBF's rate, less headers, over a second that begins with slow start.
    assert 8e6 < record.metrics["goodput_bps"] < 19.9e6
    assert "dropped_packets" not in record.flows[0] and record.metrics["dropped_packets"] == sum(
        link["dropped_packets"] for link in record.links
    )


def test_where_the_kernel_has_none_that_is_said(spec: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec('mtu = "1500B"')
    monkeypatch.setattr(
        netem, "missing", lambda: "needs netem, which this kernel has not (modprobe sch_netem): no such"
    )
    with pytest.raises(
        InputError, match=r'^/.*/netem.toml: path.emulator = "netem": needs netem, .*; "elephan" needs none$'
    ):
        spec_of(load(tmp_path / "netem.toml"))
