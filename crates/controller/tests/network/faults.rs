// SPDX-License-Identifier: Apache-2.0
//! What breaks: the controller is killed, a switch starts again, a connection is cut. The network forwards
//! as before, and incast is foreseen again.

use crate::agents::Agents;
use crate::bed::*;
use crate::testbed::Switch;
use penstock_sdn::message::Order;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

#[test]
fn a_switch_that_comes_back_is_as_before() {
    let bed = bed();
    let controller = Running::new(&bed, "one", "");
    begin(&bed, &[&controller]);
    let before = digests(&bed, "br2");
    // Its connection is cut; then its rules are lost, as when it starts again.
    bed.vsctl(&["set-controller", "br2", "tcp:127.0.0.1:1"]);
    controller.wait("it is gone", |status| status.written == 1);
    forwards(&bed);
    let target = format!("unix:{}", bed.path("br2.mgmt"));
    bed.run("ovs-ofctl", &["-OOpenFlow13", "del-flows", &target]);
    bed.vsctl(&[
        "set-controller",
        "br2",
        &format!("tcp:{}", controller.switches),
    ]);
    until("its rules are there", || digests(&bed, "br2") == before);
    forwards(&bed);
}

#[test]
fn a_port_that_is_removed_takes_its_host_or_link_with_it() {
    let bed = bed();
    let controller = Running::new(&bed, "one", "");
    begin(&bed, &[&controller]);
    bed.vsctl(&["del-port", "br1", "host1"]);
    controller.wait("the host is gone", |status| {
        status.hosts.len() == 1 && status.hosts.contains_key(B)
    });
    until("so are its routes", || {
        rules(&bed, "br1").matches("priority=10,").count() == 0
    });
    bed.vsctl(&["del-port", "br1", "l1-2"]);
    controller.wait("the link is gone", |status| status.links.is_empty());
}

/// The program, as it is installed.
struct Program {
    process: Child,
}

impl Program {
    fn start(config: &str) -> Program {
        let program = env!("CARGO_BIN_EXE_penstock-controller");
        let mut command = Command::new(program);
        command.args(["run", config]).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("it is built");
        Program { process }
    }

    /// By SIGKILL: it can do nothing more.
    fn kill(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it has ended");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until a new incast of hosts leads to a notice, whatever the controller has to learn before.
fn until_foreseen(bed: &Switch, agents: SocketAddr, mut first: u16) {
    let begun = std::time::Instant::now();
    let mut agents = Agents::at(agents);
    agents.be_patient_for(std::time::Duration::from_millis(500));
    loop {
        incast(bed, first);
        first += FLOWS;
        agents.send_report();
        let notices = agents.notices();
        if notices.iter().any(|one| matches!(one.order, Order::On(..))) {
            assert_eq!(notices, expected());
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "no notice comes");
    }
}

#[test]
fn a_controller_that_is_killed_and_starts_again_foresees_as_before() {
    let bed = bed();
    let ends = [free_address(), free_address()];
    let config = configure(&bed, "killed", "", "", ends);
    let mut program = Program::start(&config);
    let target = format!("tcp:{}", ends[0]);
    for bridge in ["br1", "br2"] {
        bed.vsctl(&["set-controller", bridge, &target]);
    }
    let knows_hosts = || {
        send(&bed, "host1", A, B);
        send(&bed, "host2", B, A);
        let bridges = ["br1", "br2"].iter();
        let routed = bridges.map(|bridge| rules(&bed, bridge).matches("priority=10,").count());
        routed.min() == Some(2)
    };
    until("routes", knows_hosts);
    until_foreseen(&bed, ends[1], 2000);
    let before = digests(&bed, "br2");
    program.kill();
    forwards(&bed);
    assert_eq!(digests(&bed, "br2"), before, "rules stay");
    // Its socket for the status is still there, and no reason not to start.
    program = Program::start(&config);
    until_foreseen(&bed, ends[1], 20_000);
    until("the same rules", || digests(&bed, "br2") == before);
    drop(program);
    forwards(&bed);
}

#[test]
fn a_connection_that_sends_all_the_time_keeps_no_other_from_its_turn() {
    let bed = Switch::new();
    let controller = Running::new(&bed, "one", "");
    let mut switch = TcpStream::connect(controller.switches).expect("it listens");
    let hello = [4, 0, 0, 8, 0, 0, 0, 1];
    let features = [&[4, 6, 0, 32, 0, 0, 0, 2][..], &[1; 8], &[0; 16]].concat();
    let begun = switch.write_all(&[&hello[..], &features].concat());
    begun.expect("it is read");
    // Lists of no ports: they take longer to read than to send.
    let flood = [4, 19, 0, 16, 0, 0, 0, 3, 0, 13, 0, 0, 0, 0, 0, 0].repeat(4096);
    std::thread::spawn(move || while switch.write_all(&flood).is_ok() {});
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mut reader = UnixStream::connect(&controller.status).expect("it listens");
    let patience = Some(std::time::Duration::from_secs(10));
    reader.set_read_timeout(patience).expect("a socket");
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("it answers");
}

/// In mid-incast: all bridges, rules and connections are gone.
fn begins_again(bed: &mut Switch, controllers: &[&Running]) {
    begin(bed, controllers);
    let before = digests(bed, "br2");
    incast(bed, 2000);
    for controller in controllers {
        controller.wait_for_copies();
        assert_eq!(Agents::new(controller).report(), expected());
    }
    bed.kill_daemon();
    for controller in controllers {
        controller.wait("they are gone", |status| status.written == 0);
    }
    bed.start_daemon_again();
    until("its rules are there", || {
        send(bed, "host1", A, B);
        digests(bed, "br2") == before
    });
    forwards(bed);
    for (controller, first) in controllers.iter().zip([20_000, 30_000]) {
        until_foreseen(bed, controller.agents, first);
    }
}

#[test]
fn a_switch_that_is_killed_and_starts_again_is_as_before() {
    let mut bed = bed();
    let controller = Running::new(&bed, "one", "");
    begins_again(&mut bed, &[&controller]);
}

#[test]
fn so_it_is_with_two_controllers() {
    let mut bed = bed();
    let controllers = ["one", "two"].map(|name| Running::new(&bed, name, ""));
    begins_again(&mut bed, &controllers.each_ref());
}

#[test]
fn so_it_is_with_two_controllers_of_which_one_writes() {
    let mut bed = bed();
    let lines = format!("writes = \"one\"\nkey = \"{}\"", bed.path("key"));
    let controllers = ["one", "two"].map(|name| Running::new(&bed, name, &lines));
    begins_again(&mut bed, &controllers.each_ref());
}
