// SPDX-License-Identifier: Apache-2.0
//! Actions (§7.2.6) and instructions (§7.2.5).

use penstock_sdn::codec::Output;

const OUTPUT: u16 = 0;
const GOTO_TABLE: u16 = 1;
const APPLY_ACTIONS: u16 = 4;
const WHOLE: u16 = 0xffff;

/// What is done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// These, at once.
    Apply(Vec<Action>),
    /// The rules of a later table follow.
    Goto(u8),
}

impl Instruction {
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
