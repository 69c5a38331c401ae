# SPDX-License-Identifier: Apache-2.0
"""`penstock tune`: a search for a scheme's parameters, and a check of what it found."""
