// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Grant: receive windows as credit (`core/grant.h`).

use std::ffi::c_void;

use crate::definitions;
use crate::memory::Memory;
use crate::params::Params;

/// `struct grant_packet`: a packet of a flow.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct GrantPacket {
    /// The instant, nanoseconds.
    pub now_ns: u64,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// TCP payload, bytes.
    pub payload: u32,
    /// Timestamp value (RFC 7323).
    pub ts_val: u32,
    /// Timestamp echo reply.
    pub ts_ecr: u32,
    /// The window field, as it came.
    pub window: u16,
    /// Segment size of the data; 0 unknown.
    pub mss: u16,
    /// Scale of the windows in the ACK direction, for [`Grant::begin`].
    pub scale: u8,
    /// TCP flags ([`crate::flow::flag`]).
    pub flags: u8,
    /// Nothing.
    pub reserved: [u8; 6],
}

/// `struct grant_opening`: how a flow's connection began.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct GrantOpening {
    /// Sequence number of the first byte of data; with the next two, if `by_sender`.
    pub seq: u32,
    /// Window of the SYN-ACK, as the receiver offered it, bytes.
    pub window: u16,
    /// Likewise, as the sender was shown it ([`Grant::syn_window`]).
    pub shown: u16,
    /// 1: the sender of the data opened it, and ends its handshake.
    pub by_sender: u32,
}

/// `struct grant_action`: an ACK without payload to send to a flow's sender.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrantAction {
    /// The flow's number.
    pub flow: u32,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Timestamp value.
    pub ts_val: u32,
    /// Timestamp echo reply.
    pub ts_ecr: u32,
    /// The window field.
    pub window: u16,
    reserved: u16,
}

impl GrantAction {
    fn if_any(self) -> Option<GrantAction> {
        (self.flow != 0).then_some(self)
    }
}

// The pointers are to `struct grant_port`, `struct grant_params`, and GRANT_FLOWS of `struct grant_flow`.
unsafe extern "C" {
    safe fn core_grant_flows() -> u32;
    safe fn core_grant_flow_bytes() -> u32;
    safe fn core_grant_burst() -> u32;
    safe fn core_grant_learn_ns() -> u32;
    safe fn core_grant_counts() -> u32;
    fn core_grant_init(port: *mut c_void, p: *const c_void, rate_bps: u64, never_shrinks: bool);
    fn core_grant_tick_ns(port: *const c_void, p: *const c_void) -> u64;
    fn core_grant_begin(
        port: *mut c_void,
        p: *const c_void,
        flows: *mut c_void,
        packet: &GrantPacket,
        opening: &GrantOpening,
    ) -> u32;
    fn core_grant_syn_window(
        port: *const c_void,
        p: *const c_void,
        mss: u32,
        half_open: u32,
        must_open: bool,
        queue: u32,
        now_ns: u64,
    ) -> u32;
    fn core_grant_close(port: *mut c_void, flows: *mut c_void, flow: u32);
    fn core_grant_is_open(flows: *const c_void, flow: u32) -> bool;
    fn core_grant_on_bytes(port: *mut c_void, p: *const c_void, bytes: u32, now_ns: u64);
    fn core_grant_on_ack(
        port: *mut c_void,
        p: *const c_void,
        flows: *mut c_void,
        flow: u32,
        packet: &GrantPacket,
        queue: u32,
    ) -> u16;
    fn core_grant_on_data(
        port: *mut c_void,
        p: *const c_void,
        flows: *mut c_void,
        flow: u32,
        packet: &GrantPacket,
    );
    fn core_grant_next(
        port: *mut c_void,
        p: *const c_void,
        flows: *mut c_void,
        queue: u32,
        now_ns: u64,
    ) -> GrantAction;
    fn core_grant_on_timer(
        port: *mut c_void,
        p: *const c_void,
        flows: *mut c_void,
        queue: u32,
        now_ns: u64,
    ) -> GrantAction;
    fn core_grant_learn(port: *mut c_void, p: *const c_void);
}

/// Grant at one port, with its flows.
#[derive(Clone, Debug)]
pub struct Grant {
    params: Memory,
    port: Memory,
    flows: Memory,
}

// Each call hands over the structs as `new` made them, and C keeps no pointer.
impl Grant {
    /// A port of this rate without flows. `never_shrinks`: no window is taken back that was offered.
    ///
    /// # Panics
    /// The parameters are not Grant's.
    pub fn new(params: &Params, rate_bps: u64, never_shrinks: bool) -> Grant {
        assert_eq!(params.definition().name, "grant");
        let mut grant = Grant {
            params: params.memory.clone(),
            port: Memory::new(definitions::of("grant").state_bytes),
            flows: Memory::new(core_grant_flows() as usize * Grant::flow_bytes()),
        };
        // SAFETY: see the head of this block.
        unsafe {
            core_grant_init(
                grant.port.at_mut(0),
                grant.params.at(0),
                rate_bps,
                never_shrinks,
            )
        };
        grant
    }

