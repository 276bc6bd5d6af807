"""Verdicts follow from the claim's data and the measured numbers, and say why."""

from pathlib import Path

import pytest

from elephan.errors import InputError
from elephan.papers.claims import Claim, Order, Value, read
from elephan.papers.verdict import Verdict, judge


def claim(order: bool = True, tolerance: float = 0.1) -> Claim:
    values = tuple(
        Value(name=name, label=f"{name} congestion control", paper=paper, tolerance=tolerance)
        for name, paper in (("small", 10.0), ("large", 30.0))
    )
    orders = (Order(label="small < large", rising=("small", "large")),) if order else ()
    return Claim(id="x.y", title="t", text="t", source="s", unit="MB/s", value=values, order=orders)


def test_all_values_inside_and_in_order_is_reproduced() -> None:
    judged = judge(claim(), {"small": 10.5, "large": 28.0})
    assert judged.verdict is Verdict.REPRODUCED
    assert "largest deviation -6.7 % (large congestion control)" in judged.because


def test_a_value_outside_with_the_order_kept_is_ordering_holds() -> None:
    judged = judge(claim(), {"small": 2.0, "large": 75.0})
    assert judged.verdict is Verdict.ORDERING_HOLDS
    assert "2 of 2 values outside" in judged.because
    assert "large congestion control: 2.5 times the paper's" in judged.because


def test_a_violated_order_differs_even_with_every_value_inside() -> None:
    wide = claim(tolerance=5.0)
    judged = judge(wide, {"small": 30.0, "large": 29.0})
    assert judged.verdict is Verdict.DIFFERS
    assert "small < large (small congestion control 30, large congestion control 29)" in judged.because


def test_equal_quantities_are_not_in_order() -> None:
    assert judge(claim(tolerance=5.0), {"small": 20.0, "large": 20.0}).verdict is Verdict.DIFFERS


def test_at_least_allows_equal_sizes_and_no_smaller_ones() -> None:
    order = Order(label="small <= large", rising=("small", "large"), equal_within=0.01)
    at_least = Claim(id="x.y", title="t", text="t", source="s", order=(order,))
    for large, verdict in ((20.0, Verdict.REPRODUCED), (19.9, Verdict.REPRODUCED), (19.7, Verdict.DIFFERS)):
        assert judge(at_least, {"small": 20.0, "large": large}).verdict is verdict


def test_a_value_outside_without_any_order_differs() -> None:
    assert judge(claim(order=False), {"small": 10.0, "large": 60.0}).verdict is Verdict.DIFFERS


def test_tolerance_zero_means_equal() -> None:
    exact = Claim(id="x.y", title="t", text="t", source="s", value=(Value(name="n", label="n", paper=8, tolerance=0),))
    assert judge(exact, {"n": 8}).verdict is Verdict.REPRODUCED
    assert judge(exact, {"n": 8.01}).verdict is Verdict.DIFFERS


def test_what_is_not_yet_measured_says_what_is_missing() -> None:
    open_claim = Claim(id="x.z", title="t", text="t", source="s", not_yet="no gateway model")
    judged = judge(open_claim, {})
    assert (judged.verdict, judged.because) == (Verdict.NOT_YET, "no gateway model")


def test_a_statement_without_numbers_names_the_tests_that_hold_it() -> None:
    held = Claim(id="x.z", title="t", text="t", source="s", held_by="crates/x/tests/y.rs")
    assert (judge(held, {}).verdict, judge(held, {}).because) == (Verdict.HELD, "crates/x/tests/y.rs")
    with pytest.raises(ValueError, match="either not_yet or held_by"):
        Claim(id="x.z", title="t", text="t", source="s", held_by="crates/x/tests/y.rs", not_yet="a gateway")


@pytest.mark.parametrize("measured", [{"small": 10.0}, {"small": 10.0, "large": float("nan")}])
def test_a_quantity_without_a_number_is_an_error_and_no_verdict(measured: dict[str, float]) -> None:
    with pytest.raises(KeyError, match="large was not measured"):
        judge(claim(), measured)


def test_a_claim_that_nothing_could_refute_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing could refute it"):
        Claim(id="x.y", title="t", text="t", source="s")


def test_a_broken_claims_file_is_named_with_its_key(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text('format = 1\nid = "x"\ntitle = 3\n')
    with pytest.raises(InputError, match=r"claims\.toml: \w+: "):
        read(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "none")
