// SPDX-License-Identifier: Apache-2.0
//! What is written, as Open vSwitch reads it (`ovs-ofctl ofp-parse`), and any bytes read.

use penstock_controller::openflow::{
    Action, Error, Field, FlowMod, Frames, Instruction, Match, Message, Role, Version, Writer,
    number,
};
use penstock_core::flow::flag;
use proptest::prelude::*;
use std::io::Write;
use std::process::Command;

const VERSIONS: [Version; 2] = [Version::V13, Version::V15];

/// The lines that Open vSwitch prints for the messages.
fn dissected(write: impl Fn(&mut Writer)) -> Vec<String> {
    let printed = VERSIONS.map(|version| {
        let mut writer = Writer::new(version);
        write(&mut writer);
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(writer.bytes()).expect("it is written");
        let printed = Command::new("ovs-ofctl")
            .arg("ofp-parse")
            .arg(file.path())
            .output()
            .expect("openvswitch-common is installed");
        assert!(printed.status.success(), "{printed:?}");
        String::from_utf8(printed.stdout).expect("text")
    });
    // The versions differ in their names, and 1.5 has a reason of its own for what a PACKET_OUT brings.
    let without = |text: &str| {
        let text = text.replace("OF1.3", "OF").replace("OF1.5", "OF");
        text.replace("no_match action packet_out", "no_match action")
    };
    assert_eq!(without(&printed[0]), without(&printed[1]));
    without(&printed[1]).lines().map(str::to_owned).collect()
}

#[test]
fn rules_are_what_open_vswitch_reads() {
    let lines = dissected(|out| {
        let rule = |matches: Vec<Field>, instructions| FlowMod {
            cookie: 0x50,
            table: 0,
            priority: 9,
            matches: Match(matches),
            instructions,
        };
        let tcp = [Field::EthType(0x0800), Field::IpProto(6)];
        let syn = Field::TcpFlags(flag::SYN.into(), (flag::SYN | flag::RST).into());
        out.add(&rule(
            [&tcp[..], &[syn]].concat(),
            vec![
                Instruction::Apply(vec![Action::Copy(128)]),
                Instruction::Goto(1),
            ],
        ));
        let addresses = vec![
            Field::InPort(3),
            Field::EthDst([2, 0, 0, 0, 0, 1]),
            Field::EthSrc([2, 0, 0, 0, 0, 2]),
            Field::EthType(0x0800),
        ];
        out.add(&rule(
            addresses,
            vec![Instruction::Apply(vec![
                Action::Output(7),
                Action::Output(number::LOCAL),
            ])],
        ));
        out.delete(0x50, 0xff);
    });
    assert_eq!(
        lines,
        [
            "OFPT_FLOW_MOD (OF) (xid=0x1): ADD priority=9,tcp,tcp_flags=+syn-rst \
             cookie:0x50 actions=CONTROLLER:128,goto_table:1",
            "OFPT_FLOW_MOD (OF) (xid=0x2): ADD priority=9,ip,in_port=3,\
             dl_src=02:00:00:00:00:02,dl_dst=02:00:00:00:00:01 \
             cookie:0x50 actions=output:7,LOCAL",
            "OFPT_FLOW_MOD (OF) (xid=0x3): DEL table:255 priority=0 cookie:0x50/0xff actions=drop",
        ]
    );
}

#[test]
fn requests_are_what_open_vswitch_reads() {
    let lines = dissected(|out| {
        out.hello();
        out.echo(b"four");
        out.features();
        out.barrier();
        out.role(Role::Master, 5);
        out.ports();
        out.packet_out(&[Action::Output(2)], &[0; 60]);
        out.asynchronous();
        out.rules(1, 0x50 << 32, 0xff << 32);
    });
    let begins = [
        "OFPT_HELLO (OF) (xid=0x1):",
        " version bitmap: 0x04, 0x06",
        "OFPT_ECHO_REQUEST (OF) (xid=0x2): 4 bytes of payload",
        "00000000  66 6f 75 72",
        "OFPT_FEATURES_REQUEST (OF) (xid=0x3):",
        "OFPT_BARRIER_REQUEST (OF) (xid=0x4):",
        "OFPT_ROLE_REQUEST (OF) (xid=0x5): role=primary generation_id=5",
        "OFPST_PORT_DESC request (OF) (xid=0x6):",
        "OFPT_PACKET_OUT (OF) (xid=0x7): in_port=CONTROLLER actions=output:2 data_len=60",
    ];
    for (number, begin) in begins.into_iter().enumerate() {
        let line = &lines[number];
        assert!(line.starts_with(begin), "{line:?} is not {begin:?}");
    }
    for (begin, times) in [
        ("OFPST_FLOW request (OF) (xid=0x9): table=1", 1),
        ("OFPT_SET_ASYNC (OF)", 1),
        ("       PACKET_IN: no_match action", 2),
        ("     PORT_STATUS: add delete modify", 2),
    ] {
        let found = lines.iter().filter(|line| line.starts_with(begin)).count();
        assert_eq!(found, times, "{begin:?} of {lines:#?}");
    }
}

/// All messages of a stream, as far as it can be read.
fn read_all(version: Version, bytes: &[u8]) -> Result<usize, Error> {
    let mut frames = Frames::default();
    frames.push(bytes);
    let mut read = 0;
    while let Some((header, body)) = frames.take()? {
        Message::read(version, header, body)?;
        read += 1;
    }
    Ok(read)
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for version in VERSIONS {
            let _ = read_all(version, &bytes);
        }
    }

    #[test]
    fn any_body_is_read_or_refused(
        kind in 0u8..30,
        subject in prop_oneof![Just(1u8), Just(13), any::<u8>()],
        mut body in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        if let Some(bytes) = body.get_mut(..2) {
            bytes.copy_from_slice(&[0, subject]);
        }
        for version in VERSIONS {
            let length = (body.len() as u16 + 8).to_be_bytes();
            let header = [version as u8, kind, length[0], length[1], 0, 0, 0, 1];
            let _ = read_all(version, &[&header[..], &body].concat());
        }
    }
}
