// SPDX-License-Identifier: Apache-2.0
//! Playing a script against an end point.

use crate::script::{Action, Script, Segment, Step, time};
use penstock_scenario::units::Time;
use penstock_sim::packet::{FlowId, Packet, SackBlock, SynOptions, flag};
use penstock_sim::tcp::{Config, Ctx, Endpoint, Events, InitialSequence, Wire};
use std::collections::VecDeque;

const LETTERS: [(u16, char); 7] = [
    (flag::SYN, 'S'),
    (flag::FIN, 'F'),
    (flag::RST, 'R'),
    (flag::PSH, 'P'),
    (flag::ACK, '.'),
    (flag::ECE, 'E'),
    (flag::CWR, 'W'),
];
const TCP_FLAGS: u16 = 0xff;

struct Outbox {
    now: Time,
    sent: VecDeque<(Time, Packet, Vec<SackBlock>)>,
}

impl Wire for Outbox {
    fn send(&mut self, segment: Packet, sack: &[SackBlock]) {
        self.sent.push_back((self.now, segment, sack.to_vec()));
    }
}

struct Player<'a> {
    cfg: &'a Config,
    isn: u32,
    peer_isn: u32,
    end: Endpoint,
    out: Outbox,
    events: Events,
    trace: Vec<String>,
}

pub fn run(script: &Script) -> Result<(), String> {
    let isn = match script.cfg.initial_sequence {
        InitialSequence::Fixed(isn) => isn,
        InitialSequence::Seeded(_) => return Err("a script needs a fixed isn".into()),
    };
    let mut player = Player {
        cfg: &script.cfg,
        isn,
        peer_isn: script.peer_isn,
        end: Endpoint::new(FlowId(0)),
        out: Outbox {
            now: Time::ZERO,
            sent: VecDeque::new(),
        },
        events: Events::NONE,
        trace: Vec::new(),
    };
    for step in &script.steps {
        player.step(step).map_err(|why| player.report(step, &why))?;
    }
    match player.out.sent.front() {
        None => Ok(()),
        Some((at, packet, sack)) => {
            let extra = player.show(*at, packet, sack);
            Err(player.report(
                script.steps.last().expect("a step"),
                &format!("then unexpected: {extra}"),
            ))
        }
    }
}

