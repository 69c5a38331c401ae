// SPDX-License-Identifier: Apache-2.0
//! The policies of a scheme, put on the fabric's ports.

use super::{Inputs, RunError};
use crate::controller::{Channel, FlowCounts, QueueReports, Sicc};
use crate::fabric::{Fabric, LinkSpec, Routes};
use crate::network::{Failures, Ingress, Shared};
use crate::queue::fifo::Fifo;
use crate::queue::{Limit, codel, drr, hcf, pie, red, sfq, threshold};
use crate::rng::Rng;
use crate::simulation::{Action, Simulation, TrafficSink};
use crate::window::{Credit, Policy, PortParams, Shims, Wscale};
use penstock_core::{ParamError, Params, WindowScheme};
use penstock_scenario::params::{FULL_PACKET, saturated};
use penstock_scenario::units::Buffer;
use penstock_scenario::units::{Rate, Time};
use penstock_scenario::{
    self, Controller as SpecOfController, Period, Queue, Scenario, Scheme, Traffic, Window,
};
use std::num::NonZeroU32;

/// Shortest RTT that intervals are derived from: cables without delay would make them zero.
const LEAST_RTT: Time = Time::from_micros(10);

/// What HCF may hold where nothing is to be lost: more than flow control lets in.
const LOSSLESS_BYTES: u64 = 1 << 30;

/// The longest round trip by propagation, as the policies know it.
pub fn rtt(fabric: &Fabric) -> Time {
    let longest = Routes::new(fabric).longest_round_trip(fabric);
    longest.max(LEAST_RTT)
}

/// The links whose ports a scheme is put on: those of the switches that have it, in a dumbbell only
/// the ones to other switches.
pub fn protected(spec: &penstock_scenario::Fabric, fabric: &Fabric) -> impl Iterator<Item = u32> {
    let is_dumbbell = matches!(spec, penstock_scenario::Fabric::Dumbbell(_));
    let has_scheme = |node: &String| spec.has_scheme(node);
    let has_scheme: Vec<bool> = fabric.nodes.iter().map(has_scheme).collect();
    (0..fabric.links.len() as u32).filter(move |link| {
        let spec = &fabric.links[*link as usize];
        let is_out = fabric.is_host(spec.from) || is_dumbbell && fabric.is_host(spec.to);
        !is_out && has_scheme[spec.from as usize]
    })
}

/// Indices of the links whose queues the scenario wants measured.
pub fn measured(scenario: &Scenario, fabric: &Fabric, inputs: &Inputs) -> Vec<u32> {
    let destinations = inputs.destinations(scenario);
    (0..fabric.links.len() as u32)
        .filter(|link| {
            let spec = &fabric.links[*link as usize];
            let by_traffic = !fabric.is_host(spec.from) && destinations.contains(&spec.to);
            scenario
                .measure
                .selects(&scenario.fabric, &fabric.port_name(*link))
                .unwrap_or(by_traffic)
        })
        .collect()
}

