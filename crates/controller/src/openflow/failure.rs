// SPDX-License-Identifier: Apache-2.0
//! Types and codes of requests that a switch refuses, `enum ofp_error_type`.

/// A request that cannot be done.
pub const BAD_REQUEST: u16 = 1;
/// Of [`BAD_REQUEST`]: a slave may not change the switch.
pub const IS_SLAVE: u16 = 10;
/// A rule, or a packet of ours, with an action that the switch does not know; 3 and 4 are of instructions and matches.
const BAD_ACTION: u16 = 2;
/// A rule that cannot be added or removed.
pub const FLOW_MOD_FAILED: u16 = 5;
/// Of [`FLOW_MOD_FAILED`]: there is no room.
pub const TABLE_FULL: u16 = 1;
/// A role that is not given.
pub const ROLE_REQUEST_FAILED: u16 = 11;
/// Of [`ROLE_REQUEST_FAILED`]: there was a later election.
pub const STALE: u16 = 0;
/// Of [`ROLE_REQUEST_FAILED`] and [`BAD_REQUEST`]: the switch has no roles, or does not know the request.
pub const UNSUPPORTED: u16 = 1;

/// Whether an error of this type refuses a rule, as far as the type of the request is known.
pub fn is_of_rule(kind: u16, request: Option<u8>) -> bool {
    (BAD_ACTION..=FLOW_MOD_FAILED).contains(&kind) && request != Some(super::kind::PACKET_OUT)
}
