# SPDX-License-Identifier: Apache-2.0
"""Sweeps: a scenario at every combination of some values, under each scheme and seed.

sweeping      start here: computes the missing runs of a sweep's folder
values        the grammar of `--over KEY=VALUES`
points        the points of a sweep, and the tasks of each
store         the folder: sweep.json, sweep.parquet, and a journal while it runs
journal       finished work that a kill does not lose
completeness  how many of a command's runs the folder has
means         one number at all points: means over the seeds
sweep_table, sweep_charts, sweep_page   in the terminal; as figures; as a page
"""
