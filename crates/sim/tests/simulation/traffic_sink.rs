// SPDX-License-Identifier: Apache-2.0
//! Another traffic sink than the simulation gets the same pairs, starts and sizes.

use super::{outcome, scenario, wide};
use penstock_scenario::units::Time;
use penstock_sim::Inputs;
use penstock_sim::run::schedule_traffic;
use penstock_sim::simulation::{Action, Datagrams, Generator, JobRow, TrafficSink, Transfer};

const TRAFFIC: &str = r#"
    [traffic.long]
    kind = "bulk"
    size = "websearch"
    pairs = "random"
    start_spread = "1 ms"
    from = "senders"
    to = "receivers"
    [traffic.mice]
    kind = "incast"
    size = { exponential = "5 kB" }
    flows = 9
    epochs = 3
    every = "10 ms"
    start_gap = "20 us"
    from = "senders"
    to = "receivers"
    [traffic.web]
    kind = "poisson"
    load = "20 %"
    size = { exponential = "20 kB" }
    from = "senders"
    to = "receivers"
"#;

/// Only writes down what it gets.
#[derive(Default)]
struct Script {
    clients: Vec<(u32, Transfer)>,
    begins: Vec<(Time, u32, Transfer)>,
}

impl TrafficSink for Script {
    fn add_client(&mut self, profile: u32, _: u32, transfer: Transfer, _: u32) -> u32 {
        self.clients.push((profile, transfer));
        self.clients.len() as u32 - 1
    }

    fn add_generator(&mut self, profile: u32, mut generator: Box<dyn Generator>) {
        while let Some((time, transfer)) = generator.next() {
            self.begins.push((time, profile, transfer));
        }
    }

    fn add_jobs(&mut self, _: JobRow) {}

    fn add_datagrams(&mut self, _: u32, _: u32, _: Time, _: Datagrams) {}

    fn at(&mut self, time: Time, action: Action) {
        if let Action::Begin(client) = action {
            let (profile, transfer) = self.clients[client as usize];
            self.begins.push((time, profile, transfer));
        }
    }
}

#[test]
fn every_sink_gets_what_the_simulation_gets() {
    let text = wide("60 ms", "1000 packets", TRAFFIC);
    let mut script = Script::default();
    schedule_traffic(&mut script, &scenario(&text), &Inputs::default(), 1);
    let mut scheduled: Vec<String> = script
        .begins
        .iter()
        .map(|(time, profile, transfer)| {
            let name = ["long", "mice", "web"][*profile as usize];
            let (from, to) = (transfer.source + 1, transfer.destination - 3);
            let start = time.as_secs_f64();
            format!(
                "{start} {name} sender{from} receiver{to} {}",
                transfer.bytes
            )
        })
        .collect();
    let simulated = outcome(&text, "drop-tail").flows;
    let mut simulated: Vec<String> = simulated
        .iter()
        .map(|f| {
            let bytes = f.bytes.unwrap();
            format!(
                "{} {} {} {} {bytes}",
                f.start_s, f.traffic, f.source, f.destination
            )
        })
        .collect();
    scheduled.sort();
    simulated.sort();
    assert!(scheduled.len() > 31, "{} transfers", scheduled.len());
    assert_eq!(scheduled, simulated);
}
