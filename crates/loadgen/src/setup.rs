// SPDX-License-Identifier: Apache-2.0
//! Sets the hosts' kernels to the scenario's TCP parameters, as far as they have them.

use crate::failure::{Failure, because};
use crate::hosts::{Host, Places};
use crate::kernel::set_sysctl;
use crate::namespaces::Namespaces;
use crate::player::Setting;
use crate::socket::Socket;
use crate::tcp::Options;
use indexmap::IndexSet;
use penstock_scenario::{Profile, Scheme, Tcp, Traffic};
use penstock_sim::run::{ClientProfiles, window_plan};
use penstock_sim::simulation::ClientProfile;
use penstock_sim::{Inputs, Scenario};

/// A key of `[tcp]` that applies to a whole namespace, and its sysctl in net.ipv4.
type Switch = (&'static str, &'static str, fn(&Tcp) -> Option<bool>);

const SWITCHES: [Switch; 3] = [
    ("ecn", "tcp_ecn", |tcp| tcp.ecn),
    ("sack", "tcp_sack", |tcp| tcp.sack),
    ("timestamps", "tcp_timestamps", |tcp| tcp.timestamps),
];

/// The options of the traffic's connections, and a warning for each parameter that the kernel lacks.
pub fn settle(
    scenario: &Scenario,
    scheme: &Scheme,
    (inputs, seed): (&Inputs, u64),
    places: &Places,
    namespaces: &mut Namespaces,
) -> Result<(Setting, Vec<String>), Failure> {
    let ClientProfiles { profiles, configs } = ClientProfiles::of(scenario, scheme, inputs, seed);
    let flows = scenario.traffic.values();
    let specs: Vec<Tcp> = flows.map(|t| scenario.tcp_of(scheme, t)).collect();
    let some_host = places.hosts.iter().flatten().next().copied();
    let mut options = Vec::new();
    let mut ignored = IndexSet::new();
    for ((traffic, config), spec) in scenario.traffic.values().zip(&configs).zip(&specs) {
        let mut wanted = Options::of(config, spec);
        if let Some(host) = some_host
            && !matches!(traffic, Traffic::Udp(_))
        {
            wanted.probe(&probe(host, namespaces)?)?;
        }
        ignored.extend(wanted.ignored.iter().copied());
        options.push(wanted);
    }
    let mut warnings: Vec<String> = ignored
        .into_iter()
        .map(|key| format!("tcp.{key}: this kernel has no socket option for it; ignored"))
        .collect();
    if specs
        .iter()
        .any(|spec| spec.profile.unwrap_or_default() == Profile::NewrenoNs2)
    {
        warnings.push("tcp.profile: newreno-ns2 is played by the kernel's own TCP".to_owned());
    }
    set_switches(places, namespaces, &specs, &mut warnings)?;
    // The stages of jobs have profiles of their own.
    let of_traffic = |profile: &ClientProfile| profile.config as usize;
    let min_rto = profiles
        .iter()
        .map(|profile| configs[of_traffic(profile)].min_rto)
        .collect();
    let options = profiles
        .iter()
        .map(|profile| options[of_traffic(profile)].clone())
        .collect();
    let setting = Setting {
        profiles,
        options,
        min_rto,
        plan: window_plan(scenario),
    };
    Ok((setting, warnings))
}

fn probe(host: Host, namespaces: &mut Namespaces) -> Result<Socket, Failure> {
    namespaces.enter(host.netns)?;
    Socket::tcp(&host.address).map_err(because("a TCP socket"))
}

/// Sets the sysctls of the hosts' namespaces, but never of the one the process was started in.
fn set_switches(
    places: &Places,
    namespaces: &mut Namespaces,
    specs: &[Tcp],
    warnings: &mut Vec<String>,
) -> Result<(), Failure> {
    // Short connections would otherwise run out of ports within TIME-WAIT.
    let mut switches = vec![("connections", "tcp_tw_reuse", 1)];
    for (key, name, value) in SWITCHES {
        let mut values = specs.iter().map(value);
        let first = values.next().flatten();
        match first {
            Some(wanted) if values.all(|value| value == first) => {
                switches.push((key, name, wanted.into()));
            }
            None if specs.iter().all(|spec| value(spec).is_none()) => {}
            _ => warnings.push(format!(
                "tcp.{key}: a host has one for all of its traffic (net.ipv4.{name}); left as it is"
            )),
        }
    }
    for netns in places.host_namespaces() {
        if namespaces.is_own(netns) {
            continue;
        }
        namespaces.enter(netns)?;
        for (key, name, value) in &switches {
            if let Err(error) = set_sysctl(name, *value) {
                warnings.push(format!("{key}: net.ipv4.{name} = {value}: {error}"));
            }
        }
    }
    warnings.dedup();
    Ok(())
}
