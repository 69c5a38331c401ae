// SPDX-License-Identifier: Apache-2.0
//! A window scheme of `core/` at a port of the simulator, whichever it is.

use super::count::Count;
use super::{Flows, WindowCounters, Wscale, flow_packet, held};
use crate::packet::{Packet, flag};
use penstock_core::flow::Direction;
use penstock_core::scheme::{Ack, Counting, DataFate};
use penstock_core::tcp_rewrite::{AckKind, Edge};
use penstock_core::{PortSegments, WindowScheme};
use penstock_scenario::units::Time;

/// What the port does for any scheme (`WINDOW_PARAMS` of `core/window.h`).
#[derive(Clone, Copy, Debug)]
pub struct PortParams {
    /// ACKs after the handshake that count as a flow's first.
    pub first_acks: u32,
    /// How window scales are learned.
    pub wscale: Wscale,
    /// A flow silent for this long is not counted.
    pub idle: Time,
    /// Never take back the right edge of a window once offered.
    pub never_shrink: bool,
    /// A controller counts the flows, not the port.
    pub counted_by_controller: bool,
    /// Share of the ACKs whose window may be lowered, if the edges hold it for the others.
    pub sampled: Option<f64>,
}

/// The scheme, its count of flows and what it did.
pub struct Policy {
    core: WindowScheme,
    count: Count,
    port: PortParams,
    /// What was offered to each flow's sender, if that matters; by slot.
    edges: Vec<Edge>,
    segments: PortSegments,
    /// Whether the scheme drops anything at all.
    can_drop: bool,
    was_clamping: bool,
    counters: WindowCounters,
}

impl Policy {
    /// A port without flows.
    pub fn new(core: WindowScheme, port: PortParams) -> Policy {
        let counting = match port.counted_by_controller {
            true => Counting::None,
            false => core.counting(),
        };
        Policy {
            count: Count::new(counting, port.idle),
            can_drop: core.drops(u32::MAX, u32::MAX, false) != DataFate::Passes,
            core,
            port,
            edges: Vec::new(),
            segments: PortSegments::default(),
            was_clamping: false,
            counters: WindowCounters::default(),
        }
    }

    /// `packet` is about to join the port's queue of `backlog_bytes`. `slot` is where the table of
    /// flows holds what this port knows of the flow.
    pub fn on_departure(
        &mut self,
        now: Time,
        packet: &mut Packet,
        flows: &mut Flows,
        slot: usize,
        backlog_bytes: u64,
    ) {
        if packet.has(flag::SYN) {
            self.port.wscale.on_syn(packet);
        }
        let seen = flow_packet(now, packet, Direction::Data);
        let change = flows.follow(slot, &seen);
        self.count.on_packet(&mut self.core, &seen, slot, change);
        // Datagrams do not show the size of segments.
        let is_segment = !packet.has(flag::UDP);
        let payload = if is_segment { packet.payload } else { 0 };
        let queue = bytes(backlog_bytes + u64::from(packet.size()));
        let is_full = !packet.has_any(flag::PSH | flag::FIN);
        let is_clamping = self.core.follow(
            &mut self.segments,
            payload.into(),
            is_full,
            queue,
            now.as_nanos(),
        );
        self.note_clamp(is_clamping);
    }

    /// What becomes of `packet`, which finds `backlog_bytes` queued, to keep room for others.
    pub fn drops(&self, packet: &Packet, backlog_bytes: u64) -> DataFate {
        let is_control = packet.payload == 0 || packet.has_any(flag::SYN | flag::FIN | flag::RST);
        if !self.can_drop {
            return DataFate::Passes;
        }
        let queue = bytes(backlog_bytes);
        match self.core.drops(queue, packet.size(), is_control) {
            // A datagram has no ACK.
            DataFate::Cut if !packet.has(flag::ACK) => DataFate::Dropped,
            fate => fate,
        }
    }

