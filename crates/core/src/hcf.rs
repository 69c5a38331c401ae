// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! HCF: two FIFO queues, flows that were served little go first (`core/hcf.h`).

use crate::error::{Check, ParamError};

/// Most bins a port can have.
pub const MAX_BINS: usize = 256;

/// When a priority period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum HcfPeriod {
    /// When a departure leaves the high queue empty (HCF Algorithm 1).
    Dynamic = 0,
    /// At each [`Hcf::on_tick`] (HCF §IV-C); reorders flows.
    Fixed = 1,
    /// Once the high queue is empty at or after [`Hcf::on_tick`]; keeps order with the swap.
    Ordered = 2,
}

/// Parameters of HCF.
///
/// A capacity of 0 means unlimited; of packets and bytes at least one must be limited. Index 0 is
/// the queue that is high now, 1 the low one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HcfParams {
    /// See the table of `core/hcf.h`.
    pub capacity_packets: [u32; 2],
    /// See the table of `core/hcf.h`.
    pub capacity_bytes: [u32; 2],
    /// See the table of `core/hcf.h`.
    pub bins: u32,
    /// See the table of `core/hcf.h`.
    pub credits: u32,
    /// See the table of `core/hcf.h`.
    pub credits_in_bytes: u32,
    /// See the table of `core/hcf.h`.
    pub hashes: u32,
    /// See the table of `core/hcf.h`.
    pub period: HcfPeriod,
    /// See the table of `core/hcf.h`.
    pub swap: u32,
}

impl HcfParams {
    /// With the queue swap: 20 bins of one credit, the buffer (packets) split evenly.
    pub fn new(buffer_packets: u32) -> HcfParams {
        core_hcf_default_params(buffer_packets)
    }

    /// As printed in Algorithm 1, without the swap.
    pub fn paper(buffer_packets: u32) -> HcfParams {
        core_hcf_paper_params(buffer_packets)
    }

    /// Tells the first field outside its range.
    pub fn check(&self) -> Result<(), ParamError> {
        let check = Check("hcf");
        let any = u64::from(u32::MAX);
        check.range("bins", self.bins, 1, MAX_BINS as u64)?;
        check.range("credits", self.credits, 1, any)?;
        check.range("hashes", self.hashes, 1, 4)?;
        for role in 0..2 {
            if self.capacity_bytes[role] == 0 {
                check.range("capacity_packets", self.capacity_packets[role], 1, any)?;
            }
        }
        Ok(())
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HcfBin {
    pub(crate) epoch: u32,
    pub(crate) credits: u32,
}

/// What HCF holds of a port.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HcfState {
    /// Bytes queued, by physical queue.
    pub bytes: [u64; 2],
    /// Packets queued, by physical queue.
    pub packets: [u32; 2],
    /// Number of the priority period.
    pub epoch: u32,
    pub(crate) random: u32,
    pub(crate) multiplier: u32,
    pub(crate) offset: u32,
    /// Physical index of the high queue.
    pub high: u8,
    pub(crate) is_due: u8,
    pub(crate) reserved: [u8; 6],
    pub(crate) bins: [HcfBin; MAX_BINS],
}

unsafe extern "C" {
    safe fn core_hcf_default_params(buffer_packets: u32) -> HcfParams;
    safe fn core_hcf_paper_params(buffer_packets: u32) -> HcfParams;
    safe fn core_hcf_flow_key(src: u32, dst: u32, src_port: u16, dst_port: u16) -> u32;
    safe fn core_hcf_init(state: &mut HcfState, params: &HcfParams, seed: u32);
    safe fn core_hcf_bin_of(state: &HcfState, params: &HcfParams, key: u32, index: u32) -> u32;
    safe fn core_hcf_credits_left(state: &HcfState, params: &HcfParams, bin: u32) -> u32;
    safe fn core_hcf_on_enqueue(s: &mut HcfState, p: &HcfParams, key: u32, size_bytes: u32) -> u32;
    safe fn core_hcf_on_dequeue(state: &HcfState) -> u32;
    safe fn core_hcf_departed(s: &mut HcfState, p: &HcfParams, queue: u32, size_bytes: u32);
    safe fn core_hcf_on_tick(state: &mut HcfState, params: &HcfParams);
}

/// One number from a 4-tuple, the same for each packet of a flow.
pub fn flow_key(source: u32, destination: u32, source_port: u16, destination_port: u16) -> u32 {
    core_hcf_flow_key(source, destination, source_port, destination_port)
}

/// HCF at one output port. The caller stores the packets, in two FIFO queues numbered 0 and 1.
#[derive(Clone, Debug)]
pub struct Hcf {
    params: HcfParams,
    state: HcfState,
}

impl Hcf {
    /// An empty port. Ports with different seeds use different hashes.
    ///
    /// # Errors
    /// The first parameter outside its range.
    pub fn new(params: HcfParams, seed: u32) -> Result<Hcf, ParamError> {
        params.check()?;
        let mut state = HcfState {
            bytes: [0; 2],
            packets: [0; 2],
            epoch: 0,
            random: 0,
            multiplier: 0,
            offset: 0,
            high: 0,
            is_due: 0,
            reserved: [0; 6],
            bins: [HcfBin::default(); MAX_BINS],
        };
        core_hcf_init(&mut state, &params, seed);
        Ok(Hcf { params, state })
    }

    /// A packet of the flow `key` arrives: the queue to put it into, or `None` to drop it.
    pub fn on_enqueue(&mut self, key: u32, size_bytes: u32) -> Option<usize> {
        let queue = core_hcf_on_enqueue(&mut self.state, &self.params, key, size_bytes);
        (queue < 2).then_some(queue as usize)
    }

    /// The queue to send from, `None` if both are empty. Then call [`Hcf::departed`].
    pub fn on_dequeue(&self) -> Option<usize> {
        let queue = core_hcf_on_dequeue(&self.state);
        (queue < 2).then_some(queue as usize)
    }

    /// The head of `queue` has left.
    pub fn departed(&mut self, queue: usize, size_bytes: u32) {
        core_hcf_departed(&mut self.state, &self.params, queue as u32, size_bytes);
    }

    /// The end of a fixed period; nothing with [`HcfPeriod::Dynamic`].
    pub fn on_tick(&mut self) {
        core_hcf_on_tick(&mut self.state, &self.params);
    }

    /// Bin number `index` of a flow in this period.
    pub fn bin_of(&self, key: u32, index: u32) -> u32 {
        core_hcf_bin_of(&self.state, &self.params, key, index)
    }

    /// Credits left in a bin.
    pub fn credits(&self, bin: u32) -> u32 {
        core_hcf_credits_left(&self.state, &self.params, bin)
    }

    /// The parameters it was made with.
    pub fn params(&self) -> &HcfParams {
        &self.params
    }

    /// The state, for traces.
    pub fn state(&self) -> &HcfState {
        &self.state
    }
}
