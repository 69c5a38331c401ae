// SPDX-License-Identifier: Apache-2.0
//! The commands of the specification.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::config::{Attachment, Config, Side, attachment, variable};
use crate::error::{Code, Error, Result};
use crate::record::{Record, Records};
use crate::{agent, shape};

/// What the plugins before this one did; the plugin must be in a chain.
fn previous(config: &Config) -> Result<Map<String, Value>> {
    let missing = || {
        Error::new(Code::Config, "prevResult is missing").with(
            "penstock-cni must come after a plugin that makes the interface, in a list of plugins",
        )
    };
    config.prev_result.clone().ok_or_else(missing)
}

/// ADD: limits an interface; its result is the previous one.
///
/// # Errors
/// The configuration or a limit is refused. A missing agent is no error with `side = "port"`, where the
/// token bucket limits alone; with `side = "limit"` it is one, as there is nothing else that limits.
pub fn add(version: &str, config: &Config) -> Result<Value> {
    let (ingress, egress) = (config.ingress()?, config.egress()?);
    let mut result = config.prev_result.clone().unwrap_or_default();
    if ingress.is_some() || egress.is_some() {
        let (attachment, netns) = (attachment()?, variable("CNI_NETNS")?);
        result = previous(config)?;
        let host = shape::host_end(Path::new(&netns), &attachment.interface)?;
        let at_port = ingress.filter(|_| config.side == Side::Port);
        for (direction, limit) in [("ingress", at_port), ("egress", egress)] {
            limit.map_or(Ok(()), |limit| {
                shape::require_burst(&host, direction, &limit)
            })?;
        }
        let mut record = Record {
            host_interface: host.name.clone(),
            host_index: Some(host.index),
            netns: netns.into(),
            interface: attachment.interface.clone(),
            ..Record::default()
        };
        let name = shape::ifb_name(&config.name, &attachment);
        record.ifb = egress.map(|_| name.clone());
        if let Some(limit) = &ingress {
            record.attach = agent::options(config.side, limit);
            record.own_folder = (config.side == Side::Limit).then(|| name.clone());
        }
        // First, so that DEL finds whatever an ADD that fails leaves.
        Records::of(config).write(&attachment, &record)?;
        if let Some(limit) = &egress {
            shape::limit_ingress(&host, &name, limit)?;
            list(&mut result, &name);
        }
        if let Some(limit) = &at_port {
            shape::limit_egress(&host, limit)?;
        }
        if ingress.is_some() {
            let attached = agent::attach(config, &record);
            match attached {
                // The token bucket is there: the pod starts, as with the standard plugin. With `side =
                // "limit"` the pod would have no limit, so that ADD fails.
                Err(error) if config.side == Side::Port => log(&error),
                attached => attached?,
            }
        }
    }
    result.insert("cniVersion".to_owned(), json!(version));
    Ok(Value::Object(result))
}

/// Lists a device among the interfaces of a result, as the standard plugin does.
fn list(result: &mut Map<String, Value>, name: &str) {
    let interfaces = result.entry("interfaces").or_insert_with(|| json!([]));
    if let Some(interfaces) = interfaces.as_array_mut()
        && !interfaces.iter().any(|known| known["name"] == name)
    {
        interfaces.push(json!({ "name": name }));
    }
}

fn log(error: &Error) {
    eprintln!("penstock-cni: {}: {}", error.msg, error.details);
}

/// STATUS: whether pods can be added, which takes no agent: without one, standard error has a line.
///
/// # Errors
/// A limit of the configuration is none.
pub fn status(config: &Config) -> Result<()> {
    config.ingress().and(config.egress())?;
    if let Err(error) = agent::is_ready(config) {
        log(&error);
    }
    Ok(())
}

/// CHECK: whether the limits of an interface are as they were added.
///
/// # Errors
/// What is missing.
pub fn check(config: &Config) -> Result<()> {
    previous(config)?;
    let (attachment, netns) = (attachment()?, variable("CNI_NETNS")?);
    let missing = |what: String| Err(Error::new(Code::Missing, what));
    let (ingress, egress) = (config.ingress()?, config.egress()?);
    if ingress.is_none() && egress.is_none() {
        return Ok(());
    }
    let host = shape::host_end(Path::new(&netns), &attachment.interface)?;
    let Some(record) = Records::of(config).read(&attachment)? else {
        return missing(format!("{} was not added", attachment.interface));
    };
    if let Some(limit) = &egress {
        // As it was added: another version of the plugin may choose other names.
        let Some(ifb) = record.ifb.clone() else {
            return missing("what the pod sends is not limited".to_owned());
        };
        let device = penstock_linux::link::find(&ifb)?;
        match device {
            Some(device) if shape::is_limited(device.index, limit)? => (),
            _ => return missing(format!("{ifb} does not limit what the pod sends")),
        }
        if !shape::is_redirected(host.index)? {
            return missing(format!("{} is not redirected to {ifb}", host.name));
        }
    }
    if let Some(limit) = &ingress {
        if config.side == Side::Port && !shape::is_limited(host.index, limit)? {
            return missing(format!(
                "{} does not limit what the pod receives",
                host.name
            ));
        }
        let is_same = record.attach == agent::options(config.side, limit);
        if !is_same || !agent::is_attached(config, &record) {
            let port = match config.side {
                Side::Port => &host.name,
                Side::Limit => &attachment.interface,
            };
            return missing(format!("Grant is not attached to {port}"));
        }
    }
    Ok(())
}

/// DEL: removes what ADD set up, if it is there.
///
/// # Errors
/// The kernel or the agent refuses.
pub fn del(config: &Config) -> Result<()> {
    remove(config, &attachment()?)
}

fn remove(config: &Config, attachment: &Attachment) -> Result<()> {
    let records = Records::of(config);
    // Without a record, the device alone can be left.
    // Nor does a record that cannot be read keep a pod from its end.
    let record = records.read(attachment).ok().flatten();
    let record = record.unwrap_or_else(|| Record {
        ifb: Some(shape::ifb_name(&config.name, attachment)),
        ..Record::default()
    });
    agent::detach(config, &record)?;
    if let Some(ifb) = &record.ifb {
        shape::delete(ifb)?;
    }
    records.remove(attachment)
}

/// GC: removes what is left of attachments that the runtime does not list.
///
/// # Errors
/// The list is missing, or the first removal that failed; the others are tried.
pub fn gc(config: &Config) -> Result<()> {
    let Some(valid) = &config.valid_attachments else {
        return Err(Error::new(
            Code::Config,
            "cni.dev/valid-attachments is missing",
        ));
    };
    let left = Records::of(config).all();
    let stale = left.iter().filter(|attachment| !valid.contains(attachment));
    let removed: Vec<_> = stale.map(|attachment| remove(config, attachment)).collect();
    removed.into_iter().collect()
}

/// Attaches the ports of all pods again, as after an upgrade that could not keep them.
///
/// # Errors
/// The first that failed, a record that cannot be read included; the others are tried.
pub fn restore(config: &Config) -> Result<()> {
    let records = Records::of(config);
    let restore = |attachment| match records.read(&attachment)? {
        Some(record) => agent::restore(config, &record),
        None => Ok(()),
    };
    let restored: Vec<_> = records.all().into_iter().map(restore).collect();
    restored.into_iter().collect()
}
