// SPDX-License-Identifier: Apache-2.0
//! `penstock-cni`: a chained plugin of the Container Network Interface, specification 1.1, for the
//! capability `bandwidth`. What a pod receives is limited by a token bucket whose queue Grant keeps from
//! overflowing; what it sends, by a token bucket.
//!
//! | module | contents |
//! |---|---|
//! | `commands` | ADD, CHECK, DEL, GC; `restore` |
//! | `agent` | Grant, by `penstockd` |
//! | `shape` | token buckets |
//! | `record` | what was set up for each pod |
//! | `config` | the configuration on stdin, the environment |
//! | `error` | errors with the specification's codes |

mod agent;
mod commands;
mod config;
mod error;
mod record;
mod shape;

use std::io::Read;
use std::process::ExitCode;

use config::VERSIONS;
use error::{Code, Error, Result};
use serde_json::{Value, json};

const HELP: &str = "\
penstock-cni: a chained CNI plugin for the capability `bandwidth`; a container runtime calls it.

Usage:
  CNI_COMMAND=ADD|DEL|CHECK|GC|STATUS|VERSION ... penstock-cni < CONFIGURATION
  penstock-cni restore < CONFIGURATION    attach the ports of all pods again, after an upgrade
  penstock-cni --version";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("--version" | "-V") => {
            println!("penstock-cni {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some("restore") => return answer(run(Some("restore"))),
        Some("--help" | "-h" | "help") => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!("penstock-cni: {other:?} is no command\n\n{HELP}");
            return ExitCode::from(2);
        }
        None if std::env::var_os("CNI_COMMAND").is_none() => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
        None => (),
    }
    answer(run(None))
}

/// Prints what a command returned, or its error, with the version of the configuration.
fn answer((version, result): (String, Result<Option<Value>>)) -> ExitCode {
    match result {
        Ok(Some(value)) => {
            println!("{value}");
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            let mut printed = serde_json::to_value(&error).unwrap_or_default();
            printed["cniVersion"] = json!(version);
            println!("{printed}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Option<&str>) -> (String, Result<Option<Value>>) {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    let parsed = match read {
        Ok(_) => serde_json::from_str::<Value>(&text)
            .map_err(|error| Error::new(Code::Decode, format!("configuration: {error}"))),
        Err(error) => Err(Error::new(Code::Io, format!("standard input: {error}"))),
    };
    match parsed {
        Ok(value) => (config::version(&value), dispatch(verb, value)),
        Err(error) => ("1.1.0".to_owned(), Err(error)),
    }
}

fn dispatch(verb: Option<&str>, value: Value) -> Result<Option<Value>> {
    let version = config::version(&value);
    let command = match verb {
        Some(verb) => verb.to_owned(),
        None => config::variable("CNI_COMMAND")?,
    };
    if command == "VERSION" {
        return Ok(Some(
            json!({ "cniVersion": version, "supportedVersions": VERSIONS }),
        ));
    }
    let config = config::parse(value)?;
    let since = |least: &str| match at_least(&version, least) {
        true => Ok(()),
        false => Err(Error::new(
            Code::Version,
            format!("{command} is of version {least}, the configuration of {version}"),
        )),
    };
    match command.as_str() {
        "ADD" => commands::add(&version, &config).map(Some),
        "DEL" => commands::del(&config).map(|()| None),
        "CHECK" => since("0.4.0")
            .and_then(|()| commands::check(&config))
            .map(|()| None),
        "GC" => since("1.1.0")
            .and_then(|()| commands::gc(&config))
            .map(|()| None),
        "STATUS" => since("1.1.0")
            .and_then(|()| commands::status(&config))
            .map(|()| None),
        "restore" => commands::restore(&config).map(|()| None),
        other => Err(Error::new(
            Code::Environment,
            format!("CNI_COMMAND: {other:?} is no command"),
        )),
    }
}

/// Whether one of [`VERSIONS`] is this one or a later one.
fn at_least(version: &str, least: &str) -> bool {
    let place = |wanted: &str| VERSIONS.iter().position(|known| *known == wanted);
    place(version) >= place(least)
}
