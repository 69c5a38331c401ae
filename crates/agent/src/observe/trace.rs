// SPDX-License-Identifier: Apache-2.0
//! The flow trace: the recorded transfers as a CSV that a scenario's traffic of kind `trace` replays
//! (docs/scenarios.md), and that scenario.
//!
//! Hosts are named as in a dumbbell, in the order in which they first sent or received: data that
//! leaves by the port goes from `senderN` to `receiverN`.

use std::fmt::Write;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use indexmap::IndexSet;
use penstock_core::definitions;
use penstock_scenario::builtin_schemes;

use super::bursts::Line;
use super::fan_in::Transfer;
use crate::format;
use crate::host::file;

/// The schemes that the scenario compares: drop-tail and each that `core/` defines.
fn schemes() -> String {
    let all = definitions::all().iter().map(|definition| definition.name);
    let names = all.filter(|name| builtin_schemes().contains_key(*name));
    let quoted = std::iter::once("drop-tail").chain(names);
    let quoted: Vec<String> = quoted.map(|name| format!("\"{name}\"")).collect();
    format!("[{}]", quoted.join(", "))
}

/// A host's address, and the tenant's network to which it belongs.
type Host = (IpAddr, u32);

/// Recorded transfers, ready to be written.
pub struct Trace<'a> {
    transfers: Vec<&'a Transfer>,
    began_ns: u64,
    senders: IndexSet<Host>,
    receivers: IndexSet<Host>,
}

/// Facts that the scenario needs beyond the transfers.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The recorded port.
    pub interface: String,
    /// Length of the recording, seconds.
    pub seconds: f64,
    /// Its buffer and rate.
    pub line: Line,
    /// Rate of the hosts' links, bits per second.
    pub access_bps: u64,
    /// Round-trip time without queues, nanoseconds.
    pub rtt_ns: u64,
}

