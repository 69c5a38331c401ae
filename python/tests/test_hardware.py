# SPDX-License-Identifier: Apache-2.0
"""The pages of what the hardware takes of an FPGA are what their program writes, less numbers."""

import re
from pathlib import Path

import pytest

from penstock_papers.analysis import hardware

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(Path(__file__).parents[2] / "rtl")
    import resources_page


def frame(text):
    """The text; of each row of a table only what begins it, such as a block, or ports and bits."""
    return [re.match(r"\| (\d+ \| \d+|[^|]+) \||.*", line)[0] for line in text.splitlines()]


def test_the_pages_have_all_that_is_synthesized(monkeypatch):
    counts = dict.fromkeys(hardware.BOARD, 1)
    monkeypatch.setattr(hardware, "switch", lambda *_: counts)
    monkeypatch.setattr(hardware, "adapter", lambda _: counts)
    monkeypatch.setattr(hardware, "placed", lambda _: hardware.Placed(1, 1, 1.0, 1))
    pages = resources_page.pages()
    assert len(pages) == 4
    for path, text in pages.items():
        assert frame(path.read_text()) == frame(text), path
