# SPDX-License-Identifier: Apache-2.0
"""The papers' models and laws as numbers: fluid equations, their stability, and sums.

    delay                    delay differential equations: integration, characteristic roots
    source, panels           what is read from runs; panels of lines for figures
    hscc_model, hscc_time    HSCC's fluid model; its integration with the hysteresis
    fairq_law                FairQ's update law as a loop with delay
    hscc_timeouts, hscc_cycle   what a timeout costs; windows over a loss cycle
    hardware                 the hardware's resources by synthesis
    hscc, fairq, hcf, sicc   numbers and figures of experiments, which claims name

docs/analysis.md explains them; experiments in `papers/` compare them with packets.
"""
