"""Commands of line tests: what they print, their exit codes, the files that they leave. The port is a stand-in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elephan.cli.main import call
from elephan.line.mix import Mix
from tests.line.model import Line
from tests.line.stand_in import Port

pytestmark = pytest.mark.usefixtures("stand_in")

LOSSY = Line(10**9, 870_000_000)
QUICK = ["line", "test", "rfc2544", "eth1", "--quick", "--sizes", "64,1518"]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = call(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_a_stream_is_told_in_three_lines(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "line", "send", "eth1", "--duration", "2s", "--series", "1s")
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == [
        "1.00",
        "2.00",
        "sent:",
        "received:",
        "latency:",
    ]
    assert "receiver: 02:00:00:00:00:09 at far0" in err and "± 2.00 µs by the clocks" in out


def test_lost_frames_are_exit_code_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Port, "line", LOSSY)
    code, out, err = run(capsys, "line", "send", "eth1", "--json", "--mix", "1518", "--count", "1000")
    assert code == 1 and "error: 130 frames lost" in err
    assert json.loads(out)["sent"]["frames"] == 1000 and json.loads(out)["rate_bps"] == 10**9


def test_frames_that_the_receivers_kernel_dropped_are_no_loss_of_the_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Port, "line", Line(10**9, receiver_frames_per_s=1000))
    code, out, _ = run(capsys, "line", "send", "eth1", "--mix", "64")
    assert code == 0 and "dropped by the receiver's own kernel, not by the line" in out


def test_a_receiver_lists_its_streams(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "line", "receive", "eth1", "--duration", "50ms")
    assert code == 0 and out.startswith("from 02:00:00:00:00:09, stream 7: 81,274 frames, 0 lost")
    code, out, _ = run(capsys, "line", "receive", "eth1", "--duration", "50ms", "--json")
    assert code == 0 and json.loads(out)["streams"][0]["stream"] == 7


def test_rfc_2544_judges_by_the_least_share(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Port, "line", LOSSY)
    page = tmp_path / "line.html"
    code, out, err = run(capsys, *QUICK, "--tests", "throughput,latency", "--report", str(page))
    assert code == 0 and "The line loses frames above 87.0 % of its rate" in out and "at most" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["line-latency.png", "line-throughput.png", "line.html"]
    code, out, err = run(capsys, *QUICK, "--tests", "throughput", "--least", "90%", "--json")
    assert code == 1 and "throughput 64 B: 87.0 % of the line, 1518 B: 87.0 % of the line; --least is 90%" in err
    found = json.loads(out)
    assert found["passed"] is False and [one["limit"] for one in found["results"]] == ["lost", "lost"]


def test_a_generator_below_the_least_share_leaves_it_undecided(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Port, "line", Line(10**9, generator_bps=500_000_000))
    code, out, err = run(capsys, *QUICK, "--tests", "throughput", "--least", "90%")
    assert code == 1 and "(generator's limit: undecided)" in err and "at least: the generator's limit" in out
    assert "note: The generator could not send" in err
    assert run(capsys, *QUICK, "--tests", "throughput")[0] == 0


def test_a_generator_may_leave_out_a_share(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Port, "line", Line(10**9, generator_bps=999_000_000))
    quick = [*QUICK, "--tests", "throughput", "--least", "100%"]
    code, _, err = run(capsys, *quick)
    # The first trial is repeated twice.
    assert code == 1 and err.count("again: 64 B at 1.00 Gbit/s: generator's limit") == 2
    code, _, err = run(capsys, *quick, "--left-out", "0.2%")
    assert code == 0 and "note: The generator could not send" in err and "again" not in err


def test_a_service_beyond_the_line_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    service = ["line", "test", "y1564", "eth1", "--mix", "512"]
    code, _, err = run(capsys, *service, "--cir", "990Mbit/s")
    assert code == 2 and "--cir: 990 Mbit/s of 512 B frames; the line carries at most 962 Mbit/s" in err
    code, _, err = run(capsys, *service, "--cir", "900Mbit/s", "--eir", "90Mbit/s")
    assert code == 2 and "--eir: 990 Mbit/s of 512 B frames" in err
    code, out, err = run(capsys, *service, "--cir", "900Mbit/s")
    assert code == 0 and "What was agreed is met in every step." in out and "policing was not tested" in err


def test_a_service_that_is_not_policed_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = ["line", "test", "y1564", "eth1", "--mix", "512", "--cir", "100Mbit/s", "--eir", "50Mbit/s"]
    code, _, err = run(capsys, *service)
    assert code == 1 and "what was agreed is not met in policing" in err
    monkeypatch.setattr(Port, "line", Line(10**9, Mix.of(512).line_bps(150_000_000)))
    assert run(capsys, *service)[0] == 0
    code, _, err = run(capsys, *service, "--delay", "1ms")
    assert code == 1 and "undecided in CIR 25 %" in err


def test_bit_errors_pass_fail_or_stay_undecided(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bits = ["line", "test", "ber", "eth1", "--target"]
    code, out, _ = run(capsys, *bits, "1e-12")
    assert code == 0 and "The bit error rate is below 9.99e-13 with 95 %: 0 errors" in out
    code, _, err = run(capsys, *bits, "1e-12", "--duration", "1s")
    assert code == 1 and "undecided: below 3.04e-09 with 95 %" in err and "3e+12 bits without another error" in err
    # A generator that leaves a fifth out sends the rest in further streams.
    monkeypatch.setattr(Port, "line", Line(10**9, generator_bps=800_000_000))
    code, _, err = run(capsys, *bits, "1e-10")
    assert code == 0 and 2 <= err.count("sending paper frames") <= 5
    code, _, err = run(capsys, *bits, "1e-17")
    assert code == 2 and "name a --duration, or use elephan line soak" in err
    monkeypatch.setattr(Port, "line", Line(10**9, bit_errors_per=10**9))
    code, _, err = run(capsys, *bits, "1e-12")
    assert code == 1 and "the bit error rate is above" in err


def test_a_soak_leaves_its_series_and_its_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    soak = ["line", "soak", "eth1", "--into", str(tmp_path / "soak"), "--line", "1gbe"]
    code, out, _ = run(capsys, *soak, "--for", "100s", "--target", "1e-10")
    assert code == 0 and "lost in 1" in out and "100 s" in out
    assert {"soak.json", "part-001.jsonl", "report.html", "report-rate.png"} <= {
        path.name for path in (tmp_path / "soak").iterdir()
    }
    code, out, _ = run(capsys, *soak, "--for", "3min", "--json", "--target", "1e-12")
    found = json.loads(out)
    assert code == 1 and [part["part"] for part in found["parts"]] == [1, 2]
    assert found["totals"]["span_ns"] == 180 * 10**9 and found["bit_error_rate"]["line"]["errors"] == 0
    monkeypatch.setattr(Port, "line", LOSSY)
    code, _, err = run(capsys, *soak, "--for", "4min")
    assert code == 1 and "frames lost" in err
    code, _, err = run(capsys, *soak, "--for", "4min", "--rate", "10%")
    assert code == 2 and "its soak has rate_bps 1000000000, not 100000000; name another folder" in err
