# SPDX-License-Identifier: Apache-2.0
"""Searches a scheme's parameters for one traffic, and checks the best on fresh seeds.

tuning       start here: reference runs, search, check, `tune.json`
question     the question as asked, and the answer
space        the dimensions of the search; their usual ranges are in ranges.toml
constraints  bounds on numbers, and completion times where flows did not finish
search       Optuna proposes values; the journal keeps each `trial`
verdict      the check: which differences are more than noise
deploy       the answer as TOML for a scenario and for penstockd
answer, tune_page   sentences and terminal output; the page
"""
