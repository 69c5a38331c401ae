// SPDX-License-Identifier: Apache-2.0
//! Notices in Ethernet frames, and the flows of ports for agents that ask.

use crate::agents::{Agents, Host};
use crate::bed::*;
use etherparse::{PacketBuilder, TcpOptionElement};
use penstock_sdn::message::{
    Ask, Body, ETHERTYPE, FlowOptions, FlowReport, OptionsReport, frame, of_frame,
};
use std::time::{Duration, Instant};

/// The frames of messages that have left by a port, without the headers of Ethernet.
fn frames(file: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(file).expect("the switch writes it");
    let mut rest = bytes.get(24..).unwrap_or_default();
    let mut found = Vec::new();
    // Four numbers of 32 bits, of which the third is the length, precede each packet of a pcap.
    while let Some((length, packets)) = rest.get(8..12).zip(rest.get(16..)) {
        let length = u32::from_le_bytes(length.try_into().expect("4 bytes"));
        let Some((packet, after)) = packets.split_at_checked(length as usize) else {
            break; // it is being written
        };
        if packet.get(12..14) == Some(&ETHERTYPE.to_be_bytes()) {
            found.push(packet[14..].to_vec());
        }
        rest = after;
    }
    found
}

#[test]
fn notices_leave_as_frames_by_the_port_of_the_guest_and_those_of_guests_end() {
    let bed = bed();
    let files = ["host1", "host2"].map(|host| bed.path(&format!("{host}.pcap")));
    for (host, file) in ["host1", "host2"].iter().zip(&files) {
        let option = format!("options:tx_pcap={file}");
        bed.vsctl(&["set", "interface", host, &option]);
    }
    let controller = Running::with(&bed, "one", "", "frames = true");
    begin(&bed, &[&controller]);
    let mut agents = Agents::new(&controller);
    incast(&bed, 2000);
    controller.wait_for_copies();
    agents.send_report();
    until("the frame leaves", || !frames(&files[0]).is_empty());
    let mut shim = agents.shim;
    let sent = frames(&files[0]);
    let message = of_frame(&sent[0]).expect("a message");
    assert_eq!(
        shim.agent.unseal(message),
        Ok(Body::Notices(expected().to_vec()))
    );
    assert!(shim.agent.unseal(message).is_err(), "only once");

    // Host A sends it to B, whose shim would be asked: it ends at the port where it enters.
    let forged = frame([2, 0, 0, 0, 0, 2], message);
    let hex: String = forged.iter().map(|byte| format!("{byte:02x}")).collect();
    let copies = controller.wait("any", |_| true).counters.copies;
    bed.receive("host1", &hex);
    let target = format!("unix:{}", bed.path("br1.mgmt"));
    let dropped = || {
        let rule = "table=0,dl_type=0x88b5";
        let printed = bed.run("ovs-ofctl", &["-OOpenFlow13", "dump-flows", &target, rule]);
        let text = String::from_utf8(printed.stdout).expect("text");
        text.contains("n_packets=1,") && text.contains("actions=drop")
    };
    until("the rule takes it", dropped);
    assert!(frames(&files[1]).is_empty(), "B gets nothing");
    assert_eq!(controller.wait("any", |_| true).counters.copies, copies);
}

/// A SYN, SYN-ACK, FIN or RST between the hosts, as bytes.
fn whole(from: u8, to: u8, ports: (u16, u16), flags: &str, ack: u32) -> String {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, from], [2, 0, 0, 0, 0, to])
        .ipv4([10, 0, 0, from], [10, 0, 0, to], 64)
        .tcp(ports.0, ports.1, 500, 1000);
    let options = [
        TcpOptionElement::MaximumSegmentSize(1000 + u16::from(from)),
        TcpOptionElement::WindowScale(from),
    ];
    let builder = match flags {
        "syn" => builder.syn().options(&options).expect("they fit"),
        "syn-ack" => builder.syn().ack(ack).options(&options).expect("they fit"),
        "fin" => builder.fin().ack(ack),
        "rst" => builder.rst(),
        _ => panic!("{flags}"),
    };
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &[]).expect("a frame");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn an_agent_that_asks_gets_the_flows_of_a_port_and_their_scales() {
    let bed = bed();
    let controllers = ["one", "two"].map(|name| Running::new(&bed, name, ""));
    begin(&bed, &controllers.each_ref());
    let hello = Body::Hello(Vec::new());
    let mut agents = controllers.each_ref().map(|one| Host::new(one, 2, &hello));
    let ask = |agent: &mut Host, wants_all| {
        let ports = vec![(1, wants_all), (7, wants_all)];
        let sealed = agent.agent.seal(&Body::Ask(Ask { datapath: 2, ports }));
        agent.socket.send(&sealed).expect("it is sent");
    };
    let wait_for = |agent: &mut Host, wanted: &Body| {
        let begun = Instant::now();
        loop {
            ask(agent, true);
            while let Some(body) = agent.receive() {
                if body == *wanted {
                    return;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "{wanted:?}");
        }
    };
    let number = |flows| {
        let flows = vec![(1, flows)];
        Body::Flows(FlowReport { datapath: 2, flows })
    };
    let send = |host: &str, frame: String| bed.receive(host, &frame);
    for agent in &mut agents {
        wait_for(agent, &number(0));
    }
    send("host1", whole(1, 2, (4000, 80), "syn", 0));
    send("host1", whole(1, 2, (4001, 80), "syn", 0));
    agents
        .iter_mut()
        .for_each(|agent| wait_for(agent, &number(2)));
    send("host2", whole(2, 1, (80, 4000), "syn-ack", 501));
    let options = Body::Options(OptionsReport {
        datapath: 2,
        port: 1,
        flows: vec![FlowOptions {
            source: ([10, 0, 0, 1], 4000).into(),
            destination: ([10, 0, 0, 2], 80).into(),
            mss_bytes: 1001,
            scales: Some([1, 2]),
        }],
    });
    agents
        .iter_mut()
        .for_each(|agent| wait_for(agent, &options));
    // One ends, the other is refused.
    send("host1", whole(1, 2, (4000, 80), "fin", 501));
    send("host2", whole(2, 1, (80, 4001), "rst", 0));
    agents
        .iter_mut()
        .for_each(|agent| wait_for(agent, &number(0)));
    // Without asking, nothing more comes.
    let [agent, _] = &mut agents;
    std::thread::sleep(Duration::from_secs(4));
    while agent.receive().is_some() {}
    send("host1", whole(1, 2, (4002, 80), "syn", 0));
    controllers[0].wait("the copy", |status| status.counters.copies == 6);
    assert_eq!(agent.receive(), None);
}
