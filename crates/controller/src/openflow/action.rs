// SPDX-License-Identifier: Apache-2.0
//! Actions (§7.2.6) and instructions (§7.2.5).

use penstock_sdn::codec::{Input, Output};

const OUTPUT: u16 = 0;
const GOTO_TABLE: u16 = 1;
const APPLY_ACTIONS: u16 = 4;
const WHOLE: u16 = 0xffff;

/// What is done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It is sent out by a port; see [`number`](crate::openflow::number).
    Output(u32),
    /// Its first bytes are sent to the controller.
    Copy(u16),
}

impl Action {
    pub(crate) fn write_all(actions: &[Action], out: &mut Vec<u8>) {
        for action in actions {
            let (port, bytes) = match action {
                Action::Output(port) => (*port, WHOLE),
                Action::Copy(bytes) => (crate::openflow::number::CONTROLLER, *bytes),
            };
            out.u16(OUTPUT);
            out.u16(16);
            out.u32(port);
            out.u16(bytes);
            out.zeros(6);
        }
    }
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// These, at once.
    Apply(Vec<Action>),
    /// The rules of a later table follow.
    Goto(u8),
}

impl Instruction {
    /// The port by which a rule with one action sends packets.
    pub(crate) fn read_output(mut bytes: Input<'_>) -> Option<u32> {
        let kind = bytes.u16()?;
        bytes.take(6)?;
        let action = bytes.u16()?;
        bytes.take(2)?;
        let port = bytes.u32()?;
        bytes.take(8)?;
        ((kind, action) == (APPLY_ACTIONS, OUTPUT) && bytes.0.is_empty()).then_some(port)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Instruction::Goto(table) => {
                out.u16(GOTO_TABLE);
                out.u16(8);
                out.push(*table);
                out.zeros(3);
            }
            Instruction::Apply(actions) => {
                out.u16(APPLY_ACTIONS);
                out.u16(0);
                out.zeros(4);
                Action::write_all(actions, out);
                out.set_length(start + 2, start);
            }
        }
    }
}
