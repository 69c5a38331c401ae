// SPDX-License-Identifier: Apache-2.0
//! What a namespace has as a whole: TCP's counters, and the sysctls that no socket option replaces.

use penstock_linux::Result;
use penstock_linux::counters::Counters;
use serde::Serialize;
use std::path::Path;

/// Counters of the kernel's TCP, `nstat`'s names, summed over the hosts' namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KernelCounters {
    /// Segments sent again, handshakes included.
    pub retransmits: u64,
    /// Timers that expired: of data, SYN, SYN-ACK or FIN, either end.
    pub timeouts: u64,
    /// SYNs and SYN-ACKs sent again.
    pub syn_retransmits: u64,
    /// Retransmissions that were lost again.
    pub lost_retransmits: u64,
    /// Connections that found the accept queue full.
    pub listen_overflows: u64,
    /// ACKs sent because their delay was over.
    pub delayed_acks: u64,
}

impl KernelCounters {
    /// Those of the namespace that this thread is in; 0 for one that the kernel lacks.
    pub fn read() -> Result<KernelCounters> {
        let counters = Counters::read()?;
        let value = |group, name| counters.get(group, name).unwrap_or(0);
        Ok(KernelCounters {
            retransmits: value("Tcp", "RetransSegs"),
            timeouts: value("TcpExt", "TCPTimeouts"),
            syn_retransmits: value("TcpExt", "TCPSynRetrans"),
            lost_retransmits: value("TcpExt", "TCPLostRetransmit"),
            listen_overflows: value("TcpExt", "ListenOverflows"),
            delayed_acks: value("TcpExt", "DelayedACKs"),
        })
    }

    /// Sum of both.
    pub fn plus(self, other: KernelCounters) -> KernelCounters {
        self.with(other, u64::saturating_add)
    }

    /// What was counted since `before`.
    pub fn since(self, before: KernelCounters) -> KernelCounters {
        self.with(before, u64::saturating_sub)
    }

    fn with(self, other: KernelCounters, join: fn(u64, u64) -> u64) -> KernelCounters {
        KernelCounters {
            retransmits: join(self.retransmits, other.retransmits),
            timeouts: join(self.timeouts, other.timeouts),
            syn_retransmits: join(self.syn_retransmits, other.syn_retransmits),
            lost_retransmits: join(self.lost_retransmits, other.lost_retransmits),
            listen_overflows: join(self.listen_overflows, other.listen_overflows),
            delayed_acks: join(self.delayed_acks, other.delayed_acks),
        }
    }
}

/// Sets a sysctl of net.ipv4 in the thread's namespace.
pub fn set_sysctl(name: &str, value: u32) -> std::io::Result<()> {
    std::fs::write(
        Path::new("/proc/sys/net/ipv4").join(name),
        value.to_string(),
    )
}
