// SPDX-License-Identifier: Apache-2.0
//! Copies of SYNs and FINs, incast at ports, and the share of each guest.

mod copies;
mod guests;
mod ports;

use penstock_controller::fabric::{Mac, Place};
use penstock_controller::incast::{Incast, Limits};
use penstock_controller::segment::{Flow, Segment};
use penstock_core::{Params, definitions};
use penstock_sdn::message::QueueReport;
use std::net::SocketAddr;

fn place(datapath: u64, port: u32) -> Place {
    Place { datapath, port }
}

fn mac(number: u16) -> Mac {
    let [high, low] = number.to_be_bytes();
    Mac([2, 0, 0, 0, high, low])
}

fn flow(port: u16) -> Flow {
    Flow {
        source: SocketAddr::from(([10, 0, 0, 1], port)),
        destination: SocketAddr::from(([10, 0, 0, 2], 80)),
    }
}

const EDGE: Place = Place {
    datapath: 5,
    port: 1,
};
const PORT: Place = Place {
    datapath: 1,
    port: 9,
};
const BUFFER: u32 = 100_000;

fn params() -> Params {
    let mut params = Params::new(definitions::of("sicc"), BUFFER);
    params.set_field("duration_ns", 10_000_000);
    params
}

fn incast(limits: Limits) -> Incast {
    let mut incast = Incast::new(&params(), limits, true);
    incast.watch(PORT, &params());
    incast
}

fn report(queue: u32) -> QueueReport {
    QueueReport {
        datapath: 1,
        queues: vec![(8, 0), (9, queue)],
    }
}

fn syn(flow: Flow) -> Segment {
    Segment {
        macs: (mac(101), mac(201)),
        flow,
        flags: 2,
        seq: 100,
        ack: 0,
        mss: Some(1400),
        scale: Some(9),
    }
}
