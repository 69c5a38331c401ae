// SPDX-License-Identifier: Apache-2.0
//! The hosts: the sockets of all connections, their TCP end points and timers.

use super::TransferCounters;
use super::watch::{HostEvent, Watch};
use crate::engine::{Timers, make_room};
use crate::network::{Network, Source};
use crate::packet::{FlowId, Packet, SackBlock, flag};
use crate::tcp::{Config, Ctx, Endpoint, Events, Info, State, Waits, Wire};
use penstock_scenario::units::Time;

/// No client, or no record.
pub const NONE: u32 = u32::MAX;

/// One side of a connection.
struct Socket {
    /// Earliest wake-up requested of [`Timers`].
    wake: Time,
    /// Bytes delivered at which the application acts; `u64::MAX` for none.
    goal: u64,
    /// When the last data packet came, or the wait for it began.
    last_arrival: Time,
    /// Longest time between two data packets.
    silence: Time,
    /// Data packets that came, retransmitted ones included.
    packets: u64,
    /// How long ACKs were delayed while the application waited for more.
    ack_wait: Time,
    /// Index of the client whose connection this is.
    client: u32,
    /// Index of the record of the transfer under way or, since then, of the last one.
    record: u32,
    /// Index of the TCP configuration.
    config: u32,
    /// The TCP state machine.
    endpoint: Endpoint,
}

impl Socket {
    fn new(id: FlowId, client: u32, config: u32, now: Time) -> Socket {
        Socket {
            wake: Time::NEVER,
            goal: u64::MAX,
            last_arrival: now,
            silence: Time::ZERO,
            packets: 0,
            ack_wait: Time::ZERO,
            client,
            record: NONE,
            config,
            endpoint: Endpoint::new(id),
        }
    }

    /// Whether the application has to act: most of what happens is TCP's own business.
    #[inline(always)]
    fn concerns_application(&self, events: Events) -> bool {
        self.endpoint.delivered() >= self.goal
            || events.0 & (Events::CONNECTED.0 | Events::PEER_CLOSED.0 | Events::CLOSED.0) != 0
    }
}

/// All sockets by [`FlowId`]: of a connection the opener's, then the listener's. A socket whose host
/// is in another shard is a stand-in: it gets neither packets nor commands.
pub struct Hosts {
    sockets: Vec<Socket>,
    configs: Vec<Config>,
    /// Configuration, MTU, and the configuration for both.
    fitted: Vec<(u32, u32, u32)>,
    timers: Timers,
    /// ACKs sent because their delay was over.
    delayed_acks: u64,
    /// What sockets do, where that is recorded.
    watch: Option<Box<Watch>>,
}

/// The traffic of a socket's configuration: traffic has one each, those that fit an MTU follow.
fn traffic_of(configs: &[Config], fitted: &[(u32, u32, u32)], config: u32) -> u32 {
    let of_traffic = configs.len() - fitted.len();
    match (config as usize).checked_sub(of_traffic) {
        None => config,
        Some(number) => fitted[number].0,
    }
}

struct Port<'a> {
    network: &'a mut Network,
    now: Time,
}

impl<'a> Port<'a> {
    /// What an end point is called with.
    #[inline(always)]
    fn context<'b>(&'b mut self, cfg: &'b Config) -> Ctx<'b, Port<'a>> {
        Ctx {
            cfg,
            now: self.now,
            wire: self,
        }
    }
}

impl Wire for Port<'_> {
    #[inline(always)]
    fn send(&mut self, segment: Packet, sack: &[SackBlock]) {
        self.network.inject(self.now, segment, sack);
    }

    fn host_wait(&self, flow: FlowId, bytes: u32) -> Time {
        self.network.first_wait(self.now, flow, bytes)
    }
}

/// A command of an application to its socket.
pub enum SocketCommand {
    /// Open actively.
    Connect,
    /// Queue bytes for sending.
    Write(u64),
    /// Send FIN after what is queued.
    Close,
    /// Reset.
    Abort,
}

/// What happens at the sockets.
impl Hosts {
    /// No sockets yet. `configs`: the TCP configurations that sockets refer to.
    pub fn new(configs: Vec<Config>) -> Hosts {
        Hosts {
            sockets: Vec::new(),
            configs,
            fitted: Vec::new(),
            timers: Timers::default(),
            delayed_acks: 0,
            watch: None,
        }
    }

    /// The TCP configuration of connections on whose path no packet may be longer than `mtu`.
    pub fn fitting(&mut self, config: u32, mtu: u32) -> u32 {
        let Some(own) = self.configs.get(config as usize) else {
            return config;
        };
        let most = mtu.saturating_sub(own.header.into());
        if u32::from(own.mss) <= most {
            return config;
        }
        let made = self
            .fitted
            .iter()
            .find(|(of, to, _)| (*of, *to) == (config, mtu));
        if let Some((_, _, fitted)) = made {
            return *fitted;
        }
        let fitted = self.configs.len() as u32;
        let mss = most as u16;
        let smaller = Config { mss, ..own.clone() };
        self.configs.push(smaller);
        self.fitted.push((config, mtu, fitted));
        fitted
    }

