// SPDX-License-Identifier: Apache-2.0
//! Runs one scenario under one scheme and prints how fast:
//! `hops FILE [SCHEME] [--set KEY=VALUE]... [--threads N] [--shards N] [--json]`.

use penstock_sim::{Cores, Inputs, Scenario, run_on};
use std::error::Error;
use std::path::Path;

const USAGE: &str =
    "usage: hops FILE [SCHEME] [--set KEY=VALUE]... [--threads N] [--shards N] [--json]";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut cores = Cores::default();
    let (mut words, mut settings, mut json) = (Vec::new(), Vec::new(), false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = true,
            "--threads" => cores.threads = arguments.next().ok_or(USAGE)?.parse()?,
            "--shards" => cores.shards = Some(arguments.next().ok_or(USAGE)?.parse()?),
            "--set" => {
                let setting = arguments.next().ok_or(USAGE)?;
                let (key, value) = setting.split_once('=').ok_or(USAGE)?;
                settings.push((key.to_owned(), value.to_owned()));
            }
            _ => words.push(argument),
        }
    }
    let file = Path::new(words.first().ok_or(USAGE)?);
    let scenario = Scenario::parse(&std::fs::read_to_string(file)?, file, &settings)?;
    let scheme = words
        .get(1)
        .map_or(scenario.schemes[0].as_str(), |name| name.as_str());
    let folder = file.parent().unwrap_or(Path::new("."));
    let inputs = Inputs::read(&scenario, folder, &|_| {
        Err("the bench reads CSV only".to_owned())
    })?;
    let outcome = run_on(cores, &scenario, &inputs, scheme, 1, &|_| true)?;
    if json {
        println!("{}", serde_json::to_string(&outcome.performance)?);
        return Ok(());
    }
    println!(
        "{scheme}: {}",
        serde_json::to_string_pretty(&outcome.groups)?
    );
    println!("{}", serde_json::to_string_pretty(&outcome.ports)?);
    println!("{}", serde_json::to_string_pretty(&outcome.performance)?);
    Ok(())
}
