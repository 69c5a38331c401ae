// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Safe Rust face of the C headers in `core/`.
