// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! A window scheme at one port, whichever it is (`core/window.h`, `core/schemes.h`).

use std::ffi::c_void;

use crate::memory::Memory;
use crate::params::Params;
use crate::segment::PortSegments;
use crate::tcp_rewrite::{AckKind, SCALE_UNKNOWN, TcpWindow, raw_scale};

/// How a scheme has its flows counted (`enum counting` of `core/window.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// In a table of flows.
    Exact,
    /// SYN-ACKs minus FINs.
    Packets,
    /// It does not need the number.
    None,
}

/// How a port learns the window scale of a flow (`enum wscale_source` of `core/window.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WscaleSource {
    /// The port remembers each flow's SYN and SYN-ACK.
    #[default]
    Tracked,
    /// The four reserved bits of the header.
    ReservedBits,
    /// The upper four bits of the window field, which leaves twelve for windows up to 4095.
    WindowBits,
    /// All windows have one scale; for hosts that offer to scale.
    Unified,
    /// The port takes the option out of SYNs: no window is scaled.
    Stripped,
    /// The port lowers the option of SYNs to the network's scale.
    Lowered,
}

impl WscaleSource {
    /// All, in the order of `core/window.h`.
    pub const ALL: [WscaleSource; 6] = [
        WscaleSource::Tracked,
        WscaleSource::ReservedBits,
        WscaleSource::WindowBits,
        WscaleSource::Unified,
        WscaleSource::Stripped,
        WscaleSource::Lowered,
    ];

    /// Whether it needs shims below the hosts.
    pub fn has_shims(self) -> bool {
        use WscaleSource::{ReservedBits, Unified, WindowBits};
        matches!(self, ReservedBits | WindowBits | Unified)
    }

    /// The scale that a port leaves in a SYN, or in the answer to one, which offers `scale`; `None`:
    /// it takes the option out.
    pub fn syn_scale(self, network: u8, scale: u8, is_answer: bool) -> Option<u8> {
        let left = core_syn_scale(self as u32, network.into(), scale.into(), is_answer);
        (left != SCALE_UNKNOWN).then_some(left as u8)
    }
}

// The pointers are to the structs of the scheme.
unsafe extern "C" {
    safe fn core_syn_scale(source: u32, network_scale: u32, scale: u32, is_answer: bool) -> u32;
    fn core_scheme_init(scheme: u32, s: *mut c_void, p: *const c_void);
    fn core_scheme_on_flows(scheme: u32, s: *mut c_void, flows: u32);
    fn core_scheme_counting(scheme: u32, p: *const c_void) -> u32;
    fn core_scheme_on_mss(scheme: u32, s: *mut c_void, mss: u32);
    fn core_scheme_on_queue(scheme: u32, s: *mut c_void, p: *const c_void, queue: u32, now: u64);
    fn core_scheme_heeds_queue(
        scheme: u32,
        s: *const c_void,
        p: *const c_void,
        queue: u32,
        now: u64,
    ) -> bool;
    fn core_scheme_is_clamping(scheme: u32, s: *const c_void, p: *const c_void, now: u64) -> bool;
    fn core_scheme_follow(
        scheme: u32,
        s: *mut c_void,
        p: *const c_void,
        segments: &mut PortSegments,
        payload: u32,
        is_full: bool,
        queue: u32,
        now: u64,
    ) -> bool;
    fn core_scheme_follow_ack(
        scheme: u32,
        s: *mut c_void,
        p: *const c_void,
        flows: u32,
        queue: u32,
        window: u16,
        scale: u32,
        mss: u32,
        kind: AckKind,
        now: u64,
        is_clamping: &mut bool,
    ) -> TcpWindow;
    fn core_scheme_tick_ns(scheme: u32, p: *const c_void) -> u64;
    fn core_scheme_on_tick(
        scheme: u32,
        s: *mut c_void,
        p: *const c_void,
        queue: u32,
        total: u64,
        now: u64,
    );
    fn core_scheme_on_ack(
        scheme: u32,
        s: *const c_void,
        p: *const c_void,
        window: u16,
        scale: u32,
        mss: u32,
        kind: AckKind,
        now: u64,
    ) -> TcpWindow;
    fn core_scheme_window_bytes(scheme: u32, s: *const c_void, p: *const c_void) -> u32;
    fn core_scheme_drops(
        scheme: u32,
        p: *const c_void,
        queue: u32,
        packet: u32,
        is_control: bool,
    ) -> u32;
}

