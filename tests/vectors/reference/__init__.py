# SPDX-License-Identifier: Apache-2.0
"""Plain models of the schemes, written from the papers and RFCs, never from core/."""
