// SPDX-License-Identifier: Apache-2.0
//! Loads the programs of one scheme over the maps of a port: pinned ones are used again, so that
//! flows stay counted; others are made and pinned.

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

/// More than any verifier's last words; the daemon lives long.
const COMPLAINTS_BYTES: usize = 1 << 20;

/// What libbpf last complained of: the first line of a failed load says too little.
static COMPLAINTS: Mutex<String> = Mutex::new(String::new());

/// Keeps libbpf from writing to standard error: what it says is for us to tell.
pub fn listen() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, complain)));
}

fn complain(_: PrintLevel, text: String) {
    if let Ok(mut complaints) = COMPLAINTS.lock() {
        if complaints.len() + text.len() > COMPLAINTS_BYTES {
            complaints.clear();
        }
        complaints.push_str(&text);
    }
}

/// Complaints of another port are none of the next one's.
fn forget() {
    if let Ok(mut complaints) = COMPLAINTS.lock() {
        complaints.clear();
    }
}

/// Loads `scheme` (`observe`, `fairq`, `hscc`) over the maps in `folder`; new tables of flows get
/// `flows` entries.
///
/// # Errors
/// The kernel refuses the programs, or pinned maps are of another layout.
pub fn load<'o>(
    object: &'o mut MaybeUninit<OpenObject>,
    folder: &Path,
    scheme: &str,
    flows: u32,
) -> Result<PortSkel<'o>> {
    forget();
    let mut open = PortSkelBuilder::default().open(object)?;
    let wanted = [
        format!("{scheme}_egress"),
        format!("{scheme}_ingress"),
        sweep_name().to_owned(),
    ];
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        program.set_autoload(wanted.contains(&name));
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
    let complaints = COMPLAINTS.lock().map(|all| all.clone()).unwrap_or_default();
    if complaints.contains("parameter mismatch") {
        return anyhow!(
            "the maps in {} are of another version of penstockd; detach, then attach again",
            folder.display()
        );
    }
    let detail = complaints.lines().last().unwrap_or_default();
    anyhow!("the kernel does not take the programs: {error}: {detail}; see: penstockd check")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_told_by_its_own_complaints_and_they_are_not_kept_for_ever() {
        complain(
            PrintLevel::Warn,
            "map 'port': parameter mismatch\n".to_owned(),
        );
        let folder = Path::new("/no-such-bpffs/v1/eth1");
        let mut object = MaybeUninit::uninit();
        let told = load(&mut object, folder, "observe", 64).err().unwrap();
        assert!(!told.to_string().contains("another version"), "{told}");
        for _ in 0..5_000 {
            complain(PrintLevel::Warn, "x".repeat(1_000));
        }
        assert!(COMPLAINTS.lock().unwrap().len() <= COMPLAINTS_BYTES);
        forget();
    }
}
