"""A congestion control behaves in this machine's kernel as in the simulator, call by call; and differences are found.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from elephan.cli.main import call
from elephan.congestion_control import CongestionControl, congestion_controls, find, verify
from elephan.core import native
from elephan.parity import Recording, record
from elephan.parity.check import parameter_sets, replayed, synthetic
from elephan.parity.paths import CASES, Case
from elephan.parity.windows import case_of, compare_windows
from elephan.path import testbed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
"""Connections take their time; on a machine with other work, more of it."""

CALLS = 6000

SHORT = [Case(case.name, case.path, 1.2, case.ecn) for case in CASES]

CORNERS: list[tuple[str, dict[str, int]]] = [
    ("storage_friendly", {"reduction": 125_000, "congestion_avoidance": 0}),
    ("storage_friendly", {"reduction": 500_000, "congestion_avoidance": 1}),
    ("storage_friendly", {"reduction": 500_000, "congestion_avoidance": 0}),
    ("storage_friendly", {"reduction": 900_000, "congestion_avoidance": 0, "cap": 3}),
    ("cubic", {"variant": 1}),
    ("bic", {"variant": 1}),
    ("bic", {"variant": 2, "delayed_ack": 0}),
    ("highspeed", {"variant": 1}),
    ("scalable", {"variant": 1}),
    ("scalable", {"variant": 2}),
    ("htcp", {"adaptive_backoff": 0, "rtt_scaling": 0}),
    ("bbr", {"policer": 0, "aggregation": 0, "min_rtt_window": 500}),
    ("vegas", {"alpha": 30, "beta": 60}),
]
"""The paper's corners (the fourth is the default), variants, and others whose defaults hide a branch."""

UNDO_ROUNDS = 4
"""Further recordings until a reduction is undone: on a machine with other work a round may see none."""

LOST = "{ packets = [200] }"
"""One packet on its way to the far end: the first is the SYN."""


@pytest.fixture(autouse=True, scope="module")
def kernel() -> None:
    """Skip where this machine runs no BPF."""
    if lacking := verify.lacks():
        pytest.skip(lacking)
    try:
        native.compile_bpf("reno.c", find("reno").code, None, "step")
    except native.NoClang as error:
        pytest.skip(str(error))


@pytest.fixture
def paths() -> None:
    """Skip where this machine makes no paths."""
    if problem := testbed.missing():
        pytest.skip(f"the path {problem}")


def of_file(tmp_path: Path, code: str, name: str = "mine.c") -> CongestionControl:
    """Compile a text as a file of one's own."""
    file = tmp_path / name
    file.write_text(code, encoding="utf-8")
    return find(str(file))


@pytest.mark.parametrize("name", [cc.name for cc in congestion_controls()])
def test_no_value_of_any_parameter_or_field_makes_the_builds_differ(name: str) -> None:
    cc = find(name)
    called: Counter[str] = Counter()
    for seed, (about, values) in enumerate(parameter_sets(cc)):
        found = synthetic(cc, values, CALLS, seed)
        assert found["steps"] == CALLS and not found["unpaired"]
        assert not found["differing"] and not found["breaks"], (about, found["differences"])
        called.update(found["by_hook"])
    assert all(called[hook] for hook in cc.hooks), called


def test_connections_of_every_cc_are_the_same_natively(paths: None) -> None:
    chosen: list[tuple[CongestionControl, Mapping[str, int]]] = [(cc, {}) for cc in congestion_controls()]
    chosen += [(find(name), values) for name, values in CORNERS]
    called = called_alike(chosen)
    for cc in congestion_controls():
        # A reduction is undone where reordering looked like loss: not on every run.
        assert all(called[cc.name][hook] for hook in cc.hooks if hook != "undo_cwnd"), called[cc.name]
    for _ in range(UNDO_ROUNDS):
        if any(counts["undo_cwnd"] for counts in called.values()):
            break
        called = called_alike(chosen)
    assert any(counts["undo_cwnd"] for counts in called.values())


def called_alike(chosen: list[tuple[CongestionControl, Mapping[str, int]]]) -> dict[str, Counter[str]]:
    """Record connections of each and hold them against the native build; return the calls of each one's hooks."""
    called: dict[str, Counter[str]] = {cc.name: Counter() for cc, _ in chosen}
    for recording in record(chosen, SHORT):
        cc = recording.cc
        found = replayed(cc, recording.values, recording.calls)
        about = (cc.name, recording.values, recording.case.name)
        assert not found["differing"] and not found["breaks"], (about, found["differences"])
        assert found["connections"] == 1 and found["steps"] > 30, (about, found)
        assert not recording.missed and not found["unpaired"], (about, recording.missed, found["unpaired"])
        called[cc.name].update(found["by_hook"])
    return called