/// What becomes of an arriving packet (`enum data_fate` of `core/window.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFate {
    /// It joins the queue.
    Passes,
    /// It is lost.
    Dropped,
    /// Its payload is lost, the ACK that it carries goes on.
    Cut,
}

/// A passing ACK: its window field, and what is known of its flow.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// The field, as on the wire.
    pub window: u16,
    /// Its shift, `None` if not known.
    pub scale: Option<u8>,
    /// Largest segment of the flow, bytes; 0 if not known.
    pub mss_bytes: u32,
    /// Where in the life of the flow it stands.
    pub kind: AckKind,
}

/// A window scheme at one output port: its parameters and its state.
#[derive(Clone, Debug)]
pub struct WindowScheme {
    /// `enum window_scheme`.
    number: u32,
    /// The struct of the parameters, behind it that of the state.
    memory: Memory,
    /// The word at which the state begins.
    state: usize,
    state_bytes: usize,
}

// Each call hands over the structs of the scheme with `number`, as `new` laid them out, and C keeps
// no pointer.
impl WindowScheme {
    /// A port without flows.
    ///
    /// # Panics
    /// The parameters are of no window scheme.
    pub fn new(params: &Params) -> WindowScheme {
        let definition = params.definition();
        assert!(
            definition.scheme > 0,
            "{} is no window scheme",
            definition.name
        );
        let mut scheme = WindowScheme {
            number: definition.scheme,
            memory: Memory::after(&params.memory, definition.state_bytes),
            state: Memory::words(definition.params_bytes),
            state_bytes: definition.state_bytes,
        };
        // SAFETY: see the head of this block.
        unsafe { core_scheme_init(scheme.number, scheme.s_mut(), scheme.p()) };
        scheme
    }

    fn p(&self) -> *const c_void {
        self.memory.at(0)
    }

    fn s(&self) -> *const c_void {
        self.memory.at(self.state)
    }

    fn s_mut(&mut self) -> *mut c_void {
        self.memory.at_mut(self.state)
    }

    /// How it has its flows counted.
    pub fn counting(&self) -> Counting {
        // SAFETY: see the head of this block.
        match unsafe { core_scheme_counting(self.number, self.p()) } {
            0 => Counting::Exact,
            1 => Counting::Packets,
            _ => Counting::None,
        }
    }

    /// The number of flows, when it has changed.
    pub fn on_flows(&mut self, flows: u32) {
        // SAFETY: see the head of this block.
        unsafe { core_scheme_on_flows(self.number, self.s_mut(), flows) }
    }

    /// The size of the port's segments, when it has changed.
    pub fn on_mss(&mut self, mss_bytes: u32) {
        // SAFETY: see the head of this block.
        unsafe { core_scheme_on_mss(self.number, self.s_mut(), mss_bytes) }
    }

    /// The port's queue has so many bytes.
    pub fn on_queue(&mut self, queue_bytes: u32, now_ns: u64) {
        let (s, p) = (self.s_mut(), self.p());
        // SAFETY: see the head of this block.
        unsafe { core_scheme_on_queue(self.number, s, p, queue_bytes, now_ns) }
    }

    /// Whether [`WindowScheme::on_queue`] would change anything of note.
    pub fn heeds_queue(&self, queue_bytes: u32, now_ns: u64) -> bool {
        // SAFETY: see the head of this block.
        unsafe { core_scheme_heeds_queue(self.number, self.s(), self.p(), queue_bytes, now_ns) }
    }

    /// Whether it holds all flows at their least now.
    pub fn is_clamping(&self, now_ns: u64) -> bool {
        // SAFETY: see the head of this block.
        unsafe { core_scheme_is_clamping(self.number, self.s(), self.p(), now_ns) }
    }

