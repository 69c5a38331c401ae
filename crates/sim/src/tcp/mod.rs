// SPDX-License-Identifier: Apache-2.0
//! TCP by the RFCs.
