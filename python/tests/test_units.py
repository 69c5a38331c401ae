# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import units


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (units.seconds, 0.00123, "1.23 ms"),
        (units.seconds, 0.9999, "1.00 s"),
        (units.seconds, 0, "0 s"),
        (units.seconds, None, "–"),
        (units.seconds, 250e-6, "250 µs"),
        (units.seconds, 125.4, "125 s"),
        (units.rate, 94.1e6, "94.1 Mb/s"),
        (units.rate, 1e9, "1.00 Gb/s"),
        (units.size, 125_000, "125 kB"),
        (units.percent, 0.9871, "98.7 %"),
        (units.percent, 1.0, "100 %"),
        (units.count, 12345, "12\u00a0345"),
        (units.count, 2.5, "2.5"),
        (units.count, 0.025, "0.03"),
        (units.count, 0.0, "0"),
        (units.ratio, 0.98765, "0.988"),
    ],
)
def test_numbers_read_as_people_write_them(form, value, text):
    assert form(value) == text


@given(st.floats(1e-9, 1e6))
def test_seconds_keep_three_digits(value):
    text, unit = units.seconds(value).split()
    factor = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert float(text) * factor == pytest.approx(value, rel=6e-3)


@pytest.mark.parametrize(
    ("text", "value"), [("12 us", 12e-6), ("3 s", 3.0), ("500 ns", 5e-7), ("24 h", 86_400.0)]
)
def test_times_of_a_resolved_scenario_are_seconds(text, value):
    assert units.to_seconds(text) == pytest.approx(value)


def test_sizes_are_read_as_scenarios_write_them():
    assert units.to_bytes("11.5 kB") == 11_500
    assert (units.to_bytes("1 MB"), units.to_bytes("2 MiB")) == (10**6, 2**21)
    for text in ("websearch", "10", "5 packets"):
        with pytest.raises(ValueError, match="no size"):
            units.to_bytes(text)