/// Puts the scheme's queue and window policies on every protected port.
pub fn set_up(
    simulation: &mut Simulation,
    scenario: &Scenario,
    scheme: &Scheme,
    fabric: &Fabric,
    seed: u64,
) -> Result<(), RunError> {
    let longest = scenario.longest_packet();
    set_losses(simulation, &scenario.fabric, fabric, seed);
    set_pfc(simulation, &scenario.fabric, fabric, longest);
    let rtt = rtt(fabric);
    let of_any = port_params(scheme);
    // Credit behind the ports is where hosts are, or where a dumbbell's link ends.
    let is_dumbbell = matches!(scenario.fabric, penstock_scenario::Fabric::Dumbbell(_));
    let own = |link: &u32| simulation.has_port(*link);
    let own: Vec<u32> = protected(&scenario.fabric, fabric).filter(own).collect();
    for link in own {
        let spec = &fabric.links[link as usize];
        let port = Port {
            rate: spec.rate,
            buffer: spec.buffer,
            longest,
            is_lossless: scenario
                .fabric
                .pfc(&fabric.nodes[spec.from as usize])
                .is_some(),
            rtt,
            seed: Rng::new(seed, 1 << 32 | u64::from(link)),
        };
        let named =
            |error: ParamError| RunError::Parameter(format!("{}: {error}", fabric.port_name(link)));
        port.set_queue(simulation, link, &scheme.queue)
            .map_err(named)?;
        if !scheme.window.is_behind_port() || is_dumbbell || fabric.is_host(spec.to) {
            port.set_window(simulation, link, &scheme.window, of_any)
                .map_err(named)?;
        }
    }
    if let Some(shims) = Shims::new(of_any.wscale, of_any.sampled.is_some()) {
        simulation.network.set_shims(shims);
    }
    if let SpecOfController::FlowCounts(spec) = &scheme.controller {
        for link in protected(&scenario.fabric, fabric) {
            simulation.network.report_syn_fin(link);
        }
        let channel = Channel::new(spec.latency, None, spec.loss.0, Rng::new(seed, 2));
        simulation.controller = Some(Box::new(FlowCounts::new(channel)));
    }
    if let SpecOfController::Sicc(spec) = &scheme.controller {
        let params = |link: u32| {
            let at = &fabric.links[link as usize];
            Ok((at.from, link, spec.core(at.buffer.as_bytes(), Some(rtt))?))
        };
        let links: Result<Vec<(u32, u32, Params)>, ParamError> =
            protected(&scenario.fabric, fabric).map(params).collect();
        let links = links.map_err(|error| RunError::Parameter(error.to_string()))?;
        for reported in links
            .iter()
            .flat_map(|(_, link, params)| Sicc::reported_links(*link, params))
        {
            simulation.network.report_syn_fin(reported);
        }
        let rng = Rng::new(seed, 2);
        let channel = Channel::new(
            spec.time("latency").unwrap_or_default(),
            spec.rate("rate"),
            spec.share("loss").0,
            rng,
        );
        let queue_reports = match spec.word("queue_reports") {
            0 => QueueReports::Instant,
            1 => QueueReports::Sent,
            _ => QueueReports::Polled,
        };
        let shims = spec.core(0, Some(rtt));
        let shims = shims.map_err(|error| RunError::Parameter(error.to_string()))?;
        let controller = Sicc::new(shims, links, channel, queue_reports);
        simulation.controller = Some(Box::new(controller));
    }
    Ok(())
}

/// Has links fail, and switches share their buffer among their ports, whatever the scheme.
fn set_losses(
    simulation: &mut Simulation,
    spec: &penstock_scenario::Fabric,
    fabric: &Fabric,
    seed: u64,
) {
    let links = 0..fabric.links.len() as u32;
    let own: Vec<u32> = links.filter(|link| simulation.has_port(*link)).collect();
    if !spec.port_at().is_empty() {
        for link in &own {
            let rng = Rng::new(seed, 2 << 32 | u64::from(*link));
            let change = spec.port_change(&fabric.port_name(*link));
            if let Some(failures) = change.and_then(|change| Failures::new(change, rng)) {
                simulation.network.set_failures(*link, failures);
            }
        }
    }
    if !spec.shared_at().is_empty() {
        for switch in fabric.hosts..fabric.nodes.len() {
            let Some(shared) = spec.shared_buffer(&fabric.nodes[switch]) else {
                continue;
            };
            let of_switch = |link: &&u32| fabric.links[**link as usize].from as usize == switch;
            let ports: Vec<u32> = own.iter().filter(of_switch).copied().collect();
            if !ports.is_empty() {
                let shared = Shared::new(shared, FULL_PACKET, ports);
                simulation.network.set_shared(shared);
            }
        }
    }
}

/// Gives switches flow control: their own ports, and those that send to them, have schedulers, as departures
/// must be events there. A scheme's scheduler replaces these.
fn set_pfc(
    simulation: &mut Simulation,
    spec: &penstock_scenario::Fabric,
    fabric: &Fabric,
    longest: u64,
) {
    if spec.pfc_at().is_empty() {
        return;
    }
    let pfc = |node: u32| match fabric.is_host(node) {
        true => None,
        false => spec.pfc(&fabric.nodes[node as usize]),
    };
    for link in 0..fabric.links.len() as u32 {
        let LinkSpec {
            from,
            to,
            rate,
            delay,
            jitter,
            buffer,
            ..
        } = fabric.links[link as usize];
        let network = &mut simulation.network;
        if pfc(from).is_some() {
            network.set_scheduler(link, Box::new(Fifo::new(Limit::bytes(u64::MAX))));
            network.count_ingress(link);
        } else if pfc(to).is_some() {
            network.set_scheduler(link, Box::new(Fifo::new(limit(buffer, longest))));
        }
        if let Some(pfc) = pfc(to) {
            let back = fabric.links[link as usize ^ 1].delay;
            let round_trip = (delay + back + jitter).as_secs_f64() * rate.0 as f64 / 8.0;
            let headroom = round_trip as u64 + 4 * longest;
            let headroom = pfc.headroom.map_or(headroom, |headroom| headroom.0);
            let rules = Ingress {
                pause: pfc.pause.0,
                resume: pfc.resume(),
                most: pfc.pause.0 + headroom,
                delay: back,
            };
            network.set_pfc(link, rules);
        }
    }
}

