// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! HSCC: hysteresis on the queue clamps every flow to one segment (`core/hscc.h`).

use crate::error::{Check, ParamError};
use crate::tcp_rewrite::{AckKind, TcpWindow, raw_scale};

/// Parameters of HSCC.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HsccParams {
    /// See the table of `core/hscc.h`.
    pub buffer_bytes: u32,
    /// See the table of `core/hscc.h`.
    pub mss_bytes: u32,
    /// See the table of `core/hscc.h`.
    pub alpha1_bytes: u32,
    /// See the table of `core/hscc.h`.
    pub alpha2_bytes: u32,
    /// See the table of `core/hscc.h`.
    pub sigma_bytes: u32,
    /// See the table of `core/hscc.h`.
    pub floor_segments: u32,
    /// See the table of `core/hscc.h`.
    pub first_flight_segments: u32,
    /// See the table of `core/hscc.h`.
    pub release_step_bytes: u32,
    /// See the table of `core/hscc.h`.
    pub release_interval_ns: u64,
    /// See the table of `core/hscc.h`.
    pub expiry_ns: u64,
}

impl HsccParams {
    /// The scheme that works on real TCP.
    pub fn new(buffer_bytes: u32) -> HsccParams {
        core_hscc_default_params(buffer_bytes)
    }

    /// The scheme as printed.
    pub fn paper(buffer_bytes: u32) -> HsccParams {
        core_hscc_paper_params(buffer_bytes)
    }

    /// Tells the first field outside its range.
    pub fn check(&self) -> Result<(), ParamError> {
        let check = Check("hscc");
        check.range("release_interval_ns", self.release_interval_ns, 1, u64::MAX)?;
        check.range("alpha2_bytes", self.alpha2_bytes, 1, u32::MAX.into())?;
        check.range(
            "alpha1_bytes",
            self.alpha1_bytes,
            0,
            u64::from(self.alpha2_bytes) - 1,
        )?;
        check.range("mss_bytes", self.mss_bytes, 1, 65535)?;
        check.range("floor_segments", self.floor_segments, 1, 255)
    }
}

/// What HSCC holds of a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HsccState {
    pub(crate) queue_seen_ns: u64,
    pub(crate) released_ns: u64,
    pub(crate) mode: u8,
    pub(crate) is_released: bool,
    pub(crate) reserved: [u8; 6],
}

unsafe extern "C" {
    safe fn core_hscc_default_params(buffer_bytes: u32) -> HsccParams;
    safe fn core_hscc_paper_params(buffer_bytes: u32) -> HsccParams;
    safe fn core_hscc_on_queue(s: &mut HsccState, p: &HsccParams, queue_bytes: u32, now_ns: u64);
    safe fn core_hscc_is_clamping(state: &HsccState, params: &HsccParams, now_ns: u64) -> bool;
    safe fn core_hscc_on_ack(
        state: &HsccState,
        params: &HsccParams,
        window: u16,
        scale: u32,
        mss_bytes: u32,
        kind: AckKind,
        now_ns: u64,
    ) -> TcpWindow;
    safe fn core_hscc_drops(p: &HsccParams, queue: u32, packet: u32, is_control: bool) -> bool;
}

/// HSCC at one output port.
#[derive(Clone, Debug)]
pub struct Hscc {
    params: HsccParams,
    state: HsccState,
}

impl Hscc {
    /// A port with an empty queue.
    ///
    /// # Errors
    /// The first parameter outside its range.
    pub fn new(params: HsccParams) -> Result<Hscc, ParamError> {
        params.check()?;
        Ok(Hscc {
            params,
            state: HsccState::default(),
        })
    }

    /// The output queue's length, on every packet or as often as it can be read.
    pub fn on_queue(&mut self, queue_bytes: u32, now_ns: u64) {
        core_hscc_on_queue(&mut self.state, &self.params, queue_bytes, now_ns);
    }

    /// The window field for an ACK that enters by the port. `scale` and `mss_bytes` (0 if not
    /// known) are its flow's.
    pub fn on_ack(
        &self,
        window: u16,
        scale: Option<u8>,
        mss_bytes: u32,
        kind: AckKind,
        now_ns: u64,
    ) -> TcpWindow {
        let scale = raw_scale(scale);
        core_hscc_on_ack(
            &self.state,
            &self.params,
            window,
            scale,
            mss_bytes,
            kind,
            now_ns,
        )
    }

    /// Whether windows are clamped now; false too once the clamp has expired.
    pub fn is_clamping(&self, now_ns: u64) -> bool {
        core_hscc_is_clamping(&self.state, &self.params, now_ns)
    }

    /// Whether to drop an arriving packet to keep room for SYN, FIN, RST and pure ACKs
    /// (HSCC §III-B); `is_control` tells that it is one of these.
    pub fn drops(&self, queue_bytes: u32, packet_bytes: u32, is_control: bool) -> bool {
        core_hscc_drops(&self.params, queue_bytes, packet_bytes, is_control)
    }

    /// The parameters it was made with.
    pub fn params(&self) -> &HsccParams {
        &self.params
    }
}
