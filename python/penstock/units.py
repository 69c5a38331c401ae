# SPDX-License-Identifier: Apache-2.0
"""Units of numbers, as scenarios write them and as people read them: three digits and a unit."""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

NONE = "–"
"""A number that does not exist."""


class Unit(NamedTuple):
    """A unit of scenarios."""

    quantity: str
    """The ending of names of numbers in it: `s`, `bps`, `bytes`, `packets`; empty for others."""
    factor: Fraction
    """In seconds, bits per second, bytes or packets."""


def _decimal(quantity: str, **powers: int) -> dict[str, Unit]:
    return {name: Unit(quantity, Fraction(10) ** power) for name, power in powers.items()}


UNITS = {
    "": Unit("", Fraction(1)),
    "%": Unit("", Fraction(1, 100)),
    **_decimal("packets", packet=0, packets=0),
    **_decimal("s", **{"ps": -12, "ns": -9, "us": -6, "µs": -6, "ms": -3, "s": 0}),
    "min": Unit("s", Fraction(60)),
    "h": Unit("s", Fraction(3600)),
    **_decimal("bps", **{"b/s": 0, "kb/s": 3, "Mb/s": 6, "Gb/s": 9, "Tb/s": 12}),
    **_decimal("bps", bps=0, kbps=3, Mbps=6, Gbps=9, Tbps=12),
    **_decimal("bytes", B=0, kB=3, MB=6, GB=9),
    **{f"{letter}iB": Unit("bytes", Fraction(1024) ** n) for n, letter in enumerate("KMG", 1)},
}
"""Every unit, by its name in scenarios and options."""


def to_seconds(text: str) -> float:
    """A time of a resolved scenario: `"200 ms"` is 0.2."""
    return _number(text, "s")


def to_bps(text: str) -> float:
    """A rate of a resolved scenario, in bits per second: `"1 Gb/s"` is 1e9."""
    return _number(text, "bps")


def to_bytes(text: str) -> int:
    """A size of a resolved scenario: `"11.5 kB"` is 11500.

    Raises:
        ValueError: it is no size.
    """
    return round(_number(text, "bytes"))


def number(value: object) -> float:
    """A number of a table's column as a float; 0 for none."""
    return float(value) if isinstance(value, int | float) else 0.0


_EXAMPLES = {
    "s": "time, such as 200 ms",
    "bps": "rate, such as 1 Gb/s",
    "bytes": "size, such as 11.5 kB",
}


def _number(text: str, quantity: str) -> float:
    number, _, name = text.partition(" ")
    unit = UNITS.get(name)
    if unit is None or unit.quantity != quantity:
        message = f"{text}: no {_EXAMPLES[quantity]}"
        raise ValueError(message)
    return float(number) * float(unit.factor)


def seconds(value: float | None) -> str:
    """`0.00123` is `1.23 ms`."""
    return _scaled(value, "s", "ms", "µs", "ns")


def rate(value: float | None) -> str:
    """Bits per second: `94.1e6` is `94.1 Mb/s`."""
    return _scaled(value, "Gb/s", "Mb/s", "kb/s", "b/s")


def size(value: float | None) -> str:
    """Bytes: `125000` is `125 kB`."""
    return _scaled(value, "GB", "MB", "kB", "B")


def percent(value: float | None) -> str:
    """`0.9871` is `98.7 %`."""
    return NONE if value is None else f"{three(100 * value)} %"


def count(value: float | None) -> str:
    """Counts, and means of counts over seeds: thousands apart, at most one decimal."""
    if value is None:
        return NONE
    text = f"{value:,.0f}" if float(value).is_integer() or value >= 1000 else f"{value:,.1f}"
    if text == "0.0":
        text = f"{value:.1g}"  # one in forty seeds is not none
    return text.replace(",", "\u00a0")


def counted(number: int, noun: str) -> str:
    """`1 port`, `2 ports`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def ratio(value: float | None) -> str:
    """A number between 0 and 1, such as Jain's index."""
    return NONE if value is None else f"{value:.3f}"


def factor(value: float | None) -> str:
    """How many times something is another, such as a slowdown."""
    return NONE if value is None else three(value)


FORMS: dict[str, Callable[[float | None], str]] = {"s": seconds, "bps": rate, "bytes": size}
"""How people read a number, by its quantity."""
AXES = {"s": "s", "bps": "b/s", "bytes": "B"}
"""The unit that prefixes go to on an axis, by the quantity of its numbers."""


def axis_of(name: str) -> str:
    """The unit of an axis for a number whose name ends with its quantity, as `size_bytes`."""
    return AXES.get(name.rpartition("_")[2], "")


def three(value: float) -> str:
    """Three significant digits, as `18.0`; a plain `0` for zero, and never an exponent."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.2e}".partition("e")[2])
    return f"{value:.{max(0, 2 - exponent)}f}"


def _scaled(value: float | None, *names: str) -> str:
    """The value in the largest of these units, given in descending order, that it reaches."""
    if value is None:
        return NONE
    base = next(name for name in names if UNITS[name].factor == 1)
    if value == 0:
        return f"0 {base}"
    for name in names:
        factor = float(UNITS[name].factor)
        if abs(value) >= 0.9995 * factor:  # rounds to 1.00 of this unit, not to 1000 of the next
            break
    return f"{three(value / factor)} {name}"
