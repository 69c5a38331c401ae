// SPDX-License-Identifier: Apache-2.0
//! A port whose programs are run by BPF_PROG_TEST_RUN.

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapType, Object, ProgramInput};
use penstockd::port::counters;
use penstockd::port::maps::sum_of_cpus;
use penstockd::port::plain::{bytes_of, of_bytes};
use penstockd::port::policy::Policy;
use penstockd::port::vxlan::VxlanPorts;
use penstockd::skel::port::{PortSkel, PortSkelBuilder, types};
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::sync::Mutex;

use super::common::packet::Segment;

/// The port's slot: the first, which interfaces have that have no other.
const KEY: [u8; 4] = [0; 4];

/// Verdicts: `TCX_NEXT`, `TCX_DROP`.
pub const NEXT: i32 = -1;
pub const DROP: i32 = 2;

/// `struct __sk_buff`, and where some of its fields are.
const CONTEXT_BYTES: usize = 192;
const MARK: usize = 8;
const IFINDEX: usize = 40;
const PRIORITY: usize = 32;
const GSO_SIZE: usize = 176;

/// The interface of test runs that name none: the loopback.
const LOOPBACK: u32 = 1;

/// One of the loaded objects that tests take turns with, as each takes the verifier a while.
pub struct Port(pub &'static PortSkel<'static>);

struct Idle(&'static PortSkel<'static>);

// SAFETY: an object belongs to no thread, and one test at a time has it.
unsafe impl Send for Idle {}

static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

impl Drop for Port {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            IDLE.lock().unwrap().push(Idle(self.0));
        }
    }
}

fn load() -> &'static PortSkel<'static> {
    let memory = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut skel = PortSkelBuilder::default().open(memory).unwrap();
    for mut program in skel.open_object_mut().progs_mut() {
        let name = program.name().to_string_lossy();
        let schemes = ["fairq_", "hscc_", "observe_", "shim_"];
        let is_needed = name == "sweep" || schemes.iter().any(|it| name.starts_with(it));
        program.set_autoload(is_needed);
    }
    let skel = skel
        .load()
        .expect("needs root and a kernel of 6.1 or later");
    Box::leak(Box::new(skel))
}

/// Makes all maps what they are in a new object: without entries, or zero.
fn clear(object: &Object) {
    for map in object.maps() {
        let is_constant = map.name().to_string_lossy().contains('.');
        match map.map_type() {
            MapType::Hash | MapType::LruHash => {
                let keys: Vec<_> = map.keys().collect();
                keys.iter().for_each(|key| map.delete(key).unwrap());
            }
            MapType::Array if !is_constant => {
                let keys: Vec<u8> = (0..map.max_entries()).flat_map(u32::to_ne_bytes).collect();
                let values = vec![0; map.max_entries() as usize * map.value_size() as usize];
                map.update_batch(
                    &keys,
                    &values,
                    map.max_entries(),
                    MapFlags::ANY,
                    MapFlags::ANY,
                )
                .unwrap();
            }
            MapType::PercpuArray => {
                let cpus = libbpf_rs::num_possible_cpus().unwrap();
                let values = vec![vec![0; map.value_size() as usize]; cpus];
                for index in 0..map.max_entries() {
                    map.update_percpu(&index.to_ne_bytes(), &values, MapFlags::ANY)
                        .unwrap();
                }
            }
            _ => {}
        }
    }
}

impl Port {
    pub fn new() -> Port {
        let idle = IDLE.lock().unwrap().pop();
        let port = Port(idle.map_or_else(load, |idle| idle.0));
        clear(port.0.object());
        port.use_slots(1);
        port.configure(|_| {});
        port.beat(penstockd::host::clock::monotonic_ns());
        port
    }

    /// As if so many ports had been attached.
    pub fn use_slots(&self, count: u32) {
        let used = &self.0.maps.slots_used;
        used.update(&KEY, &count.to_ne_bytes(), MapFlags::ANY)
            .unwrap();
    }

