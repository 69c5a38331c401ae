# SPDX-License-Identifier: Apache-2.0
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import stats

NUMBERS = st.floats(-1e9, 1e9)


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [
        *((1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (9, 2.2622)),
        *((10, 2.2281), (15, 2.1314), (20, 2.0860), (25, 2.0595), (30, 2.0423), (31, 2.0395)),
        *((40, 2.0211), (50, 2.0086), (60, 2.0003), (80, 1.9901), (100, 1.9840)),
        *((120, 1.9799), (1000, 1.9623), (10**9, 1.9600)),
    ],
)
def test_student_t_is_that_of_the_tables(freedom, expected):
    assert stats.student_t(freedom) == pytest.approx(expected, abs=1e-4)


def test_half_width_of_a_known_sample():
    values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]
    assert stats.mean_of(values) == 5.0
    assert stats.ci95_of(values) == pytest.approx(2.3646 * math.sqrt(32 / 7 / 8))


@given(st.lists(NUMBERS, min_size=2, max_size=40))
def test_the_mean_lies_within_and_the_half_width_is_not_negative(values):
    slack = 1e-6
    assert min(values) - slack <= stats.mean_of(values) <= max(values) + slack
    assert stats.ci95_of(values) >= 0


@given(NUMBERS, st.integers(2, 9))
def test_equal_seeds_give_the_value_itself(value, seeds):
    assert stats.mean_of([value] * seeds) == value
    assert stats.ci95_of([value] * seeds) == pytest.approx(0, abs=1e-6)


def test_values_a_seed_lacks_are_left_out_and_text_stays():
    seeds = [{"a": None, "b": "x", "c": {"d": 1}}, {"a": 2, "b": "x", "c": {"d": 3}}]
    assert stats.mean_of(seeds) == {"a": 2, "b": "x", "c": {"d": 2}}
    assert stats.ci95_of(seeds)["a"] is None
    assert stats.ci95_of(seeds)["b"] is None


def test_a_table_that_a_seed_lacks_is_left_out():
    seeds = [{"fct_s": None}, {"fct_s": {"mean": 2.0}}, {"fct_s": {"mean": 4.0}}]
    assert stats.mean_of(seeds) == {"fct_s": {"mean": 3.0}}
    assert stats.ci95_of(seeds)["fct_s"]["mean"] == pytest.approx(12.7062)