impl Player<'_> {
    fn report(&self, step: &Step, why: &str) -> String {
        format!(
            "line {}: {}\n    {why}\ntrace:\n    {}",
            step.line,
            step.text,
            self.trace.join("\n    ")
        )
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        self.advance(step.at)?;
        if !matches!(step.action, Action::Expect(_))
            && let Some((at, packet, sack)) = self.out.sent.front()
        {
            return Err(format!(
                "unexpected before it: {}",
                self.show(*at, packet, sack)
            ));
        }
        match &step.action {
            Action::Call(name, count) => self.call(name, *count),
            Action::Arrive(segment) => self.arrive(segment),
            Action::Expect(segment) => self.expect(step.at, segment),
            Action::Check(pairs) => pairs.iter().try_for_each(|(n, v)| self.check(n, v)),
        }
    }

    /// Lets the timers run up to `at`.
    fn advance(&mut self, at: Time) -> Result<(), String> {
        while self.end.deadline(self.cfg) <= at {
            self.out.now = self.end.deadline(self.cfg);
            let events = self.with_context(|end, ctx| end.on_timer(ctx));
            self.trace
                .push(format!("{} timer", show_time(self.out.now)));
            self.note(events);
            if self.end.deadline(self.cfg) <= self.out.now {
                return Err("a timer does not move".into());
            }
        }
        self.out.now = at;
        Ok(())
    }

    /// Calls the end point at the time of the script.
    fn with_context<T>(&mut self, call: impl FnOnce(&mut Endpoint, &mut Ctx<Outbox>) -> T) -> T {
        let mut ctx = Ctx {
            cfg: self.cfg,
            now: self.out.now,
            wire: &mut self.out,
        };
        call(&mut self.end, &mut ctx)
    }

    fn note(&mut self, events: Events) {
        self.events.0 |= events.0;
        let from = self.trace.iter().filter(|l| l.contains(" > ")).count();
        let sent = self.end.segments_sent() as usize;
        let new = self.out.sent.len().min(sent - from);
        for (at, packet, sack) in self.out.sent.iter().skip(self.out.sent.len() - new) {
            let line = show(self.isn, self.peer_isn, *at, packet, sack);
            self.trace.push(line);
        }
    }

    fn call(&mut self, name: &str, count: u64) -> Result<(), String> {
        match name {
            "listen" => self.end.listen(self.cfg),
            "connect" => self.with_context(|end, ctx| end.connect(ctx)),
            "write" => self.with_context(|end, ctx| end.write(ctx, count)),
            "close" => self.with_context(|end, ctx| end.close(ctx)),
            "abort" => self.with_context(|end, ctx| end.abort(ctx)),
            _ => return Err(format!("unknown call {name}")),
        }
        let now = show_time(self.out.now);
        self.trace.push(format!("{now} call {name}"));
        self.note(Events::NONE);
        Ok(())
    }

    fn arrive(&mut self, segment: &Segment) -> Result<(), String> {
        let mut packet = Packet {
            flow: FlowId(1),
            seq: self.peer_isn.wrapping_add(segment.seq as u32),
            ack: segment
                .ack
                .map_or(0, |ack| self.isn.wrapping_add(ack as u32)),
            ts_val: 0,
            ts_ecr: 0,
            options: 0,
            payload: segment.len as u16,
            window: segment.window.unwrap_or(u16::MAX),
            flags: segment.flags,
            header: 40,
            hop: 3,
        };
        if let Some((val, ecr)) = segment.ts {
            (packet.ts_val, packet.ts_ecr) = (val, ecr);
            packet.flags |= flag::TIMESTAMPS;
        }
        if segment.ect == Some(true) {
            packet.flags |= flag::ECT;
        }
        if segment.ce {
            packet.flags |= flag::CE;
        }
        if segment.flags & flag::SYN != 0 {
            let offer = SynOptions {
                mss: segment.mss.unwrap_or(0),
                window_scale: segment.scale,
                sack: segment.sack_permitted,
                timestamps: segment.ts.is_some(),
            };
            packet.options = offer.pack();
        }
        let isn = self.isn;
        let sack: Vec<SackBlock> = segment
            .sack
            .iter()
            .flatten()
            .map(|(left, right)| SackBlock {
                left: isn.wrapping_add(*left as u32),
                right: isn.wrapping_add(*right as u32),
            })
            .collect();
        self.trace.push(format!(
            "{} < {} {}:{}({}) ack {:?} sack {:?}",
            show_time(self.out.now),
            letters(segment.flags),
            segment.seq,
            segment.seq + segment.len,
            segment.len,
            segment.ack,
            segment.sack
        ));
        let events = self.with_context(|end, ctx| end.on_segment(ctx, &packet, &sack));
        self.note(events);
        Ok(())
    }

    fn expect(&mut self, at: Time, want: &Segment) -> Result<(), String> {
        let Some((left, got, sack)) = self.out.sent.pop_front() else {
            return Err("nothing was sent".into());
        };
        let shown = self.show(left, &got, &sack);
        let differs = |what: &str| Err(format!("got {shown}\n    differs in {what}"));
        let blocks: Vec<(u64, u64)> = sack
            .iter()
            .map(|b| {
                let relative = |n: u32| n.wrapping_sub(self.peer_isn) as u64;
                (relative(b.left), relative(b.right))
            })
            .collect();
        let options = SynOptions::unpack(got.options);
        if left != at {
            return differs("time");
        }
        if got.flags & TCP_FLAGS != want.flags {
            return differs("flags");
        }
        if got.seq.wrapping_sub(self.isn) != want.seq as u32 {
            return differs("sequence number");
        }
        if got.payload as u64 != want.len {
            return differs("length");
        }
        if want
            .ack
            .is_some_and(|ack| got.ack.wrapping_sub(self.peer_isn) != ack as u32)
        {
            return differs("ack");
        }
        if want.window.is_some_and(|window| got.window != window) {
            return differs("window");
        }
        if want.sack.as_ref().is_some_and(|sack| *sack != blocks) {
            return differs("SACK blocks");
        }
        if want
            .ts
            .is_some_and(|(val, ecr)| (got.ts_val, got.ts_ecr) != (val, ecr))
        {
            return differs("timestamps");
        }
        if want.ect.is_some_and(|ect| got.has(flag::ECT) != ect) {
            return differs("ECT");
        }
        if want.size.is_some_and(|size| got.size() != size) {
            return differs("size on the wire");
        }
        if want.flags & flag::SYN != 0
            && (want.mss.is_some_and(|mss| options.mss != mss)
                || options.window_scale != want.scale
                || options.sack != want.sack_permitted)
        {
            return differs("SYN options");
        }
        Ok(())
    }

    fn check(&mut self, name: &str, value: &str) -> Result<(), String> {
        let (stats, info) = (self.end.stats(), self.end.info());
        let got = match name {
            "cwnd" => info.cwnd.to_string(),
            "ssthresh" => info.ssthresh.to_string(),
            "mss" => info.mss.to_string(),
            "state" => format!("{:?}", self.end.state()),
            "acked" => self.end.acked().to_string(),
            "delivered" => self.end.delivered().to_string(),
            "window" => info.send_window.to_string(),
            "retransmits" => stats.retransmits.to_string(),
            "recoveries" => stats.fast_recoveries.to_string(),
            "rtos" => stats.rtos.to_string(),
            "syn_timeouts" => stats.syn_timeouts.to_string(),
            "probes" => stats.tlp_probes.to_string(),
            "persist_probes" => stats.persist_probes.to_string(),
            "spurious" => stats.spurious_retransmits.to_string(),
            "ecn_reductions" => stats.ecn_reductions.to_string(),
            "duplicates" => stats.duplicates_received.to_string(),
            "rto" => {
                let (got, want) = (info.rto, time(value)?);
                return if got == want {
                    Ok(())
                } else {
                    Err(format!("rto is {}", show_time(got)))
                };
            }
            "deadline" if value == "never" => {
                let never = self.end.deadline(self.cfg) == Time::NEVER;
                if never {
                    "never".into()
                } else {
                    show_time(self.end.deadline(self.cfg))
                }
            }
            "events" => {
                let events = std::mem::take(&mut self.events);
                let names = [
                    "connected",
                    "delivered",
                    "all_acked",
                    "peer_closed",
                    "closed",
                    "reset",
                ];
                let set = names
                    .iter()
                    .enumerate()
                    .filter(|(bit, _)| events.0 >> bit & 1 == 1);
                let set: Vec<&str> = set.map(|(_, name)| *name).collect();
                if set.is_empty() {
                    "none".into()
                } else {
                    set.join("+")
                }
            }
            _ => return Err(format!("unknown check {name}")),
        };
        if got == value {
            Ok(())
        } else {
            Err(format!("{name} is {got}, not {value}"))
        }
    }

    fn show(&self, at: Time, packet: &Packet, sack: &[SackBlock]) -> String {
        show(self.isn, self.peer_isn, at, packet, sack)
    }
}