/// What a scheduler may hold besides the packet in transmission, which counts as a full one; at least the
/// `longest` packet.
fn limit(buffer: Buffer, longest: u64) -> Limit {
    match buffer {
        Buffer::Bytes(bytes) => Limit::bytes(bytes.saturating_sub(FULL_PACKET).max(longest)),
        // One waits for an instant even where there is only room in the transmitter.
        Buffer::Packets(packets) => Limit::packets(packets.saturating_sub(1).max(1)),
    }
}

/// What the port does for any window scheme.
fn port_params(scheme: &Scheme) -> PortParams {
    let window = &scheme.window;
    PortParams {
        first_acks: window.count("first_acks"),
        wscale: Wscale {
            source: window.wscale_source(),
            network: window.count("network_wscale") as u8,
            clears_bits: window.flag("clears_bits"),
        },
        idle: window.time("idle").unwrap_or(Time::NEVER),
        never_shrink: window.flag("never_shrink"),
        counted_by_controller: matches!(scheme.controller, SpecOfController::FlowCounts(_)),
        sampled: scheme.sampled.map(|share| share.0),
    }
}

/// What policies need to know of a port.
struct Port {
    rate: Rate,
    buffer: Buffer,
    /// Bytes of the longest packet.
    longest: u64,
    /// Flow control keeps the queue short, and the buffer is no limit.
    is_lossless: bool,
    rtt: Time,
    seed: Rng,
}

impl Port {
    /// What a scheduler may hold besides the packet in transmission.
    fn limit(&self) -> Limit {
        match self.is_lossless {
            true => Limit::bytes(u64::MAX),
            false => limit(self.buffer, self.longest),
        }
    }

    /// What HCF's two queues may hold.
    fn hcf_limit(&self) -> Buffer {
        let limit = self.limit();
        match self.buffer {
            _ if self.is_lossless => Buffer::Bytes(LOSSLESS_BYTES),
            Buffer::Packets(_) => Buffer::Packets(limit.packets),
            Buffer::Bytes(_) => Buffer::Bytes(limit.bytes),
        }
    }

    fn set_queue(
        &self,
        simulation: &mut Simulation,
        link: u32,
        queue: &Queue,
    ) -> Result<(), ParamError> {
        let network = &mut simulation.network;
        match queue {
            Queue::DropTail(_) => {}
            Queue::Red(spec) => {
                network.set_admission(link, Box::new(red::Red::new(self.red(spec))))
            }
            Queue::Threshold(spec) => {
                network.set_admission(
                    link,
                    Box::new(threshold::Marking::new(self.threshold(spec))),
                );
            }
            Queue::Pie(spec) => {
                network.set_admission(link, Box::new(pie::Pie::new(self.pie(spec))))
            }
            Queue::Codel(spec) => {
                let config = codel::Config {
                    target: spec.target,
                    interval: spec.interval,
                    ecn: spec.ecn,
                    ..codel::Config::new(self.limit())
                };
                network.set_scheduler(link, Box::new(codel::Codel::new(config)));
            }
            Queue::Sfq(spec) => {
                let default = sfq::Config::new(self.limit());
                let config = sfq::Config {
                    buckets: NonZeroU32::new(spec.bins).unwrap_or(default.buckets),
                    quantum_bytes: NonZeroU32::new(saturated(spec.quantum.0)),
                    perturbation: spec.perturb,
                    ..default
                };
                network.set_scheduler(link, Box::new(sfq::Sfq::new(config, self.seed.clone())));
            }
            Queue::Drr(spec) => {
                let default = drr::Config::new(self.limit());
                let quantum = NonZeroU32::new(saturated(spec.quantum.0));
                let config = drr::Config {
                    quantum_bytes: quantum.unwrap_or(default.quantum_bytes),
                    ..default
                };
                network.set_scheduler(link, Box::new(drr::Drr::new(config)));
            }
            Queue::Hcf(spec) => {
                let params = spec.queues(self.hcf_limit())?;
                let core = penstock_core::Hcf::new(&params, self.seed.clone().bits() as u32);
                let every = spec.time("every");
                let period = every.filter(|_| spec.period() != Period::Dynamic);
                network.set_scheduler(link, Box::new(hcf::Hcf::new(core, period)));
            }
        }
        if let Some(period) = network.queue_period(link) {
            simulation.at(period, Action::QueueTick(link));
        }
        Ok(())
    }

