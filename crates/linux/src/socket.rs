// SPDX-License-Identifier: Apache-2.0
//! Socket options that rustix does not have, who is at the other end of a Unix socket, and what the kernel
//! counts of a TCP socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets a socket option whose value is an integer.
///
/// # Errors
/// The kernel's: it lacks the option, or the value is out of its range.
pub fn set_number(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the descriptor is open, and pointer and length are those of `value`.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The user and the process that made the other end of a Unix socket (SO_PEERCRED); the process is 0 in
/// another namespace, which rustix does not allow for.
///
/// # Errors
/// The kernel's: it is no Unix socket.
pub fn peer(socket: impl AsFd) -> io::Result<(u32, u32)> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    // SAFETY: any bytes are a valid `ucred`.
    unsafe { get(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut peer) }?;
    Ok((peer.uid, peer.pid.cast_unsigned()))
}

/// Reads a socket option; returns how many bytes of `value` the kernel has written.
///
/// # Safety
/// Any bytes must be a valid `T`.
unsafe fn get<T>(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut T,
) -> io::Result<usize> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw mut *value).cast(),
            &raw mut length,
        )
    };
    match status {
        0 => Ok(length as usize),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `struct tcp_info` of `linux/tcp.h` up to the counts of timeouts (Linux 6.7). An older kernel
/// fills less of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawTcpInfo {
    bytes: [u8; 8],
    words: [u32; 24],
    rates: [u64; 4],
    segments: [u32; 6],
    times: [u64; 4],
    delivered: [u32; 2],
    sent: [u64; 2],
    windows: [u32; 6],
    total_rto: u16,
    total_rto_recoveries: u16,
    total_rto_time: u32,
}

const _: () = assert!(size_of::<RawTcpInfo>() == 248);

/// Index of `tcpi_ca_state` among the bytes; from TCP_CA_Recovery on a loss is repaired.
const CA_STATE: usize = 1;
const CA_RECOVERY: u8 = 3;

/// Index of `tcpi_snd_wscale` (lower half) and `tcpi_rcv_wscale` among the bytes.
const WSCALES: usize = 6;

/// Index of `tcpi_total_retrans` among the words.
const TOTAL_RETRANS: usize = 23;

/// Index of `tcpi_data_segs_in` among the segments.
const DATA_SEGS_IN: usize = 4;

/// Indices of `tcpi_busy_time`, `tcpi_rwnd_limited` and `tcpi_sndbuf_limited` among the times.
const BUSY: usize = 1;
const RWND_LIMITED: usize = 2;
const SNDBUF_LIMITED: usize = 3;

/// Index of `tcpi_snd_mss` and `tcpi_snd_cwnd` among the words, and of `tcpi_snd_wnd` (Linux 5.4)
/// among the windows.
const SND_MSS: usize = 2;
const SND_CWND: usize = 18;
const SND_WND: usize = 3;

/// What the kernel counts of one TCP socket since it was made, and its sender's windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments sent again, SYNs and SYN-ACKs included.
    pub retransmits: u32,
    /// Retransmission timeouts, those of the handshake included; `None` before Linux 6.7.
    pub timeouts: Option<u16>,
    /// Times that it began to time out, several timeouts in a row counted once; `None` likewise.
    pub timeout_recoveries: Option<u16>,
    /// From the first of such timeouts to the next answer, milliseconds; `None` likewise.
    pub timeout_ms: Option<u32>,
    /// Time with data in flight, microseconds.
    pub busy_us: u64,
    /// Of it limited by the window that the peer offers, microseconds.
    pub rwnd_limited_us: u64,
    /// Of it limited by the send buffer, microseconds.
    pub sndbuf_limited_us: u64,
    /// Data segments that arrived, duplicates included.
    pub data_segments_in: u32,
    /// Window scale that the peer announced, bits: the windows it sends are shifted left by it.
    pub peer_window_scale: u8,
    /// Whether a loss is being repaired: `tcpi_ca_state` is recovery or loss.
    pub is_recovering: bool,
    /// Congestion window, bytes: the kernel's count of segments times their payload.
    pub cwnd: u64,
    /// Window that the peer offers, bytes; 0 before Linux 5.4.
    pub send_window: u32,
}

/// Reads `TCP_INFO` of a socket.
///
/// # Errors
/// The kernel's: it is no TCP socket.
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut raw = RawTcpInfo::default();
    // SAFETY: any bytes are a valid `RawTcpInfo`.
    let length = unsafe { get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut raw) }?;
    let has_timeouts = length >= size_of::<RawTcpInfo>();
    Ok(TcpInfo {
        retransmits: raw.words[TOTAL_RETRANS],
        timeouts: has_timeouts.then_some(raw.total_rto),
        timeout_recoveries: has_timeouts.then_some(raw.total_rto_recoveries),
        timeout_ms: has_timeouts.then_some(raw.total_rto_time),
        busy_us: raw.times[BUSY],
        rwnd_limited_us: raw.times[RWND_LIMITED],
        sndbuf_limited_us: raw.times[SNDBUF_LIMITED],
        data_segments_in: raw.segments[DATA_SEGS_IN],
        peer_window_scale: raw.bytes[WSCALES] & 15,
        is_recovering: raw.bytes[CA_STATE] >= CA_RECOVERY,
        cwnd: u64::from(raw.words[SND_CWND]) * u64::from(raw.words[SND_MSS]),
        send_window: raw.windows[SND_WND],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_sockets_counts_follow_its_traffic() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        receiver
            .set_read_timeout(Some(std::time::Duration::from_secs(10)))
            .unwrap();
        assert_eq!(tcp_info(&receiver).unwrap().data_segments_in, 0);
        sender.write_all(b"x").unwrap();
        receiver.read_exact(&mut [0]).unwrap();
        let info = tcp_info(&receiver).unwrap();
        assert_eq!((info.data_segments_in, info.retransmits), (1, 0));
        let scaling = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_window_scaling").unwrap();
        assert_eq!(info.peer_window_scale > 0, scaling.trim() == "1");
        let windows = tcp_info(&sender).unwrap();
        assert!(windows.cwnd >= 2 * 536 && windows.cwnd < 1 << 30);
        assert!(windows.send_window > 0 && windows.send_window < 1 << 30);
    }

    #[test]
    fn a_unix_socket_has_the_process_at_its_other_end() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        // SAFETY: it has no arguments.
        let uid = unsafe { libc::getuid() };
        assert_eq!(peer(&one).unwrap(), (uid, std::process::id()));
    }

    #[test]
    fn only_tcp_sockets_have_counts() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let refusal = tcp_info(&socket).unwrap_err();
        assert_eq!(refusal.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