fn show(isn: u32, peer_isn: u32, at: Time, packet: &Packet, sack: &[SackBlock]) -> String {
    let seq = packet.seq.wrapping_sub(isn);
    let mut line = format!(
        "{} > {} {seq}:{}({})",
        show_time(at),
        letters(packet.flags),
        seq.wrapping_add(packet.payload as u32),
        packet.payload,
    );
    if packet.has(flag::ACK) {
        line += &format!(" ack {}", packet.ack.wrapping_sub(peer_isn));
    }
    line += &format!(" win {}", packet.window);
    for (index, block) in sack.iter().enumerate() {
        let (left, right) = (
            block.left.wrapping_sub(peer_isn),
            block.right.wrapping_sub(peer_isn),
        );
        line += &format!("{} {left}-{right}", if index == 0 { " sack" } else { "" });
    }
    if packet.has(flag::TIMESTAMPS) {
        line += &format!(" ts {} ecr {}", packet.ts_val, packet.ts_ecr);
    }
    if packet.has(flag::SYN) {
        line += &format!(" {:?}", SynOptions::unpack(packet.options));
    }
    if packet.has(flag::ECT) {
        line += " ect";
    }
    line + &format!(" size {}", packet.size())
}

fn letters(flags: u16) -> String {
    LETTERS
        .iter()
        .filter(|(bit, _)| flags & bit != 0)
        .map(|(_, letter)| letter)
        .collect()
}

fn show_time(at: Time) -> String {
    format!("{}us", at.0 as f64 / 1e6)
}
