# SPDX-License-Identifier: Apache-2.0
"""Experiments of the papers, run again: what was published beside what is measured.

`experiment` is what a folder of `scenarios/papers` holds, `load` reads it, `rules` and `checks`
find its mistakes; `run` runs it, `claims` judges, `figures` draws, `page` writes what people read.
"""