def test_init_finds_the_state_that_cc_h_promises(paths: None) -> None:
    # The kernel processes the handshake's ACK before init. bbr, whose state was all zero then, took its least RTT for
    # out of date and went into PROBE_RTT, which init did not undo: every connection began there.
    (recording,) = record([(find("bbr"), {})], SHORT[:1])
    size, hooks = native.HOOK_CALL_BYTES, native.HOOKS
    seen = [recording.calls[at : at + size] for at in range(0, len(recording.calls), size)]
    order = [hooks[struct.unpack_from("=I", one)[0]] for one in seen[::2]]
    first = order.index("init")
    assert first > 0, "this kernel calls init first: the reason for clearing the state is gone"
    # struct bbr: `mode` is 8 bytes before the end of the state, which has gso_max_bytes and padding behind it.
    mode = seen[2 * first + 1][size - 16]
    assert mode == 0, "not in startup"


def test_a_parameter_set_before_loading_is_what_the_kernel_does(paths: None) -> None:
    cc = find("storage_friendly")
    shares = {"1/4": 250_000, "1/2": 500_000}
    for about, value in shares.items():
        case = Case("one loss", f'bandwidth = "100Mbit/s"\nrtt = "20ms"\nqueue = "4bdp"\nloss = {LOST}', 0.6)
        (recording,) = record([(cc, {"reduction": value})], [case])
        found = replayed(cc, {"reduction": value}, recording.calls)
        assert found["steps"] and not found["differing"], (about, found["differences"])
        assert found["reductions"], about
        for _, window, threshold in found["reductions"]:
            assert threshold == max(window * (1_000_000 - value) // 1_000_000, 2), about
        _, _, threshold = found["reductions"][0]
        assert window_after_recovery(recording) == threshold, about
        # The kernel's results follow these parameters and not others.
        other = replayed(cc, {"reduction": value - 100_000}, recording.calls)
        assert other["differing"] >= 1 and other["differences"][0]["field"] == "result"


def window_after_recovery(recording: Recording) -> int:
    """Return the window at the first call in the state Open after the first reduction."""
    size = native.HOOK_CALL_BYTES
    reduced = False
    for at in range(0, len(recording.calls), size):
        hook, after = struct.unpack_from("=2I", recording.calls, at)
        if native.HOOKS[hook] == "ssthresh" and after:
            reduced = True
        sock = fields(recording.calls[at : at + size])
        if reduced and not after and native.HOOKS[hook] == "cong_avoid" and sock["ca_state"] == 0:
            return sock["snd_cwnd"]
    raise AssertionError("never Open again")


def fields(seen: bytes) -> dict[str, int]:
    """Return the sender's fields of a record: the beginning of struct cc_sock (congestion/native/sock.h)."""
    names = (
        "snd_cwnd snd_ssthresh snd_cwnd_cnt snd_cwnd_clamp prior_cwnd packets_out sacked_out lost_out retrans_out "
        "max_packets_out delivered delivered_ce lost app_limited srtt_us min_rtt_us mss_cache snd_una snd_nxt "
        "is_cwnd_limited ca_state pacing_status ecn_flags pacing_rate"
    )
    # 19 u32, 4 u8, then u64: 368 bytes in all.
    return dict(zip(names.split(), struct.unpack_from("=19I4BQ", seen, len(seen) - 368), strict=True))


TCP_INFO = {
    "ca_state": ("B", 1),
    "mss_cache": ("I", 16),
    "packets_out": ("I", 24),
    "sacked_out": ("I", 28),
    "lost_out": ("I", 32),
    "retrans_out": ("I", 36),
    "snd_ssthresh": ("I", 76),
    "snd_cwnd": ("I", 80),
    "pacing_rate": ("Q", 104),
    "min_rtt_us": ("I", 148),
    "delivered": ("I", 192),
    "delivered_ce": ("I", 196),
}
"""Offsets in struct tcp_info (linux/tcp.h)."""


def test_the_accessors_read_what_the_kernel_says_of_the_connection(paths: None) -> None:
    # A field taken from the wrong place would be recorded and replayed alike: the kernel's own word is another source.
    for case in SHORT[1:2]:
        (recording,) = record([(find("bbr"), {})], [case])
        assert recording.tcp_info is not None
        size = native.HOOK_CALL_BYTES
        # bbr hears of every ACK after all else. The last of data is found by what had been delivered; a FIN's follows.
        ends = [recording.calls[at : at + size] for at in range(0, len(recording.calls), size)]
        acks = [fields(end) for end in ends if native.HOOKS[struct.unpack_from("=I", end)[0]] == "cong_control"]
        (delivered,) = struct.unpack_from("=I", recording.tcp_info, TCP_INFO["delivered"][1])
        last = next(ack for ack in reversed(acks) if ack["delivered"] == delivered)
        for field, (kind, at) in TCP_INFO.items():
            (said,) = struct.unpack_from(f"={kind}", recording.tcp_info, at)
            assert last[field] == said, (case.name, field)
        (rtt_us,) = struct.unpack_from("=I", recording.tcp_info, 68)
        assert last["srtt_us"] >> 3 == rtt_us
        assert last["delivered"] > 100 and (last["delivered_ce"] > 0) == case.ecn
        assert last["ecn_flags"] & 1 == case.ecn


def test_a_file_whose_builds_differ_is_found_with_hook_and_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], paths: None
) -> None:
    code = find("reno").code
    odd = """
#ifdef __bpf__
#define KEPT(cwnd) ((cwnd) / 2 + ((cwnd) > 20))
#else
#define KEPT(cwnd) ((cwnd) / 2)
#endif
static u32 odd_ssthresh(struct cc_sock *sk)
{
	return (u32)cc_max(KEPT(cc_snd_cwnd(sk)), 2);
}
"""
    at = code.index("CC_ALGORITHM(")
    text = code[:at] + odd + code[at:].replace("(ssthresh, reno_ssthresh)", "(ssthresh, odd_ssthresh)")
    assert "odd_ssthresh)" in text
    text = text.replace("static u32 reno_ssthresh", "__attribute__((unused)) static u32 reno_ssthresh")
    file = of_file(tmp_path, text).path
    assert file is not None
    assert call(["kernel", "parity", file]) == 2
    said = capsys.readouterr().out
    assert "ssthresh: result: BPF" in said and "with a difference" in said.splitlines()[-1]
    for source in ("synthetic, default parameters", "recorded, loss"):
        (line, *_) = [line for line in said.splitlines() if line.startswith(f"  {source}: call")]
        words = line.replace(",", "").split()
        assert int(words[-3]) == int(words[-1]) + 1, line