impl<'a> Trace<'a> {
    /// The transfers that carried anything, by begin.
    pub fn of(transfers: &'a [Transfer], began_ns: u64) -> Trace<'a> {
        let mut transfers: Vec<&Transfer> = transfers.iter().filter(|t| t.bytes > 0).collect();
        transfers.sort_by_key(|transfer| (transfer.begun_ns, transfer.flow));
        let ends = |end: fn(&Transfer) -> Host| transfers.iter().map(|t| end(t)).collect();
        Trace {
            senders: ends(|t| (t.flow.source.0, t.flow.network)),
            receivers: ends(|t| (t.flow.destination.0, t.flow.network)),
            transfers,
            began_ns,
        }
    }

    /// Transfers in it.
    pub fn len(&self) -> usize {
        self.transfers.len()
    }

    /// Whether nothing was sent.
    pub fn is_empty(&self) -> bool {
        self.transfers.is_empty()
    }

    /// `start_s,source,destination,bytes`. A transfer older than the recording starts with it.
    pub fn csv(&self) -> String {
        let mut text = "start_s,source,destination,bytes\n".to_owned();
        for transfer in &self.transfers {
            let start_ns = transfer.begun_ns.saturating_sub(self.began_ns);
            let place = |hosts: &IndexSet<Host>, address: IpAddr| {
                hosts
                    .get_index_of(&(address, transfer.flow.network))
                    .map_or(0, |at| at + 1)
            };
            let _ = writeln!(
                text,
                "{}.{:09},sender{},receiver{},{}",
                start_ns / 1_000_000_000,
                start_ns % 1_000_000_000,
                place(&self.senders, transfer.flow.source.0),
                place(&self.receivers, transfer.flow.destination.0),
                transfer.bytes
            );
        }
        text
    }

    /// The scenario that replays `csv`, a file in the same folder, through a dumbbell.
    pub fn scenario(&self, setting: &Setting, csv: &str) -> String {
        let rate = setting.line.rate_bps.unwrap_or(setting.access_bps);
        let mut text = format!(
            "# SPDX-License-Identifier: Apache-2.0
# Recorded by penstockd at {interface}: {count} transfers between these hosts.
",
            // A comment in TOML has no control characters either.
            interface = format::printable(&setting.interface),
            count = format::count(self.len() as u64),
        );
        for (name, hosts) in [("sender", &self.senders), ("receiver", &self.receivers)] {
            for (index, (address, network)) in hosts.iter().enumerate() {
                let tenant = match network {
                    0 => String::new(),
                    network => format!(", network {network}"),
                };
                let _ = writeln!(text, "#   {name}{} = {address}{tenant}", index + 1);
            }
        }
        let _ = write!(
            text,
            r#"title = {title}
about = """
{count} transfers in {seconds:.1} s. Each starts at its recorded time, whether or not earlier ones have finished, on \
a connection of its own. Access rate and delays are assumed."""
duration = "{duration_ms} ms"
schemes = {schemes}

[fabric]
kind = "dumbbell"
senders = {senders}
receivers = {receivers}
access = {{ rate = "{access} b/s", delay = "{access_delay} ns" }}
bottleneck = {{ rate = "{rate} b/s", delay = "{delay} ns", buffer = "{buffer} B" }}

[tcp]
profile = "linux"

[traffic.seen]
kind = "trace"
file = {file}
deadline = "190 ms"

[measure]
ports = ["bottleneck"]
"#,
            title = toml::Value::from(format!("As recorded at {}", setting.interface)),
            file = toml::Value::from(csv),
            schemes = schemes(),
            count = format::count(self.len() as u64),
            seconds = setting.seconds,
            // Time for transfers that are under way at the end of the recording.
            duration_ms = (setting.seconds * 1000.0).ceil() as u64 + 2000,
            senders = self.senders.len(),
            receivers = self.receivers.len(),
            access = setting.access_bps,
            access_delay = setting.rtt_ns / 8,
            delay = setting.rtt_ns / 4,
            buffer = setting.line.buffer_bytes,
        );
        text
    }

    /// Writes STEM.csv and STEM.toml; returns the latter.
    ///
    /// # Errors
    /// Nothing was sent, or a file cannot be written.
    pub fn write(&self, stem: &Path, setting: &Setting) -> Result<PathBuf> {
        ensure!(
            !self.is_empty(),
            "no transfer was recorded, so there is no trace; record longer: --for 60s"
        );
        let [csv, toml] = files(stem);
        let name = csv.file_name().unwrap_or_default().to_string_lossy();
        file::replace(&csv, &self.csv(), None)?;
        file::replace(&toml, &self.scenario(setting, &name), None)?;
        Ok(toml)
    }
}

fn files(stem: &Path) -> [PathBuf; 2] {
    ["csv", "toml"].map(|ending| stem.with_added_extension(ending))
}

/// The common name of both files, if these can be written. To be called before the time of a recording.
///
/// # Errors
/// The folder is missing, read-only or full, or where one of the files would be, there is a folder.
pub fn writable_stem(out: &Path) -> Result<PathBuf> {
    let is_folder = out.is_dir() || out.as_os_str().as_bytes().ends_with(b"/");
    ensure!(
        !is_folder,
        "--out: {} is a folder; give the name of a file in it",
        out.display()
    );
    let stem = stem(out);
    if let Some(folder) = stem.parent() {
        let is_there = folder.as_os_str().is_empty() || folder.is_dir();
        ensure!(is_there, "--out: there is no folder {}", folder.display());
    }
    for file in files(&stem) {
        let is_free = file
            .symlink_metadata()
            .map_or(true, |about| !about.is_dir());
        ensure!(is_free, "--out: {} is a folder", file.display());
        file::try_out(&file).context("--out")?;
    }
    Ok(stem)
}

/// FILE without the ending of either of the two files.
fn stem(file: &Path) -> PathBuf {
    match file.extension() {
        Some(ending) if ending == "csv" || ending == "toml" => file.with_extension(""),
        _ => file.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::fan_in::tests::transfer;
    use penstock_scenario::{Scenario, Traffic};
    use penstock_sim::run::Inputs;

    fn setting() -> Setting {
        Setting {
            interface: "eth1".to_owned(),
            seconds: 9.9996,
            line: Line {
                buffer_bytes: 131_072,
                rate_bps: Some(200_000_000),
            },
            access_bps: 10_000_000_000,
            rtt_ns: 100_000,
        }
    }

    #[test]
    fn hosts_are_named_by_appearance_and_time_is_relative() {
        let mut transfers = [
            transfer(9, 1_500, 1_600, 20_000),
            transfer(4, 900, 1_600, 1_000_000),
            transfer(9, 1_700, 1_700, 0),
        ];
        transfers[0].begun_ns += 21;
        let trace = Trace::of(&transfers, 1_000_000_000);
        assert_eq!(
            trace.csv(),
            "start_s,source,destination,bytes\n\
             0.000000000,sender1,receiver1,1000000\n\
             0.500000021,sender2,receiver1,20000\n"
        );
    }

    #[test]
    fn addresses_of_two_tenants_are_two_hosts() {
        let mut transfers = [transfer(1, 1, 2, 10), transfer(1, 3, 4, 10)];
        transfers[1].flow.network = 7;
        let trace = Trace::of(&transfers, 0);
        assert!(trace.csv().ends_with("0.003000000,sender2,receiver2,10\n"));
        let scenario = trace.scenario(&setting(), "seen.csv");
        assert!(
            scenario.contains("#   sender2 = 10.0.0.1, network 7\n"),
            "{scenario}"
        );
    }

    #[test]
    fn the_simulator_reads_what_is_written() {
        let transfers: Vec<Transfer> = (1..=12).map(|n| transfer(n, 5, 9, 11_500)).collect();
        let folder = std::env::temp_dir().join(format!("penstock-trace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let toml = Trace::of(&transfers, 0)
            .write(&folder.join("a.seen"), &setting())
            .unwrap();
        assert_eq!(toml.file_name().unwrap(), "a.seen.toml");
        let text = std::fs::read_to_string(&toml).unwrap();
        let scenario = Scenario::parse(&text, &toml, &[]).unwrap();
        let inputs = Inputs::read(&scenario, &folder, &|_| Err(String::new())).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let Traffic::Trace(traffic) = &scenario.traffic["seen"] else {
            panic!("traffic.seen is a trace");
        };
        assert_eq!(inputs.trace(&traffic.file).len(), 12);
    }

    #[test]
    fn names_with_quotes_are_read_as_they_are() {
        let transfers = [transfer(1, 5, 9, 11_500)];
        let trace = Trace::of(&transfers, 0);
        let folder = tempfile::tempdir().unwrap();
        for name in ["a\"b", "a\\b", "a'''b", "a\x1b[m\u{7f}"] {
            let setting = Setting {
                interface: name.to_owned(),
                ..setting()
            };
            let csv = format!("{name}.csv");
            let toml = trace.write(&folder.path().join(name), &setting).unwrap();
            let text = std::fs::read_to_string(&toml).unwrap();
            let scenario = Scenario::parse(&text, &toml, &[]).unwrap();
            assert_eq!(scenario.title, format!("As recorded at {name}"));
            let Traffic::Trace(traffic) = &scenario.traffic["seen"] else {
                panic!("traffic.seen is a trace");
            };
            assert_eq!(traffic.file.file_name(), Some(csv.as_ref()));
        }
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_a_recording() {
        let root = tempfile::tempdir().unwrap();
        let seen = root.path().join("seen.csv");
        assert_eq!(writable_stem(&seen).unwrap(), root.path().join("seen"));
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
        let refused = |out: &str| writable_stem(Path::new(out)).unwrap_err().to_string();
        let folder = root.path().display().to_string();
        for out in [folder.clone(), format!("{folder}/new/")] {
            assert!(refused(&out).contains("is a folder"), "{out}");
        }
        assert!(refused(&format!("{folder}/no/seen")).contains("no folder"));
        // No file can be created there, by the superuser either.
        assert_eq!(refused("/proc/self/seen"), "--out");
    }

    #[test]
    fn without_a_transfer_nothing_is_written() {
        let error = Trace::of(&[], 0)
            .write(Path::new("/nowhere/x"), &setting())
            .unwrap_err();
        assert!(error.to_string().contains("record longer"));
    }

    #[test]
    fn either_ending_names_both_files() {
        for name in ["out/seen", "out/seen.csv", "out/seen.toml"] {
            assert_eq!(stem(Path::new(name)), Path::new("out/seen"));
        }
        assert_eq!(stem(Path::new("eth0.2026")), Path::new("eth0.2026"));
    }
}
