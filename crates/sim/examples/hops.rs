// SPDX-License-Identifier: Apache-2.0
//! Runs one scenario under one scheme and tells how fast: `hops FILE [SCHEME] [--json]`.

use penstock_sim::{Inputs, Scenario, run};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&String> = arguments
        .iter()
        .filter(|word| !word.starts_with("--"))
        .collect();
    let file = Path::new(words.first().ok_or("usage: hops FILE [SCHEME] [--json]")?);
    let scenario = Scenario::parse(&std::fs::read_to_string(file)?, file, &[])?;
    let scheme = words
        .get(1)
        .map_or(scenario.schemes[0].as_str(), |name| name.as_str());
    let folder = file.parent().unwrap_or(Path::new("."));
    let inputs = Inputs::read(&scenario, folder, &|_| {
        Err("the bench reads CSV only".to_owned())
    })?;
    let outcome = run(&scenario, &inputs, scheme, 1, &|_| true)?;
    if arguments.iter().any(|word| word == "--json") {
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
