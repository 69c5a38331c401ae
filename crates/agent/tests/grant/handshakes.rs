// SPDX-License-Identifier: Apache-2.0
//! Handshakes through Grant's programs, packet by packet.

use penstockd::attach::grant;

use crate::common::packet::{ACK, PSH, SYN, Segment};
use crate::lab::PortLab;
use crate::lab::credit::alone;
use crate::{Programs, TIMESTAMPS};

impl Programs {
    /// A segment that leaves, or arrives; the window that it has afterwards.
    fn window(&self, leaves: bool, segment: &Segment) -> u16 {
        let (_, out) = self.pass(leaves, &segment.frame()).unwrap();
        u16::from_be_bytes([out[48], out[49]])
    }

    /// No host's addresses: an ACK of Grant's to this host's own would be answered by a reset.
    fn flow(port: u16) -> Segment {
        Segment::new("10.9.0.1", "10.9.0.2").with(|s| s.source_port = port)
    }

    /// SYN and SYN-ACK: what this shows to the one who opens the connection.
    fn open(&self, port: u16) -> u16 {
        let options = Segment::syn_options(1460, 7);
        self.window(
            true,
            &Self::flow(port).with(|s| (s.flags, s.options) = (SYN, options.clone())),
        );
        self.accept(port)
    }

    fn accept(&self, port: u16) -> u16 {
        self.window(
            false,
            &Self::flow(port).reversed().with(|s| {
                (s.flags, s.seq, s.ack, s.window) = (SYN | ACK, 2000, 1001, 64_000);
                s.options = Segment::syn_options(1460, 7);
            }),
        )
    }

    /// An ACK of nothing.
    fn acknowledge(&self, port: u16) -> u16 {
        self.window(
            false,
            &Self::flow(port).reversed().with(|s| {
                (s.flags, s.seq, s.ack, s.window) = (ACK, 2001, 1001, 500);
                s.options = TIMESTAMPS.to_vec();
            }),
        )
    }

    /// The end of the handshake, or data behind as much as has been sent.
    fn send(&self, port: u16, sent: u32, payload: usize) {
        self.window(
            true,
            &Self::flow(port).with(|s| {
                (s.flags, s.seq, s.ack) = (ACK | PSH, 1001 + sent, 2001);
                (s.payload, s.options) = (payload, TIMESTAMPS.to_vec());
            }),
        );
    }
}

/// A SYN-ACK shows 0 where credit is out, and the allowance all the same once the port knows that connections begin with
/// short messages. Who was shown 0 asks for credit whatever has been learned since, also if a second SYN-ACK showed more.
#[test]
fn handshakes_show_what_is_known_of_first_messages() {
    let _alone = alone();
    let lab = PortLab::quiet();
    let all = Programs::attach(&lab, "port");
    let asked = || {
        let credit = grant::status(&lab.port_folder()).unwrap().unwrap();
        u64::from(credit.waiting) + credit.counters["grants"]
    };
    let story = || {
        // Some are granted credit, and send nothing.
        let shut = (1024..1124).find(|port| {
            let window = all.open(*port);
            if window > 0 {
                all.send(*port, 0, 0);
            }
            window == 0
        });
        let shut = shut.expect("credit ends");
        assert_eq!(all.open(shut + 1), 0);
        // They begin with a request, as do others.
        for port in 1024..shut {
            all.send(port, 0, 300);
        }
        for port in 2000..2200 {
            all.open(port);
            all.send(port, 0, 0);
            all.send(port, 0, 300);
        }
        for port in 2000..2200 {
            all.send(port, 300, 1448);
            all.send(port, 1748, 1448);
        }
        let waiting = grant::status(&lab.port_folder()).unwrap().unwrap().waiting;
        assert!(waiting > 5, "{waiting} wait");
        assert_eq!(all.open(3000), 2 * 1460);
        all.send(3000, 0, 0);
        assert!(all.acknowledge(3000) > 0, "it waits");
        let before = asked();
        all.send(shut, 0, 0);
        assert!(asked() > before);
        let before = asked();
        assert_eq!(all.accept(shut + 1), 2 * 1460);
        all.send(shut + 1, 0, 0);
        assert!(asked() > before);
    };
    lab.near().run(story).unwrap();
}
