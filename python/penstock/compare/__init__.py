# SPDX-License-Identifier: Apache-2.0
"""Compares two runs of one scenario, number by number: how far apart are two substrates?

    comparison        reads both runs and judges each number against its tolerance
    comparison_page   the page and figures, and the folder that keeps them
    comparison_table  the tables in the terminal

Start with `compare`.
"""

from penstock.compare.comparison import Comparison, Line, compare

__all__ = ["Comparison", "Line", "compare"]
