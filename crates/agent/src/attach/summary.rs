// SPDX-License-Identifier: Apache-2.0
//! What was attached, in one line for people.

use penstock_scenario::{Deployment, Queue};

use super::Attached;
use super::hook::HookChoice;
use crate::host::{interface, queue_visibility, requirements};

/// One line about a scheme that was attached to a port.
pub fn summary_line(
    interface: &str,
    port: &Deployment,
    attached: &Attached,
    hook: HookChoice,
) -> String {
    let effect = match port.window.scheme() {
        _ if port.is_shim() => "attached, carries window scales".to_owned(),
        None if port.shim().is_some() => "attached, clamps what it is ordered to".to_owned(),
        None if matches!(port.queue, Queue::Hcf(_)) => {
            format!("attached, its qdisc holds {}", attached.buffer)
        }
        None => "attached, changes nothing".to_owned(),
        _ => format!("attached, for a buffer of {}", attached.buffer),
    };
    let hook = hook.resolve().name();
    let line = format!("{interface}: {} {effect} ({hook})", port.scheme);
    match requirements::queue() {
        Err(limitation) if port.has_queue() => format!("{line}; {limitation}"),
        _ => line,
    }
}

/// A warning in one line if the programs cannot read the port's queue, on which schemes depend.
pub fn queue_warning(interface: &str, port: &Deployment) -> Option<String> {
    if !port.has_queue() {
        return None;
    }
    let missing = queue_visibility::missing(interface, interface::find(interface)?)?;
    Some(format!("{interface}: {missing}"))
}
