// SPDX-License-Identifier: Apache-2.0
//! An interface with packets waiting in its queue, for programs that read its length.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

use penstock_linux::link;
use penstock_linux::netns::{Entered, NetNs};
use penstock_linux::qdisc::Tbf;
use penstock_linux::testkit::{add_neighbour, address, cable, namespace};

/// A network namespace that this thread is in, with one interface whose queue does not move. The
/// thread leaves it when the value is dropped.
pub struct Device {
    pub ifindex: u32,
    _entered: Entered,
    _netns: NetNs,
}

impl Device {
    /// Makes the namespace and fills the queue with three quarters of `buffer_bytes`.
    pub fn new(buffer_bytes: u32) -> Device {
        let netns = namespace();
        let entered = netns.enter().unwrap();
        cable((&netns, "port"), (&netns, "far"), 1);
        address(&netns, "port", "10.99.0.1/24");
        let far = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 2));
        add_neighbour("port", far, [2, 0, 0, 0, 0, 2]).unwrap();
        let ifindex = link::get("port").unwrap().index;
        let queue = Tbf {
            rate_bps: 8,
            burst_bytes: 2000,
            limit_bytes: buffer_bytes,
        };
        queue.put_on(ifindex).unwrap();
        let socket = UdpSocket::bind("10.99.0.1:0").unwrap();
        let limit = Some(Duration::from_secs(10));
        socket.set_write_timeout(limit).unwrap();
        for _ in 0..buffer_bytes * 3 / 4 / 1042 {
            socket.send_to(&[0; 1000], "10.99.0.2:9").unwrap();
        }
        Device {
            ifindex,
            _entered: entered,
            _netns: netns,
        }
    }
}
