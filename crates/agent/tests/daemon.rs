// SPDX-License-Identifier: Apache-2.0
//! The daemon: killed, started again, reloaded; a transfer goes on through all of it.

#![allow(clippy::unwrap_used)]

mod place;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};

use place::{PORT, Place, Transfer, must, until, within};

const FAIRQ: &str = "[port.eth1]\nscheme = \"fairq\"\nbuffer = \"128 kB\"\n";
const HSCC: &str = "[port.eth1]\nscheme = \"hscc\"\nbuffer = \"128 kB\"\n";

/// A daemon that a failed test does not leave behind.
struct Daemon(Child);

impl Daemon {
    fn begin(place: &Place, ports: &str) -> Daemon {
        Daemon(place.daemon(ports))
    }

    fn signal(&self, signal: &str) {
        must(&format!("kill -{signal} {}", self.0.id()));
    }

    /// Waits for its end; whether it succeeded.
    fn end(&mut self) -> bool {
        self.0.wait().unwrap().success()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn is_acting(place: &Place) -> bool {
    place.folder().join("sweep").exists() && place.status()["acting"] == true
}

fn scheme(place: &Place) -> String {
    place.status()["scheme"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn killed_it_loses_nothing_and_the_next_takes_over() {
    let place = Place::new();
    let mut first = Daemon::begin(&place, FAIRQ);
    until("the daemon attaches", || is_acting(&place));
    let maps = place.maps();
    let transfer = Transfer::begin(&place);

    first.signal("KILL");
    first.end();
    transfer.goes_on();
    until("the heartbeat is stale", || !is_acting(&place));
    transfer.goes_on();
    let stale = place.status();
    assert_eq!(stale["rates"]["rewritten"], 0.0, "{stale}");
    assert_eq!(stale["attached"]["ingress"], true);

    // Another scheme meanwhile: the next daemon finds the old one's pins.
    let mut second = Daemon::begin(&place, HSCC);
    until("the next one acts", || is_acting(&place));
    until("by its own configuration", || scheme(&place) == "hscc");
    assert_eq!(place.maps(), maps, "the flows stay counted");
    transfer.goes_on();

    second.signal("TERM");
    assert!(second.end());
    assert_eq!(place.status()["attached"]["egress"], true);
    transfer.goes_on();
    transfer.end();
    place.ok(&["detach", "--all"]);
}

#[test]
fn reloads_without_a_gap_and_keeps_the_old_when_the_new_is_wrong() {
    let place = Place::new();
    let daemon = Daemon::begin(&place, FAIRQ);
    until("the daemon attaches", || is_acting(&place));
    let (maps, transfer) = (place.maps(), Transfer::begin(&place));

    place.configure("[port.eth1]\nscheme = \"fairq\"\nbuffer = \"0 B\"\n");
    daemon.signal("HUP");
    transfer.goes_on();
    assert_eq!(scheme(&place), "fairq");

    place.configure(HSCC);
    daemon.signal("HUP");
    until("the scheme changes", || scheme(&place) == "hscc");
    assert_eq!(place.maps(), maps);
    transfer.goes_on();

    place.configure("");
    daemon.signal("HUP");
    until("the port is let go", || !place.folder().exists());
    transfer.goes_on();
    transfer.end();
}

#[test]
fn follows_interfaces_and_keeps_ports_attached_by_hand_alive() {
    let place = Place::new();
    place.ok(&[
        "attach", PORT, "--scheme", "hscc", "--buffer", "1 MB", "--stale", "400 ms",
    ]);
    let metrics = std::env::temp_dir().join(format!("{}.prom", place.near()));
    let told = format!(
        "[metrics]\ntextfile = \"{}\"\nlisten = \"127.0.0.1:9920\"\n",
        metrics.display()
    );
    let _daemon = Daemon::begin(
        &place,
        &(told + "[port.agent-v0]\nscheme = \"fairq\"\nbuffer = \"1 MB\"\n"),
    );
    until("metrics are written", || {
        let text = std::fs::read_to_string(&metrics).unwrap_or_default();
        text.contains("interface=\"eth1\"")
    });
    std::fs::remove_file(&metrics).unwrap();
    let page = within(&place.near(), || {
        let mut stream = TcpStream::connect("127.0.0.1:9920").unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    });
    let page = page.join().unwrap();
    assert!(page.contains("interface=\"eth1\""), "{page}");
    let later = place.pins().join("v1/agent-v0/sweep");
    let ip = format!("ip -n {}", place.near());
    for _ in 0..2 {
        must(&format!(
            "{ip} link add agent-v0 type veth peer name agent-v1"
        ));
        until("it is attached", || later.exists());
        must(&format!("{ip} link del agent-v0"));
        until("its end is seen", || {
            let all = place.ok(&["status", "agent-v0", "--for", "1 ms", "--json"]);
            serde_json::from_str::<serde_json::Value>(&all).unwrap()[0]["ifindex"] == 0
        });
        // The daemon beats on, for it may come again; but nothing acts.
        let acting = "penstock_acting{interface=\"agent-v0\",scheme=\"fairq\"} 0.0";
        let metrics = place.ok(&["metrics"]);
        assert!(metrics.contains(acting), "{metrics}");
        let frame = place.ok(&["watch", "agent-v0", "--once"]);
        assert!(frame.contains("its programs are detached"), "{frame}");
        std::fs::remove_file(&later).unwrap();
    }
    assert!(is_acting(&place), "{}", place.status());
}

#[test]
fn tells_whether_a_configuration_is_right() {
    let place = Place::new();
    let check = |ports: &str| {
        place.configure(ports);
        let mut command = place.penstockd(&["run", "--check-config", "--config"]);
        place::told(&Command::output(command.arg(place.config())).unwrap())
    };
    let (is_right, told) = check(FAIRQ);
    assert!(is_right && told.contains("valid; eth1 fairq"), "{told}");
    let (is_right, told) = check("[port.eth1]\nscheme = \"fairq\"\nbufer = \"1 kB\"\n");
    assert!(
        !is_right && told.contains(".toml:7: port.eth1.bufer: "),
        "{told}"
    );
}
