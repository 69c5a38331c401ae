// SPDX-License-Identifier: Apache-2.0
//! `penstockd metrics`: OpenMetrics of every attached port, on a local TCP port or in a file for
//! node_exporter's textfile collector. The daemon runs the same in a thread.

pub mod openmetrics;
pub mod table;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use penstock_linux::{note, scrape};
use penstock_scenario::units::Time;
use rustix::fs::Mode;

use crate::host::signals::{self, Signals};
use crate::host::{file, output, requirements};
use crate::port::PinsArg;
use crate::port::heartbeat::Errors;
use crate::status::reading::Reading;
use crate::status::sight::Sights;

/// Where metrics are served by default; node_exporter has 9100, bind_exporter 9119, and so on.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:9468";

/// Time between the two readings of which one alone is printed.
const BETWEEN: Duration = Duration::from_millis(500);

/// Options of `penstockd metrics`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  penstockd metrics                                     print them once, after half a second
  penstockd metrics --listen 127.0.0.1:9468             http://127.0.0.1:9468/metrics
  penstockd metrics --textfile /var/lib/prometheus/node-exporter/penstock.prom --every 15s")]
pub struct Args {
    /// Serve metrics over HTTP at this address, under /metrics.
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = DEFAULT_LISTEN,
        value_parser = address,
        conflicts_with = "textfile"
    )]
    pub listen: Option<SocketAddr>,
    /// Allow an address that other hosts can reach.
    #[arg(long, requires = "listen")]
    pub allow_remote: bool,
    /// Write metrics to FILE, which is replaced atomically.
    #[arg(long, value_name = "FILE")]
    pub textfile: Option<PathBuf>,
    /// Interval at which the file is written again [default: once].
    #[arg(long, value_name = "TIME", requires = "textfile", value_parser = Time::read)]
    pub every: Option<Time>,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub pins: PinsArg,
}

/// Reads the address at which metrics are to be served.
///
/// # Errors
/// What is allowed.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("expected an IP address and a port up to 65535, as in {DEFAULT_LISTEN}")
    })
}

/// Runs the command.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn run(args: Args) -> Result<()> {
    requirements::require_capabilities()?;
    if args.listen.is_some() || args.every.is_some() {
        signals::outlive_readers();
    }
    if let Some(address) = args.listen {
        let listener = bind(address, args.allow_remote)?;
        note!("http://{}/metrics", listener.local_addr()?);
        serve(&listener, &args.pins);
        return Ok(());
    }
    let Some(file) = &args.textfile else {
        return output::write(&text(&args.pins, &first_sights(&args.pins, None)?)?);
    };
    let signals = Signals::hold();
    let sights = first_sights(&args.pins, args.every)?;
    write(file, &args.pins, &sights)?;
    let Some(every) = args.every else {
        return Ok(());
    };
    let every = Duration::from_nanos(every.0 / 1000).max(Duration::from_millis(100));
    let mut errors = Errors::default();
    while !signals.is_end(signals.wait(every)) {
        // The disk may be full for a while.
        errors.log_once("", write(file, &args.pins, &sights));
    }
    Ok(())
}

/// What passed unseen shows only between two readings: where there is to be one alone, another comes
/// before it.
fn first_sights(pins: &PinsArg, every: Option<Time>) -> Result<Sights> {
    let sights = Sights::default();
    if every.is_none() && !pins.interfaces()?.is_empty() {
        text(pins, &sights)?;
        std::thread::sleep(BETWEEN);
    }
    Ok(sights)
}

/// Whether metrics may be served at an address.
///
/// # Errors
/// Other hosts can reach it, and `allow_remote` is not set.
pub fn require_allowed(address: SocketAddr, allow_remote: bool) -> Result<()> {
    if !allow_remote && !address.ip().is_loopback() {
        bail!(
            "cannot serve metrics at {address}, which other hosts can reach; choose a loopback address as in {DEFAULT_LISTEN}, or allow it: --allow-remote, or metrics.allow_remote = true"
        );
    }
    Ok(())
}

/// Binds the address at which metrics are served.
///
/// # Errors
/// It is in use, not of this machine, or reachable by other hosts without `allow_remote`.
pub fn bind(address: SocketAddr, allow_remote: bool) -> Result<TcpListener> {
    require_allowed(address, allow_remote)?;
    TcpListener::bind(address).with_context(|| format!("cannot serve metrics at {address}"))
}

/// Serves metrics; never returns.
pub fn serve(listener: &TcpListener, pins: &PinsArg) {
    let sights = Sights::default();
    scrape::serve(listener, || {
        text(pins, &sights).map_err(|error| format!("{error:#}"))
    });
}

/// The metrics of every attached port; `sights` is of the last call.
///
/// # Errors
/// The folder of the pins cannot be read.
pub fn text(pins: &PinsArg, sights: &Sights) -> Result<String> {
    let (mut readings, unread) = Reading::all(pins)?;
    sights.judge(&mut readings);
    Ok(openmetrics::encode(readings, unread)?)
}

/// Replaces a file by the metrics, atomically; `sights` as in [`text`].
///
/// # Errors
/// The metrics cannot be read, or the file cannot be written.
pub fn write(file: &Path, pins: &PinsArg, sights: &Sights) -> Result<()> {
    replace(file, &text(pins, sights)?)
}

/// The collector is another user, and the daemon's umask lets no other read.
fn replace(file: &Path, text: &str) -> Result<()> {
    file::replace(file, text, Some(Mode::from_raw_mode(0o644)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_and_nothing_else_left() {
        let folder = std::env::temp_dir().join(format!("penstock-metrics-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("penstock.prom");
        replace(&file, "old").unwrap();
        // As the daemon's unit has it.
        let umask = rustix::process::umask(Mode::from_raw_mode(0o077));
        replace(&file, "new").unwrap();
        rustix::process::umask(umask);
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o644, "the collector may read it");
        let names = std::fs::read_dir(&folder).unwrap().count();
        let text = std::fs::read_to_string(&file).unwrap();
        let onto_folder = replace(&folder, "x");
        let after = std::fs::read_dir(&folder).unwrap().count();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((names, text.as_str(), after), (1, "new", 1));
        assert!(
            onto_folder
                .unwrap_err()
                .to_string()
                .starts_with("cannot write")
        );
    }

    #[test]
    fn an_address_that_other_hosts_reach_must_be_allowed() {
        for address in ["0.0.0.0:0", "[::]:0"] {
            let address = address.parse().unwrap();
            let refusal = bind(address, false).unwrap_err().to_string();
            assert!(refusal.contains("metrics.allow_remote = true"), "{refusal}");
            bind(address, true).unwrap();
        }
        bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
    }
}
