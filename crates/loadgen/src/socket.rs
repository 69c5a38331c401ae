// SPDX-License-Identifier: Apache-2.0
//! Non-blocking TCP and UDP sockets. Options that rustix lacks, and the counters of a connection, are
//! those of [`penstock_linux::socket`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use penstock_linux::socket::{TcpInfo, set_number, tcp_info};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

/// Connections that may wait to be accepted; the kernel takes net.core.somaxconn if that is less.
const BACKLOG: i32 = 65535;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A socket, closed when dropped.
pub struct Socket(OwnedFd);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The result of a call that does not wait; `None` if it would have to.
fn ready<T>(result: rustix::io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Socket {
    /// A TCP socket for addresses of `address`'s family, in the thread's namespace.
    pub fn tcp(address: &IpAddr) -> io::Result<Socket> {
        Socket::new(address, SocketType::STREAM)
    }

    /// A UDP socket, likewise.
    pub fn udp(address: &IpAddr) -> io::Result<Socket> {
        Socket::new(address, SocketType::DGRAM)
    }

    fn new(address: &IpAddr, kind: SocketType) -> io::Result<Socket> {
        let family = match address {
            IpAddr::V4(_) => AddressFamily::INET,
            IpAddr::V6(_) => AddressFamily::INET6,
        };
        Ok(Socket(net::socket_with(family, kind, FLAGS, None)?))
    }

    /// Sets an option that is a number.
    pub fn set(&self, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
        set_number(self, level, name, value)
    }

    /// Chooses the congestion control; what is accepted from a listener inherits it.
    pub fn set_congestion(&self, name: &str) -> io::Result<()> {
        Ok(sockopt::set_tcp_congestion(self, name)?)
    }

    /// Binds to address and port; port 0: any free one, taken now.
    pub fn bind(&self, address: &SocketAddr) -> io::Result<()> {
        Ok(net::bind(self, address)?)
    }

    /// Binds to an address only: the port is chosen when connecting, so that only both ends together
    /// need to be unused.
    pub fn bind_address(&self, address: IpAddr) -> io::Result<()> {
        self.set(libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        self.bind(&SocketAddr::new(address, 0))
    }

    /// Begins to listen.
    pub fn listen(&self) -> io::Result<()> {
        Ok(net::listen(self, BACKLOG)?)
    }

    /// Begins to connect; for UDP that is all.
    pub fn connect(&self, address: &SocketAddr) -> io::Result<()> {
        match net::connect(self, address) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a waiting connection, with the address it was opened from.
    pub fn accept(&self) -> io::Result<Option<(Socket, SocketAddr)>> {
        let Some((fd, peer)) = ready(net::acceptfrom_with(self, FLAGS))? else {
            return Ok(None);
        };
        let peer = peer.ok_or(Errno::AFNOSUPPORT)?;
        Ok(Some((Socket(fd), SocketAddr::try_from(peer)?)))
    }

    /// Its own address and port.
    pub fn local(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::try_from(net::getsockname(self)?)?)
    }

    /// Hands over some of `bytes`; `None`: there is no room now.
    pub fn send(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        ready(net::send(self, bytes, SendFlags::NOSIGNAL))
    }

    /// Takes what has arrived, up to `room` in length, and throws it away uncopied; 0: the peer has
    /// ended, `None`: nothing is there.
    pub fn discard(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        let taken = ready(net::recv(self, room, RecvFlags::TRUNC))?;
        Ok(taken.map(|(_, length)| length))
    }

    /// Sends FIN after what is queued.
    pub fn finish(&self) -> io::Result<()> {
        Ok(net::shutdown(self, net::Shutdown::Write)?)
    }

    /// Closes with a RST, and leaves nothing behind.
    pub fn reset(self) {
        // If it fails, the close is an ordinary one.
        let _ = sockopt::set_socket_linger(&self, Some(Duration::ZERO));
    }

    /// The error that ended the connection, if any; the kernel then forgets it.
    pub fn error(&self) -> io::Result<()> {
        Ok(sockopt::socket_error(self)??)
    }

    /// Its counts, and whether the handshake is over.
    pub fn info(&self) -> io::Result<TcpInfo> {
        tcp_info(self)
    }
}
