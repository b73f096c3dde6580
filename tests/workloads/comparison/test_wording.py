"""Figures read as a person would write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.comparison.wording import NOTHING, count, rate, seconds, significant, size, usd


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (5.9, "5.90"), (36.94, "36.9"), (1234.5, "1,234"), (0.4123, "0.412"), (0.04123, "0.0412"),
     (9.996, "10.0"), (99.96, "100"), (-0.5, "-0.500")],
)  # fmt: skip
def test_three_digits_are_kept(value: float, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, NOTHING), (0.0412, "41.2 ms"), (0.412, "0.412 s"), (5.9, "5.90 s"), (599.0, "599 s"),
     (2441.04, "41 min"), (5408.85, "1 h 30 min"), (7500, "2 h 05 min"), (0.09999, "0.100 s")],
)  # fmt: skip
def test_times_take_the_unit_that_fits(value: float | None, text: str) -> None:
    assert seconds(value) == text


def test_bytes_rates_counts_and_dollars() -> None:
    assert [size(v) for v in (None, 0, 812, 36.9e6, 1.45e11)] == [NOTHING, "0 B", "812 B", "36.9 MB", "145 GB"]
    assert [rate(v) for v in (50e6, 1e9, 25e9, 9600)] == ["50 Mbit/s", "1 Gbit/s", "25 Gbit/s", "9.6 kbit/s"]
    assert [count(v) for v in (None, 131072, 12.345)] == [NOTHING, "131,072", "12.3"]
    assert [usd(v) for v in (None, 12.4, 0.0311)] == [NOTHING, "$12.40", "$0.0311"]


@given(st.floats(1e-6, 1e9))
def test_what_is_shown_is_within_a_rounding_of_three_digits(value: float) -> None:
    assert float(significant(value).replace(",", "")) == pytest.approx(value, rel=0.00501)
