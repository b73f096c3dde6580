"""Figures as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.cli.units import in_bytes, in_seconds, number, spread
from workloads.planning.prediction import Range


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.00490, "0.00490"), (9.996, "10.0"), (39.84, "39.8"), (1234.5, "1,230"), (131072, "131,000")],
)
def test_a_number_has_three_significant_digits(value, shown):
    assert number(value) == shown


@given(st.floats(min_value=1e-6, max_value=1e15))
def test_a_shown_number_is_within_half_a_percent_of_the_value(value):
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=0.005)


@pytest.mark.parametrize(("value", "shown"), [(0, "0 B"), (999, "999 B"), (2.18e6, "2.18 MB"), (173e9, "173 GB")])
def test_bytes_count_in_powers_of_ten(value, shown):
    assert in_bytes(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0 s"), (0.06, "60.0 ms"), (4.6, "4.60 s"), (2441.04, "40.7 min"), (90000, "25.0 h")]
)
def test_seconds_take_the_unit_that_a_person_would(value, shown):
    assert in_seconds(value) == shown


def test_a_range_shows_its_ends_unless_it_has_none():
    assert spread(Range(low=1, expected=2, high=3), number) == "2.00 (1.00 - 3.00)"
    assert spread(Range(low=2, expected=2, high=2), number) == "2.00"
