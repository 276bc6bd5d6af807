"""docs/howto/advise.md: the forecast of the proposed way, against iperf3 that sends in this way."""

from __future__ import annotations

import json

from tests.field.conftest import REFLECTOR, WHOLE
from tests.field.judging import iperf3
from tests.field.network import Field

SENT_S = 20.0 if WHOLE else 3.0


def test_what_is_proposed_goes_as_forecast(field: Field) -> None:
    towards = f"{field.b.address}:{REFLECTOR}"
    # Controls that this kernel has without loading any, so that iperf3 can use them.
    done = field.elephan("advise", towards, "--for", "200MB", "--controls", "cubic", "--json")
    assert done.returncode == 0, done.stderr
    advice = json.loads(done.stdout)
    proposed = advice["candidate"]
    assert proposed["transport"] == "tcp"
    options = ["-P", str(proposed["streams"]), "-C", proposed["control"]]
    # TCP's largest window bounds nothing (RFC 7323, 2.3).
    if proposed["window_bytes"] < 65_535 << 14:
        options += ["-w", str(int(proposed["window_bytes"]))]
    if proposed["pacing_bps"]:
        options += ["-b", str(int(proposed["pacing_bps"] / proposed["streams"]))]
    goodput = iperf3(field, SENT_S, *options)
    low, _, high = advice["goodput_bps"]
    # The band holds 90 % of what is to be expected; of a short transfer slow start is a part.
    assert 0.8 * low <= goodput <= 1.1 * high, (goodput, proposed)