    /// Makes both sockets of the connection that `opener` opens, the listening side listening.
    pub fn open(&mut self, opener: FlowId, client: u32, config: u32, now: Time) {
        for id in [opener, opener.reverse()] {
            let mut socket = Socket::new(id, client, config, now);
            if !id.is_opener() {
                socket.endpoint.listen(&self.configs[config as usize]);
            }
            make_room(&mut self.sockets, id.0 as usize);
            if id.0 as usize >= self.sockets.len() {
                self.sockets
                    .resize_with(id.0 as usize, || Socket::new(FlowId(0), NONE, 0, now));
                self.sockets.push(socket);
            } else {
                self.sockets[id.0 as usize] = socket;
            }
        }
    }

    /// Hands a packet to the end point it is for; returns what the application has to act on.
    #[inline(always)]
    pub fn deliver(&mut self, network: &mut Network, now: Time, packet: Packet) -> Option<Events> {
        let to = packet.flow.reverse();
        let socket = &mut self.sockets[to.0 as usize];
        let (sack, blocks) = network.take_sack(&packet);
        if packet.payload > 0 {
            socket.silence = socket.silence.max(now - socket.last_arrival);
            socket.last_arrival = now;
            socket.packets += 1;
            if packet.has(flag::UDP) {
                return None;
            }
        }
        if let Some(watch) = &self.watch
            && watch.takes(now, traffic_of(&self.configs, &self.fitted, socket.config))
        {
            return self.deliver_watched(network, now, packet, &sack[..blocks]);
        }
        let config = &self.configs[socket.config as usize];
        let mut port = Port { network, now };
        let mut ctx = port.context(config);
        let events = socket
            .endpoint
            .on_segment(&mut ctx, &packet, &sack[..blocks]);
        let concerns = !events.is_empty() && socket.concerns_application(events);
        self.arm(network, to);
        concerns.then_some(events)
    }

    /// The end of [`Hosts::deliver`] where it is recorded what sockets do.
    #[inline(never)]
    fn deliver_watched(
        &mut self,
        network: &mut Network,
        now: Time,
        packet: Packet,
        sack: &[SackBlock],
    ) -> Option<Events> {
        let to = packet.flow.reverse();
        let socket = &mut self.sockets[to.0 as usize];
        let config = &self.configs[socket.config as usize];
        let mut port = Port { network, now };
        let before = (socket.endpoint.stats(), socket.endpoint.info());
        let mut ctx = port.context(config);
        let events = socket.endpoint.on_segment(&mut ctx, &packet, sack);
        let concerns = !events.is_empty() && socket.concerns_application(events);
        let after = (socket.endpoint.stats(), socket.endpoint.info());
        if let Some(watch) = &mut self.watch {
            watch.note(now, to, before, after);
        }
        self.arm(network, to);
        concerns.then_some(events)
    }

    /// Records from now on what sockets do.
    pub fn set_watch(&mut self, watch: Watch) {
        self.watch = Some(Box::new(watch));
    }

    /// What sockets have done.
    pub fn take_events(&mut self) -> Vec<HostEvent> {
        let watch = self.watch.take();
        watch.map_or_else(Vec::new, |watch| watch.into_events())
    }

    /// The socket of `flow` does what its application wants.
    pub fn command(
        &mut self,
        network: &mut Network,
        now: Time,
        flow: FlowId,
        command: SocketCommand,
    ) {
        let socket = &mut self.sockets[flow.0 as usize];
        let config = &self.configs[socket.config as usize];
        let mut port = Port { network, now };
        let mut ctx = port.context(config);
        match command {
            SocketCommand::Connect => socket.endpoint.connect(&mut ctx),
            SocketCommand::Write(bytes) => socket.endpoint.write(&mut ctx, bytes),
            SocketCommand::Close => socket.endpoint.close(&mut ctx),
            SocketCommand::Abort => socket.endpoint.abort(&mut ctx),
        }
        self.arm(network, flow);
    }

    #[inline(always)]
    fn arm(&mut self, network: &mut Network, flow: FlowId) {
        let socket = &mut self.sockets[flow.0 as usize];
        let deadline = socket
            .endpoint
            .deadline(&self.configs[socket.config as usize]);
        if deadline < socket.wake {
            self.timers.arm(flow.0, deadline, &mut socket.wake);
            network.set_source(Source::Timers, self.timers.next());
        }
    }