    /// Bytes of `struct grant_flow`.
    pub fn flow_bytes() -> usize {
        core_grant_flow_bytes() as usize
    }

    /// How often an event may call [`Grant::next`] or [`Grant::on_timer`].
    pub fn burst() -> u32 {
        core_grant_burst()
    }

    /// Nanoseconds from one call of [`Grant::learn`] to the next.
    pub fn learn_ns() -> u64 {
        core_grant_learn_ns().into()
    }

    /// The most flows that it follows at a time.
    pub fn capacity() -> u32 {
        core_grant_flows() - 1
    }

    /// How often [`Grant::on_timer`] is due.
    pub fn tick_ns(&self) -> u64 {
        // SAFETY: see the head of this block.
        unsafe { core_grant_tick_ns(self.port.at(0), self.params.at(0)) }
    }

    /// Follows a flow from this packet on, which is then passed on: one of the ACK direction, or one of the
    /// other, `by_sender`. `None` if there are too many.
    pub fn begin(&mut self, packet: &GrantPacket, opening: &GrantOpening) -> Option<u32> {
        let (port, flows) = (self.port.at_mut(0), self.flows.at_mut(0));
        // SAFETY: see the head of this block.
        let flow = unsafe { core_grant_begin(port, self.params.at(0), flows, packet, opening) };
        (flow != 0).then_some(flow)
    }

    /// Bytes that the SYN-ACK towards a sender of data may offer, while so many other connections are half open.
    pub fn syn_window(&self, mss: u32, half_open: u32, queue_bytes: u32, now_ns: u64) -> u32 {
        let (port, p) = (self.port.at(0), self.params.at(0));
        // SAFETY: see the head of this block.
        unsafe { core_grant_syn_window(port, p, mss, half_open, false, queue_bytes, now_ns) }
    }

    /// Forgets a flow.
    pub fn close(&mut self, flow: u32) {
        // SAFETY: see the head of this block.
        unsafe { core_grant_close(self.port.at_mut(0), self.flows.at_mut(0), flow) }
    }

    /// Whether a flow is followed: it may have ended.
    pub fn is_open(&self, flow: u32) -> bool {
        // SAFETY: see the head of this block.
        unsafe { core_grant_is_open(self.flows.at(0), flow) }
    }

    /// Bytes have passed, of any flow or of none.
    pub fn on_bytes(&mut self, bytes: u32, now_ns: u64) {
        // SAFETY: see the head of this block.
        unsafe { core_grant_on_bytes(self.port.at_mut(0), self.params.at(0), bytes, now_ns) }
    }

    /// A packet of the ACK direction passes: the window field that it is to have.
    pub fn on_ack(&mut self, flow: u32, packet: &GrantPacket, queue_bytes: u32) -> u16 {
        let (port, flows) = (self.port.at_mut(0), self.flows.at_mut(0));
        // SAFETY: see the head of this block.
        unsafe { core_grant_on_ack(port, self.params.at(0), flows, flow, packet, queue_bytes) }
    }

    /// A packet of the data direction passes.
    pub fn on_data(&mut self, flow: u32, packet: &GrantPacket) {
        let (port, flows) = (self.port.at_mut(0), self.flows.at_mut(0));
        // SAFETY: see the head of this block.
        unsafe { core_grant_on_data(port, self.params.at(0), flows, flow, packet) }
    }

    /// The next grant, if the budget has room for it.
    pub fn next(&mut self, queue_bytes: u32, now_ns: u64) -> Option<GrantAction> {
        let (port, flows) = (self.port.at_mut(0), self.flows.at_mut(0));
        // SAFETY: see the head of this block.
        unsafe { core_grant_next(port, self.params.at(0), flows, queue_bytes, now_ns) }.if_any()
    }

    /// What is due at a tick: a grant that is sent again or taken back, or the next.
    pub fn on_timer(&mut self, queue_bytes: u32, now_ns: u64) -> Option<GrantAction> {
        let (port, flows) = (self.port.at_mut(0), self.flows.at_mut(0));
        // SAFETY: see the head of this block.
        unsafe { core_grant_on_timer(port, self.params.at(0), flows, queue_bytes, now_ns) }.if_any()
    }

    /// Orders the levels by the sizes that have passed.
    pub fn learn(&mut self) {
        // SAFETY: see the head of this block.
        unsafe { core_grant_learn(self.port.at_mut(0), self.params.at(0)) }
    }

    /// Grants, reminders of those without effect, and those given up.
    pub fn counts(&self) -> (u64, u64, u64) {
        // `struct grant_port` has them next to one another.
        let at = |place: usize| self.port.get(core_grant_counts() as usize + 8 * place, 8);
        (at(0), at(1), at(2))
    }

    /// The port, byte by byte, as `struct grant_port` has it.
    pub fn state(&self) -> &[u8] {
        self.port.bytes()
    }

    /// A flow, byte by byte, as `struct grant_flow` has it.
    pub fn flow(&self, flow: u32) -> &[u8] {
        &self.flows.bytes()[flow as usize * Grant::flow_bytes()..][..Grant::flow_bytes()]
    }
}
