"""docs/howto/emulated-path.md: the path of the field is the one that the scenario describes."""

from __future__ import annotations

import statistics
import subprocess

from tests.field.conftest import WHOLE
from tests.field.judging import iperf3, ping
from tests.field.network import RATE_BPS, RTT_S, Field

SENT_S = 10.0 if WHOLE else 1.5


def test_the_path_has_the_round_trip_and_the_rate_of_its_file_and_follows_a_change(field: Field) -> None:
    assert RTT_S <= statistics.median(ping(field, "-c15")) < RTT_S + 0.010
    # 1448 of 1500 bytes are payload.
    assert 0.6 * RATE_BPS < iperf3(field, SENT_S, "-C", "cubic") < RATE_BPS * 1448 / 1500
    field.set("path.rtt=50ms", "path.bandwidth=10Mbit/s")
    assert 0.050 <= statistics.median(ping(field, "-c15")) < 0.060
    assert 0.6 * 10e6 < iperf3(field, SENT_S, "-C", "cubic") < 10e6 * 1448 / 1500


def test_routers_answer_and_count_hops_down_by_both_protocols(field: Field) -> None:
    for address, own, routers in (
        (field.b.address, "-4", ("10.77.1.1", "198.18.0.2")),
        (field.b.address6, "-6", ("fd77:1::1", "2001:2::2")),
    ):
        for ttl, router in enumerate(routers, 1):
            words = field.a.within("ping", own, "-n", "-c1", "-W2", f"-t{ttl}", address)
            said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
            assert f"From {router} icmp_seq=1 Time" in said, said
        words = field.a.within("ping", own, "-n", "-c1", "-W2", address)
        assert "ttl=62" in subprocess.run(words, capture_output=True, text=True, check=False).stdout
