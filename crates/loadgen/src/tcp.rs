// SPDX-License-Identifier: Apache-2.0
//! The scenario's TCP parameters as the kernel's socket options, as far as it has such.

use crate::failure::Failure;
use crate::socket::Socket;
use penstock_scenario::Tcp;
use penstock_scenario::units::Time;
use penstock_sim::tcp::{Algorithm, Config, Nagle};
use std::io;

/// linux/tcp.h; the libc crate lacks them.
const TCP_RTO_MAX_MS: libc::c_int = 44; // Linux 6.15
const TCP_RTO_MIN_US: libc::c_int = 45; // Linux 6.16
const TCP_DELACK_MAX_US: libc::c_int = 46; // Linux 6.16

/// A socket option: the scenario's key, level, name, value.
type SocketOption = (&'static str, libc::c_int, libc::c_int, libc::c_int);

/// What is set on every socket of a traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The kernel's name of the congestion control.
    pub congestion: &'static str,
    numbers: Vec<SocketOption>,
    /// Keys of the scenario that no socket option stands for.
    pub ignored: Vec<&'static str>,
}

impl Options {
    /// Those for `config`, of which the scenario itself gives `spec`.
    pub fn of(config: &Config, spec: &Tcp) -> Options {
        let micros = |time: Time| time.as_micros().try_into().unwrap_or(libc::c_int::MAX);
        let tcp = libc::IPPROTO_TCP;
        let mut numbers = Vec::new();
        if config.nagle == Nagle::Off {
            numbers.push(("nagle", tcp, libc::TCP_NODELAY, 1));
        }
        if let Some(mss) = spec.mss {
            numbers.push(("mss", tcp, libc::TCP_MAXSEG, mss.into()));
        }
        if let Some(buffer) = spec.receive_buffer {
            // Approximate: the kernel adapts the window to the overhead of the packets that arrive, up
            // to 30 % above this. It sets TCP_WINDOW_CLAMP itself then, so that one would not hold.
            let bytes = buffer.0.try_into().unwrap_or(libc::c_int::MAX);
            let name = libc::SO_RCVBUFFORCE;
            numbers.push(("receive_buffer", libc::SOL_SOCKET, name, bytes));
        }
        if let Some(time) = spec.min_rto {
            numbers.push(("min_rto", tcp, TCP_RTO_MIN_US, micros(time)));
        }
        if let Some(time) = spec.max_rto {
            numbers.push(("max_rto", tcp, TCP_RTO_MAX_MS, micros(time) / 1000));
        }
        if let Some(time) = spec.ack_delay {
            numbers.push(("ack_delay", tcp, TCP_DELACK_MAX_US, micros(time)));
        }
        Options {
            congestion: match config.congestion {
                Algorithm::NewReno => "reno",
                Algorithm::Cubic { .. } => "cubic",
                Algorithm::Dctcp => "dctcp",
                Algorithm::Bbr => "bbr",
            },
            numbers,
            ignored: ignored(spec),
        }
    }

    /// The scenario's name of it.
    pub fn congestion_in_scenarios(&self) -> &'static str {
        match self.congestion {
            "reno" => "newreno",
            same => same,
        }
    }

    /// Sets them all.
    pub fn apply(&self, socket: &Socket) -> io::Result<()> {
        socket.set_congestion(self.congestion)?;
        for (_, level, name, value) in &self.numbers {
            socket.set(*level, *name, *value)?;
        }
        Ok(())
    }

    /// Tries them on `socket`; those that the kernel refuses are ignored from now on, but without
    /// its congestion control a traffic cannot be played.
    pub fn probe(&mut self, socket: &Socket) -> Result<(), Failure> {
        let name = self.congestion;
        socket.set_congestion(name).map_err(|error| {
            let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
            let known = std::fs::read_to_string(list).unwrap_or_default();
            let known = known.trim();
            Failure::Because(format!(
                "congestion control \"{name}\": {error}; this kernel has {known} (try: modprobe tcp_{name})"
            ))
        })?;
        self.numbers.retain(|(key, level, option, value)| {
            let is_taken = socket.set(*level, *option, *value).is_ok();
            if !is_taken {
                self.ignored.push(key);
            }
            is_taken
        });
        Ok(())
    }
}

/// Given keys that no socket option sets: some belong to a route (`initial_window`), some to nothing
/// in Linux. Those of a whole namespace (`ecn`, `sack`, `timestamps`) are sysctls.
fn ignored(spec: &Tcp) -> Vec<&'static str> {
    let given = [
        ("recovery", spec.recovery.is_some()),
        ("tlp", spec.tlp.is_some()),
        ("early_retransmit", spec.early_retransmit.is_some()),
        ("prr", spec.prr.is_some()),
        ("limited_transmit", spec.limited_transmit.is_some()),
        ("initial_window", spec.initial_window.is_some()),
        ("max_window", spec.max_window.is_some()),
        ("validation", spec.validation.is_some()),
        ("window_scale", spec.window_scale.is_some()),
        ("delayed_ack", spec.delayed_ack == Some(false)),
        ("quick_acks", spec.quick_acks.is_some()),
        ("initial_rto", spec.initial_rto.is_some()),
    ];
    let ignored = given.into_iter().filter(|(_, is_given)| *is_given);
    ignored.map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_scenario::Congestion;

    #[test]
    fn a_key_becomes_an_option_or_is_listed_as_ignored() {
        let spec = Tcp {
            congestion: Some(Congestion::Newreno),
            min_rto: Some(Time::from_millis(10)),
            initial_window: Some(3),
            ..Tcp::default()
        };
        let config = Config {
            congestion: Algorithm::NewReno,
            ..Config::linux()
        };
        let options = Options::of(&config, &spec);
        assert_eq!(options.congestion, "reno");
        let min_rto = ("min_rto", libc::IPPROTO_TCP, TCP_RTO_MIN_US, 10_000);
        assert_eq!(options.numbers, [min_rto]);
        assert_eq!(options.ignored, ["initial_window"]);
    }

    #[test]
    fn a_missing_congestion_control_is_named_in_the_error() {
        let mut options = Options::of(&Config::linux(), &Tcp::default());
        options.congestion = "penstock-none";
        let socket = Socket::tcp(&std::net::Ipv4Addr::LOCALHOST.into()).expect("a socket");
        let failure = options.probe(&socket).expect_err("no such thing");
        let line = failure.to_string();
        assert!(line.starts_with("congestion control \"penstock-none\": "));
        assert!(line.contains("this kernel has ") && line.contains("reno"));
        assert!(!line.contains('\n'));
    }

    #[test]
    fn an_option_that_the_kernel_refuses_is_ignored_from_then_on() {
        let mut options = Options::of(&Config::linux(), &Tcp::default());
        options.numbers = vec![
            ("nagle", libc::IPPROTO_TCP, libc::TCP_NODELAY, 1),
            ("min_rto", libc::IPPROTO_TCP, libc::c_int::MAX, 1),
        ];
        let socket = Socket::tcp(&std::net::Ipv4Addr::LOCALHOST.into()).expect("a socket");
        options.probe(&socket).expect("the rest is taken");
        assert_eq!(options.ignored, ["min_rto"]);
        assert_eq!(options.numbers.len(), 1);
    }

    #[test]
    fn nodelay_is_set_where_the_profile_has_no_nagle() {
        let plain = |config| Options::of(&config, &Tcp::default()).numbers;
        assert_eq!(plain(Config::linux()), []);
        assert_eq!(plain(Config::newreno_ns2())[0].0, "nagle");
    }
}
