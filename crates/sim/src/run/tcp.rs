// SPDX-License-Identifier: Apache-2.0
//! The scenario's TCP parameters over those of the profile.

use crate::tcp::{AckRules, Algorithm, Config, Nagle, Recovery};
use penstock_scenario::{self, Profile};

/// The end points' configuration.
pub fn config(spec: &penstock_scenario::Tcp) -> Config {
    let mut config = match spec.profile.unwrap_or_default() {
        Profile::NewrenoNs2 => Config::newreno_ns2(),
        Profile::Linux => Config::linux(),
        Profile::Linux318 => Config::linux_3_18(),
    };
    fn set<T>(field: &mut T, value: Option<T>) {
        if let Some(value) = value {
            *field = value;
        }
    }
    set(&mut config.congestion, spec.congestion.map(congestion));
    set(&mut config.recovery, spec.recovery.map(recovery));
    let tlp = spec
        .recovery
        .map(|it| it == penstock_scenario::Recovery::RackTlp);
    set(&mut config.tlp, spec.tlp.or(tlp));
    set(&mut config.early_retransmit, spec.early_retransmit);
    set(&mut config.prr, spec.prr);
    set(&mut config.limited_transmit, spec.limited_transmit);
    set(&mut config.mss, spec.mss);
    set(&mut config.initial_window, spec.initial_window);
    set(&mut config.validate_cwnd, spec.validation);
    set(&mut config.window_scale, spec.window_scale.map(Some));
    set(&mut config.sack, spec.sack);
    set(&mut config.timestamps, spec.timestamps);
    set(&mut config.ecn, spec.ecn);
    set(
        &mut config.ack_every,
        spec.delayed_ack.map(|delayed| 1 + u8::from(delayed)),
    );
    set(&mut config.delayed_ack, spec.ack_delay);
    if config.ack_rules == AckRules::Rfc {
        set(&mut config.ack_patience, spec.ack_delay);
    }
    set(
        &mut config.quick_acks,
        spec.quick_acks
            .map(|acks| acks.try_into().unwrap_or(u8::MAX)),
    );
    match spec.nagle {
        Some(true) if config.nagle == Nagle::Off => config.nagle = Nagle::On,
        Some(false) => config.nagle = Nagle::Off,
        _ => {}
    }
    set(&mut config.initial_rto, spec.initial_rto);
    set(&mut config.min_rto, spec.min_rto);
    set(&mut config.max_rto, spec.max_rto);
    if let Some(segments) = spec.max_window {
        config.max_send_window = segments.saturating_mul(config.mss.into());
    }
    if let Some(buffer) = spec.receive_buffer {
        config.receive_buffer = buffer.0.try_into().unwrap_or(u32::MAX);
        config.initial_receive_window = config.initial_receive_window.min(config.receive_buffer);
        // A buffer that the application sets does not grow.
        config.receive_memory = config.receive_buffer;
    }
    config
}

fn congestion(spec: penstock_scenario::Congestion) -> Algorithm {
    match spec {
        penstock_scenario::Congestion::Newreno => Algorithm::NewReno,
        penstock_scenario::Congestion::Cubic => Algorithm::Cubic { hystart: true },
        penstock_scenario::Congestion::Dctcp => Algorithm::Dctcp,
        penstock_scenario::Congestion::Bbr => Algorithm::Bbr,
    }
}

fn recovery(spec: penstock_scenario::Recovery) -> Recovery {
    match spec {
        penstock_scenario::Recovery::Reno => Recovery::Reno,
        penstock_scenario::Recovery::Newreno => Recovery::NewReno,
        penstock_scenario::Recovery::Sack => Recovery::Sack,
        penstock_scenario::Recovery::RackTlp => Recovery::Rack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_scenario::Tcp;
    use penstock_scenario::units::Time;

    #[test]
    fn probes_follow_a_given_recovery_unless_given_themselves() {
        let of = |profile, recovery, tlp| {
            config(&Tcp {
                profile: Some(profile),
                recovery,
                tlp,
                ..Tcp::default()
            })
        };
        let sack = Some(penstock_scenario::Recovery::Sack);
        assert!(of(Profile::Linux, None, None).tlp);
        assert!(of(Profile::Linux318, None, None).tlp);
        assert!(!of(Profile::Linux, sack, None).tlp);
        assert!(of(Profile::Linux, sack, Some(true)).tlp);
        assert!(!of(Profile::Linux318, None, Some(false)).tlp);
        let old = of(Profile::Linux318, None, None);
        assert_eq!((old.recovery, old.window_scale), (Recovery::Sack, Some(7)));
    }

    #[test]
    fn a_delay_of_acks_is_in_force_where_linux_does_not_bound_it() {
        let of = |profile| {
            config(&Tcp {
                profile: Some(profile),
                ack_delay: Some(Time::from_millis(300)),
                ..Tcp::default()
            })
        };
        let (rfc, linux) = (of(Profile::NewrenoNs2), of(Profile::Linux));
        assert_eq!(rfc.ack_patience, Time::from_millis(300));
        assert_eq!(linux.ack_patience, Time::from_millis(40));
    }
}
