// SPDX-License-Identifier: Apache-2.0
//! The kernel's own counters of TCP and IP, by the names that `nstat` prints.

use crate::{Error, Result};

/// The counters of one network namespace at one time.
#[derive(Clone, Debug, Default)]
pub struct Counters(String);

impl Counters {
    /// Reads those of the calling thread's network namespace.
    ///
    /// # Errors
    /// No `/proc` is mounted.
    pub fn read() -> Result<Counters> {
        let mut text = String::new();
        for file in [
            "/proc/thread-self/net/snmp",
            "/proc/thread-self/net/netstat",
        ] {
            let part = std::fs::read_to_string(file);
            text += &part.map_err(|reason| Error::refused(format!("read {file}"), reason))?;
        }
        Ok(Counters(text))
    }

    /// The counter `name` of `group`, as in `("Tcp", "RetransSegs")` (RFC 4022) or
    /// `("TcpExt", "TCPTimeouts")`; none if this kernel does not have it.
    pub fn get(&self, group: &str, name: &str) -> Option<u64> {
        // Each group is a line of names and a line of values.
        let of_group = |line: &&str| line.split(':').next() == Some(group);
        let mut lines = self.0.lines().filter(of_group);
        let (names, values) = (lines.next()?, lines.next()?);
        let position = names.split(' ').position(|known| known == name)?;
        values.split(' ').nth(position)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_group_and_name() {
        let text = "Ip: A B\nIp: 1 2\nTcp: RetransSegs X\nTcp: 7 8\nTcpExt: X\nTcpExt: 9\n";
        let counters = Counters(text.to_owned());
        assert_eq!(counters.get("Tcp", "RetransSegs"), Some(7));
        assert_eq!(counters.get("Ip", "B"), Some(2));
        assert_eq!(counters.get("TcpExt", "X"), Some(9));
        assert_eq!(counters.get("Tcp", "B"), None);
        assert_eq!(counters.get("Udp", "B"), None);
    }

    #[test]
    fn the_kernel_has_the_counters_that_are_used() {
        let counters = Counters::read().unwrap();
        for (group, name) in [
            ("Tcp", "ActiveOpens"),
            ("Tcp", "RetransSegs"),
            ("TcpExt", "TCPTimeouts"),
            ("TcpExt", "TCPSynRetrans"),
            ("TcpExt", "TCPLostRetransmit"),
            ("TcpExt", "ListenOverflows"),
        ] {
            assert!(counters.get(group, name).is_some(), "{group} {name}");
        }
    }
}
