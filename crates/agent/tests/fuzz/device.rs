// SPDX-License-Identifier: Apache-2.0
//! An interface with packets waiting in its queue, for programs that read its length.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::Command;

/// A network namespace that this thread lives in, with one interface whose queue does not move.
/// It goes with the thread's value.
pub struct Device {
    namespace: String,
    pub ifindex: u32,
}

fn run(command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.unwrap_or_else(|error| panic!("{command}: {error}; iproute2 is needed"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {told}");
}

impl Device {
    /// Makes the namespace and fills the queue with three quarters of `buffer_bytes`.
    pub fn new(namespace: &str, buffer_bytes: u32) -> Device {
        let namespace = format!("{namespace}-{}", std::process::id());
        run(&format!("ip netns add {namespace}"));
        let mut device = Device {
            ifindex: 0,
            namespace,
        };
        let file = File::open(format!("/run/netns/{}", device.namespace)).unwrap();
        // SAFETY: changes the namespace of this thread alone.
        let entered = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(entered, 0, "entering a network namespace needs root");
        for command in [
            "ip link add port type veth peer name far",
            "ip address add 10.99.0.1/24 dev port",
            "ip link set far up",
            "ip link set port up",
            "ip neigh add 10.99.0.2 lladdr 02:00:00:00:00:02 dev port",
            &format!("tc qdisc add dev port root tbf rate 8bit burst 2000 limit {buffer_bytes}"),
        ] {
            run(command);
        }
        let socket = UdpSocket::bind("10.99.0.1:0").unwrap();
        for _ in 0..buffer_bytes * 3 / 4 / 1042 {
            socket.send_to(&[0; 1000], "10.99.0.2:9").unwrap();
        }
        // SAFETY: a string that ends with a zero.
        device.ifindex = unsafe { libc::if_nametoindex(c"port".as_ptr()) };
        device
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "delete", &self.namespace])
            .status();
    }
}
