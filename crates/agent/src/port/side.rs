// SPDX-License-Identifier: Apache-2.0
//! The two directions of an interface.

/// A direction of an interface, which has a hook and a program of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Packets that leave by the port.
    Egress,
    /// Packets that enter by it.
    Ingress,
}

impl Side {
    /// Both, in the order in which programs are attached: data is watched before ACKs are
    /// rewritten.
    pub const BOTH: [Side; 2] = [Side::Egress, Side::Ingress];

    /// As in the names of programs and pins.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Egress => "egress",
            Side::Ingress => "ingress",
        }
    }
}
