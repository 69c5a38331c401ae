// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! FairQ: one window per output port, shared evenly by its flows (`core/fairq.h`).

use crate::error::{Check, ParamError};
use crate::tcp_rewrite::{AckKind, TcpWindow, raw_scale};

/// Parameters of FairQ (FairQ Table I).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairQParams {
    /// T: how often [`FairQ::on_tick`] is called, nanoseconds; at least 1.
    pub interval_ns: u64,
    /// B: the port's buffer, bytes.
    pub buffer_bytes: u32,
    /// Target queue as a fraction of B, 1/65536: 1 to 65536, and at least one byte of B.
    pub alpha_q16: u32,
    /// M: intervals per change of the window, 1 to 65535.
    pub intervals: u32,
    /// Segment size until data was seen, bytes, 1 to 65535.
    pub mss_bytes: u32,
    /// Equal-cost paths that share the window (FairQ §III-B), 1 to 65535.
    pub paths: u32,
    /// Slow start adds 2 MSS / flows; if not, 2 MSS as printed.
    pub shares_slow_start: bool,
    /// Least window written, segments, 1 to 255.
    pub floor_segments: u8,
    /// The same for SYN-ACKs and the first ACKs, as long as the buffer holds it of every flow.
    pub first_floor_segments: u8,
    /// Use the mean of 32 [`FairQ::on_sample`] (FairQ §IV-E, avg_32) for the queue length.
    pub is_averaged: bool,
}

impl FairQParams {
    /// The scheme that works on real TCP.
    pub fn new(buffer_bytes: u32) -> FairQParams {
        core_fq_default_params(buffer_bytes)
    }

    /// The scheme as printed.
    pub fn paper(buffer_bytes: u32) -> FairQParams {
        core_fq_paper_params(buffer_bytes)
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

/// What FairQ holds of a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairQState {
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
    safe fn core_fq_default_params(buffer_bytes: u32) -> FairQParams;
    safe fn core_fq_paper_params(buffer_bytes: u32) -> FairQParams;
    #[cfg(test)]
    pub(crate) safe fn core_fq_params_ok(params: &FairQParams) -> bool;
    safe fn core_fq_init(state: &mut FairQState, params: &FairQParams);
    safe fn core_fq_set_flows(state: &mut FairQState, flows: u32);
    safe fn core_fq_on_flow(state: &mut FairQState, delta: i32);
    safe fn core_fq_on_data(state: &mut FairQState, payload_bytes: u32);
    safe fn core_fq_on_sample(state: &mut FairQState, queue_bytes: u32);
    safe fn core_fq_on_tick(state: &mut FairQState, params: &FairQParams, queue_bytes: u32);
    safe fn core_fq_window_bytes(state: &FairQState, params: &FairQParams) -> u32;
    safe fn core_fq_on_ack(
        state: &FairQState,
        params: &FairQParams,
        window: u16,
        scale: u32,
        mss_bytes: u32,
        kind: AckKind,
    ) -> TcpWindow;
}

/// FairQ at one output port.
#[derive(Clone, Debug)]
pub struct FairQ {
    params: FairQParams,
    state: FairQState,
}

impl FairQ {
    /// A port without flows.
    ///
    /// # Errors
    /// The first parameter outside its range.
    pub fn new(params: FairQParams) -> Result<FairQ, ParamError> {
        params.check()?;
        let mut state = FairQState {
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
        core_fq_init(&mut state, &params);
        Ok(FairQ { params, state })
    }

    /// A flow came (1), went (-1), or neither (0): what a [`FlowEntry`](crate::FlowEntry) returns.
    pub fn on_flow(&mut self, delta: i32) {
        if delta != 0 {
            core_fq_on_flow(&mut self.state, delta);
        }
    }

    /// Takes the number of flows a [`FlowCounter`](crate::FlowCounter) returns.
    pub fn set_flows(&mut self, flows: u32) {
        core_fq_set_flows(&mut self.state, flows);
    }

    /// A data packet leaves by the port; the largest payload is taken for the segment size.
    pub fn on_data(&mut self, payload_bytes: u32) {
        core_fq_on_data(&mut self.state, payload_bytes);
    }

    /// One sample of the queue for the mean of 32.
    pub fn on_sample(&mut self, queue_bytes: u32) {
        core_fq_on_sample(&mut self.state, queue_bytes);
    }

    /// Every [`FairQParams::interval_ns`], with the length of the output queue.
    pub fn on_tick(&mut self, queue_bytes: u32) {
        core_fq_on_tick(&mut self.state, &self.params, queue_bytes);
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
        core_fq_on_ack(
            &self.state,
            &self.params,
            window,
            raw_scale(scale),
            mss_bytes,
            kind,
        )
    }

    /// The window a flow may have now, bytes, before the floor.
    pub fn window_bytes(&self) -> u32 {
        core_fq_window_bytes(&self.state, &self.params)
    }

    /// The parameters it was made with.
    pub fn params(&self) -> &FairQParams {
        &self.params
    }

    /// The state, for traces.
    pub fn state(&self) -> &FairQState {
        &self.state
    }
}
