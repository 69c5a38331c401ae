// SPDX-License-Identifier: Apache-2.0
//! `penstock-traffic`: the laboratory's load generator. It plays a scenario's traffic on real TCP and
//! UDP sockets between network namespaces of this machine, and records each flow with the simulator's
//! columns.
//!
//! # Map
//!
//! A run is [`play`] below, from top to bottom:
//!
//! | module | contents |
//! |---|---|
//! | [`cli`] | the command line |
//! | [`hosts`] | HOSTS.json: the namespaces, addresses and interfaces of the scenario's hosts and ports |
//! | [`setup`], [`tcp`] | the scenario's TCP parameters as sysctls and socket options; warnings for the rest |
//! | [`player`] | the run: start here. Connections, transfers, datagrams, samples of the ports' queues |
//! | [`progress`], [`results`], [`failure`] | what is printed, the files of a run, errors |
//! | [`socket`], [`epoll`], [`process`] | non-blocking sockets, their readiness, this process's limits and signals |
//! | [`namespaces`], [`kernel`] | the hosts' namespaces; TCP's counters and sysctls in them |
//!
//! The expansion of the scenario into transfers is the simulator's own
//! (`penstock_sim::run::play`), so that both see the same pairs, starts and sizes; records and
//! summaries are the simulator's too. What is asked of rtnetlink, namespaces and TCP_INFO is in
//! `penstock_linux`. There is no unsafe code here.

#![forbid(unsafe_code)]

mod cli;
mod epoll;
mod failure;
mod hosts;
mod kernel;
mod namespaces;
mod player;
mod process;
mod progress;
mod results;
mod setup;
mod socket;
mod tcp;

use clap::Parser;
use cli::Arguments;
use failure::{Failure, because};
use indexmap::IndexSet;
use kernel::KernelCounters;
use namespaces::Namespaces;
use penstock_linux::note;
use penstock_scenario::Until;
use penstock_scenario::units::{Rate, Time};
use penstock_sim::run::{self, Performance};
use penstock_sim::simulation::{Action, TrafficSink};
use penstock_sim::{Inputs, Scenario};
use player::{Player, Ports};
use process::Interrupts;
use results::{Results, Summary};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use tcp::Options;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match play(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            note!("penstock-traffic: {failure}");
            match failure {
                Failure::Because(_) => ExitCode::FAILURE,
                Failure::Interrupted => ExitCode::from(130),
            }
        }
    }
}

fn play(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    results::require_writable(&arguments.out)?;
    let interrupts = Interrupts::catch().map_err(because("catching signals"))?;
    process::prepare().map_err(because("preparing the process"))?;
    let (mut scenario, inputs) = read(&arguments.scenario)?;
    let plain = |error: run::RunError| Failure::Because(error.to_string());
    let scheme = run::scheme_of(&scenario, &arguments.scheme).map_err(plain)?;
    let mut namespaces = Namespaces::new()?;
    let places = hosts::read(&arguments.hosts, &scenario, &inputs, &mut namespaces)?;
    let drawn = (&inputs, arguments.seed);
    let (setting, mut warnings) =
        setup::settle(&scenario, scheme, drawn, &places, &mut namespaces)?;
    let names = setting.options.iter().map(Options::congestion_in_scenarios);
    let names: IndexSet<&str> = names.collect();
    let tcp = names.into_iter().collect::<Vec<_>>().join(",");
    let fabric = run::build_fabric(&scenario.fabric);
    let clients = run::ClientProfiles::of(&scenario, scheme, &inputs, arguments.seed);
    let rate = |name: &str| {
        let links = 0..fabric.links.len() as u32;
        let link = links
            .into_iter()
            .find(|link| fabric.port_name(*link) == name);
        link.map_or(Rate(u64::MAX), |link| fabric.links[link as usize].rate)
    };
    let period = scenario.measure.queue_every;
    let ports = Ports::open(&places.ports, rate, period, &mut namespaces)?;
    let mut player = Player::new(namespaces, places, setting, ports)?;
    for warning in &warnings {
        note!("penstock-traffic: {warning}");
    }
    player.at(Time::ZERO, Action::Sample);
    player.at(Time::ZERO, Action::SampleWindows);
    if !arguments.no_traffic {
        run::schedule_traffic(&mut player, &scenario, &inputs, arguments.seed);
    }
    player.at(scenario.measure.from, Action::MeasureStart);
    let kernel = kernel_counters(&mut player)?;
    let processor_s = process::processor_s();
    let mut progress = progress::Progress::new(arguments.progress);
    let when_done = match scenario.until {
        Until::Done if !arguments.no_traffic => scenario.measure.from,
        _ => Time::NEVER,
    };
    let result = player.run(scenario.duration, when_done, |fraction, player| {
        progress.print(fraction, player);
        !interrupts.arrived()
    });
    progress.end();
    scenario.duration = result?;
    run::set_ideal_times(&mut player.records, &fabric, &clients, &scenario.fabric);
    let kernel = kernel_counters(&mut player)?.since(kernel);
    let failed = player.broken.first.as_ref().map(|first| {
        let count = player.broken.count;
        format!("{count} connections failed; the first: {first}")
    });
    let late = player.lateness.warning(player.records.len());
    for line in failed.into_iter().chain(late) {
        note!("penstock-traffic: {line}");
        warnings.push(line);
    }
    let ports = player
        .ports
        .summaries(scenario.duration - scenario.measure.from);
    let sent = ports.values().map(|port| port.egress_packets).sum();
    let busy_s = process::processor_s() - processor_s;
    let jobs = std::mem::take(&mut player.jobs).into_records();
    let results = Results {
        summary: Summary {
            tcp,
            groups: run::summaries(&scenario, &player.records, &jobs, &player.windows),
            drops: ports.values().map(|port| port.drops).sum(),
            ports,
            performance: Performance::measure(started.elapsed().as_secs_f64(), busy_s, sent),
            kernel,
            broken: player.broken.count,
            warnings,
        },
        flows: run::flow_records(&scenario, &player.records),
        queues: std::mem::take(&mut player.ports.samples),
        windows: run::window_rows(&scenario, &player.windows),
        jobs: run::job_rows(&scenario, &jobs),
    };
    results.write(&arguments.out)
}

fn read(file: &Path) -> Result<(Scenario, Inputs), Failure> {
    let text = std::fs::read_to_string(file).map_err(because(file.display()))?;
    let scenario = Scenario::parse(&text, file, &[]);
    let scenario = scenario.map_err(|error| Failure::Because(error.to_string()))?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let convert = |_: &Path| Err("is not CSV; convert it first".to_owned());
    let inputs = Inputs::read(&scenario, folder, &convert);
    let inputs = inputs.map_err(|error| Failure::Because(error.to_string()))?;
    Ok((scenario, inputs))
}

/// TCP's counters over the namespaces of all hosts.
fn kernel_counters(player: &mut Player) -> Result<KernelCounters, Failure> {
    let mut sum = KernelCounters::default();
    let (places, namespaces) = player.places();
    for netns in places.host_namespaces() {
        namespaces.enter(netns)?;
        sum = sum.plus(KernelCounters::read()?);
    }
    Ok(sum)
}
