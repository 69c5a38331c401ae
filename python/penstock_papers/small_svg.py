# SPDX-License-Identifier: Apache-2.0
"""A figure's SVG as the documentation keeps it."""

import re

MOST_BYTES = 40_000
"""Of a figure; instead of a larger SVG a PNG is kept."""


def small(svg: str) -> str:
    """The same drawing to a tenth of a point, without what programs alone read."""
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(?<!opacity: )(\d\.\d)\d+", r"\1", svg)
    svg = re.sub(r' id="[a-z]+\w*_\d+"', "", svg)  # nothing refers to these
    return re.sub(r"\n\s+", "\n", svg)
