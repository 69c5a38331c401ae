// SPDX-License-Identifier: Apache-2.0
//! The configuration: checked, and read again by a daemon that runs; what systemd sees of it.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use penstock_linux::testkit::{PATIENCE, Signal, until};

use super::lab::stream::Stream;
use super::lab::{PortLab, outcome};
use super::{FAIRQ, HSCC, is_acting, scheme};

/// Where the audit is, if it exists.
const JOURNAL: &str = "/run/systemd/journal/socket";

#[test]
fn reloads_without_a_gap_and_keeps_the_old_when_the_new_is_wrong() {
    let lab = PortLab::new();
    let daemon = lab.daemon(FAIRQ);
    until("the daemon attaches", || is_acting(&lab));
    let (maps, stream) = (lab.identity(), Stream::start(&lab));

    lab.configure("[port.eth1]\nscheme = \"fairq\"\nbuffer = \"0 B\"\n");
    daemon.signal(Signal::HUP);
    stream.goes_on();
    assert_eq!(scheme(&lab), "fairq");

    lab.configure(HSCC);
    daemon.signal(Signal::HUP);
    until("the scheme changes", || scheme(&lab) == "hscc");
    assert_eq!(lab.identity(), maps);
    stream.goes_on();
    if !Path::new(JOURNAL).exists() {
        let asker = format!(" uid=0 pid={}", std::process::id());
        until("the audit has who sent the signal", || {
            reloads(&lab).any(|line| line.contains(&asker))
        });
    }

    lab.configure("");
    daemon.signal(Signal::HUP);
    until("the port is let go", || !lab.port_folder().exists());
    stream.goes_on();
    stream.stop();
}

/// The lines of the audit, if there is no journal.
fn reloads(lab: &PortLab) -> impl Iterator<Item = String> {
    let lines: Vec<String> = lab.log().lines().map(str::to_owned).collect();
    let is_reload = |line: &String| line.starts_with("audit: action=reload ");
    lines.into_iter().filter(is_reload)
}

