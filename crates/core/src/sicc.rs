// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! SICC: a controller foresees incast, shims clamp the windows (`core/sicc.h`).

use crate::error::{Check, ParamError};
use crate::tcp_rewrite::{AckKind, TcpWindow, raw_scale};

/// Parameters of SICC.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiccParams {
    /// See the table of `core/sicc.h`.
    pub buffer_bytes: u32,
    /// See the table of `core/sicc.h`.
    pub mss_bytes: u32,
    /// See the table of `core/sicc.h`.
    pub alpha1_q16: u32,
    /// See the table of `core/sicc.h`.
    pub alpha2_q16: u32,
    /// See the table of `core/sicc.h`.
    pub interval_ns: u64,
    /// See the table of `core/sicc.h`.
    pub initial_window_segments: u32,
    /// See the table of `core/sicc.h`.
    pub duration_ns: u64,
    /// See the table of `core/sicc.h`.
    pub floor_segments: u32,
    /// See the table of `core/sicc.h`.
    pub off_needs_both: u32,
}

impl SiccParams {
    /// The scheme as the paper's prose means it.
    pub fn new(buffer_bytes: u32) -> SiccParams {
        core_sicc_default_params(buffer_bytes)
    }

    /// The scheme as printed.
    pub fn paper(buffer_bytes: u32) -> SiccParams {
        core_sicc_paper_params(buffer_bytes)
    }

    /// Tells the first field outside its range.
    pub fn check(&self) -> Result<(), ParamError> {
        let check = Check("sicc");
        check.range("interval_ns", self.interval_ns, 1, u64::MAX)?;
        check.range("duration_ns", self.duration_ns, 1, u64::MAX)?;
        check.range("buffer_bytes", self.buffer_bytes, 1, u32::MAX.into())?;
        check.range("alpha1_q16", self.alpha1_q16, 0, 65536)?;
        check.range("alpha2_q16", self.alpha2_q16, 1, 256 * 65536)?;
        check.range(
            "initial_window_segments",
            self.initial_window_segments,
            1,
            65535,
        )?;
        check.range("mss_bytes", self.mss_bytes, 1, 65535)?;
        check.range("floor_segments", self.floor_segments, 1, 255)
    }
}

/// What the controller tells the sources behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SiccOrder {
    /// Send nothing.
    Keep = 0,
    /// Send INCAST_ON.
    On = 1,
    /// Send INCAST_OFF.
    Off = 2,
}

/// What the controller holds of a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiccPortState {
    /// When ON was last ordered, nanoseconds.
    pub on_since_ns: u64,
    /// Smoothed queue, 1/256 byte.
    pub queue_q8: u64,
    /// New connections in this interval.
    pub beta: u32,
    /// Whether incast is on.
    pub is_on: bool,
    pub(crate) reserved: [u8; 3],
}

/// What a shim holds of a pair of source and destination.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiccPairState {
    pub(crate) until_ns: u64,
    pub(crate) mss_bytes: u16,
    pub(crate) scale: u8,
    pub(crate) is_on: bool,
    pub(crate) reserved: [u8; 4],
}

unsafe extern "C" {
    safe fn core_sicc_default_params(buffer_bytes: u32) -> SiccParams;
    safe fn core_sicc_paper_params(buffer_bytes: u32) -> SiccParams;
    safe fn core_sicc_on_packet(port: &mut SiccPortState, flags: u32);
    safe fn core_sicc_on_interval(
        port: &mut SiccPortState,
        params: &SiccParams,
        queue_bytes: u32,
        now_ns: u64,
    ) -> SiccOrder;
    safe fn core_sicc_pair_on(
        pair: &mut SiccPairState,
        params: &SiccParams,
        mss_bytes: u16,
        scale: u32,
        now_ns: u64,
    );
    safe fn core_sicc_pair_off(pair: &mut SiccPairState);
    safe fn core_sicc_pair_on_ack(
        pair: &SiccPairState,
        params: &SiccParams,
        window: u16,
        scale: u32,
        kind: AckKind,
        now_ns: u64,
    ) -> TcpWindow;
}

/// The controller's logic for one switch port (SICC Algorithm 1).
#[derive(Clone, Debug)]
pub struct SiccPort {
    params: SiccParams,
    state: SiccPortState,
}

impl SiccPort {
    /// A port of which nothing is known.
    ///
    /// # Errors
    /// The first parameter outside its range.
    pub fn new(params: SiccParams) -> Result<SiccPort, ParamError> {
        params.check()?;
        Ok(SiccPort {
            params,
            state: SiccPortState::default(),
        })
    }

    /// A copy of a SYN-ACK or FIN that passed the port; `flags` as on the wire.
    pub fn on_packet(&mut self, flags: u8) {
        core_sicc_on_packet(&mut self.state, flags.into());
    }

    /// Every [`SiccParams::interval_ns`], with the length of the port's queue.
    pub fn on_interval(&mut self, queue_bytes: u32, now_ns: u64) -> SiccOrder {
        core_sicc_on_interval(&mut self.state, &self.params, queue_bytes, now_ns)
    }

    /// The parameters it was made with.
    pub fn params(&self) -> &SiccParams {
        &self.params
    }

    /// The state, for traces.
    pub fn state(&self) -> &SiccPortState {
        &self.state
    }
}

/// The shim's logic for one pair of source and destination (SICC Algorithm 2).
#[derive(Clone, Debug)]
pub struct SiccShim {
    params: SiccParams,
    state: SiccPairState,
}

impl SiccShim {
    /// A pair without incast.
    ///
    /// # Errors
    /// The first parameter outside its range.
    pub fn new(params: SiccParams) -> Result<SiccShim, ParamError> {
        params.check()?;
        Ok(SiccShim {
            params,
            state: SiccPairState::default(),
        })
    }

    /// INCAST_ON arrived. A message with an MSS of 0 is malformed and ignored.
    pub fn on(&mut self, mss_bytes: u16, scale: Option<u8>, now_ns: u64) {
        core_sicc_pair_on(
            &mut self.state,
            &self.params,
            mss_bytes,
            raw_scale(scale),
            now_ns,
        );
    }

    /// INCAST_OFF arrived.
    pub fn off(&mut self) {
        core_sicc_pair_off(&mut self.state);
    }

    /// The window field for an ACK that reaches the source; `scale` is its flow's, or `None` for
    /// the pair's.
    pub fn on_ack(&self, window: u16, scale: Option<u8>, kind: AckKind, now_ns: u64) -> TcpWindow {
        core_sicc_pair_on_ack(
            &self.state,
            &self.params,
            window,
            raw_scale(scale),
            kind,
            now_ns,
        )
    }

    /// Whether windows are clamped now.
    pub fn is_clamping(&self, now_ns: u64) -> bool {
        self.state.is_on && now_ns < self.state.until_ns
    }
}
