# SPDX-License-Identifier: Apache-2.0
"""The colours of the schemes: one look everywhere, with contrast."""

import json
import re

import pytest

from penstock import _native
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


def test_a_scheme_looks_the_same_whatever_is_next_to_it():
    names = list(json.loads(_native.schemes()))
    alone = {name: style.looks([name])[name] for name in names}
    assert style.looks(names) == alone == style.looks(reversed(names))
    assert len(set(alone.values())) == len(names), "two schemes look alike"


def test_causes_have_no_colour_of_a_scheme():
    parts = re.findall(r"\.part\d \{[^}]*\}", html._css())
    assert len(parts) == 6
    assert not [part for part in parts if re.search(r"--s\d|#", part)]
