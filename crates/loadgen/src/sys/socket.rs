// SPDX-License-Identifier: Apache-2.0
//! Non-blocking TCP and UDP sockets.

use super::tcp_info::{Raw, TcpInfo};
use super::{check, transferred};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// linux/in.h, Linux 6.3; the libc crate has not got it.
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;

/// Ports that a connection may be opened from: all but the well-known.
const CLIENT_PORTS: libc::c_int = 1024 | 65535 << 16;

/// Connections that may wait to be accepted; the kernel takes net.core.somaxconn if that is less.
const BACKLOG: libc::c_int = 65535;

/// A socket, closed when dropped.
pub struct Socket(OwnedFd);

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Socket {
    /// A TCP socket for addresses as `address`, in the thread's namespace.
    pub fn tcp(address: &IpAddr) -> io::Result<Socket> {
        Socket::new(address, libc::SOCK_STREAM)
    }

    /// A UDP socket, likewise.
    pub fn udp(address: &IpAddr) -> io::Result<Socket> {
        Socket::new(address, libc::SOCK_DGRAM)
    }

    fn new(address: &IpAddr, kind: libc::c_int) -> io::Result<Socket> {
        let family = match address {
            IpAddr::V4(_) => libc::AF_INET,
            IpAddr::V6(_) => libc::AF_INET6,
        };
        let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; a new descriptor is ours alone.
        Ok(Socket(unsafe {
            OwnedFd::from_raw_fd(check(libc::socket(family, kind, 0))?)
        }))
    }

    /// Sets an option that is a number.
    pub fn set(&self, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
        self.set_bytes(level, name, &value.to_ne_bytes())
    }

    fn set_bytes(&self, level: libc::c_int, name: libc::c_int, value: &[u8]) -> io::Result<()> {
        // SAFETY: pointer and length are those of `value`.
        check(unsafe {
            libc::setsockopt(
                self.as_raw_fd(),
                level,
                name,
                value.as_ptr().cast(),
                value.len() as libc::socklen_t,
            )
        })?;
        Ok(())
    }

    /// Reads an option into `value`; returns how many bytes of it the kernel filled.
    fn get<T: Copy>(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        value: &mut T,
    ) -> io::Result<usize> {
        let mut length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes; the types used are plain numbers.
        check(unsafe {
            libc::getsockopt(
                self.as_raw_fd(),
                level,
                name,
                std::ptr::from_mut(value).cast(),
                &mut length,
            )
        })?;
        Ok(length as usize)
    }

    /// Chooses the congestion control; what is accepted from a listener inherits it.
    pub fn set_congestion(&self, name: &str) -> io::Result<()> {
        self.set_bytes(libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
    }

    /// Binds to address and port; port 0: any free one, taken now.
    pub fn bind(&self, address: &SocketAddr) -> io::Result<()> {
        let (raw, length) = to_raw(address);
        // SAFETY: pointer and length are those of `raw`.
        check(unsafe { libc::bind(self.as_raw_fd(), std::ptr::from_ref(&raw).cast(), length) })?;
        Ok(())
    }

    /// Binds to an address only: the port is chosen when connecting, so that only both ends together
    /// need to be unused.
    pub fn bind_address(&self, address: IpAddr) -> io::Result<()> {
        self.set(libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        // Before Linux 6.3 the range of the namespace has to do.
        let _ = self.set(libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE, CLIENT_PORTS);
        self.bind(&SocketAddr::new(address, 0))
    }

    /// Begins to listen.
    pub fn listen(&self) -> io::Result<()> {
        // SAFETY: no pointers.
        check(unsafe { libc::listen(self.as_raw_fd(), BACKLOG) })?;
        Ok(())
    }

    /// Begins to connect; for UDP that is all.
    pub fn connect(&self, address: &SocketAddr) -> io::Result<()> {
        let (raw, length) = to_raw(address);
        // SAFETY: pointer and length are those of `raw`.
        let result = check(unsafe {
            libc::connect(self.as_raw_fd(), std::ptr::from_ref(&raw).cast(), length)
        });
        match result {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Takes a waiting connection, with the address it was opened from.
    pub fn accept(&self) -> io::Result<Option<(Socket, SocketAddr)>> {
        let mut raw = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: `raw` has room for `length` bytes.
        let fd = unsafe {
            libc::accept4(
                self.as_raw_fd(),
                raw.as_mut_ptr().cast(),
                &mut length,
                flags,
            )
        };
        let Some(fd) = transferred(fd as isize)? else {
            return Ok(None);
        };
        // SAFETY: a new descriptor is ours alone; all of `raw` is initialized.
        let socket = Socket(unsafe { OwnedFd::from_raw_fd(fd as RawFd) });
        Ok(Some((
            socket,
            from_raw(&unsafe { raw.assume_init() }, length)?,
        )))
    }

    /// Its own address and port.
    pub fn local(&self) -> io::Result<SocketAddr> {
        let mut raw = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // SAFETY: `raw` has room for `length` bytes and is initialized.
        unsafe {
            check(libc::getsockname(
                self.as_raw_fd(),
                raw.as_mut_ptr().cast(),
                &mut length,
            ))?;
            from_raw(&raw.assume_init(), length)
        }
    }

    /// Hands over some of `bytes`; `None`: there is no room now.
    pub fn send(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        // SAFETY: pointer and length are those of `bytes`.
        transferred(unsafe {
            libc::send(
                self.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                libc::MSG_NOSIGNAL,
            )
        })
    }

    /// Takes what has come, up to `room` in length, and throws it away uncopied; 0: the peer has
    /// ended, `None`: nothing is there.
    pub fn discard(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        // SAFETY: pointer and length are those of `room`, though TCP writes nothing there.
        transferred(unsafe {
            libc::recv(
                self.as_raw_fd(),
                room.as_mut_ptr().cast(),
                room.len(),
                libc::MSG_TRUNC,
            )
        })
    }

    /// Sends FIN after what is queued.
    pub fn finish(&self) -> io::Result<()> {
        // SAFETY: no pointers.
        check(unsafe { libc::shutdown(self.as_raw_fd(), libc::SHUT_WR) })?;
        Ok(())
    }

    /// Closes with a RST, and leaves nothing behind.
    pub fn reset(self) {
        let linger = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        // SAFETY: pointer and length are those of `linger`. If it fails, the close is an ordinary one.
        unsafe {
            libc::setsockopt(
                self.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                std::ptr::from_ref(&linger).cast(),
                size_of::<libc::linger>() as libc::socklen_t,
            )
        };
    }

    /// The error that ended the connection, if any; asking clears it.
    pub fn error(&self) -> io::Result<()> {
        let mut code: libc::c_int = 0;
        self.get(libc::SOL_SOCKET, libc::SO_ERROR, &mut code)?;
        match code {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Its counts, and whether the handshake is over.
    pub fn info(&self) -> io::Result<TcpInfo> {
        let mut raw = Raw::default();
        let filled = self.get(libc::IPPROTO_TCP, libc::TCP_INFO, &mut raw)?;
        Ok(TcpInfo::new(&raw, filled))
    }
}

fn to_raw(address: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: zero is a valid value of every field; each address type fits into the storage.
    unsafe {
        let mut raw: libc::sockaddr_storage = std::mem::zeroed();
        let place = std::ptr::from_mut(&mut raw);
        let length = match address {
            SocketAddr::V4(v4) => {
                let sin = &mut *place.cast::<libc::sockaddr_in>();
                sin.sin_family = libc::AF_INET as libc::sa_family_t;
                sin.sin_port = v4.port().to_be();
                sin.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                let sin6 = &mut *place.cast::<libc::sockaddr_in6>();
                sin6.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                sin6.sin6_port = v6.port().to_be();
                sin6.sin6_addr.s6_addr = v6.ip().octets();
                size_of::<libc::sockaddr_in6>()
            }
        };
        (raw, length as libc::socklen_t)
    }
}

fn from_raw(raw: &libc::sockaddr_storage, length: libc::socklen_t) -> io::Result<SocketAddr> {
    let place = std::ptr::from_ref(raw);
    let holds = |size: usize| length as usize >= size;
    // SAFETY: the family tells which type the kernel wrote, and the storage is large enough for each.
    unsafe {
        match libc::c_int::from(raw.ss_family) {
            libc::AF_INET if holds(size_of::<libc::sockaddr_in>()) => {
                let sin = &*place.cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from(sin.sin_addr.s_addr.to_ne_bytes());
                Ok(SocketAddr::new(ip.into(), u16::from_be(sin.sin_port)))
            }
            libc::AF_INET6 if holds(size_of::<libc::sockaddr_in6>()) => {
                let sin6 = &*place.cast::<libc::sockaddr_in6>();
                let ip = Ipv6Addr::from(sin6.sin6_addr.s6_addr);
                Ok(SocketAddr::new(ip.into(), u16::from_be(sin6.sin6_port)))
            }
            _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
    }
}
