// SPDX-License-Identifier: Apache-2.0
//! The controller, in a thread of this process.

use crate::{RECEIVER, REPORT_PORTS, SECRET};
use anyhow::{Context, Result};
use penstock_controller::config::Config;
use penstock_controller::server::Server;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub struct Running {
    pub switches: SocketAddr,
    pub agents: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
    /// Below `/proc`.
    name: PathBuf,
}

impl Running {
    pub fn start(at_once: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("controller.toml");
        let key = folder.path().join("key");
        std::fs::write(&key, SECRET)?;
        let agent =
            |name: &str, number| format!("[agent.{name}]\nnumber = {number}\nkey = {key:?}\n");
        std::fs::write(
            &path,
            format!(
                "openflow = \"127.0.0.1:0\"\nagents = \"127.0.0.1:0\"\n\
                 [controller]\nkind = \"sicc\"\nduration = \"1 ms\"\nat_once = {at_once}\n\
                 {}{}{}",
                watched().collect::<String>(),
                agent("shim", 1),
                agent("switch", 2)
            ),
        )?;
        let mut server = Server::new(&Config::read(&path)?)?;
        let (switches, agents) = server.addresses()?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        let (name, named) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let own = std::fs::read_link("/proc/thread-self")?;
            name.send(own).context("its name")?;
            server.run(&asked)
        });
        let name = named.recv()?;
        Ok(Self {
            switches,
            agents,
            stop,
            thread,
            name,
        })
    }

    /// The processor time that its thread has used, seconds.
    pub fn busy(&self) -> Result<f64> {
        let text = std::fs::read_to_string(Path::new("/proc").join(&self.name).join("schedstat"))?;
        let ns: f64 = text.split(' ').next().unwrap_or_default().parse()?;
        Ok(ns / 1e9)
    }

    pub fn end(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        ended.map_err(|_| anyhow::anyhow!("the controller panicked"))?
    }
}

/// The tables of the ports that are watched: the receiver's and as many as a report has.
fn watched() -> impl Iterator<Item = String> {
    let ports = (1..=REPORT_PORTS).chain([RECEIVER.into()]);
    ports.map(|port| {
        format!("[watch.port{port}]\ndatapath = \"1\"\nport = {port}\nbuffer = \"100 kB\"\n")
    })
}
