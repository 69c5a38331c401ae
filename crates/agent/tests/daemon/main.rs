// SPDX-License-Identifier: Apache-2.0
//! The daemon: killed, started again, reloaded; a transfer goes on through all of it. Needs root.

#![allow(clippy::unwrap_used)]

mod dry_run;
mod interfaces;
#[path = "../lab/mod.rs"]
mod lab;
mod reloading;
mod running;

use lab::PortLab;

const FAIRQ: &str = "[port.eth1]\nscheme = \"fairq\"\nbuffer = \"128 kB\"\n";
const HSCC: &str = "[port.eth1]\nscheme = \"hscc\"\nbuffer = \"128 kB\"\n";

fn is_acting(lab: &PortLab) -> bool {
    lab.port_folder().join("program_ingress").exists() && lab.status()["acting"] == true
}

fn scheme(lab: &PortLab) -> String {
    lab.status()["scheme"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
