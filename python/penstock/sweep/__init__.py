# SPDX-License-Identifier: Apache-2.0
"""Sweeps: a scenario at every combination of some values, under each scheme and seed.

`values` reads what `--over` says, `plan` makes the simulations of it, `store` keeps the folder,
`run` computes what is not there yet, `show` and `figures` tell what came out.
"""
