// SPDX-License-Identifier: Apache-2.0
//! Another stage than the simulation is given the same pairs, starts and sizes.

use super::{outcome, scenario, wide};
use penstock_scenario::units::Time;
use penstock_sim::Inputs;
use penstock_sim::rng::Rng;
use penstock_sim::run::{Stage, play};
use penstock_sim::simulation::{Action, Gaps, Generator, Transfer};

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

/// Only writes down what it is told.
#[derive(Default)]
struct Script {
    clients: Vec<(u32, Transfer)>,
    begins: Vec<(Time, u32, Transfer)>,
}

impl Stage for Script {
    fn add_client(&mut self, plan: u32, _: u32, transfer: Transfer, _: u32) -> u32 {
        self.clients.push((plan, transfer));
        self.clients.len() as u32 - 1
    }

    fn add_generator(&mut self, plan: u32, mut generator: Box<dyn Generator>) {
        while let Some((time, transfer)) = generator.next() {
            self.begins.push((time, plan, transfer));
        }
    }

    fn add_datagrams(&mut self, _: u32, _: u32, _: u16, _: Gaps, _: (Time, Time), _: Rng) {}

    fn at(&mut self, time: Time, action: Action) {
        if let Action::Begin(client) = action {
            let (plan, transfer) = self.clients[client as usize];
            self.begins.push((time, plan, transfer));
        }
    }
}

#[test]
fn every_stage_is_given_what_the_simulation_is_given() {
    let text = wide("60 ms", "1000 packets", TRAFFIC);
    let mut script = Script::default();
    play(&mut script, &scenario(&text), &Inputs::default(), 1);
    let mut told: Vec<String> = script
        .begins
        .iter()
        .map(|(time, plan, transfer)| {
            let name = ["long", "mice", "web"][*plan as usize];
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
    told.sort();
    simulated.sort();
    assert!(told.len() > 31, "{} transfers", told.len());
    assert_eq!(told, simulated);
}