    /// Another port, on the interface with this index, configured as the first.
    pub fn add_port(&self, slot: u32, ifindex: u32) {
        let maps = &self.0.maps;
        let config = maps.config.lookup(&KEY, MapFlags::ANY).unwrap().unwrap();
        let mut config: types::port_config = of_bytes(&config).unwrap();
        config.ifindex = ifindex;
        let state = types::port_state {
            id: slot,
            ..Default::default()
        };
        let beat = maps.heartbeat.lookup(&KEY, MapFlags::ANY).unwrap().unwrap();
        let write = |map: &dyn MapCore, index: u32, value: &[u8]| {
            let index = index.to_ne_bytes();
            map.update(&index, value, MapFlags::ANY).unwrap();
        };
        write(&maps.config, slot, bytes_of(&config));
        write(&maps.port, slot, bytes_of(&state));
        write(&maps.heartbeat, slot, &beat);
        write(&maps.slots, ifindex, &slot.to_ne_bytes());
        self.use_slots(slot + 1);
    }

    /// HSCC as by default, whose first ACKs are held at any queue; then what the test wants.
    pub fn configure(&self, change: impl FnOnce(&mut types::port_config)) {
        let mut config = types::port_config {
            abi: types::port_abi::PENSTOCK_ABI,
            generation: 1,
            ifindex: LOOPBACK,
            flows_max: 65_536,
            stale_ns: 60_000_000_000,
            buffer_bytes: 131_072,
            vxlan_ports: VxlanPorts::default().to_wire(),
            ..Default::default()
        };
        config.window.idle_ns = 60_000_000_000;
        config.window.first_acks = 4;
        config.schemes.fairq.interval_ns = 100_000;
        config.schemes.fairq.buffer_bytes = 131_072;
        config.schemes.fairq.alpha_q16 = 16_384;
        config.schemes.fairq.intervals = 10;
        config.schemes.fairq.mss_bytes = 1460;
        config.schemes.fairq.paths = 1;
        config.schemes.fairq.floor_segments = 1;
        config.schemes.fairq.first_floor_segments = 2;
        config.schemes.hscc.release_interval_ns = 100_000;
        config.schemes.hscc.alpha2_bytes = 32_768;
        config.schemes.hscc.mss_bytes = 1460;
        config.schemes.hscc.buffer_bytes = 131_072;
        config.schemes.hscc.floor_segments = 1;
        config.schemes.hscc.first_flight_segments = 2;
        change(&mut config);
        let map = &self.0.maps.config;
        map.update(&KEY, bytes_of(&config), MapFlags::ANY).unwrap();
    }

    /// Controls the flows of a policy, under a number of its own.
    pub fn control(&self, policy: &Policy, number: u32) {
        let map = &self.0.maps.policy;
        let element = (number & 1).to_ne_bytes();
        map.update(&element, bytes_of(&policy.to_map(number, 7)), MapFlags::ANY)
            .unwrap();
        self.configure(|config| {
            config.policy = number;
            config.window.first_acks = 255;
        });
    }

    /// Empties the tables of flows.
    pub fn forget(&self) {
        for map in [&self.0.maps.flows4, &self.0.maps.flows6] {
            let keys: Vec<_> = map.keys().collect();
            keys.iter().for_each(|key| map.delete(key).unwrap());
        }
        self.sweep();
    }

    /// What flows controlled and flows held out did.
    pub fn sides(&self) -> [types::side_counters; 2] {
        self.stats_of(0).sides
    }

    /// How many packets passed for a reason, by its word.
    pub fn passed(&self, reason: &str) -> u64 {
        counters::named(&self.counters())[&format!("passed_{reason}")]
    }

