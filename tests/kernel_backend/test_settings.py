"""Effective settings: sockets and routes inside a run's namespaces, as ss(8) and ip(8) show them while it goes on."""

from __future__ import annotations

import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from elephan.path import testbed
from tests.kernel_backend.conftest import begun

# Every flow is alone at its hosts, since each has settings of its own.
FLOWS = {
    "plain": "",
    "first": "initial_ssthresh = 30\ninitial_cwnd = 4",
    "clamped": "cwnd_clamp = 5",
    "times": 'rto_min = "1s"\nrto_max = "60s"',
    "bare": 'recovery = "newreno"\ntimestamps = false\nwindow_scaling = false',
    "marked": "ecn = true",
    "window": 'window = "90kB"\nreordering = 7',
    "grown": 'receive_autotuning = true\nwindow = "200kB"',
    "small": 'mtu = "1000B"',
    "paced": "pacing = true\nslow_start_after_idle = false",
    "buffer": 'send_buffer = "60kB"\nfrto = false',
    "prompt": "delayed_ack = false",
}

TRUE_CWND = 10_000
"""Segments. The line has room for 173 and its queue for as many; a window beyond this is none that a control gave.

Some kernels skip a control's hook now and then, and take what lies on their stack for its answer (docs/howto/
load-into-kernel.md, What the kernel may skip)."""

ACKED_BYTES = 200_000
"""The slowest, of 5 segments per round trip of 20 ms, has sent this after half a second."""

SYSCTLS = ("tcp_recovery", "tcp_early_retrans", "tcp_slow_start_after_idle", "tcp_frto", "tcp_no_metrics_save")


@dataclass(frozen=True)
class Seen:
    """The two ends of a connection as ss(8) shows them, and the sender's route as ip(8) does."""

    sender: str
    receiver: str
    route: str
    sysctls: dict[str, str]

    @classmethod
    def of(cls, near: subprocess.Popen[str], far: subprocess.Popen[str]) -> Seen:
        """Take what both looks gave."""
        sender, route, values = near.communicate()[0].split("--")
        return cls(sender, far.communicate()[0].split("--")[0], route, dict(zip(SYSCTLS, values.split(), strict=True)))


