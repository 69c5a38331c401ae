// SPDX-License-Identifier: Apache-2.0
//! Transfers whose every byte is known, checked by the receiver.

use super::{LIMIT, RIGHT};
use penstock_linux::netns::NetNs;
use penstock_linux::testkit::join;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

pub const PORT: u16 = 5001;

/// A transfer without progress for this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes `from ..` of transfer `id`, eight for each index.
fn fill(id: u64, from: u64, buffer: &mut [u8]) {
    for (index, word) in (from / 8..).zip(buffer.chunks_mut(8)) {
        let bytes = (index ^ id)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
}

/// Where [`serve`] listens.
pub fn receiver() -> SocketAddr {
    SocketAddr::new(RIGHT.parse().unwrap(), PORT)
}

pub fn connect() -> Result<TcpStream> {
    patient(TcpStream::connect_timeout(&receiver(), PATIENCE)?)
}

/// Limits how long a stream waits.
pub fn patient(stream: TcpStream) -> Result<TcpStream> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// One transfer of so many bytes on each connection, all at once.
pub fn send_on_all(netns: &NetNs, streams: &mut Vec<TcpStream>, bytes: u64) {
    let threads = (0..).zip(streams.drain(..)).map(|(id, mut stream)| {
        let work = move || {
            send(&mut stream, id, bytes).unwrap();
            stream
        };
        netns.spawn(work).unwrap()
    });
    let threads: Vec<_> = threads.collect();
    streams.extend(threads.into_iter().map(|thread| join(thread, LIMIT)));
}

/// Sends `bytes` and waits until the receiver has checked them all.
pub fn send(stream: &mut TcpStream, id: u64, bytes: u64) -> Result<()> {
    stream.write_all(&id.to_le_bytes())?;
    stream.write_all(&bytes.to_le_bytes())?;
    let (mut buffer, mut sent) = ([0; 16384], 0);
    while sent < bytes {
        let part = &mut buffer[..(bytes - sent).min(16384) as usize];
        fill(id, sent, part);
        stream.write_all(part)?;
        sent += part.len() as u64;
    }
    confirm(stream, bytes)
}

/// The same with one write: the stream never waits for its writer.
pub fn send_whole(stream: &mut TcpStream, id: u64, bytes: u64) -> Result<()> {
    let mut message = [id.to_le_bytes(), bytes.to_le_bytes()].concat();
    message.resize(message.len() + bytes as usize, 0);
    fill(id, 0, &mut message[16..]);
    stream.write_all(&message)?;
    confirm(stream, bytes)
}

/// The other end confirms that it has read so many bytes.
fn confirm(stream: &mut TcpStream, bytes: u64) -> Result<()> {
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    if u64::from_le_bytes(answer) != bytes {
        return Err(Error::new(
            ErrorKind::InvalidData,
            "the answer is another's",
        ));
    }
    Ok(())
}

/// A connection with one transfer, ended by both sides.
pub fn transfer(id: u64, bytes: u64) -> Result<()> {
    let mut stream = connect()?;
    send(&mut stream, id, bytes)?;
    stream.shutdown(Shutdown::Write)?;
    match stream.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(Error::new(
            ErrorKind::InvalidData,
            "more bytes than were asked for",
        )),
    }
}

/// A connection that is reset after a few bytes.
pub fn abort() -> Result<()> {
    let mut stream = connect()?;
    stream.write_all(&[0; 8])?;
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
    Ok(())
}

/// Receives transfers forever, a thread for each connection. Runs in the receiver's namespace.
pub fn serve() {
    listen(receiver());
}

/// The same at another address.
pub fn listen(address: SocketAddr) {
    let listener = TcpListener::bind(address).unwrap();
    // More than std's 128 may ask at once, and a full backlog refuses their SYNs.
    rustix::net::listen(&listener, 1024).unwrap();
    serve_on(listener);
}

/// The same on a listener of the caller's.
pub fn serve_on(listener: TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut stream = stream;
                // A wrong byte or a lost connection shows as a missing answer.
                while receive(&mut stream).is_ok() {}
            });
        }
    });
}

fn receive(stream: &mut TcpStream) -> Result<()> {
    let mut number = [0; 8];
    stream.read_exact(&mut number)?;
    let id = u64::from_le_bytes(number);
    stream.read_exact(&mut number)?;
    let bytes = u64::from_le_bytes(number);
    let (mut buffer, mut expected, mut received) = ([0; 16384], [0; 16384], 0);
    while received < bytes {
        let count = (bytes - received).min(16384) as usize;
        stream.read_exact(&mut buffer[..count])?;
        fill(id, received, &mut expected[..count]);
        if buffer[..count] != expected[..count] {
            eprintln!("transfer {id}: other bytes arrived than were sent, before {received}");
            return Err(ErrorKind::InvalidData.into());
        }
        received += count as u64;
    }
    stream.write_all(&number)
}
