// SPDX-License-Identifier: Apache-2.0
//! Loads the programs of one scheme over the maps of a port. Pinned maps are reused, so that flows
//! stay counted; missing ones are created and pinned.

use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Result, anyhow};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapHandle, OpenObject, PrintLevel};

use crate::host::requirements;
use crate::port::pins::SWEEP;
use crate::skel::port::{PortSkel, PortSkelBuilder};

/// The program pinned as [`SWEEP`]: before Linux 6.6 no program of type syscall may lock a port.
pub fn sweep_name() -> &'static str {
    match requirements::version(&requirements::release()) {
        Some(version) if version < requirements::TCX_SINCE => "sweep_tc",
        _ => SWEEP,
    }
}

/// More than any log of the verifier; bounds the memory of a daemon that runs for long.
const LOG_BYTES: usize = 1 << 20;

/// Warnings of libbpf since the last load began: the error of a failed load has only one line.
static LOG: Mutex<String> = Mutex::new(String::new());

/// Collects libbpf's warnings, which it would write to standard error.
pub fn capture_log() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, append_log)));
}

fn append_log(_: PrintLevel, text: String) {
    if let Ok(mut log) = LOG.lock() {
        if log.len() + text.len() > LOG_BYTES {
            log.clear();
        }
        log.push_str(&text);
    }
}

fn clear_log() {
    if let Ok(mut log) = LOG.lock() {
        log.clear();
    }
}

/// Loads the programs of a window scheme, or those that observe, over the maps in `folder`; new
/// tables of flows get `flows` entries.
///
/// # Errors
/// The kernel refuses the programs, or pinned maps are of another layout.
pub fn load<'o>(
    object: &'o mut MaybeUninit<OpenObject>,
    folder: &Path,
    scheme: &str,
    flows: u32,
) -> Result<PortSkel<'o>> {
    clear_log();
    let mut open = PortSkelBuilder::default().open(object)?;
    let names = [
        format!("{scheme}_egress"),
        format!("{scheme}_ingress"),
        sweep_name().to_owned(),
    ];
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        program.set_autoload(names.contains(&name));
    }
    for mut map in open.open_object_mut().maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name.contains('.') {
            continue; // constants of the object, which belong to its programs
        }
        let pin = folder.join(&name);
        if name == "flows4" || name == "flows6" {
            let existing = MapHandle::from_pinned_path(&pin);
            let entries = existing.map_or(flows, |map| map.max_entries());
            map.set_max_entries(entries)?;
        }
        map.set_pin_path(&pin)?;
    }
    open.load().map_err(|error| refused(&error, folder))
}

fn refused(error: &libbpf_rs::Error, folder: &Path) -> anyhow::Error {
    let log = LOG.lock().map(|log| log.clone()).unwrap_or_default();
    if log.contains("parameter mismatch") {
        return anyhow!(
            "the maps in {} are of another version of penstockd; detach, then attach again",
            folder.display()
        );
    }
    let detail = log.lines().last().unwrap_or_default();
    anyhow!("the kernel refuses the programs: {error}: {detail}; see: penstockd check")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_only_the_log_of_its_own_load_and_the_log_is_bounded() {
        append_log(
            PrintLevel::Warn,
            "map 'port': parameter mismatch\n".to_owned(),
        );
        let folder = Path::new("/no-such-bpffs/v1/eth1");
        let mut object = MaybeUninit::uninit();
        let error = load(&mut object, folder, "observe", 64).err().unwrap();
        assert!(!error.to_string().contains("another version"), "{error}");
        for _ in 0..5_000 {
            append_log(PrintLevel::Warn, "x".repeat(1_000));
        }
        assert!(LOG.lock().unwrap().len() <= LOG_BYTES);
        clear_log();
    }
}
