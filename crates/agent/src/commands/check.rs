// SPDX-License-Identifier: Apache-2.0
//! `penstockd check`.

use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::attach::tcx;
use crate::host::{output, queue_visibility, requirements};
use crate::port::PinsArg;

/// Options of `penstockd check`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd check
  penstockd check --json

The exit code is 0 if this machine has everything that FairQ, HSCC and observe need.")]
pub struct Args {
    /// Print the list as JSON.
    #[arg(long)]
    pub json: bool,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub pins: PinsArg,
}

/// A requirement.
#[derive(Debug, Serialize)]
struct Need {
    name: &'static str,
    /// Whether it is met.
    has: bool,
    /// Whether nothing works without it.
    required: bool,
    /// What was found; or what is missing, with its remedy.
    found: String,
}

impl Need {
    fn line(&self) -> String {
        let mark = match (self.has, self.required) {
            (true, _) => "yes",
            (false, true) => "NO",
            (false, false) => "no",
        };
        format!("{:<3} {:<10} {}\n", mark, self.name, self.found)
    }
}

fn needs(pins: &Path) -> Vec<Need> {
    let need = |name, required, result: Result<String>| {
        let (has, found) = match result {
            Ok(found) => (true, found),
            Err(error) => (false, format!("{error:#}")),
        };
        Need {
            name,
            has,
            required,
            found,
        }
    };
    let release = requirements::release();
    let kernel = requirements::require_kernel(&release).map(|()| format!("Linux {release}"));
    let there = |text: &str| text.to_owned();
    vec![
        need("kernel", true, kernel),
        need(
            "btf",
            true,
            requirements::require_btf().map(|()| there("/sys/kernel/btf/vmlinux")),
        ),
        need(
            "privileges",
            true,
            requirements::require_capabilities().map(|()| there("all")),
        ),
        need(
            "bpffs",
            true,
            requirements::require_bpffs(pins).map(|()| pins.display().to_string()),
        ),
        need("queue", false, requirements::queue().map(there)),
        need("tcx", false, tcx::require().map(there)),
        need("queues", false, queue_visibility::require().map(there)),
        need("sockets", false, requirements::sockets().map(there)),
        need("jit", false, requirements::jit().map(there)),
        need("bpf_qdisc", false, requirements::bpf_qdisc().map(there)),
    ]
}

/// Runs the command.
///
/// # Errors
/// A requirement is not met.
pub fn run(args: Args) -> Result<()> {
    let needs = needs(&args.pins.dir);
    match args.json {
        true => output::write_json(&needs)?,
        false => output::print(&needs.iter().map(Need::line).collect::<String>())?,
    }
    let missing: Vec<&str> = needs
        .iter()
        .filter(|need| need.required && !need.has)
        .map(|need| need.name)
        .collect();
    if !missing.is_empty() {
        bail!("this machine lacks: {}", missing.join(", "));
    }
    Ok(())
}
