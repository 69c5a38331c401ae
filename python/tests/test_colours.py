# SPDX-License-Identifier: Apache-2.0
"""The colours of the schemes: one look everywhere, with contrast."""

import json
import math
import re
from itertools import combinations

import pytest

from penstock import _native, metrics
from penstock.show import html, style

PAPER = dict(zip(("light", "dark"), ("#ffffff", "#14171e"), strict=True))


def linear(colour):
    values = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def luminance(colour):
    return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("mode", PAPER)
def test_each_colour_of_a_scheme_has_a_contrast_above_3(mode):
    assert f"--paper: {PAPER[mode]}" in html._css()
    for ink in style.SERIES:
        assert contrast(getattr(ink, mode), PAPER[mode]) > 3, ink


# How linear red, green and blue look without red or green cones (Machado et al., 2009, severity 1).
SEEN = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red cones": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no green cones": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)


def cielab(colour, seen):
    def product(matrix, values):
        return [sum(a * b for a, b in zip(row, values, strict=True)) for row in matrix]

    shown = [min(max(v, 0), 1) for v in product(SEEN[seen], linear(colour))]
    ratios = [v / white for v, white in zip(product(XYZ, shown), WHITE, strict=True)]
    x, y, z = (r ** (1 / 3) if r > 216 / 24389 else (24389 / 27 * r + 16) / 116 for r in ratios)
    return (116 * y - 16, 500 * (x - y), 200 * (y - z))


def distance(one, other, seen):
    return math.dist(cielab(one, seen), cielab(other, seen))


def test_the_distance_of_colours():
    """CIE's: black to white is 100; red and green fall together without green cones."""
    assert distance("#000000", "#ffffff", "all cones") == pytest.approx(100, abs=0.01)
    assert distance("#9f6a00", "#c85700", "no green cones") < 15
    assert distance("#9f6a00", "#c85700", "all cones") > 25


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("mode", PAPER)
def test_any_two_colours_differ_for_the_colour_blind(mode, seen):
    for one, other in combinations(style.SERIES, 2):
        far = distance(getattr(one, mode), getattr(other, mode), seen)
        assert far >= 15, (one.name, other.name, round(far, 1))


def test_a_scheme_looks_the_same_whatever_is_next_to_it():
    names = list(json.loads(_native.schemes()))
    alone = {name: style.looks([name])[name] for name in names}
    assert style.looks(names) == alone == style.looks(reversed(names))
    assert len(set(alone.values())) == len(names), "two schemes look alike"


def test_causes_have_no_colour_of_a_scheme():
    parts = re.findall(r"\.part\d \{[^}]*\}", html._css())
    assert len(parts) == len(metrics.CAUSES)
    assert not [part for part in parts if re.search(r"--s\d|#", part)]
