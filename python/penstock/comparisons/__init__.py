# SPDX-License-Identifier: Apache-2.0
"""Compares runs, of one scenario or of several: what differs in the settings, and in the results.

    comparison        reads the runs, and judges each number: far apart, and by more than chance
    comparison_page   the page and figures, and the folder that keeps them
    comparison_table  the tables in the terminal

Start with `compare`.
"""

from penstock.comparisons.comparison import Comparison, Line, compare

__all__ = ["Comparison", "Line", "compare"]
