// SPDX-License-Identifier: Apache-2.0
//! Commands that stay, on terminals that are closed, as when a connection by ssh is lost.

#![allow(clippy::unwrap_used)]

mod lab;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::process::{Command, Stdio};

use lab::{LIMIT, PENSTOCKD, PORT, PortLab};
use penstock_linux::testkit::{Process, Signal, until};
use penstockd::port::PinsArg;
use penstockd::port::config::FLOW_EVENTS;

/// Both ends of a terminal, the user's first.
fn terminal() -> [File; 2] {
    let mut ends = [-1; 2];
    let [user, program] = &mut ends;
    let size = libc::winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the descriptors and the size are valid; no name and no settings are passed.
    let status = unsafe {
        libc::openpty(
            user,
            program,
            std::ptr::null_mut(),
            std::ptr::null(),
            &raw const size,
        )
    };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
    for end in ends {
        // SAFETY: the descriptor is open. The user's end must not pass to the program.
        unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: both were just opened, and belong to nothing else.
    ends.map(|end| unsafe { File::from_raw_fd(end) })
}

/// Starts penstockd on a terminal of its own, as a login would; with the user's end.
fn start(lab: &PortLab, arguments: &[&str]) -> (Process, File) {
    let [user, program] = terminal();
    let standard = || Stdio::from(program.try_clone().unwrap());
    let mut command = Command::new("env");
    command
        .args(["--default-signal=HUP", "setsid", "--ctty", PENSTOCKD])
        .args(arguments)
        .arg("--pins")
        .arg(lab.pins())
        .stdin(standard())
        .stdout(standard())
        .stderr(standard());
    (lab.agent().spawn(&mut command, LIMIT), user)
}

fn attach(lab: &PortLab) {
    lab.ok(&[
        "attach", PORT, "--scheme", "fairq", "--buffer", "128 kB", "--stale", "1 min",
    ]);
}

/// Waits for the first output.
fn read_some(user: &mut File) {
    let mut bytes = [0; 64];
    assert!(user.read(&mut bytes).unwrap() > 0);
}

#[test]
fn watch_ends_with_its_terminal() {
    let lab = PortLab::new();
    attach(&lab);
    for arguments in [&["watch"][..], &["watch", "--json"]] {
        let (mut watching, mut user) = start(&lab, arguments);
        read_some(&mut user);
        drop(user);
        let code = watching.wait().code();
        assert!(matches!(code, Some(0 | 1)), "{arguments:?}: {code:?}");
    }
    lab.ok(&["detach", PORT]);
}

#[test]
fn watch_ends_by_a_key_or_a_signal() {
    let lab = PortLab::new();
    attach(&lab);
    let (mut watching, mut user) = start(&lab, &["watch"]);
    read_some(&mut user);
    user.write_all(b"\x1b[Bp").unwrap();
    user.write_all(b"q").unwrap();
    assert!(watching.wait().success());
    for end in [Signal::TERM, Signal::HUP] {
        let (mut watching, mut user) = start(&lab, &["watch"]);
        read_some(&mut user);
        // A sequence that is never completed holds nothing up.
        user.write_all(b"\x1b[").unwrap();
        watching.signal(end);
        assert!(watching.wait().success(), "{end:?}");
    }
    lab.ok(&["detach", PORT]);
}

#[test]
fn a_look_whose_terminal_is_closed_leaves_nothing_behind() {
    let lab = PortLab::new();
    let look = ["observe", PORT, "--for", "1 min", "--buffer", "128 kB"];
    let (mut observing, mut user) = start(&lab, &look);
    until("the recording begins", || {
        let pins = PinsArg::at(lab.pins());
        let config = pins.open(PORT).and_then(|port| port.config());
        config.is_ok_and(|config| config.flags & FLOW_EVENTS != 0)
    });
    read_some(&mut user);
    drop(user);
    let code = observing.wait().code();
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    assert!(!lab.pins().exists());
}