/// As `systemctl reload` runs it: it succeeds where the new configuration is in force, and nowhere else.
#[test]
fn a_reload_is_answered() {
    let lab = PortLab::new();
    let path = lab.config();
    let reload = || outcome(&lab.output(&["reload", "--config", path.to_str().unwrap()]));
    let refused = |reason: &str| {
        let (is_accepted, line) = reload();
        assert!(!is_accepted && line.contains(reason), "{line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    };
    lab.configure(FAIRQ);
    refused("no daemon answers at /run/penstock/");
    let mut daemon = lab.daemon(FAIRQ);
    until("the daemon attaches", || is_acting(&lab));
    lab.configure(HSCC);
    let answer = format!("{}: reloaded; keeps 1 port alive\n", path.display());
    assert_eq!(reload(), (true, answer));
    assert_eq!(scheme(&lab), "hscc");
    if !Path::new(JOURNAL).exists() {
        let own = format!("pid={}", daemon.id());
        let line = reloads(&lab).next().unwrap();
        assert!(
            line.contains(" uid=0 pid=") && line.split(' ').all(|word| word != own),
            "{line}"
        );
    }

    lab.configure(&format!("[metrics]\nlisten = \"127.0.0.1:9921\"\n{FAIRQ}"));
    refused("the old configuration stays in force: ");
    refused(": a change of metrics takes a restart, which leaves ports attached");
    lab.configure(&format!(
        "[sdn]\ncontroller = \"10.0.0.1:6654\"\nnumber = 1\nkey = \"/k\"\n{FAIRQ}"
    ));
    refused(": a change of sdn takes a restart");
    lab.configure("[port.eth1]\nscheme = \"fairk\"\n");
    refused("fairk");
    lab.configure("no TOML");
    refused("the daemon was not asked; the old configuration stays in force: ");
    // A port without a buffer is refused, and tried again.
    lab.configure("[port.eth1]\nscheme = \"fairq\"\n");
    refused(": read again, but not in force everywhere: the qdisc of eth1 ");
    lab.configure(HSCC);
    assert!(reload().0);
    // The maps of the attached port stay as they are.
    let agent = "stale = \"400 ms\"\nheartbeat = \"50 ms\"\nall_flows = 1000\nports = 7";
    let later =
        ": a change of agent.all_flows, agent.ports takes effect once no port is attached; ";
    lab.configure_with(agent, HSCC);
    refused(later);
    let words = ["run", "--dry-run", "--config", path.to_str().unwrap()];
    let (_, plan) = outcome(&lab.output(&words));
    assert!(plan.contains(later), "{plan}");
    lab.configure("");
    assert!(reload().0);
    lab.configure_with(agent, HSCC);
    assert!(reload().0);
    let other = path.with_file_name("other.toml");
    std::fs::copy(&path, &other).unwrap();
    let (is_accepted, line) =
        outcome(&lab.output(&["reload", "--config", other.to_str().unwrap()]));
    let right = format!(
        "do: penstockd reload --config {}\n",
        path.canonicalize().unwrap().display()
    );
    assert!(!is_accepted && line.ends_with(&right), "{line}");
    // Its socket has another name then.
    std::fs::write(&path, "[agent]\npins = \"/sys/fs/bpf/other\"\n").unwrap();
    refused("or restart it if agent.pins or agent.locks has changed");
    assert_eq!(scheme(&lab), "hscc");

    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success());
    lab.configure(FAIRQ);
    refused("no daemon answers");
    // One that is killed leaves its socket, which the next one replaces.
    let mut killed = lab.daemon(FAIRQ);
    until("it attaches", || scheme(&lab) == "fairq" && is_acting(&lab));
    assert!(lab.log().contains(later), "{}", lab.log());
    killed.signal(Signal::KILL);
    killed.wait();
    refused("no daemon answers");
    let daemon = lab.daemon(FAIRQ);
    until("the next one answers", || reload().0);
    drop(daemon);
    lab.ok(&["detach", "--all"]);
}

#[test]
fn checks_whether_a_configuration_is_accepted() {
    let lab = PortLab::new();
    let check = |ports: &str| {
        lab.configure(ports);
        let config = lab.config();
        let config = config.to_str().unwrap();
        let answers = [
            lab.output(&["run", "--check-config", config]),
            lab.output(&["run", "--config", config, "--check-config"]),
        ];
        let [named, default] = answers.map(|output| outcome(&output));
        assert_eq!(named, default);
        assert_eq!(named.1.trim_end().lines().count(), 1, "{}", named.1);
        named
    };
    let (is_accepted, line) = check(FAIRQ);
    assert!(is_accepted && line.contains("valid; eth1 fairq"), "{line}");
    let (is_accepted, line) = check("[port.eth1]\nscheme = \"fairq\"\nbufer = \"1 kB\"\n");
    assert!(
        !is_accepted && line.contains(".toml:7: port.eth1.bufer: "),
        "{line}"
    );
    let (is_accepted, line) = check("[metrics]\nlisten = \"0.0.0.0:9468\"\n");
    assert!(
        !is_accepted && line.contains("metrics.allow_remote = true"),
        "{line}"
    );
}

/// What systemd reads on the socket that it names (sd_notify(3)).
#[test]
fn systemd_sees_start_reload_watchdog_and_end() {
    let lab = PortLab::new();
    let path = lab.folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = |start: &str| {
        let mut buffer = [0; 1024];
        loop {
            // A socket with a timeout does not go on by itself after a signal (signal(7)).
            let length = match socket.recv(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                received => received.unwrap(),
            };
            let state = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if state.starts_with(start) {
                return state;
            }
        }
    };
    let mut daemon = lab.daemon_of_service(FAIRQ, Some(&path));
    let ready = next("READY=1");
    assert!(ready.contains("\nSTATUS="), "{ready}");
    next("WATCHDOG=1");
    daemon.signal(Signal::HUP);
    let reloading = next("RELOADING=1\nMONOTONIC_USEC=");
    let started = reloading.trim_end().rsplit('=').next().unwrap();
    let now = penstockd::host::clock::monotonic_ns() / 1000;
    assert!(started.parse::<u64>().unwrap() <= now, "{reloading}");
    next("READY=1");
    daemon.signal(Signal::TERM);
    next("STOPPING=1");
    assert!(daemon.wait().success());
    lab.ok(&["detach", "--all"]);
}
