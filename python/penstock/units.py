# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them: three digits and a unit."""

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_RATES = ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s"))
_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_SECONDS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_BPS = {"b/s": 1.0, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12}
_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
NONE = "–"


def to_seconds(text: str) -> float:
    """A time of a resolved scenario: `"200 ms"` is 0.2."""
    number, unit = text.split()
    return float(number) * _SECONDS[unit]


def to_bps(text: str) -> float:
    """A rate of a resolved scenario, in bits per second: `"1 Gb/s"` is 1e9."""
    number, unit = text.split()
    return float(number) * _BPS[unit]


def to_bytes(text: str) -> int:
    """A size of a resolved scenario: `"11.5 kB"` is 11500.

    Raises:
        ValueError: it is no size.
    """
    number, _, unit = text.partition(" ")
    if unit not in _BYTES:
        message = f"{text}: no size, such as 11.5 kB"
        raise ValueError(message)
    return round(float(number) * _BYTES[unit])


def seconds(value: float | None) -> str:
    """`0.00123` is `1.23 ms`."""
    return _scaled(value, _TIMES)


def rate(value: float | None) -> str:
    """Bits per second: `94.1e6` is `94.1 Mb/s`."""
    return _scaled(value, _RATES)


def size(value: float | None) -> str:
    """Bytes: `125000` is `125 kB`."""
    return _scaled(value, _SIZES)


def percent(value: float | None) -> str:
    """`0.9871` is `98.7 %`."""
    return NONE if value is None else f"{three(100 * value)} %"


def count(value: float | None) -> str:
    """Counts, and means of counts over seeds: thousands apart, at most one decimal."""
    if value is None:
        return NONE
    text = f"{value:,.0f}" if float(value).is_integer() or value >= 1000 else f"{value:,.1f}"
    return text.replace(",", "\u202f")


def ratio(value: float | None) -> str:
    """A number between 0 and 1, such as Jain's index."""
    return NONE if value is None else f"{value:.3f}"


def three(value: float) -> str:
    """Three significant digits, as `18.0`; a plain `0` for zero, and never an exponent."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.2e}".partition("e")[2])
    return f"{value:.{max(0, 2 - exponent)}f}"


def _scaled(value: float | None, scale: tuple[tuple[float, str], ...]) -> str:
    if value is None:
        return NONE
    if value == 0:
        return f"0 {scale[0][1] if scale is _TIMES else scale[-1][1]}"
    for factor, unit in scale:
        if abs(value) >= 0.9995 * factor:  # rounds to 1.00 of this unit, not to 1000 of the next
            return f"{three(value / factor)} {unit}"
    factor, unit = scale[-1]
    return f"{three(value / factor)} {unit}"