    /// The next wake-up is due; returns the socket and what its application has to act on.
    pub fn wake(&mut self, network: &mut Network, now: Time) -> Option<(FlowId, Events)> {
        let (time, owner) = self.timers.pop()?;
        let flow = FlowId(owner);
        let socket = &mut self.sockets[owner as usize];
        let mut events = None;
        if socket.wake == time {
            socket.wake = Time::NEVER;
            let config = &self.configs[socket.config as usize];
            if socket.endpoint.deadline(config) <= now {
                let mut port = Port { network, now };
                let before = socket.endpoint.stats();
                let info = socket.endpoint.info();
                let is_awaited = socket.goal != u64::MAX;
                let all = socket.endpoint.on_timer(&mut port.context(config));
                let stats = socket.endpoint.stats();
                self.delayed_acks += u64::from(stats.delayed_acks - before.delayed_acks);
                if is_awaited {
                    socket.ack_wait += stats.waits().ack - before.waits().ack;
                }
                if let Some(watch) = &mut self.watch
                    && watch.takes(now, traffic_of(&self.configs, &self.fitted, socket.config))
                {
                    watch.note(now, flow, (before, info), (stats, socket.endpoint.info()));
                }
                events = socket.concerns_application(all).then_some((flow, all));
            }
            self.arm(network, flow);
        }
        network.set_source(Source::Timers, self.timers.next());
        events
    }
}

/// What applications ask of a socket and note there.
impl Hosts {
    /// The first number of a connection above all in use so far.
    pub fn connections(&self) -> usize {
        self.sockets.len() / 2
    }

    /// The client whose connection `flow` is of; [`NONE`] for datagrams.
    pub fn client(&self, flow: FlowId) -> u32 {
        self.socket(flow).client
    }

    /// The record of the transfer under way on the connection of `flow`, or of the last one.
    pub fn record(&self, flow: FlowId) -> u32 {
        self.socket(flow).record
    }

    /// A transfer of `record` begins on the connection whose data is `data`: its receiver waits for
    /// data from now on.
    pub fn start_record(&mut self, data: FlowId, record: u32, now: Time) {
        self.socket_mut(data).record = record;
        let receiver = self.socket_mut(data.reverse());
        receiver.record = record;
        receiver.last_arrival = now;
        receiver.silence = Time::ZERO;
    }

    /// The application of `flow`'s socket wants to act once `bytes` more have been delivered.
    pub fn expect(&mut self, flow: FlowId, bytes: u64) {
        let socket = self.socket_mut(flow);
        socket.goal = socket.endpoint.delivered().saturating_add(bytes);
    }

    /// It wants so no longer.
    pub fn expect_nothing(&mut self, flow: FlowId) {
        self.socket_mut(flow).goal = u64::MAX;
    }

    /// Whether what [`Hosts::expect`] waits for has been delivered; true only once.
    pub fn has_delivered(&mut self, flow: FlowId) -> bool {
        let socket = self.socket_mut(flow);
        let is_reached = socket.endpoint.delivered() >= socket.goal;
        if is_reached {
            socket.goal = u64::MAX;
        }
        is_reached
    }

    /// Whether the socket of `flow` is closed.
    pub fn is_closed(&self, flow: FlowId) -> bool {
        self.socket(flow).endpoint.state() == State::Closed
    }

    /// The socket of `flow`, a stand-in here, has closed where it is.
    pub fn close_stand_in(&mut self, flow: FlowId) {
        self.socket_mut(flow).endpoint = Endpoint::new(flow);
    }

    /// What has been counted at both ends of the connection whose data is `data`.
    pub fn counters(&self, data: FlowId, now: Time) -> TransferCounters {
        let (sender, receiver) = (self.socket(data), self.socket(data.reverse()));
        let sent = sender.endpoint.stats();
        TransferCounters {
            delivered: receiver.endpoint.delivered(),
            packets: receiver.packets,
            retransmits: sent.retransmits.into(),
            timeouts: sent.rtos.into(),
            syn_timeouts: (sent.syn_timeouts + receiver.endpoint.stats().syn_timeouts).into(),
            drops: 0,
            waits: self.waits(data, now),
        }
    }

    /// How long both ends of a connection waited for timers. The handshake waits for its opener
    /// alone, as the listener's timer runs at the same time.
    fn waits(&self, data: FlowId, now: Time) -> Waits {
        let [sender, receiver] = [data, data.reverse()].map(|flow| self.socket(flow));
        let (sent, received) = (sender.endpoint.waits(now), receiver.endpoint.waits(now));
        let opener = if data.is_opener() { sent } else { received };
        Waits {
            rto: sent.rto + received.rto,
            syn: opener.syn,
            window: sent.window,
            ack: sender.ack_wait + receiver.ack_wait,
            server: Time::ZERO,
        }
    }

    /// ACKs that all sockets sent because their delay was over.
    pub fn delayed_acks(&self) -> u64 {
        self.delayed_acks
    }

    /// The sender's variables at the socket of `flow`.
    pub fn info(&self, flow: FlowId) -> Info {
        self.socket(flow).endpoint.info()
    }

    /// Longest time in which no data came at the receiver of `data`, up to now.
    pub fn silence(&self, data: FlowId, now: Time) -> Time {
        let receiver = self.socket(data.reverse());
        receiver.silence.max(now - receiver.last_arrival)
    }

    fn socket(&self, flow: FlowId) -> &Socket {
        &self.sockets[flow.0 as usize]
    }

    fn socket_mut(&mut self, flow: FlowId) -> &mut Socket {
        &mut self.sockets[flow.0 as usize]
    }
}