    /// [`PortSegments::on_data`], with 0 for no data, [`WindowScheme::on_mss`],
    /// [`WindowScheme::on_queue`] and [`WindowScheme::is_clamping`] in one call.
    pub fn follow(
        &mut self,
        segments: &mut PortSegments,
        payload_bytes: u32,
        is_full: bool,
        queue_bytes: u32,
        now_ns: u64,
    ) -> bool {
        let (s, p) = (self.s_mut(), self.p());
        // SAFETY: see the head of this block.
        unsafe {
            core_scheme_follow(
                self.number,
                s,
                p,
                segments,
                payload_bytes,
                is_full,
                queue_bytes,
                now_ns,
            )
        }
    }

    /// How often [`WindowScheme::on_tick`] is due, nanoseconds; `None` for never.
    pub fn tick_ns(&self) -> Option<u64> {
        // SAFETY: see the head of this block.
        let interval = unsafe { core_scheme_tick_ns(self.number, self.p()) };
        (interval > 0).then_some(interval)
    }

    /// An interval is over, and `total_bytes` have left by the port so far; wraps.
    pub fn on_tick(&mut self, queue_bytes: u32, total_bytes: u64, now_ns: u64) {
        let (s, p) = (self.s_mut(), self.p());
        // SAFETY: see the head of this block.
        unsafe { core_scheme_on_tick(self.number, s, p, queue_bytes, total_bytes, now_ns) }
    }

    /// The window field for an ACK that enters by the port. `scale` and `mss_bytes` (0 if not
    /// known) are its flow's. Count the flow of a SYN-ACK before.
    pub fn on_ack(
        &self,
        window: u16,
        scale: Option<u8>,
        mss_bytes: u32,
        kind: AckKind,
        now_ns: u64,
    ) -> TcpWindow {
        let (s, p, scale) = (self.s(), self.p(), raw_scale(scale));
        // SAFETY: see the head of this block.
        unsafe { core_scheme_on_ack(self.number, s, p, window, scale, mss_bytes, kind, now_ns) }
    }

    /// [`WindowScheme::on_queue`], [`WindowScheme::on_ack`] and [`WindowScheme::is_clamping`] in
    /// one call. For a SYN-ACK or first ACK while handshakes are under way, `flows` is how many
    /// flows there would be with them, which share the window among each other too; else 0.
    pub fn follow_ack(
        &mut self,
        flows: u32,
        queue_bytes: u32,
        ack: &Ack,
        now_ns: u64,
    ) -> (TcpWindow, bool) {
        let (s, p, scale) = (self.s_mut(), self.p(), raw_scale(ack.scale));
        let mut is_clamping = false;
        // SAFETY: see the head of this block.
        let window = unsafe {
            core_scheme_follow_ack(
                self.number,
                s,
                p,
                flows,
                queue_bytes,
                ack.window,
                scale,
                ack.mss_bytes,
                ack.kind,
                now_ns,
                &mut is_clamping,
            )
        };
        (window, is_clamping)
    }

    /// The window a flow may have now, bytes, before the floor; the largest of TCP if any.
    pub fn window_bytes(&self) -> u32 {
        // SAFETY: see the head of this block.
        unsafe { core_scheme_window_bytes(self.number, self.s(), self.p()) }
    }

    /// What becomes of a packet that arrives at such a queue; `is_control`: it is a SYN, FIN, RST
    /// or carries no data.
    pub fn drops(&self, queue_bytes: u32, packet_bytes: u32, is_control: bool) -> DataFate {
        let p = self.p();
        // SAFETY: see the head of this block.
        match unsafe { core_scheme_drops(self.number, p, queue_bytes, packet_bytes, is_control) } {
            0 => DataFate::Passes,
            1 => DataFate::Dropped,
            _ => DataFate::Cut,
        }
    }

    /// The state, byte by byte, as `struct NAME_state` has it.
    pub fn state(&self) -> &[u8] {
        &self.memory.bytes()[self.state_range()]
    }

    /// The same, to be written: C takes any.
    pub fn state_mut(&mut self) -> &mut [u8] {
        let range = self.state_range();
        &mut self.memory.bytes_mut()[range]
    }

    fn state_range(&self) -> std::ops::Range<usize> {
        let start = size_of::<u64>() * self.state;
        start..start + self.state_bytes
    }
}
