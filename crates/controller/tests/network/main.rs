// SPDX-License-Identifier: Apache-2.0
//! The controller, as it runs, with switches and agents: from the first packet to a notice, alone and with
//! other controllers, and what is left when one of them ends.

mod agents;
mod bed;
mod faults;
mod messages;
#[path = "../testbed/mod.rs"]
mod testbed;
mod unusual;
mod wireshark;

use agents::Agents;
use bed::*;
use std::time::Duration;

#[test]
fn incast_is_foreseen_across_two_switches() {
    let bed = bed();
    let mut controller = Running::new(&bed, "one", "");
    for bridge in ["br1", "br2"] {
        // Rules of two earlier controllers.
        for stale in ["41", "42"] {
            let target = format!("unix:{}", bed.path(&format!("{bridge}.mgmt")));
            let rule =
                format!("cookie=0x50656e0000{stale}00,table=1,priority={stale},actions=drop");
            bed.run("ovs-ofctl", &["-OOpenFlow13", "add-flow", &target, &rule]);
        }
    }
    begin(&bed, &[&controller]);
    let mut agents = Agents::new(&controller);
    incast(&bed, 2000);
    controller.wait_for_copies();
    assert_eq!(agents.report(), expected());

    // Without the controller the network forwards as before; another one knows soon what it knew.
    let before = digests(&bed, "br2");
    let metrics =
        controller.metrics(|text| text.contains("incasts_total{port=\"0000000000000002:1\"} 1"));
    for line in [
        "penstock_controller_hosts 2",
        "penstock_controller_flows{port=\"0000000000000002:1\"} 8",
        "penstock_controller_copies_total 8",
        "penstock_controller_refused_messages_total{agent=\"1\"} 0",
        "# EOF",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}: {metrics}");
    }
    controller.stop();
    forwards(&bed);
    let again = Running::new(&bed, "again", "");
    begin(&bed, &[&again]);
    assert_eq!(digests(&bed, "br2"), before);
    let mut agents = Agents::new(&again);
    incast(&bed, 3000);
    again.wait("copies", |status| {
        status.counters.copies >= u64::from(FLOWS)
    });
    assert_eq!(agents.report(), expected());
}

#[test]
fn controllers_that_all_write_leave_no_gap() {
    let bed = bed();
    let mut first = Running::new(&bed, "first", "");
    let second = Running::new(&bed, "second", "");
    begin(&bed, &[&first, &second]);
    let mut agents = [&first, &second].map(Agents::new);
    incast(&bed, 2000);
    for (controller, agents) in [&first, &second].into_iter().zip(&mut agents) {
        controller.wait_for_copies();
        assert_eq!(controller.wait("", |_| true).written, 2);
        assert_eq!(agents.report(), expected());
    }
    let before = digests(&bed, "br1");
    first.stop();
    incast(&bed, 3000);
    second.wait("copies", |status| {
        status.counters.copies == 2 * u64::from(FLOWS)
    });
    assert_eq!(agents[1].report(), expected());
    forwards(&bed);
    assert_eq!(digests(&bed, "br1"), before);
}

#[test]
fn one_writes_and_another_takes_its_place() {
    let bed = bed();
    let lines = format!("writes = \"one\"\nkey = \"{}\"", bed.path("key"));
    let mut first = Running::new(&bed, "first", &lines);
    begin(&bed, &[&first]);
    let second = Running::new(&bed, "second", &lines);
    begin(&bed, &[&first, &second]);
    // Each sees the frames of the one that writes, and which that is does not change.
    for _ in 0..3 {
        let written = [&first, &second].map(|one| one.wait("", |_| true).written);
        assert_eq!(written, [2, 0]);
        std::thread::sleep(Duration::from_secs(1));
    }
    // The other one foresees as well.
    let mut agents = Agents::new(&second);
    incast(&bed, 2000);
    second.wait_for_copies();
    assert_eq!(agents.report(), expected());

    first.stop();
    second.wait("it writes", |status| status.written == 2);
    forwards(&bed);
    // The first comes back, and waits.
    let first = Running::new(&bed, "again", &lines);
    begin(&bed, &[&first, &second]);
    let written = [&first, &second].map(|one| one.wait("", |_| true).written);
    assert_eq!(written, [0, 2]);
}