    /// `packet` has entered by the port's link. If it is an ACK its window may be lowered; else it is
    /// a SYN or RST, from which the port only learns.
    pub fn on_ack(
        &mut self,
        now: Time,
        packet: &mut Packet,
        flows: &mut Flows,
        slot: usize,
        backlog_bytes: u64,
    ) {
        if packet.has(flag::SYN) {
            self.port.wscale.on_syn(packet);
        }
        let seen = flow_packet(now, packet, Direction::Acks);
        let ack = flows.follow_ack(slot, &seen, self.port.first_acks, self.segments.bytes);
        self.count
            .on_packet(&mut self.core, &seen, slot, ack.change);
        let (queue, now_ns) = (bytes(backlog_bytes), now.as_nanos());
        if self.port.never_shrink && packet.has(flag::SYN) {
            *self.edge(slot) = Edge::default();
        }
        if !packet.has(flag::ACK) || self.leaves_to_edge(packet, ack.kind) {
            self.counters.acks += u64::from(packet.has(flag::ACK));
            let is_clamping = self
                .core
                .follow(&mut self.segments, 0, false, queue, now_ns);
            return self.note_clamp(is_clamping);
        }
        let (window, scale) = self.port.wscale.read(packet, ack.scale());
        let newcomers = match ack.kind {
            AckKind::Later => 0,
            AckKind::Syn | AckKind::First => self.count.with_half_open(),
        };
        let passing = Ack {
            window,
            scale,
            mss_bytes: ack.mss_bytes,
            kind: ack.kind,
        };
        let (wanted, is_clamping) = self.core.follow_ack(newcomers, queue, &passing, now_ns);
        let mut lowered = wanted;
        if self.port.never_shrink {
            lowered = self.edge(slot).keep(packet.ack, window, scale, wanted);
            self.counters.acks_edge_kept += u64::from(lowered.window > wanted.window);
        }
        self.port.wscale.write(packet, lowered.window);
        if self.port.sampled.is_some() {
            held::put_flag(packet);
        }
        self.note_clamp(is_clamping);
        self.counters.acks += 1;
        if lowered.changed {
            self.counters.acks_rewritten += 1;
            self.counters.acks_floored += u64::from(lowered.floored);
            self.counters.acks_first_rewritten += u64::from(ack.kind != AckKind::Later);
        }
    }

    /// A controller has counted the flows.
    pub fn set_flows(&mut self, flows: u32) {
        self.count.set(&mut self.core, flows);
    }

    /// The number of flows that the scheme knows.
    pub fn flows(&self) -> u32 {
        self.count.flows()
    }

    /// How often [`Policy::tick`] wants to be called; `None` for never.
    pub fn period(&self) -> Option<Time> {
        let of_core = self.core.tick_ns().map(Time::from_nanos);
        of_core.or(self.count.period())
    }

    /// Periodic work; `sent_bytes`: all that has left by the port.
    pub fn tick(&mut self, now: Time, flows: &mut Flows, backlog_bytes: u64, sent_bytes: u64) {
        self.count.expire(&mut self.core, flows, now.as_nanos());
        self.core
            .on_tick(bytes(backlog_bytes), sent_bytes, now.as_nanos());
    }

    /// What it did so far.
    pub fn counters(&self) -> WindowCounters {
        self.counters
    }

    /// Whether the ACK is none of the sampled ones, so that the edge writes its window. At the edge of a
    /// new flow is none yet.
    fn leaves_to_edge(&self, packet: &Packet, kind: AckKind) -> bool {
        let is_left = |share| kind == AckKind::Later && !held::is_sampled(packet, share);
        self.port.sampled.is_some_and(is_left)
    }

    fn note_clamp(&mut self, is_clamping: bool) {
        self.counters.clamps += u64::from(is_clamping && !self.was_clamping);
        self.was_clamping = is_clamping;
    }

    fn edge(&mut self, slot: usize) -> &mut Edge {
        if slot >= self.edges.len() {
            self.edges.resize(slot + 1, Edge::default());
        }
        &mut self.edges[slot]
    }
}

fn bytes(backlog: u64) -> u32 {
    u32::try_from(backlog).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SynOptions;
    use crate::window::Wscale;
    use penstock_core::scheme::WscaleSource;
    use penstock_core::{Params, definitions};

    /// As bpf/scale.h: the answer to a SYN without the option has none either.
    #[test]
    fn a_syn_that_leaves_by_the_port_is_stripped_too() {
        let core = WindowScheme::new(&Params::new(definitions::of("fairq"), 100_000));
        let port = PortParams {
            first_acks: 4,
            wscale: Wscale {
                source: WscaleSource::Stripped,
                ..Wscale::default()
            },
            idle: Time::from_secs(1),
            never_shrink: false,
            counted_by_controller: false,
            sampled: None,
        };
        let mut options = SynOptions {
            mss: 1460,
            window_scale: Some(7),
            sack: true,
            timestamps: true,
        };
        let mut packet = Packet {
            flags: flag::SYN,
            options: options.pack(),
            ..Packet::default()
        };
        let mut flows = Flows::default();
        flows.reserve(0);
        Policy::new(core, port).on_departure(Time::ZERO, &mut packet, &mut flows, 0, 0);
        options.window_scale = None;
        assert_eq!(SynOptions::unpack(packet.options), options);
    }

    /// HSCC counts flows and has no interval of its own; FairQ has, and a controller counts for the last.
    #[test]
    fn idle_flows_are_looked_for_where_flows_are_counted() {
        let period = |name, counted_by_controller| {
            let core = WindowScheme::new(&Params::new(definitions::of(name), 100_000));
            let port = PortParams {
                first_acks: 4,
                wscale: Wscale::default(),
                idle: Time::from_secs(1),
                never_shrink: false,
                counted_by_controller,
                sampled: None,
            };
            Policy::new(core, port).period()
        };
        assert_eq!(
            period("hscc", false),
            Count::new(Counting::Exact, Time::ZERO).period()
        );
        assert!(period("fairq", false).is_some());
        assert_eq!(period("hscc", true), None);
    }
}
