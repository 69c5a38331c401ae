# SPDX-License-Identifier: Apache-2.0
"""The papers' models and laws as numbers: fluid equations, their stability, and sums.

docs/analysis.md explains them; experiments in `papers/` compare them with packets.
"""
