"""Linux's modules as the oracle: what is measured, what the page says of it, and the objects for Linux 6.1."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from elephan.errors import InputError
from evaluation.fidelity.modules import __main__ as modules
from evaluation.fidelity.modules import calls, page, source


def run(side: str, mbps: float, repetition: int = 1, busy: float = 0.1) -> dict[str, Any]:
    """Return a run as measured.jsonl has it."""
    about = {"control": "bic", "rate_mbps": 10, "rtt_ms": 20, "loss": 0.001, "repetition": repetition}
    return about | {"side": side, "mbps": mbps, "busy": busy, "windows": [10, 20], "date": "2026-01-01"}


def pairs(ours: list[float], theirs: list[float]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return repetitions."""
    return [(run("ours", a), run("linux", b)) for a, b in zip(ours, theirs, strict=True)]


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ([9.0, 9.1, 9.1, 9.2], [9.1, 9.2, 9.2, 9.3], "within 5 %"),
        ([9.0, 9.1, 9.1, 9.9], [9.1, 9.2, 9.2, 9.3], "not decided"),
        ([8.5, 9.1, 9.1, 9.2], [9.1, 9.2, 9.2, 9.3], "not decided"),
        ([7.0, 7.9, 7.5, 7.6], [9.1, 9.2, 9.2, 9.3], "apart"),
        ([7.0, 7.9, 7.5], [9.1, 9.2, 9.2], "too few runs"),
        ([9.0, 9.1, 9.1], [9.0, 9.1, 9.1], "too few runs"),
    ],
)
def test_a_verdict_counts_only_where_the_ranges_allow(ours: list[float], theirs: list[float], said: str) -> None:
    assert page.verdict(pairs(ours, theirs)) == said


def test_pairs_that_are_half_or_were_limited_by_the_processor_are_left_out() -> None:
    runs = [run(side, 9.0, 1) for side in ("linux", "ours")]
    runs += [run(side, 5.0, 2, busy=0.95) for side in ("linux", "ours")]
    runs.append(run("linux", 9.0, 3))
    (some,) = page.pairs_of(runs).values()
    assert [(ours["mbps"], theirs["mbps"]) for ours, theirs in some] == [(9.0, 9.0)]


def test_what_was_measured_is_of_wanted_pairs_and_none_twice() -> None:
    measured = modules.load()
    wanted = {modules.key(one) for one in modules.wanted()}
    keys = [(modules.key(one), one["side"]) for one in measured]
    assert measured and len(set(keys)) == len(keys)
    assert {key for key, _ in keys} <= wanted
    assert all(len(one["windows"]) >= 0.9 * modules.SECONDS / page.SAMPLE_S for one in measured)


def test_a_pair_is_told_to_the_machine_with_a_queue_of_one_product() -> None:
    one = {"control": "bic", "rate_mbps": 10, "rtt_ms": 100, "loss": 0.001, "repetition": 1}
    assert modules.line(3, one) == "3 bic our_bic 10 100 0.1 83 30 5"


def test_objects_for_linux_6_1_are_of_the_variants_that_are_linuxs(tmp_path: Path) -> None:
    try:
        compiler = modules.clang()
    except InputError as error:
        pytest.skip(str(error))
    digests = modules.objects(tmp_path, compiler, (6, 1))
    assert {path.stem for path in tmp_path.glob("*.o")} == set(digests) == set(modules.CONTROLS)
    for control in ("bic", "highspeed", "scalable"):
        assert "(variant, 1, " in modules.code_of(control)


def test_a_control_with_the_hook_of_today_is_built_for_an_older_kernel() -> None:
    needing = [control for control in modules.CONTROLS if modules.switches(modules.code_of(control), (6, 1))]
    assert needing == ["bbr"]
    assert not any(modules.switches(modules.code_of(control), (6, 12)) for control in modules.CONTROLS)


def test_each_path_has_all_its_repetitions_before_the_next_one() -> None:
    wanted = list(modules.wanted())
    first = wanted[: len(modules.CONTROLS) * modules.REPETITIONS]
    assert len({(one["rate_mbps"], one["rtt_ms"], one["loss"]) for one in first}) == 1
    assert {one["rate_mbps"] for one in wanted} == {10, 50}


def test_functions_of_linux_are_found_by_name() -> None:
    wanted = "u32 wanted(u32 a,\n\t\t  u32 b)\n{\n\tif (a)\n\t{\n\t}\n\treturn b;\n}\n"
    text = f"static inline u32 other(u32 a)\n{{\n\treturn a;\n}}\n\nstatic {wanted}"
    assert source.function(text, "wanted") == wanted
    with pytest.raises(ValueError, match="no function third"):
        source.function(text, "third")


def test_the_paths_of_the_calls_are_what_the_program_takes() -> None:
    words = list(calls.runs())
    assert len(words) == len(calls.LINES) * len(calls.LOSSES) * len(calls.SEEDS)
    assert {len(one) for one in words} == {7}


def test_first_program_and_script_are_shell_that_parses() -> None:
    for shell, file in (("sh", modules.HERE / "guest.sh"), ("bash", source.ROOT / "scripts/modules.sh")):
        subprocess.run([shell, "-n", file], check=True)
