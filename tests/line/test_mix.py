"""Mixes of frames, rates of a line, and their text forms."""

from __future__ import annotations

import pytest

from elephan.errors import InputError
from elephan.line.mix import IMIX, Mix, parse_mix, parse_sizes, sweep
from elephan.line.rates import parse_line, parse_rate, parse_share, parse_span


def test_a_gigabit_line_carries_the_frames_of_rfc_2544() -> None:
    """RFC 2544, appendix B, has 14880 frames/s of 64 B for 10 Mbit/s and 812 of 1518 B."""
    assert Mix.of(64).frames(10**7, 10**9) == 14880
    assert Mix.of(1518).frames(10**7, 10**9) == 812
    assert Mix.of(64).frames_per_s(10**10) == pytest.approx(14_880_952.38)


def test_the_papers_mix_has_the_papers_rate() -> None:
    """3.6572e14 bytes in 91 h 2.47 s on the WAN PHY, whose rate of frames is 9.294 Gbit/s."""
    mix = parse_mix("--mix", "paper")
    assert mix.sizes == ((1518, 9), (64, 1))
    line_bps = parse_line("--line", "10gbe-wan-phy", None, "eth1")
    sent_bytes = mix.frames(line_bps, (91 * 3600 * 1000 + 2470) * 10**6) * mix.frame_bytes // mix.weights
    # The paper's bytes are those of frames without what lies between them; its line was 2.6 % below the rate at most.
    assert sent_bytes == pytest.approx(3.6572e14, rel=0.03)


def test_rates_of_frames_and_of_the_line_are_inverse() -> None:
    for mix in (Mix.of(64), Mix(IMIX, "imix"), Mix.of(9018)):
        line_bps = mix.line_bps(10**9)
        assert mix.frame_bps(line_bps) >= 10**9 > mix.frame_bps(line_bps - 2)


def test_nothing_overflows_at_400_gbit_per_s_for_a_week() -> None:
    assert Mix.of(64).frames(400 * 10**9, 7 * 86400 * 10**9) == 400 * 10**9 * 7 * 86400 // (84 * 8)


def test_sizes_by_the_mtu() -> None:
    assert sweep(1500) == (64, 128, 256, 512, 1024, 1280, 1518)
    assert sweep(9000) == (64, 128, 256, 512, 1024, 1280, 1518, 9018)
    assert sweep(1400) == (64, 128, 256, 512, 1024, 1280, 1418)
    assert parse_sizes("--sizes", "64, 1518,64", 1500) == (64, 1518)
    assert parse_sizes("--sizes", None, 1500) == sweep(1500)
    assert str(parse_mix("--mix", "imix")) == "imix" and str(parse_mix("--mix", "64:1,9018:3")) == "64:1,9018:3"
    parse_mix("--mix", "1522").check("--mix", 1500, has_vlan=True)
    with pytest.raises(InputError, match="MTU of 1500 B takes frames up to 1518 B"):
        parse_mix("--mix", "1522").check("--mix", 1500)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jumbo", "imix, paper, sweep or sizes are needed"),
        ("63", "63 B; 64 to 9252 B with check sequence are needed"),
        ("9253:1", "9253 B; 64 to 9252 B"),
        ("64:x", "sizes are needed"),
        ("64:0", "weights of 1 to"),
        ("", "sizes are needed"),
    ],
)
def test_a_wrong_mix_is_named(text: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        parse_mix("--mix", text)


def test_rates_of_a_line() -> None:
    assert parse_line("--line", None, 10**10, "eth1") == 10**10
    assert parse_line("--line", "2.5Gbit/s", None, "eth1") == 2_500_000_000
    assert parse_rate("--rate", "12.5%", 10**9) == 125_000_000
    assert parse_rate("--rate", "300Mbit/s", 10**9) == 300_000_000
    assert parse_share("--resolution", "0.1%") == 1000
    assert parse_span("--for", "4d") == 96 * 3600 * 10**9 and parse_span("--for", "91h") == 91 * 3600 * 10**9


@pytest.mark.parametrize(
    ("parse", "expected"),
    [
        (lambda: parse_line("--line", None, None, "eth1"), "the rate of eth1 is not known"),
        (
            lambda: parse_line("--line", "fast", None, "eth1"),
            "--line fast: a rate such as 1Gbit/s is needed, or one of",
        ),
        (lambda: parse_line("--line", "oc-48", None, "eth1"), "no Ethernet"),
        (lambda: parse_line("--line", "100gbe", 10**10, "eth1"), "eth1 has 10000000000"),
        (lambda: parse_rate("--rate", "110%", 10**9), "0.0001% to 100% is needed"),
        (lambda: parse_rate("--rate", "2Gbit/s", 10**9), "the line has 1000000000 bit/s"),
        (lambda: parse_rate("--rate", "much", 10**9), "a share such as 90%"),
        (lambda: parse_rate("--rate", "100bit/s", 10**9), "100 bit/s of the line; 1kbit/s to 400Gbit/s is needed"),
        (lambda: parse_rate("--rate", "0.0001%", 10**6), "--rate 0.0001%: 1 bit/s of the line"),
        (lambda: parse_span("--duration", "400d"), "--duration 400d: 365d or less is needed"),
        (lambda: parse_span("--duration", "0s"), "more than 0 is needed"),
        (lambda: parse_span("--duration", "5"), "not a time with a unit"),
        (lambda: parse_span("--series", "1ms", least_ns=10**8), "0.1s or more is needed"),
    ],
)
def test_a_wrong_rate_or_time_is_named(parse, expected: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=expected):
        parse()


def test_a_tag_makes_the_shortest_frames_longer() -> None:
    assert parse_mix("--mix", "paper", has_vlan=True).sizes == ((1518, 9), (68, 1))
    assert parse_mix("--mix", "imix", has_vlan=True).sizes == ((68, 7), (594, 4), (1518, 1))
    assert parse_sizes("--sizes", None, 1500, has_vlan=True) == (68, 128, 256, 512, 1024, 1280, 1518, 1522)
    parse_mix("--mix", "sweep", 1500, has_vlan=True).check("--mix", 1500, has_vlan=True)
    for parse in (parse_mix, parse_sizes):
        with pytest.raises(InputError, match=r"--it: 64 B; 68 to 9252 B with check sequence and tag are needed"):
            parse("--it", "64", 1500, has_vlan=True)


def test_a_mix_that_the_core_does_not_take_is_named() -> None:
    assert parse_mix("--mix", "64:1000000,128:1000000").weights == 2 * 10**6
    with pytest.raises(InputError, match="--mix 64:100000,65:1: its weights repeat after 100001 frames; 100000 at"):
        parse_mix("--mix", "64:100000,65:1")
