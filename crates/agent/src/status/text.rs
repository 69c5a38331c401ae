// SPDX-License-Identifier: Apache-2.0
//! A port's status in lines for people.

use penstock_core::tcp_rewrite::MAX_WINDOW_BYTES;

use super::Status;
use crate::attach::hook::HookPrograms;
use crate::attach::{grant, hcf};
use crate::format;

/// Why programs do not see packets.
pub const WHY_BLIND: &str = "packets pass that its programs do not see; another program ends the chain before them or redirects packets past this interface (attach to the uplink instead), or XDP or an offload passes by";

/// What ends a stale heartbeat.
const START: &str = "systemctl start penstockd";

/// What to do about an interface that has lost its programs.
pub fn recreated(interface: &str) -> String {
    format!(
        "the interface was deleted and created again, without our programs; a daemon attaches them, without one do: penstockd attach {interface} again"
    )
}

/// First what the port does, then the programs on its hooks.
pub fn lines(status: &Status) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", status.interface, activity(status))];
    for (side, listed) in [
        ("egress", &status.hooks.egress),
        ("ingress", &status.hooks.ingress),
    ] {
        lines.push(format!(
            "  {} {side}: {}",
            status.hooks.hook.name(),
            programs(listed)
        ));
    }
    if let Some(name) = &status.renamed_to {
        lines.push(format!(
            "  the interface is now called {name}; a daemon follows, without one do: penstockd attach {name} again"
        ));
    }
    if let Some(policy) = &status.policy {
        lines.push(format!("  policy: {}", policy.sentence()));
    }
    if let Some(canary) = &status.canary {
        lines.extend(canary.lines().map(|line| format!("  {line}")));
    }
    if let Some(share) = status.unknown_scale_share.filter(|share| *share > 0.001) {
        lines.push(format!(
            "  {:.1} % of ACKs cannot be rewritten: older than the attach, of connections that pass through",
            share * 100.0
        ));
    }
    lines.extend(status.queue_unseen.iter().map(|why| format!("  {why}")));
    if let Some(credit) = &status.credit {
        lines.push(format!("  credit: {}", sentence(credit)));
    }
    if let Some(hcf) = &status.hcf {
        lines.push(format!("  qdisc: {}", queue(hcf)));
    }
    lines
}

fn sentence(credit: &grant::Status) -> String {
    let count = |name: &str| format::count(credit.counters.get(name).copied().unwrap_or(0));
    format!(
        "{} bytes outstanding of {} flows, {} wait; {} grants, {} reminders, {} lapsed; {:.0} % of new connections begin short",
        credit.outstanding_bytes,
        credit.active,
        credit.waiting,
        count("grants"),
        count("grants_resent"),
        count("grants_lapsed"),
        credit.short_openers * 100.0,
    )
}

fn queue(hcf: &hcf::Status) -> String {
    let [high, low] = hcf.packets;
    format!(
        "hcf, {high} packets in the high queue, {low} in the low one; {} sent, {} dropped, {} periods",
        format::count(hcf.sent_packets),
        format::count(hcf.dropped_packets + hcf.failed_packets),
        format::count(hcf.periods.into()),
    )
}

fn activity(status: &Status) -> String {
    let interface = &status.interface;
    if status.ifindex == 0 && status.recreated {
        return recreated(interface);
    }
    if status.ifindex == 0 {
        return format!(
            "the interface is gone; the daemon attaches it when it returns; or do: penstockd detach {interface}"
        );
    }
    let Some(scheme) = &status.scheme else {
        return format!(
            "no program is pinned; do: penstockd detach {interface}, then attach again"
        );
    };
    let heartbeat = format!("heartbeat {:.1} s", status.heartbeat_age_s);
    match (status.attached.egress, status.attached.ingress) {
        (true, true) => {}
        (false, false) => {
            return format!(
                "{scheme}, attached at neither side; do: penstockd attach {interface} again"
            );
        }
        _ => {
            return format!(
                "{scheme}, attached at one side only; do: penstockd attach {interface} again"
            );
        }
    }
    let is_stale = status.heartbeat_age_s > status.stale_s;
    if status.paused {
        let resume = format!("penstockd resume {interface}");
        let until = match (status.resumes_in_s, is_stale) {
            (None, false) => format!("do: {resume}"),
            (None, true) => format!("{heartbeat} is stale; do: {START}, then {resume}"),
            (Some(seconds), false) => format!("acts again in {seconds:.0} s"),
            (Some(seconds), true) => {
                format!("{heartbeat} is stale; do: {START}; the pause ends in {seconds:.0} s")
            }
        };
        return format!("{scheme}, paused: packets pass untouched; {until}");
    }
    if is_stale {
        return format!("{scheme}, not acting: {heartbeat}, packets pass untouched; do: {START}");
    }
    let flows = format::plural(status.flows.into(), "flow");
    if !status.blind.is_empty() {
        let sides = status.blind.join(" and ");
        return format!("{scheme}, blind at {sides}: {WHY_BLIND} (programs: below)");
    }
    if !status.acting {
        let packets = format::count(status.rates["egress_packets"] as u64);
        return format!("{scheme}, watching; {packets} packets/s, {flows}, {heartbeat}");
    }
    if let Some(pairs) = status.clamped_pairs {
        return format!(
            "{scheme}, acting; {} clamped, {} ACKs/s rewritten, {flows}, {heartbeat}",
            format::plural(pairs, "pair"),
            format::count(status.rates["acks_rewritten"] as u64),
        );
    }
    if let Some(credit) = &status.credit {
        return format!(
            "{scheme}, acting as {}; {} ACKs/s rewritten, {flows}, {heartbeat}",
            credit.side,
            format::count(status.rates["acks_rewritten"] as u64),
        );
    }
    let window = match status.window_bytes {
        None => "no packet yet".to_owned(),
        Some(0) => "window at the floor".to_owned(),
        Some(MAX_WINDOW_BYTES..) => "window open".to_owned(),
        Some(bytes) => format!("window {}", format::bytes(bytes.into())),
    };
    // In tenths, so that few ACKs a second still have a share.
    let [floored, rewritten] =
        ["acks_floored", "acks_rewritten"].map(|name| (status.rates[name] * 10.0) as u64);
    format!(
        "{scheme}, acting; {} ACKs/s rewritten, {window}, {} at the floor, {flows}, {heartbeat}",
        format::count(status.rates["acks_rewritten"] as u64),
        format::percent(floored, rewritten),
    )
}

fn programs(side: &HookPrograms) -> String {
    let names = side.programs.iter().map(|program| {
        let whose = if Some(program.id) == side.ours {
            "ours"
        } else {
            "another's"
        };
        let name = match program.name.as_str() {
            "" => "program",
            name => name,
        };
        let cost = program.cost.map_or(String::new(), |cost| {
            format!(", {} ns a packet", cost.nanoseconds / cost.runs)
        });
        format!("{name} ({whose}, {}{cost})", program.id)
    });
    match names.collect::<Vec<_>>() {
        none if none.is_empty() && side.ours.is_some() => {
            "ours, on an interface in another network namespace".to_owned()
        }
        none if none.is_empty() => "nothing".to_owned(),
        all => all.join(", then "),
    }
}
