// SPDX-License-Identifier: Apache-2.0
//! Two hosts and a switch, with Grant at the switch's port or on the receiving host.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use penstock_linux::testkit::{Process, join, until};
use penstockd::attach::grant;
use penstockd::port::{Port, counters};

use super::transfers::{serve, transfer};
use super::{Agent, SwitchLab};

/// Of a test.
pub const LIMIT: Duration = Duration::from_secs(120);
pub const RATE_BPS: u64 = 200_000_000;
const BUFFER_BYTES: u32 = 131_072;

/// Of the papers' answers.
pub const ANSWER_BYTES: u64 = 11_500;

/// A side, the host, and its interface.
pub type Place = (&'static str, &'static str, &'static str);

/// Where Grant is attached: the port of the switch, or the receiver's own interface.
pub const PLACES: [Place; 2] = [("port", "switch", "right"), ("receiver", "right", "eth0")];

/// What attaches Grant there.
pub fn attach((side, _, interface): Place) -> [&'static str; 10] {
    let [scheme, rate, buffer] = ["grant", "200 Mb/s", "128 kB"];
    [
        "attach", interface, "--scheme", scheme, "--side", side, "--rate", rate, "--buffer", buffer,
    ]
}

/// The laboratory with a server, and Grant at one of [`PLACES`], with these options.
pub struct Lab {
    pub lab: SwitchLab,
    pub agent: Process,
    pub port: Port,
}

impl Lab {
    pub fn new(place: Place, options: &[&str]) -> Lab {
        let (_, host, interface) = place;
        Lab::with(
            host,
            interface,
            &[&attach(place)[..], &["--stay"], options].concat(),
        )
    }

    /// The same with a command of penstockd that stays, on this host.
    pub fn with(host: &str, interface: &str, words: &[&str]) -> Lab {
        let lab = SwitchLab::new(RATE_BPS, BUFFER_BYTES);
        lab.time_out_late();
        lab.netns("right").run(serve).unwrap();
        let at = Agent {
            netns: lab.netns(host),
            pins: lab.pins(),
        };
        let agent = at.start_at(interface, words, LIMIT);
        let port = at.port(interface);
        Lab { lab, agent, port }
    }

    pub fn credit(&self) -> grant::Status {
        grant::status(&self.port.folder).unwrap().unwrap()
    }

    pub fn passed(&self, reason: &str) -> u64 {
        let all = self.port.counters().unwrap();
        counters::named(&all)[&format!("passed_{reason}")]
    }

    /// So many transfers that begin together; all their bytes must arrive.
    pub fn at_once(&self, flows: u64, bytes: u64) {
        let start = Arc::new(Barrier::new(flows as usize));
        let threads = (0..flows).map(|id| {
            let start = Arc::clone(&start);
            self.lab.spawn("left", move || {
                start.wait();
                transfer(id, bytes).unwrap();
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            join(thread, LIMIT);
        }
    }

    /// Packets that the port dropped, and timeouts of senders.
    pub fn harm(&self) -> (u64, u64) {
        (self.lab.drops(), self.lab.tcp_counter("TCPTimeouts"))
    }

    /// No credit is left behind, and no flow waits.
    pub fn settles(&self) {
        until("all credit is used or taken back", || {
            let credit = self.credit();
            (credit.outstanding_bytes, credit.waiting, credit.active) == (0, 0, 0)
        });
    }
}
