// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! FairQ: one window per output port, shared evenly by its flows (`core/fairq.h`).

use crate::error::{Check, ParamError};
use crate::tcp_rewrite::{AckKind, TcpWindow, raw_scale};

/// Parameters of FairQ (FairQ Table I).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairqParams {
    /// See the table of `core/fairq.h`.
    pub buffer_bytes: u32,
    /// See the table of `core/fairq.h`.
    pub mss_bytes: u32,
    /// See the table of `core/fairq.h`.
    pub alpha_q16: u32,
    /// See the table of `core/fairq.h`.
    pub interval_ns: u64,
    /// See the table of `core/fairq.h`.
    pub intervals: u32,
    /// See the table of `core/fairq.h`.
    pub shares_slow_start: u32,
    /// See the table of `core/fairq.h`.
    pub floor_segments: u32,
    /// See the table of `core/fairq.h`.
    pub first_floor_segments: u32,
    /// See the table of `core/fairq.h`.
    pub averaged: u32,
    /// See the table of `core/fairq.h`.
    pub paths: u32,
    /// See the table of `core/fairq.h`.
    pub counting: u32,
}

impl FairqParams {
    /// The scheme that works on real TCP.
    pub fn new(buffer_bytes: u32) -> FairqParams {
        core_fairq_default_params(buffer_bytes)
    }

    /// The scheme as printed.
    pub fn paper(buffer_bytes: u32) -> FairqParams {
        core_fairq_paper_params(buffer_bytes)
    }

    /// Tells the first field outside its range.
    pub fn check(&self) -> Result<(), ParamError> {
        let check = Check("fairq");
        check.range("interval_ns", self.interval_ns, 1, u64::MAX)?;
        check.range("alpha_q16", self.alpha_q16, 1, 65536)?;
        let least_buffer = 65536u64.div_ceil(self.alpha_q16.into());
        check.range(
            "buffer_bytes",
            self.buffer_bytes,
            least_buffer,
            u32::MAX.into(),
        )?;
        check.range("intervals", self.intervals, 1, 65535)?;
        check.range("mss_bytes", self.mss_bytes, 1, 65535)?;
        check.range("paths", self.paths, 1, 65535)?;
        check.range("floor_segments", self.floor_segments, 1, 255)?;
        check.range("first_floor_segments", self.first_floor_segments, 1, 255)
    }
}

/// What Fairq holds of a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairqState {
    /// Window of one flow, 1/256 byte; not held to the floor.
    pub window_q8: u64,
    /// Increment gathered for all flows, 1/256 byte.
    pub gamma_q8: i64,
    pub(crate) sample_sum: u64,
    /// The queue aimed at, bytes.
    pub target_bytes: u32,
    /// Flows counted.
    pub flows: u32,
    /// Largest payload seen, bytes.
    pub mss_bytes: u32,
    /// Intervals since the last change of the window.
    pub ticks: u32,
    pub(crate) samples: [u32; 32],
    pub(crate) next_sample: u8,
    /// Whether slow start goes on.
    pub in_slow_start: bool,
    pub(crate) has_data: bool,
    pub(crate) reserved: [u8; 5],
}

unsafe extern "C" {
    safe fn core_fairq_default_params(buffer_bytes: u32) -> FairqParams;
    safe fn core_fairq_paper_params(buffer_bytes: u32) -> FairqParams;
    safe fn core_fairq_init(state: &mut FairqState, params: &FairqParams);
    safe fn core_fairq_on_flows(state: &mut FairqState, flows: u32);
    safe fn core_fairq_on_data(state: &mut FairqState, payload_bytes: u32);
    safe fn core_fairq_on_sample(state: &mut FairqState, queue_bytes: u32);
    safe fn core_fairq_on_interval(state: &mut FairqState, params: &FairqParams, queue_bytes: u32);
    safe fn core_fairq_window_bytes(state: &FairqState, params: &FairqParams) -> u32;
    safe fn core_fairq_on_ack(
        state: &FairqState,
        params: &FairqParams,
        window: u16,
        scale: u32,
        mss_bytes: u32,
        kind: AckKind,
        now_ns: u64,
    ) -> TcpWindow;
}

/// Fairq at one output port.
#[derive(Clone, Debug)]
pub struct Fairq {
    params: FairqParams,
    state: FairqState,
}

impl Fairq {
    /// A port without flows.
    ///
    /// # Errors
    /// The first parameter outside its range.
    pub fn new(params: FairqParams) -> Result<Fairq, ParamError> {
        params.check()?;
        let mut state = FairqState {
            window_q8: 0,
            gamma_q8: 0,
            sample_sum: 0,
            target_bytes: 0,
            flows: 0,
            mss_bytes: 0,
            ticks: 0,
            samples: [0; 32],
            next_sample: 0,
            in_slow_start: false,
            has_data: false,
            reserved: [0; 5],
        };
        core_fairq_init(&mut state, &params);
        Ok(Fairq { params, state })
    }

    /// A flow came (1), went (-1), or neither (0): what a [`FlowEntry`](crate::FlowEntry) returns.
    pub fn on_flow(&mut self, delta: i32) {
        if delta != 0 {
            let flows = self.state.flows.saturating_add_signed(delta);
            core_fairq_on_flows(&mut self.state, flows);
        }
    }

    /// Takes the number of flows a [`FlowCounter`](crate::FlowCounter) returns.
    pub fn set_flows(&mut self, flows: u32) {
        core_fairq_on_flows(&mut self.state, flows);
    }

    /// A data packet leaves by the port; the largest payload is taken for the segment size.
    pub fn on_data(&mut self, payload_bytes: u32) {
        core_fairq_on_data(&mut self.state, payload_bytes);
    }

    /// One sample of the queue for the mean of 32.
    pub fn on_sample(&mut self, queue_bytes: u32) {
        core_fairq_on_sample(&mut self.state, queue_bytes);
    }

    /// Every [`FairqParams::interval_ns`], with the length of the output queue.
    pub fn on_tick(&mut self, queue_bytes: u32) {
        core_fairq_on_interval(&mut self.state, &self.params, queue_bytes);
    }

    /// The window field for an ACK that enters by the port. `scale` and `mss_bytes` (0 if not
    /// known) are its flow's. Count the flow of a SYN-ACK before.
    pub fn on_ack(
        &self,
        window: u16,
        scale: Option<u8>,
        mss_bytes: u32,
        kind: AckKind,
    ) -> TcpWindow {
        core_fairq_on_ack(
            &self.state,
            &self.params,
            window,
            raw_scale(scale),
            mss_bytes,
            kind,
            0,
        )
    }

    /// The window a flow may have now, bytes, before the floor.
    pub fn window_bytes(&self) -> u32 {
        core_fairq_window_bytes(&self.state, &self.params)
    }

    /// The parameters it was made with.
    pub fn params(&self) -> &FairqParams {
        &self.params
    }

    /// The state, for traces.
    pub fn state(&self) -> &FairqState {
        &self.state
    }
}