    fn red(&self, spec: &penstock_scenario::Red) -> red::Config {
        let packets = |buffer: penstock_scenario::Buffer| match buffer {
            Buffer::Bytes(bytes) => bytes as f64 / FULL_PACKET as f64,
            Buffer::Packets(packets) => f64::from(packets),
        };
        let quarter = self.buffer.bytes(FULL_PACKET) as f64 / FULL_PACKET as f64 / 4.0;
        let min_threshold = spec.min.map_or(quarter, packets);
        red::Config {
            min_threshold,
            max_threshold: spec.max.map_or(3.0 * min_threshold, packets),
            max_p: spec.probability.0,
            weight: spec.weight.0,
            gentle: spec.gentle,
            ecn: spec.ecn,
            adaptive: spec.adaptive,
            ..red::Config::for_link(self.rate, self.limit())
        }
    }

    fn threshold(&self, spec: &penstock_scenario::Threshold) -> threshold::Threshold {
        // SICC §5: 15 packets at 1 Gb/s, 65 at 10 Gb/s; the line between, flat outside.
        let gigabits = (self.rate.0 as f64 / 1e9).clamp(1.0, 10.0);
        let derived = (15.0 + (gigabits - 1.0) * 50.0 / 9.0) as u32;
        match spec.mark_at.map(|level| level.of(self.buffer)) {
            None => threshold::Threshold::Packets(derived),
            Some(Buffer::Packets(packets)) => threshold::Threshold::Packets(packets),
            Some(Buffer::Bytes(bytes)) => threshold::Threshold::Bytes(bytes),
        }
    }

    fn pie(&self, spec: &penstock_scenario::Pie) -> pie::Config {
        pie::Config {
            target: spec.target,
            update_period: spec.update,
            alpha_per_s: spec.alpha,
            beta_per_s: spec.beta,
            max_burst: spec.burst,
            ecn: spec.ecn,
            ..pie::Config::for_link(self.rate)
        }
    }

    fn set_window(
        &self,
        simulation: &mut Simulation,
        link: u32,
        window: &Window,
        of_any: PortParams,
    ) -> Result<(), ParamError> {
        if window.scheme().is_none() {
            return Ok(());
        }
        let params = window.core(self.buffer.as_bytes(), Some(self.rtt))?;
        if window.is_credit() {
            let rate = window.rate("rate").unwrap_or(self.rate);
            let credit = Credit::new(&params, rate, of_any.wscale, of_any.never_shrink);
            simulation.at(credit.period(), Action::WindowTick(link));
            let credit = Box::new(credit);
            simulation
                .network
                .set_credit(link, credit, window.is_behind_port());
            return Ok(());
        }
        let policy = Policy::new(WindowScheme::new(&params), of_any);
        if let Some(period) = policy.period() {
            simulation.at(period, Action::WindowTick(link));
        }
        simulation.network.set_window(link, Box::new(policy));
        Ok(())
    }
}

/// Hosts that a traffic sends to.
pub fn destinations(traffic: &Traffic, fabric: &penstock_scenario::Fabric) -> Vec<u32> {
    let hosts = match traffic {
        Traffic::Job(job) => job.ends(fabric).1,
        _ => {
            let hosts = traffic.ends().and_then(|(_, to)| to.resolve(fabric).ok());
            hosts.unwrap_or_default()
        }
    };
    hosts.into_iter().map(|host| host as u32).collect()
}