@pytest.fixture(scope="module")
def seen(kernel: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """Run all flows at once and look while they send."""
    file = tmp_path_factory.mktemp("settings") / "all.toml"
    text = '[run]\nduration = "120s"\n[path]\nbandwidth = "100Mbit/s"\nrtt = "20ms"\n'
    text += "".join(f'[[flow]]\nname = "{name}"\ncongestion_control = "reno"\n{keys}\n' for name, keys in FLOWS.items())
    file.write_text(text, encoding="utf-8")
    # A window that no control gave spoils one run. It does not spoil three.
    for _ in range(3):
        found = observed(file)
        if all(number_in(one.sender, "cwnd") <= TRUE_CWND for one in found.values()):
            break
    return found


def observed(file: Path) -> dict[str, Seen]:
    """Run it, look until each flow has sent for some round trips, and end it."""
    with begun(file, 2 * len(FLOWS)) as (process, run):
        found: dict[str, Seen] = {}
        # However long this machine takes for that; the test has a time limit.
        while not found or min(acked(one.sender) for one in found.values()) < ACKED_BYTES:
            # All at once: one after the other would take longer than the run.
            looks = [(look(run, 2 * n), look(run, 2 * n + 1)) for n in range(len(FLOWS))]
            found = {name: Seen.of(*ends) for name, ends in zip(FLOWS, looks, strict=True)}
            assert process.poll() is None, process.communicate()[1]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, errors
    return found


def acked(shown: str) -> int:
    """Return the acknowledged bytes that ss shows, 0 before there are any."""
    return max((int(number) for number in re.findall(r"bytes_acked:(\d+)", shown)), default=0)


def look(run: str, number: int) -> subprocess.Popen[str]:
    """Begin to observe a host."""
    names = " ".join(SYSCTLS)
    script = f"ss -tinmoH; echo --; ip route show {testbed.NETWORK}; echo --; cd /proc/sys/net/ipv4; cat {names}"
    words = ["ip", "netns", "exec", f"elephan-{run}-{number}", "sh", "-c", script]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def number_in(text: str, name: str) -> int:
    # Of memory, ss writes name and number together: skmem:(r0,rb131072,...
    found = re.search(rf"\b{name}:(\d+)|[,(]{name}(\d+)", text)
    assert found, f"{name} in {text}"
    return int(found[1] or found[2])


def test_the_control_is_the_runs_own(seen: dict[str, Seen]) -> None:
    assert re.search(r" elephan_k[0-9a-f]{4}00 ", seen["plain"].sender)


def test_defaults_are_those_of_the_scenario_and_not_of_the_host(seen: dict[str, Seen]) -> None:
    plain = seen["plain"]
    assert " ts sack " in plain.sender and "ecn" not in plain.sender.split()
    assert number_in(plain.sender, "mss") == 1448
    assert plain.sysctls == {
        "tcp_recovery": "1",
        "tcp_early_retrans": "3",
        "tcp_slow_start_after_idle": "1",
        "tcp_frto": "2",
        "tcp_no_metrics_save": "1",
    }
    assert "initcwnd 10" in plain.route and "rto_min lock 200ms" in plain.route


def test_first_window_and_threshold(seen: dict[str, Seen]) -> None:
    assert "initcwnd 4" in seen["first"].route
    # No loss yet or after losses: never above where it began.
    assert number_in(seen["first"].sender, "ssthresh") <= 30


def test_a_clamped_window_never_grows_beyond(seen: dict[str, Seen]) -> None:
    assert number_in(seen["clamped"].sender, "cwnd") <= 5
    # The others have the same line and loss: without the clamp five segments would not be all.
    assert number_in(seen["clamped"].sender, "bytes_acked") > 0


def test_time_outs(seen: dict[str, Seen]) -> None:
    assert "rto_min lock 1s" in seen["times"].route
    assert number_in(seen["times"].sender, "rto") >= 1000 > number_in(seen["plain"].sender, "rto")


def test_without_sack_timestamps_and_scaling(seen: dict[str, Seen]) -> None:
    words = seen["bare"].sender.split()
    assert "sack" not in words and "ts" not in words and "wscale" not in seen["bare"].sender
    assert number_in(seen["bare"].sender, "mss") == 1460
    assert number_in(seen["bare"].sender, "snd_wnd") <= 65535
    assert seen["bare"].sysctls["tcp_early_retrans"] == "0"


def test_ecn_is_negotiated(seen: dict[str, Seen]) -> None:
    assert "ecn" in seen["marked"].sender.split()


def test_the_window_is_the_scenarios(seen: dict[str, Seen]) -> None:
    assert number_in(seen["window"].sender, "snd_wnd") <= 90_000
    assert number_in(seen["window"].receiver, "rcv_ssthresh") <= 90_000
    assert number_in(seen["window"].receiver, "rb") == 4 * 90_000
    assert number_in(seen["window"].sender, "reordering") == 7


def test_an_autotuned_buffer_begins_small_and_ends_at_the_window(seen: dict[str, Seen]) -> None:
    assert 131_072 <= number_in(seen["grown"].receiver, "rb") <= 800_000
    assert number_in(seen["grown"].sender, "snd_wnd") <= 200_000


def test_the_mtu_is_the_flows(seen: dict[str, Seen]) -> None:
    assert number_in(seen["small"].sender, "mss") == 948 and number_in(seen["small"].sender, "pmtu") == 1000


def test_pacing_is_asked_for(seen: dict[str, Seen]) -> None:
    # The second number is the bound that switches pacing on; without it ss shows one.
    assert re.search(r"pacing_rate \d+bps/\d+bps", seen["paced"].sender)
    assert not re.search(r"pacing_rate \d+bps/\d+bps", seen["plain"].sender)
    assert seen["paced"].sysctls["tcp_slow_start_after_idle"] == "0"


def test_the_send_buffer_is_bounded(seen: dict[str, Seen]) -> None:
    assert number_in(seen["buffer"].sender, "tb") == 75_000
    assert seen["buffer"].sysctls["tcp_frto"] == "0"


def test_every_segment_is_acknowledged_where_acks_are_not_delayed(seen: dict[str, Seen]) -> None:
    prompt, plain = seen["prompt"].receiver, seen["plain"].receiver
    assert number_in(prompt, "segs_out") > 0.9 * number_in(prompt, "data_segs_in")
    assert number_in(plain, "segs_out") < 0.75 * number_in(plain, "data_segs_in")