    /// As if so many bytes stood in the queue, until it changes again.
    pub fn queue(&self, bytes: u32) {
        self.change_stats(|stats| stats.sample.end_ns = u64::MAX);
        self.change_state(|state| {
            (state.queues, state.queue_ns, state.queue_bytes) = (1, u64::MAX, bytes);
        });
    }

    pub fn beat(&self, at_ns: u64) {
        let map = &self.0.maps.heartbeat;
        map.update(&KEY, &at_ns.to_ne_bytes(), MapFlags::ANY)
            .unwrap();
    }

    /// The packet as it leaves the program, which must let it pass.
    pub fn run(&self, program: &str, packet: &[u8]) -> Vec<u8> {
        self.run_marked(program, packet, 0)
    }

    /// The same for a packet that the host marked.
    pub fn run_marked(&self, program: &str, packet: &[u8], mark: u32) -> Vec<u8> {
        let mut context = [0; CONTEXT_BYTES];
        context[MARK..][..4].copy_from_slice(&mark.to_ne_bytes());
        let (verdict, _, packet) = self.outcome_in(&mut context, program, packet);
        assert_eq!(verdict, NEXT);
        packet
    }

    /// As [`Port::run`], at the port on an interface.
    pub fn run_on(&self, ifindex: u32, program: &str, packet: &[u8]) -> Vec<u8> {
        let mut context = [0; CONTEXT_BYTES];
        context[IFINDEX..][..4].copy_from_slice(&ifindex.to_ne_bytes());
        let (verdict, _, packet) = self.outcome_in(&mut context, program, packet);
        assert_eq!(verdict, NEXT);
        packet
    }

    /// A super-packet leaves, of segments of so many bytes.
    pub fn send_super_packet(&self, program: &str, packet: &[u8], segment_bytes: u32) {
        let mut context = [0; CONTEXT_BYTES];
        context[GSO_SIZE..][..4].copy_from_slice(&segment_bytes.to_ne_bytes());
        let (verdict, ..) = self.outcome_in(&mut context, program, packet);
        assert_eq!(verdict, NEXT);
    }

    /// The program's verdict, the packet's priority and the packet.
    pub fn outcome(&self, program: &str, packet: &[u8]) -> (i32, u32, Vec<u8>) {
        self.outcome_in(&mut [0; CONTEXT_BYTES], program, packet)
    }

    fn outcome_in(
        &self,
        context_in: &mut [u8; CONTEXT_BYTES],
        program: &str,
        packet: &[u8],
    ) -> (i32, u32, Vec<u8>) {
        let mut out = vec![0; packet.len() + 64];
        let mut context = [0; CONTEXT_BYTES];
        let object = self.0.object();
        let program = object.progs_mut().find(|p| p.name() == program).unwrap();
        let input = ProgramInput {
            data_in: Some(packet),
            data_out: Some(&mut out),
            context_in: Some(context_in),
            context_out: Some(&mut context),
            ..Default::default()
        };
        let output = program.test_run(input).unwrap();
        let verdict = output.return_value as i32;
        let packet = output.data.unwrap()[..packet.len()].to_vec();
        let priority = context[PRIORITY..][..4].try_into().unwrap();
        (verdict, u32::from_ne_bytes(priority), packet)
    }

    pub fn sweep(&self) {
        while self.slice() {}
    }

    /// A run of the sweep; whether it goes on.
    pub fn slice(&self) -> bool {
        let output = self.0.progs.sweep.test_run(ProgramInput::default());
        output.unwrap().return_value != 0
    }

    /// How many records of flows are in use.
    pub fn records(&self) -> u32 {
        let sweeps = self.0.maps.sweeps.lookup(&KEY, MapFlags::ANY);
        let sweeps: types::sweep_state = of_bytes(&sweeps.unwrap().unwrap()).unwrap();
        sweeps.records
    }

    /// As if time had passed, or the programs had come to it by themselves.
    pub fn change_state(&self, change: impl FnOnce(&mut types::port_state)) {
        let mut state = self.state();
        change(&mut state);
        let map = &self.0.maps.port;
        map.update(&KEY, bytes_of(&state), MapFlags::ANY).unwrap();
    }

