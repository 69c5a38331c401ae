// SPDX-License-Identifier: Apache-2.0
//! Connections that the kernel authenticates (TCP-MD5, as BGP uses it) through a port with FairQ:
//! one changed bit of a header and the peer drops the segment.

#![allow(clippy::unwrap_used)]

mod lab;

use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use lab::SwitchLab;
use lab::transfers::{self, receiver};
use penstock_linux::testkit::join;
use rustix::net::{AddressFamily, SocketType};

/// `struct tcp_md5sig` of linux/tcp.h.
#[repr(C)]
struct Md5 {
    address: libc::sockaddr_storage,
    flags: u8,
    prefix: u8,
    key_bytes: u16,
    interface: i32,
    key: [u8; 80],
}

/// Segments from and to an IPv4 peer are signed from now on.
fn sign(socket: impl AsFd, peer: &str) {
    let address: std::net::Ipv4Addr = peer.parse().unwrap();
    // SAFETY: both are plain numbers, for which zero is a value.
    let (mut md5, mut inet): (Md5, libc::sockaddr_in) = unsafe { std::mem::zeroed() };
    inet.sin_family = libc::AF_INET as u16;
    inet.sin_addr.s_addr = u32::from_ne_bytes(address.octets());
    md5.key_bytes = 8;
    md5.key[..8].copy_from_slice(b"penstock");
    // SAFETY: a sockaddr_in fits into a sockaddr_storage; the option has the length given.
    let status = unsafe {
        (&raw mut md5.address)
            .cast::<libc::sockaddr_in>()
            .write(inet);
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_MD5SIG,
            (&raw const md5).cast(),
            size_of::<Md5>() as u32,
        )
    };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

fn connect_signed() -> std::io::Result<TcpStream> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    sign(&socket, lab::RIGHT);
    rustix::net::connect(&socket, &receiver())?;
    transfers::patient(TcpStream::from(socket))
}

fn counter(status: &serde_json::Value, name: &str) -> u64 {
    status["counters"][name]
        .as_u64()
        .unwrap_or_else(|| panic!("no counter {name} in {status}"))
}

#[test]
fn authenticated_connections_pass_untouched() {
    let lab = SwitchLab::new(100_000_000, 64_000);
    lab.agent()
        .ok(&["attach", "right", "--scheme", "fairq", "--stale", "60 s"]);
    let status = || {
        let text = lab
            .agent()
            .ok(&["status", "right", "--for", "20 ms", "--json"]);
        serde_json::from_str::<serde_json::Value>(&text).unwrap()[0].clone()
    };
    let server = lab.spawn("right", || {
        let listener = TcpListener::bind(receiver()).unwrap();
        sign(&listener, lab::LEFT);
        transfers::serve_on(listener);
    });
    join(server, lab::LIMIT);
    let client = lab.spawn("left", || {
        let mut stream = connect_signed()?;
        transfers::send(&mut stream, 1, 2_000_000)
    });
    join(client, lab::LIMIT).unwrap();
    let signed = status();
    assert!(counter(&signed, "passed_authenticated") > 100, "{signed}");
    assert_eq!(counter(&signed, "acks_rewritten"), 0, "{signed}");
    assert_eq!(lab.tcp_counter("TCPMD5Failure"), 0);
    // The same without a signature would be rewritten: the port does act.
    let plain = lab.spawn("right", || {
        let listener = TcpListener::bind((lab::RIGHT, 5002)).unwrap();
        transfers::serve_on(listener);
    });
    join(plain, lab::LIMIT);
    let client = lab.spawn("left", || {
        let stream = TcpStream::connect((lab::RIGHT, 5002))?;
        transfers::send(&mut transfers::patient(stream)?, 2, 2_000_000)
    });
    join(client, lab::LIMIT).unwrap();
    assert!(counter(&status(), "acks_rewritten") > 100);
}
