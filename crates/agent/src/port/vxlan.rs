// SPDX-License-Identifier: Apache-2.0
//! The UDP ports on which VXLAN is looked for.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// How many a port's configuration has room for (`PORT_VXLANS` of `bpf/abi.h`).
const ROOM: usize = 4;

/// UDP ports of VXLAN, at most four; the rest is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<u16>")]
pub struct VxlanPorts([u16; ROOM]);

impl Default for VxlanPorts {
    /// IANA's (RFC 7348 §5), and that of Linux before it, which Flannel and Cilium use.
    fn default() -> VxlanPorts {
        VxlanPorts([4789, 8472, 0, 0])
    }
}

impl VxlanPorts {
    /// As on the wire.
    pub fn to_wire(self) -> [u16; ROOM] {
        self.0.map(u16::to_be)
    }
}

impl TryFrom<Vec<u16>> for VxlanPorts {
    type Error = String;

    fn try_from(ports: Vec<u16>) -> Result<VxlanPorts, String> {
        if ports.len() > ROOM || ports.contains(&0) {
            return Err(format!(
                "VXLAN ports are {ports:?}; allowed: up to {ROOM}, each 1 to 65535"
            ));
        }
        let mut all = [0; ROOM];
        all[..ports.len()].copy_from_slice(&ports);
        Ok(VxlanPorts(all))
    }
}

impl FromStr for VxlanPorts {
    type Err = String;

    /// As in "4789,8472"; "none" is no port.
    fn from_str(text: &str) -> Result<VxlanPorts, String> {
        if text == "none" {
            return VxlanPorts::try_from(Vec::new());
        }
        let ports = text
            .split(',')
            .map(|port| port.trim().parse())
            .collect::<Result<Vec<u16>, _>>();
        ports
            .map_err(|_| {
                format!("\"{text}\" is no list of ports; expected as in 4789,8472, or none")
            })
            .and_then(VxlanPorts::try_from)
    }
}

impl fmt::Display for VxlanPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports: Vec<String> = self
            .0
            .iter()
            .filter(|port| **port != 0)
            .map(u16::to_string)
            .collect();
        f.write_str(if ports.is_empty() { "none" } else { "" })?;
        f.write_str(&ports.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_shown_alike() {
        for text in ["4789,8472", "none", "1,2,3,65535"] {
            assert_eq!(
                text.parse::<VxlanPorts>().map(|p| p.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "0", "4789,", "1,2,3,4,5", "65536", "vxlan"] {
            assert!(text.parse::<VxlanPorts>().is_err(), "{text}");
        }
        assert_eq!(VxlanPorts::default().to_string(), "4789,8472");
    }
}
