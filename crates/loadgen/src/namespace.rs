// SPDX-License-Identifier: Apache-2.0
//! What is a namespace's own: TCP's counters, and the switches that no socket option has.

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
}

/// File, group, name, in the order of the fields.
const COUNTERS: [(&str, &str, &str); 5] = [
    ("snmp", "Tcp:", "RetransSegs"),
    ("netstat", "TcpExt:", "TCPTimeouts"),
    ("netstat", "TcpExt:", "TCPSynRetrans"),
    ("netstat", "TcpExt:", "TCPLostRetransmit"),
    ("netstat", "TcpExt:", "ListenOverflows"),
];

impl KernelCounters {
    /// Those of the namespace that this thread is in.
    pub fn read() -> KernelCounters {
        let read = |file| std::fs::read_to_string(Path::new("/proc/thread-self/net").join(file));
        let texts = ["snmp", "netstat"].map(|file| (file, read(file).unwrap_or_default()));
        let value = |(file, group, name)| {
            let text = texts.iter().find(|(known, _)| *known == file);
            text.and_then(|(_, text)| counter(text, group, name))
                .unwrap_or(0)
        };
        let [
            retransmits,
            timeouts,
            syn_retransmits,
            lost_retransmits,
            listen_overflows,
        ] = COUNTERS.map(value);
        KernelCounters {
            retransmits,
            timeouts,
            syn_retransmits,
            lost_retransmits,
            listen_overflows,
        }
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
        }
    }
}

/// A value of /proc/net/snmp or netstat: a line of names, then a line of values, for each group.
fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|known| known == name)?;
    values.split(' ').nth(at)?.parse().ok()
}

/// Sets a switch of net.ipv4 in the thread's namespace.
pub fn set_sysctl(name: &str, value: u32) -> std::io::Result<()> {
    std::fs::write(
        Path::new("/proc/sys/net/ipv4").join(name),
        value.to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::counter;

    #[test]
    fn counters_are_found_by_group_and_name() {
        let text = "Ip: A B\nIp: 1 2\nTcp: RetransSegs X\nTcp: 7 8\n";
        assert_eq!(counter(text, "Tcp:", "RetransSegs"), Some(7));
        assert_eq!(counter(text, "Ip:", "B"), Some(2));
        assert_eq!(counter(text, "Tcp:", "B"), None);
        assert_eq!(counter(text, "Udp:", "B"), None);
    }
}
