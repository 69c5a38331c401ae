// SPDX-License-Identifier: Apache-2.0
//! The program as a whole, in network namespaces joined by a switch. Needs root.

#![allow(clippy::unwrap_used)]

mod lines;
mod net;
mod timeouts;
mod traffic;

use net::Net;
use penstock_linux::testkit::output;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;
use tempfile::TempDir;

/// A dumbbell of four senders and receivers; `traffic`: tables.
fn scenario(duration: &str, traffic: &str) -> String {
    format!(
        r#"
        title = "test"
        duration = "{duration}"
        schemes = ["drop-tail"]
        [fabric]
        kind = "dumbbell"
        senders = 4
        receivers = 4
        access = {{ rate = "1 Gb/s", delay = "5 us" }}
        bottleneck = {{ rate = "500 Mb/s", delay = "10 us", buffer = "1 MB" }}
        [tcp]
        profile = "linux"
        {traffic}
        "#
    )
}

/// Longest life of the program in a test.
const LIMIT: Duration = Duration::from_secs(60);

/// A folder for one test, removed with it.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// Where the program writes.
    fn out(&self) -> PathBuf {
        self.0.path().join("out")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.out().join(name)).unwrap()
    }

    /// What the program wrote.
    fn results(&self) -> Run {
        let files = std::fs::read_dir(self.out()).unwrap();
        let mut names: Vec<String> = files
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "flows.csv",
                "jobs.csv",
                "queues.csv",
                "summary.json",
                "windows.csv"
            ]
        );
        Run {
            summary: serde_json::from_str(&self.read("summary.json")).unwrap(),
            flows: flows(&self.read("flows.csv")),
            queues: self.read("queues.csv").lines().count() - 1,
            windows: self.read("windows.csv"),
        }
    }

    /// The command that plays `scenario` on `hosts` into `out`.
    fn command(&self, scenario: &str, hosts: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock-traffic"));
        command
            .arg(self.write("scenario.toml", scenario))
            .args(["--scheme", "drop-tail", "--hosts"])
            .arg(self.write("hosts.json", hosts))
            .arg("--out")
            .arg(self.out());
        command
    }
}

/// What a run wrote.
struct Run {
    summary: Value,
    flows: Vec<Flow>,
    queues: usize,
    windows: String,
}

/// The columns of flows.csv that tests look at.
struct Flow {
    traffic: String,
    number: u32,
    source: String,
    destination: String,
    start_s: f64,
    end_s: Option<f64>,
    bytes: Option<u64>,
    delivered: u64,
    packets: u64,
    timeouts: u64,
    syn_timeouts: u64,
    server_wait_s: f64,
}

fn flows(text: &str) -> Vec<Flow> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name: &str| fields[header.iter().position(|h| *h == name).unwrap()];
        let number = |name: &str| field(name).parse::<u64>().unwrap();
        Flow {
            traffic: field("traffic").to_owned(),
            number: number("flow") as u32,
            source: field("source").to_owned(),
            destination: field("destination").to_owned(),
            start_s: field("start_s").parse().unwrap(),
            end_s: field("end_s").parse().ok(),
            bytes: field("bytes").parse().ok(),
            delivered: number("delivered_bytes"),
            packets: number("packets"),
            timeouts: number("timeouts"),
            syn_timeouts: number("syn_timeouts"),
            server_wait_s: field("server_wait_s").parse().unwrap(),
        }
    };
    lines.map(row).collect()
}

/// Plays it in `net`, and reads what it wrote.
fn play(net: &Net, scenario: &str) -> Run {
    let folder = Folder::new();
    let output = output(&mut folder.command(scenario, &net.hosts()), LIMIT);
    assert!(output.status.success(), "{}", stderr(&output));
    folder.results()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
