"""Verdicts follow from the claim's data and the measured numbers, and say why."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import elephan
from elephan.errors import InputError
from elephan.papers.claims import Claim, Order, Reference, Region, Value, read
from elephan.papers.console import our_number, our_order
from elephan.papers.evaluation import all_over_repetitions, over_repetitions
from elephan.papers.spread import Measured, shown
from elephan.papers.verdict import Verdict, judge, percent
from elephan.record import Record


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


def test_at_least_is_as_wide_below_zero_as_above() -> None:
    order = Order(label="small <= large", rising=("small", "large"), equal_within=0.1)
    at_least = Claim(id="x.y", title="t", text="t", source="s", order=(order,))
    for small, verdict in ((-8.0, Verdict.REPRODUCED), (-7.3, Verdict.REPRODUCED), (-7.1, Verdict.DIFFERS)):
        assert judge(at_least, {"small": small, "large": -8.0}).verdict is verdict


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


def test_of_repetitions_the_median_is_judged_and_the_range_shown() -> None:
    judged = judge(claim(), {"small": [9.0, 30.0, 10.0], "large": [31.0, 32.0, 33.0]})
    assert [check.holds for check in judged.values] == [True, True]
    assert [our_number(check) for check in judged.values] == ["10 (9 to 30) MB/s", "32 (31 to 33) MB/s"]
    assert our_order(judged.orders[0], "MB/s") == "10 (9 to 30), 32 (31 to 33) MB/s"
    assert our_number(judge(claim(), {"small": [10.0, 10.0], "large": 30.0}).values[0]) == "10 MB/s"


@pytest.mark.parametrize(
    ("small", "large", "verdict"),
    [
        ([9.0, 10.0, 11.0], [29.0, 30.0, 31.0], Verdict.REPRODUCED),
        ([9.0, 10.0, 29.5], [29.0, 30.0, 31.0], Verdict.NOT_DECIDED),
        ([9.0, 10.0, 29.0], [29.0, 30.0, 31.0], Verdict.NOT_DECIDED),
        ([9.0, 31.0, 32.0], [29.0, 30.0, 31.0], Verdict.NOT_DECIDED),
        ([31.0, 31.0, 32.0], [29.0, 30.0, 31.0], Verdict.DIFFERS),
        ([30.0, 30.0], 30.0, Verdict.DIFFERS),
        ([32.0, 33.0, 34.0], [29.0, 30.0, 31.0], Verdict.DIFFERS),
        ([9.0, 10.0, 11.0], 30.0, Verdict.REPRODUCED),
    ],
)
def test_an_order_holds_where_ranges_are_apart(small: list[float], large: Measured, verdict: Verdict) -> None:
    judged = judge(claim(tolerance=5.0), {"small": small, "large": large})
    assert judged.verdict is verdict
    if verdict is Verdict.NOT_DECIDED:
        assert "not decided, as ranges overlap: small < large (small congestion control " in judged.because


def test_an_order_of_three_is_as_good_as_its_weakest_two() -> None:
    order = Order(label="a < b < c", rising=("a", "b", "c"))
    three = Claim(id="x.y", title="t", text="t", source="s", order=(order,))
    found = {"a": [1.0, 2.0], "b": [1.9, 3.0], "c": [4.0, 5.0]}
    assert judge(three, found).verdict is Verdict.NOT_DECIDED
    assert judge(three, {**found, "c": [1.0, 1.4]}).verdict is Verdict.DIFFERS


def test_an_order_that_is_broken_weighs_more_than_one_that_is_not_decided() -> None:
    orders = tuple(Order(label=label, rising=rising) for label, rising in (("ab", ("a", "b")), ("bc", ("b", "c"))))
    two = Claim(id="x.y", title="t", text="t", source="s", order=orders)
    judged = judge(two, {"a": [1.0, 2.0], "b": [1.9, 3.0], "c": 1.0})
    assert judged.verdict is Verdict.DIFFERS
    assert judged.because == (
        "not so here: bc (b 2.45 (1.9 to 3), c 1); "
        "not decided, as ranges overlap: ab (a 1.5 (1 to 2), b 2.45 (1.9 to 3))"
    )


def test_several_orders_that_do_not_hold_are_named_and_counted() -> None:
    pairs = (("a", "b"), ("b", "c"), ("a", "c"), ("c", "a"))
    orders = tuple(Order(label=f"{left} < {right}", rising=(left, right)) for left, right in pairs)
    judged = judge(Claim(id="x.y", title="t", text="t", source="s", order=orders), {"a": 3.0, "b": 2.0, "c": 1.0})
    assert judged.because == "not so here: a < b; b < c; a < c (3 of 4)"


def test_the_sizes_of_an_order_have_its_own_unit_or_that_of_the_claim() -> None:
    orders = tuple(Order(label="ab", rising=("a", "b"), unit=unit) for unit in (None, "", "s"))
    judged = judge(Claim(id="x.y", title="t", text="t", source="s", order=orders), {"a": 1.0, "b": 2.0})
    assert [our_order(check, "MB/s") for check in judged.orders] == ["1, 2 MB/s", "1, 2", "1, 2 s"]


def test_a_deviation_has_no_exponent() -> None:
    shares = (None, 0.0, 0.0123, -0.6, -0.996, -1.0, 12.345)
    assert [percent(share) for share in shares] == ["+0 %", "+0 %", "+1.2 %", "-60 %", "-100 %", "-100 %", "+1234 %"]


def test_numbers_have_four_digits_and_no_exponent_below_a_million() -> None:
    assert [shown(value) for value in (0.0, 0.012345, 1.23456, 9999.7, 46112.0, 45243.6, 999_999.5, 1.5e6)] == [
        *("0", "0.01235", "1.235", "10000", "46112", "45244", "1000000", "1.5e+06"),
    ]


def test_at_least_goes_by_the_medians_of_repetitions() -> None:
    order = Order(label="small <= large", rising=("small", "large"), equal_within=0.01)
    at_least = Claim(id="x.y", title="t", text="t", source="s", order=(order,))
    assert judge(at_least, {"small": [1.0, 20.0, 30.0], "large": [2.0, 19.9, 25.0]}).verdict is Verdict.REPRODUCED


@pytest.mark.parametrize("none", [[], [1.0, float("nan")]])
def test_repetitions_without_a_number_are_an_error(none: list[float]) -> None:
    with pytest.raises(KeyError, match="large was not measured"):
        judge(claim(), {"small": 10.0, "large": none})


TWICE = """
[run]
duration = "2s"
seed = 7
repetitions = 2
[path]
bandwidth = "10Mbit/s"
rtt = "20ms"
queue = "1bdp"
loss = 0.01
[[flow]]
[measure]
series = false
[sweep]
"flow.congestion_control" = ["reno", "cubic"]
"""


def test_quantities_are_read_once_per_repetition_in_the_order_of_seeds(tmp_path: Path) -> None:
    (tmp_path / "twice.toml").write_text(TWICE)
    records = list(elephan.run(tmp_path / "twice.toml", store="none"))

    def both(group: Sequence[Record]) -> dict[str, float]:
        assert len(group) == 2
        return {"mean": sum(float(one.metrics["goodput_bps"] or 0) for one in group) / 2, "seed": group[0].seed}

    found = all_over_repetitions(records[::-1], both)
    assert found["seed"] == [7, 8] and found["mean"][0] != found["mean"][1]
    assert over_repetitions(records, lambda group: both(group)["mean"]) == found["mean"]
    with pytest.raises(ValueError, match="1 runs of seed 8 beside 2 of seed 7: repetitions of other sweeps, or one"):
        over_repetitions(records[:-1], lambda group: 0)


def test_a_reference_may_have_a_number_per_repetition() -> None:
    found = Reference(id="r", label="r", provenance="here", unit="MB/s", value={"a": 1.5, "b": [1.0, 4.0, 2.0]})
    assert (found.median("a"), found.median("b")) == (1.5, 2.0)


def test_a_statement_that_holds_in_a_part_of_the_set_ups_depends() -> None:
    region = Region(name="above", label="9 times", on=("the queue", "the burst"))
    order = Order(label="small < large", rising=("small", "large"))
    some = Claim(id="x.y", title="t", text="t", source="s", region=(region,), order=(order,))
    in_order = {"small": 1.0, "large": 2.0}
    part = [1.0, 0.0, 1.0, 0.0, 1.0]
    for setups, verdict, said in (
        ([1.0, 1.0], Verdict.REPRODUCED, "in all of 2 set-ups"),
        (part, Verdict.DEPENDS, "in 3 of 5 set-ups"),
        ([0.0, 0.0], Verdict.DIFFERS, "in none of 2 set-ups"),
    ):
        found = judge(some, in_order | {"above": setups})
        assert found.verdict is verdict
        assert found.because == f"the order holds; 9 times: {said}, by the queue, the burst"
    broken: dict[str, Measured] = {"small": 2.0, "large": 1.0, "above": part}
    assert judge(some, broken).verdict is Verdict.DIFFERS, "a broken order weighs more"
    alone = Claim(id="x.y", title="t", text="t", source="s", region=(region,))
    assert judge(alone, {"above": part}).verdict is Verdict.DEPENDS
    with pytest.raises(ValueError, match="above: a set-up has 1 where the statement holds, else 0, not "):
        judge(alone, {"above": 0.6})
    with pytest.raises(KeyError, match="above was not measured"):
        judge(alone, {})