def test_a_file_of_ones_own_is_compared_with_its_parameters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], paths: None
) -> None:
    file = of_file(tmp_path, find("storage_friendly").code).path
    assert file is not None
    assert call(["kernel", "parity", file, "--set", "reduction=1/4"]) == 0
    said = capsys.readouterr().out
    assert "no difference" in said.splitlines()[-1] and "recorded" in said
    assert call(["kernel", "parity", file, "--set", "reduction=2"]) == 2
    assert call(["kernel", "parity", "no_such"]) == 2


def test_without_root_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify, "effective_capabilities", lambda: 0)
    assert call(["kernel", "parity", "reno"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and "root" in error and error.count("\n") == 1


TRIES = 3
"""A machine that leaves the sender or the emulator without a processor for some ms makes other RTTs and time-outs."""


@pytest.mark.parametrize(("name", "values"), [("scalable", {}), ("storage_friendly", {"reduction": 250_000})])
def test_the_same_losses_make_the_same_windows_in_both_tcps(name: str, values: dict[str, int], paths: None) -> None:
    cc = find(name)
    found = []
    for _ in range(TRIES):
        (recording,) = record([(cc, values)], [case_of()])
        found.append(compare_windows(cc, values, recording))
        # To the segment; the windows in between within the time that a round trip takes longer here.
        if found[-1].recorded == found[-1].simulated and found[-1].median < 0.05:
            break
    else:
        raise AssertionError(found)
    # Other parameters make others: the comparison would notice.
    assert compare_windows(find("reno"), {}, recording).simulated != found[-1].recorded


def test_nothing_stays_registered(paths: None) -> None:
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    before = [name for name in available.read_text().split() if name.startswith("elpar_")]
    record([(find("reno"), {})], [Case("short", SHORT[0].path, 0.1)])
    after = [name for name in available.read_text().split() if name.startswith("elpar_")]
    assert set(after) <= set(before)
