// SPDX-License-Identifier: Apache-2.0
//! A token bucket filter: a port of some rate and buffer, as of a switch.

use netlink_packet_core::DefaultNla;
use netlink_packet_route::tc::{TcAttribute, TcOption};

use super::replace;
use crate::Result;

// `linux/pkt_sched.h`.
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// Length of `struct tc_tbf_qopt`, bytes.
const PARAMETERS: usize = 36;

/// Options of a tbf qdisc (tc-tbf(8)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tbf {
    /// Rate, bits per second; at least 8, the kernel counts in bytes.
    pub rate_bps: u64,
    /// Bytes that may leave at once after a pause; at least one packet.
    pub burst_bytes: u32,
    /// Bytes that may wait.
    pub limit_bytes: u32,
}

impl Tbf {
    /// Makes this the root qdisc of the interface with this index, in place of the present one.
    ///
    /// # Errors
    /// The kernel has no tbf (module sch_tbf), or the rate is 0.
    pub fn put_on(&self, interface: u32) -> Result<()> {
        let options = TcAttribute::Options(self.options());
        let attributes = vec![TcAttribute::Kind("tbf".to_owned()), options];
        replace(interface, attributes, |name| {
            format!("put a tbf on {name} ({self:?})")
        })
    }

    fn options(&self) -> Vec<TcOption> {
        let rate = self.rate_bps / 8;
        let mut parameters = [0u8; PARAMETERS];
        // The first ratespec: link layer in its second byte, rate in its last word.
        parameters[1] = TC_LINKLAYER_ETHERNET;
        let low = u32::try_from(rate).unwrap_or(u32::MAX);
        parameters[8..12].copy_from_slice(&low.to_ne_bytes());
        parameters[24..28].copy_from_slice(&self.limit_bytes.to_ne_bytes());
        let option = |kind, value: &[u8]| TcOption::Other(DefaultNla::new(kind, value.to_vec()));
        let mut options = vec![
            option(TCA_TBF_PARMS, &parameters),
            option(TCA_TBF_BURST, &self.burst_bytes.to_ne_bytes()),
        ];
        if rate > u64::from(u32::MAX) {
            options.push(option(TCA_TBF_RATE64, &rate.to_ne_bytes()));
        }
        options
    }
}
