// SPDX-License-Identifier: Apache-2.0
//! What the controller sustains: copies of SYNs and FINs a second on one core, many at a time and one by
//! one, next to other switches; reports of 48 queues; and the time from a SYN at the switch to the notice at the
//! shim's host, queues being reported every 500 us; waiting for the report (T), and at once.
//!
//! `cargo run --release -p penstock-controller --example controller_load -- 1 8 64 1000`: with so many switches.
//! With `--against ADDRESS` the copies go to any controller that listens there, which answers each thousandth
//! with a barrier, and each SYN from port 60000 on (`evidence/sdn/osken_app.py`).

mod other;
mod ours;
mod running;
mod wire;

use anyhow::{Context, Result};

const DATAPATH: u64 = 1;
const SECRET: &[u8] = b"a secret of sixteen bytes or more";
/// Hosts that send, each at a port of its own; one more receives.
const HOSTS: u8 = 32;
const RECEIVER: u8 = 100;
/// The ports of a switch in a report.
const REPORT_PORTS: u32 = 48;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [against, address] = &words[..]
        && against == "--against"
    {
        println!("{}", other::measure(address.parse()?)?);
        return Ok(());
    }
    let given: Result<Vec<u64>, _> = words.iter().map(|word| word.parse()).collect();
    let mut switches = given?;
    if switches.is_empty() {
        switches.push(1);
    }
    for (number, switches) in switches.into_iter().enumerate() {
        println!("{}", ours::measure(false, switches.max(1) - 1)?);
        if number == 0 {
            println!("{}", ours::measure(true, switches.max(1) - 1)?);
        }
    }
    Ok(())
}

/// The median and the 99th percentile.
fn quantiles(mut values: Vec<f64>) -> Result<[f64; 2]> {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get((values.len() as f64 * share) as usize).copied();
    let both = at(0.5).zip(at(0.99)).context("nothing was measured")?;
    Ok(both.into())
}
