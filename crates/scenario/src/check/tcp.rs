// SPDX-License-Identifier: Apache-2.0
//! TCP parameters that contradict each other or the RFCs.

use super::Checker;
use crate::{Bytes, Congestion, Recovery, Tcp};

impl Checker<'_> {
    /// Checks the parameters `own` at `key`, laid over those of `below`.
    pub(super) fn tcp(&mut self, below: &Tcp, own: &Tcp, key: &str) {
        let tcp = &below.overlaid(own);
        if tcp == below {
            return;
        }
        let at = |name: &str| format!("{key}.{name}");
        self.require(
            tcp.mss.is_none_or(|mss| (88..=8960).contains(&mss)),
            &at("mss"),
            || "is out of range; allowed: 88 to 8960 bytes".to_owned(),
        );
        for (name, time) in [
            ("min_rto", tcp.min_rto),
            ("max_rto", tcp.max_rto),
            ("initial_rto", tcp.initial_rto),
        ] {
            self.positive(time, &at(name));
        }
        if let (Some(min), Some(max)) = (tcp.min_rto, tcp.max_rto) {
            self.require(min <= max, &at("min_rto"), || {
                format!("{min} is above max_rto, {max}")
            });
        }
        let has_sack = tcp
            .sack
            .unwrap_or(tcp.profile.unwrap_or_default().has_sack());
        let has_rack = tcp.recovery.map(|recovery| recovery == Recovery::RackTlp);
        for (name, is_given, allowed) in [
            ("tlp", tcp.tlp, true),
            ("early_retransmit", tcp.early_retransmit, false),
        ] {
            let is_idle = is_given == Some(true) && has_rack == Some(!allowed);
            self.require(!is_idle, &at(name), || match allowed {
                true => "needs recovery = \"rack-tlp\"".to_owned(),
                false => "has no effect with recovery = \"rack-tlp\"; remove it".to_owned(),
            });
        }
        if let Some(buffer) = tcp.receive_buffer {
            let segment = u64::from(tcp.mss.unwrap_or(1460));
            self.require(buffer.0 >= segment, &at("receive_buffer"), || {
                format!(
                    "{buffer} is less than a segment; allowed: {} and more",
                    Bytes(segment)
                )
            });
        }
        let by_sack = matches!(tcp.recovery, Some(Recovery::Sack | Recovery::RackTlp));
        for (name, needs_sack) in [
            ("recovery", by_sack),
            ("congestion", tcp.congestion == Some(Congestion::Bbr)),
            ("tlp", tcp.tlp == Some(true)),
            ("early_retransmit", tcp.early_retransmit == Some(true)),
        ] {
            if needs_sack && !has_sack {
                self.refuse(&at(name), "needs sack = true");
            }
        }
        if tcp.congestion == Some(Congestion::Dctcp) && tcp.ecn != Some(true) {
            self.refuse(&at("congestion"), "\"dctcp\" needs ecn = true");
        }
    }
}
