"""Commands of line tests: what they print, their exit codes, the files that they leave. The port is a stand-in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from elephan.cli import line as line_command
from elephan.cli.main import call
from elephan.core import native
from elephan.line import safety
from elephan.line.mix import Mix
from tests.line.model import Line
from tests.line.stand_in import FAR, Port

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


def test_a_busy_receiver_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Port, "is_busy", True)
    told = "error: 02:00:00:00:00:09: the receiver is busy with another stream"
    for words in (["send", "eth1"], ["test", "ber", "eth1"], ["test", "y1564", "eth1", "--cir", "1Mbit/s"], QUICK[1:]):
        code, out, err = run(capsys, "line", *words)
        assert code == 1 and told in err and "sent:" not in out, words
    code, _, err = run(capsys, "line", "soak", "eth1", "--for", "1min", "--into", str(tmp_path / "soak"))
    assert code == 1 and told in err


def test_a_carrier_that_was_gone_fails_every_test(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Port, "line", Line(10**9, no_carrier_rows=range(2)))
    code, out, err = run(capsys, "line", "send", "eth1", "--duration", "10s", "--series", "1s", "--mix", "1518")
    assert code == 1 and "error: 162548 frames not sent without a carrier" in err
    assert "162,548 not sent: the interface had no carrier" in out and "1.00 s: 0 sent, 0 received, 0 lost" in out
    soak = ["line", "soak", "eth1", "--for", "1min", "--into", str(tmp_path / "soak"), "--mix", "1518"]
    code, out, err = run(capsys, *soak)
    assert code == 1 and "frames not sent without a carrier" in err and "they count as lost" in err
    assert run(capsys, *soak)[0] == 1


def test_frames_cut_short_fail_a_stream(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Port, "line", Line(10**9, wrong_lengths=2))
    code, out, err = run(capsys, "line", "send", "eth1")
    assert code == 1 and "error: 2 frames of a wrong length" in err and "2 of a wrong length" in out


def test_frames_that_the_senders_interface_dropped_are_no_loss_of_the_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Port, "line", Line(10**9, sender_drops=7))
    code, out, _ = run(capsys, "line", "send", "eth1")
    assert code == 0 and "7 dropped by the sender's own interface, not by the line" in out
    code, out, err = run(capsys, *QUICK, "--tests", "throughput")
    assert "note: The sender's own interface dropped" in err and "the generator's limit" in out


def test_a_loss_beside_the_generators_limit_is_in_the_first_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # At the line's rate the generator leaves out, and buffers lose only there.
    class Odd(Line):
        def run(self, trial):  # type: ignore[no-untyped-def]
            full = trial.rate_bps == 10**9
            return replace(self, lose_every=100 if full else None).model(trial)

        def model(self, trial):  # type: ignore[no-untyped-def]
            return Line.run(self, trial)

    monkeypatch.setattr(Port, "line", Odd(10**9, generator_bps=500_000_000))
    code, out, err = run(capsys, *QUICK, "--tests", "throughput")
    assert "The line lost nothing" not in out and "; it lost frames in 2 trials." in out


def test_a_soak_without_the_receivers_counts_is_no_proof(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Port, "line", Line(10**9, unanswered_rows=range(2, 100), is_silent=True))
    answers = iter([[FAR]])
    monkeypatch.setattr(Port, "find", lambda self, to, within_ns: json.dumps(next(answers, [])))
    soak = ["line", "soak", "eth1", "--for", "100s", "--into", str(tmp_path / "soak"), "--within", "10ms"]
    code, out, err = run(capsys, *soak)
    assert code == 1 and "nor when it was looked for 30 times; the same command continues" in err
    assert "lost in 20.0 s" in out and "nothing is known of them" in err
    # The receiver is back, and what was not known stays so.
    monkeypatch.undo()
    monkeypatch.setattr(native, "LinePort", Port, raising=False)
    monkeypatch.setattr(safety, "check", lambda interface, force: "52:54:00:00:00:04")
    code, out, err = run(capsys, *soak)
    assert code == 1 and "error: the receiver did not count in 3 intervals" in err and "lost in 100 s" in out
    code, out, err = run(capsys, *soak, "--json")
    assert code == 1 and json.loads(out)["totals"]["unknown_rows"] == 3


def test_a_receiver_that_comes_back_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Back(Line):
        def run(self, trial):  # type: ignore[no-untyped-def]
            self.trials.append(trial)
            silent = len(self.trials) == 1
            return Line(10**9, unanswered_rows=range(2, 100) if silent else range(0), is_silent=silent).run(trial)

    monkeypatch.setattr(Port, "line", Back(10**9))
    code, out, err = run(capsys, "line", "soak", "eth1", "--for", "100s", "--into", str(tmp_path / "soak"))
    assert code == 1 and "02:00:00:00:00:09: the receiver answers again" in err and "lost in 100 s" in out


def test_default_frames_fit_a_tag_and_are_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(capsys, "line", "send", "eth1", "--vlan", "7", "--json")
    assert code == 0 and "with a tag the shortest frames of paper have 68 B, not 64 B" in err
    assert {size for trial in Port.line.trials for size, _ in trial.mix.sizes} == {1518, 68}
    code, out, err = run(capsys, *QUICK[:4], "--vlan", "7", "--quick", "--tests", "throughput", "--json")
    assert code == 0 and [one["frame_bytes"] for one in json.loads(out)["results"]][::7] == [68, 1522]


def test_a_latency_below_zero_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Port, "line", Line(10**9, latency_ns=-5000))
    _, out, _ = run(capsys, "line", "send", "eth1", "--series", "1s", "--duration", "2s")
    assert "latency -5.00 µs" in out and "min -5.00 µs, mean -5.00 µs" in out


def test_streams_that_are_no_longer_kept_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 0

    def streams(self: Port) -> str:
        nonlocal number
        number += 1
        return json.dumps([{"from": "x", "stream": number // 3, "received": self.counts(), "is_over": True}])

    monkeypatch.setattr(Port, "streams", streams)
    monkeypatch.setattr(line_command, "TELL_S", 0.0)
    code, out, _ = run(capsys, "line", "receive", "eth1", "--duration", "300ms", "--json")
    found = json.loads(out)
    assert code == 0 and len(found["streams"]) == 1 and found["not_shown"] >= 1


def test_the_longest_time_has_the_repetitions(capsys: pytest.CaptureFixture[str]) -> None:
    times = [
        run(capsys, *QUICK, "--tests", "loss", "--tries", tries)[2].partition("at most ")[2].partition("\n")[0]
        for tries in ("1", "3")
    ]
    assert times == ["2 min 40 s", "8 min 0 s"]


def test_rates_that_the_core_does_not_send_at_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for words, expected in (
        (["send", "eth1", "--rate", "100bit/s"], "--rate 100bit/s: 100 bit/s of the line; 1kbit/s to 400Gbit/s"),
        ([*QUICK[1:], "--line", "9kbit/s"], "--line: 9.00 kbit/s; 10kbit/s or more is needed"),
        ([*QUICK[1:], "--line", "90kbit/s"], "--resolution: 1% of 90.0 kbit/s is below 1 kbit/s"),
    ):
        code, out, err = run(capsys, "line", *words)
        assert code == 2 and f"error: {expected}" in err and not out and "at most" not in err
