# SPDX-License-Identifier: Apache-2.0
"""What a paper leaves open, sampled: in how many set-ups does each claim hold?

explore       start here: runs the set-ups of experiments and judges their claims in each
numbers       what is kept of the set-ups: shares, what decides, the nearest
robustness    shares and thresholds: robust, fragile, refuted
sensitivity   which open value decides a claim
outcome       what an experiment gave; as JSON
kept          `papers/*/open.json`
tables        in the terminal, in Markdown
claims_map    the map of all claims
open_page     the page of a folder
open_command  `penstock reproduce --open`

`explore`, `numbers` and `sensitivity` need the extra `open` (SciPy, SALib).
"""
