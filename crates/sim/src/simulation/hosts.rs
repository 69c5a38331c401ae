// SPDX-License-Identifier: Apache-2.0
//! The end points of all connections, and what is seen of them from outside TCP.

use crate::engine::Timers;
use crate::network::{Network, Source};
use crate::packet::{FlowId, Packet, SackBlock, flag};
use crate::tcp::{Config, Endpoint, Events, Wire};
use penstock_scenario::units::Time;

/// One side of a connection.
pub struct Socket {
    /// Earliest wake-up asked of [`Timers`].
    wake: Time,
    /// Bytes delivered at which the application acts; `u64::MAX` for none.
    pub goal: u64,
    /// When the last data packet came, or the wait for it began.
    pub last_arrival: Time,
    /// Longest time between two data packets.
    pub silence: Time,
    /// Data packets that came, retransmitted ones included.
    pub packets: u64,
    /// Index of the client whose connection this is.
    pub client: u32,
    /// Index of the record of the transfer under way or, since then, of the last one.
    pub record: u32,
    /// Index of the TCP configuration.
    config: u32,
    /// The TCP state machine.
    pub endpoint: Endpoint,
}

impl Socket {
    fn new(id: FlowId, client: u32, config: u32, now: Time) -> Socket {
        Socket {
            wake: Time::NEVER,
            goal: u64::MAX,
            last_arrival: now,
            silence: Time::ZERO,
            packets: 0,
            client,
            record: u32::MAX,
            config,
            endpoint: Endpoint::new(id),
        }
    }

    /// Whether the application has to act: most of what happens is TCP's own business.
    #[inline(always)]
    fn concerns_application(&self, events: Events) -> bool {
        self.endpoint.delivered() >= self.goal
            || events.0 & (Events::PEER_CLOSED.0 | Events::CLOSED.0) != 0
    }
}

/// All sockets by [`FlowId`]: of a connection the opener's, then the listener's.
pub struct Hosts {
    all: Vec<Socket>,
    configs: Vec<Config>,
    timers: Timers,
}

struct Port<'a> {
    network: &'a mut Network,
    now: Time,
}

impl Wire for Port<'_> {
    #[inline(always)]
    fn send(&mut self, segment: Packet, sack: &[SackBlock]) {
        self.network.inject(self.now, segment, sack);
    }
}

/// What an end point is told to do from outside.
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

impl Hosts {
    /// No sockets yet.
    pub fn new(configs: Vec<Config>) -> Hosts {
        Hosts {
            all: Vec::new(),
            configs,
            timers: Timers::default(),
        }
    }

    /// Makes both sockets of connection `flow`, the listening side listening.
    pub fn open(&mut self, flow: FlowId, client: u32, config: u32, now: Time) {
        for id in [flow, flow.reverse()] {
            let mut socket = Socket::new(id, client, config, now);
            if !id.is_opener() {
                socket.endpoint.listen(&self.configs[config as usize]);
            }
            if id.0 as usize >= self.all.len() {
                self.all
                    .resize_with(id.0 as usize, || Socket::new(FlowId(0), u32::MAX, 0, now));
                self.all.push(socket);
            } else {
                self.all[id.0 as usize] = socket;
            }
        }
    }

    /// Number of sockets ever in use at once.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The socket that sends `flow`.
    pub fn get(&self, flow: FlowId) -> &Socket {
        &self.all[flow.0 as usize]
    }

    /// The same, to change.
    pub fn get_mut(&mut self, flow: FlowId) -> &mut Socket {
        &mut self.all[flow.0 as usize]
    }

    /// Hands a packet to the end point it is for; tells what the application has to act on.
    #[inline(always)]
    pub fn deliver(&mut self, network: &mut Network, now: Time, packet: Packet) -> Option<Events> {
        let to = packet.flow.reverse();
        let socket = &mut self.all[to.0 as usize];
        let (sack, blocks) = network.take_sack(&packet);
        if packet.payload > 0 {
            socket.silence = socket.silence.max(now - socket.last_arrival);
            socket.last_arrival = now;
            socket.packets += 1;
            if packet.has(flag::UDP) {
                return None;
            }
        }
        let config = &self.configs[socket.config as usize];
        let mut port = Port { network, now };
        let events = socket
            .endpoint
            .on_segment(config, now, &packet, &sack[..blocks], &mut port);
        let concerns = !events.is_empty() && socket.concerns_application(events);
        self.arm(network, to);
        concerns.then_some(events)
    }

    /// Tells the end point of `flow` what to do.
    pub fn command(
        &mut self,
        network: &mut Network,
        now: Time,
        flow: FlowId,
        command: SocketCommand,
    ) {
        let socket = &mut self.all[flow.0 as usize];
        let config = &self.configs[socket.config as usize];
        let mut port = Port { network, now };
        match command {
            SocketCommand::Connect => socket.endpoint.connect(config, now, &mut port),
            SocketCommand::Write(bytes) => socket.endpoint.write(config, now, bytes, &mut port),
            SocketCommand::Close => socket.endpoint.close(config, now, &mut port),
            SocketCommand::Abort => socket.endpoint.abort(config, now, &mut port),
        }
        self.arm(network, flow);
    }

    #[inline(always)]
    fn arm(&mut self, network: &mut Network, flow: FlowId) {
        let socket = &mut self.all[flow.0 as usize];
        let deadline = socket
            .endpoint
            .deadline(&self.configs[socket.config as usize]);
        if deadline < socket.wake {
            self.timers.arm(flow.0, deadline, &mut socket.wake);
            network.set_source(Source::Timers, self.timers.next());
        }
    }

    /// The next wake-up is due.
    pub fn wake(&mut self, network: &mut Network, now: Time) -> Option<(FlowId, Events)> {
        let (time, owner) = self.timers.pop()?;
        let flow = FlowId(owner);
        let socket = &mut self.all[owner as usize];
        let mut events = None;
        if socket.wake == time {
            socket.wake = Time::NEVER;
            let config = &self.configs[socket.config as usize];
            if socket.endpoint.deadline(config) <= now {
                let mut port = Port { network, now };
                let all = socket.endpoint.on_timer(config, now, &mut port);
                events = socket.concerns_application(all).then_some((flow, all));
            }
            self.arm(network, flow);
        }
        network.set_source(Source::Timers, self.timers.next());
        events
    }
}
