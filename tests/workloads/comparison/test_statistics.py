"""The interval of a ratio covers the truth as often as it says, with runs as units."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.comparison.statistics import Interval, Series, ratio, spread, student_quantile, typical_step


def simulated(
    random: np.random.Generator, *, median_s: float, repeats: int, between: float, within: float = 0.01
) -> list[Series]:
    return [median_s * np.exp(random.normal(0, between) + random.normal(0, within, 25)) for _ in range(repeats)]


def compared(arms: list[list[Series]], arm: int, baseline: int) -> Interval:
    return ratio(arms[arm], arms[baseline], spread(arms[arm], arms[baseline], arms))


def test_the_ratio_is_that_of_the_typical_steps() -> None:
    slow, fast = [np.full(30, 6.0), np.full(30, 6.0)], [np.full(30, 2.0)]
    found = compared([slow, fast], 0, 1)
    assert found.value == pytest.approx(typical_step(slow) / typical_step(fast)) == pytest.approx(3.0)
    assert found.low == pytest.approx(3.0)
    assert found.high == pytest.approx(3.0)


def test_with_two_repeats_of_three_arms_the_interval_covers_the_truth_19_times_in_20() -> None:
    random = np.random.default_rng(3)
    covered = 0
    for _ in range(120):
        arms = [simulated(random, median_s=s, repeats=2, between=0.05) for s in (1.0, 2.0, 6.0)]
        found = compared(arms, 2, 0)
        covered += found.low <= 6.0 <= found.high
    # 95% of 120 is 114; three standard deviations of that count are 7.
    assert 107 <= covered < 120


def test_a_restless_third_arm_does_not_blur_two_that_repeat_often_enough() -> None:
    random = np.random.default_rng(4)
    quiet = [simulated(random, median_s=s, repeats=3, between=0.01) for s in (1.0, 6.0)]
    restless = simulated(random, median_s=2.0, repeats=3, between=0.8)
    assert compared([*quiet, restless], 1, 0) == compared(quiet, 1, 0)


def test_two_repeats_of_two_arms_learn_from_the_third_what_the_machine_does() -> None:
    random = np.random.default_rng(4)
    quiet = [simulated(random, median_s=s, repeats=2, between=0.01) for s in (1.0, 6.0)]
    restless = simulated(random, median_s=2.0, repeats=2, between=0.8)
    alone, together = compared(quiet, 1, 0), compared([*quiet, restless], 1, 0)
    # Fewer degrees would widen the quiet two; what the third shows of the machine must still come through.
    assert together.high / together.low > alone.high / alone.low
    assert spread(quiet[1], quiet[0], [*quiet, restless]).degrees_of_freedom == 3


def test_arms_repeated_too_seldom_borrow_the_scatter_of_the_experiment() -> None:
    random = np.random.default_rng(6)
    once = [simulated(random, median_s=s, repeats=1, between=0.05) for s in (1.0, 2.0)]
    often = simulated(random, median_s=3.0, repeats=4, between=0.05)
    assert not compared(once, 1, 0).repeated
    scatter = spread(once[1], once[0], [*once, often])
    assert (scatter.degrees_of_freedom, scatter.whole_experiment) == (3, True)


def test_more_steps_of_one_run_do_not_buy_certainty_about_the_next_run() -> None:
    random = np.random.default_rng(5)
    arms = [simulated(random, median_s=s, repeats=2, between=0.05) for s in (1.0, 2.0)]
    longer = [[np.tile(series, 20) for series in arm] for arm in arms]
    short, long = (compared(each, 1, 0) for each in (arms, longer))
    assert short.low == pytest.approx(long.low)
    assert short.high == pytest.approx(long.high)


def test_repeats_that_agree_by_luck_do_not_shrink_the_interval_below_what_steps_scatter() -> None:
    random = np.random.default_rng(7)
    one, other = np.exp(random.normal(0, 0.2, 40)), 2 * np.exp(random.normal(0, 0.2, 40))
    found = compared([[one, one], [other, other]], 1, 0)
    assert found.repeated
    assert found.high / found.low > 1.1


def test_without_repeats_the_interval_says_that_runs_may_scatter_more() -> None:
    random = np.random.default_rng(9)
    arms = [simulated(random, median_s=s, repeats=1, between=0.0) for s in (1.0, 2.0)]
    found = compared(arms, 1, 0)
    assert not found.repeated
    assert found.low < 2.0 < found.high
    assert found.tells_apart


def test_correlated_steps_widen_the_interval() -> None:
    random = np.random.default_rng(11)
    noise = random.normal(0, 0.1, 400)
    correlated = np.convolve(noise, np.ones(8) / math.sqrt(8), mode="same")
    independent = random.permutation(correlated)
    runs = [[np.exp(series)] for series in (correlated, independent)]
    scatter = [spread(run, run, [run]).standard_deviation for run in runs]
    assert scatter[0] > 1.5 * scatter[1]


def test_equal_arms_are_not_told_apart() -> None:
    random = np.random.default_rng(13)
    arms = [simulated(random, median_s=1.0, repeats=3, between=0.05) for _ in range(2)]
    assert not compared(arms, 1, 0).tells_apart


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    # Abramowitz and Stegun, table 26.10, column 0.95 two-sided; the last line is the normal's.
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042), (0, 1.960)],
)
def test_students_quantiles_are_those_of_the_tables(degrees: int, quantile: float) -> None:
    assert student_quantile(degrees) == pytest.approx(quantile, abs=0.0006)


seconds = st.lists(st.floats(0.01, 100.0), min_size=2, max_size=30).map(np.array)


@settings(max_examples=30, deadline=None)
@given(st.lists(seconds, min_size=1, max_size=3), st.lists(seconds, min_size=1, max_size=3))
def test_the_interval_holds_its_value_and_is_the_same_each_time(one: list[Series], two: list[Series]) -> None:
    first, second = (compared([one, two], 0, 1) for _ in range(2))
    assert first == second
    assert first.low <= first.value <= first.high