    /// An entry as a flow that begins gets it: with a record for sweeps.
    pub fn add_flow(&self, key: &types::flow_key4, flow: &types::port_flow) {
        let maps = &self.0.maps;
        let write = |map: &dyn MapCore, key: &[u8], value: &[u8]| {
            map.update(key, value, MapFlags::ANY).unwrap();
        };
        write(&maps.flows4, bytes_of(key), bytes_of(flow));
        let sweeps = maps.sweeps.lookup(&KEY, MapFlags::ANY).unwrap().unwrap();
        let mut sweeps: types::sweep_state = of_bytes(&sweeps).unwrap();
        // The key, padded to that of IPv6, then family and state.
        let mut record = vec![0; maps.records.value_size() as usize];
        record[..size_of_val(key)].copy_from_slice(bytes_of(key));
        let end = record.len() - 8;
        record[end..].copy_from_slice(&[4u32.to_ne_bytes(), 1u32.to_ne_bytes()].concat());
        write(&maps.records, &sweeps.records.to_ne_bytes(), &record);
        sweeps.records += 1;
        write(&maps.sweeps, &KEY, bytes_of(&sweeps));
        self.change_state(|state| state.tracked += 1);
    }

    /// As if a socket of this host showed the flow's scales: the data's sender's, then the other's.
    pub fn know(&self, data: &Segment, mss: u16, scale: [u8; 2]) {
        let words = |address: IpAddr| {
            let bytes = match address {
                IpAddr::V4(four) => four.to_ipv6_mapped(),
                IpAddr::V6(six) => six,
            };
            of_bytes(&bytes.octets()).unwrap()
        };
        let key = types::flow_key6 {
            source: words(data.source),
            destination: words(data.destination),
            source_port: data.source_port.to_be(),
            destination_port: data.destination_port.to_be(),
            ..Default::default()
        };
        let known = types::flow_known {
            mss,
            scale,
            ..Default::default()
        };
        let map = &self.0.maps.known;
        map.update(bytes_of(&key), bytes_of(&known), MapFlags::ANY)
            .unwrap();
    }

    pub fn state(&self) -> types::port_state {
        self.state_of(0)
    }

    pub fn state_of(&self, slot: u32) -> types::port_state {
        let map = &self.0.maps.port;
        let bytes = map.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
        of_bytes(&bytes.unwrap().unwrap()).unwrap()
    }

    pub fn counters(&self) -> types::port_counters {
        self.counters_of(0)
    }

    pub fn counters_of(&self, slot: u32) -> types::port_counters {
        self.stats_of(slot).counters
    }

    /// Summed over the CPUs.
    pub fn stats_of(&self, slot: u32) -> types::port_stats {
        let map = &self.0.maps.stats_first;
        let cpus = map.lookup_percpu(&slot.to_ne_bytes(), MapFlags::ANY);
        sum_of_cpus(&cpus.unwrap().unwrap()).unwrap()
    }

    pub fn stats_of_cpus(&self) -> Vec<types::port_stats> {
        let map = &self.0.maps.stats_first;
        let cpus = map.lookup_percpu(&KEY, MapFlags::ANY).unwrap().unwrap();
        cpus.iter().map(|cpu| of_bytes(cpu).unwrap()).collect()
    }

    /// The same change for each CPU, as it is not known on which the next packet passes.
    pub fn change_stats(&self, change: impl Fn(&mut types::port_stats)) {
        let mut all = self.stats_of_cpus();
        all.iter_mut().for_each(change);
        let values: Vec<_> = all.iter().map(|cpu| bytes_of(cpu).to_vec()).collect();
        let map = &self.0.maps.stats_first;
        map.update_percpu(&KEY, &values, MapFlags::ANY).unwrap();
    }
}
