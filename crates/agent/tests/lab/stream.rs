// SPDX-License-Identifier: Apache-2.0
//! One TCP connection over the port that sends until it is stopped.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use penstock_linux::testkit::{join, until};

use super::{LIMIT, PortLab};

const RECEIVER: &str = "10.0.0.2";

/// Data that leaves by the port until stopped.
pub struct Stream {
    received: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    sender: JoinHandle<std::io::Result<u64>>,
    receiver: JoinHandle<std::io::Result<u64>>,
}

impl Stream {
    pub fn start(lab: &PortLab) -> Stream {
        Stream::between(lab, (RECEIVER, 7000))
    }

    /// To any address of the receiver.
    pub fn between(lab: &PortLab, address: (&'static str, u16)) -> Stream {
        let received = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let listener = lab.far().run(|| TcpListener::bind(address));
        let listener = listener.unwrap().unwrap();
        let count = received.clone();
        let receiver = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(LIMIT))?;
            let mut buffer = vec![0; 1 << 16];
            loop {
                match stream.read(&mut buffer)? {
                    0 => return Ok(count.load(Ordering::Relaxed)),
                    n => count.fetch_add(n as u64, Ordering::Relaxed),
                };
            }
        });
        let over = is_over.clone();
        let send = move || {
            let mut stream = TcpStream::connect(address)?;
            stream.set_write_timeout(Some(LIMIT))?;
            let mut sent = 0;
            while !over.load(Ordering::Relaxed) {
                stream.write_all(&[7; 8192])?;
                sent += 8192;
                // Enough to be busy, and leaves the machine to others.
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(sent)
        };
        let stream = Stream {
            received,
            is_over,
            sender: lab.near().spawn(send).unwrap(),
            receiver,
        };
        stream.goes_on();
        stream
    }

    /// Waits for more data to arrive.
    #[track_caller]
    pub fn goes_on(&self) {
        let before = self.received.load(Ordering::Relaxed);
        until("the stream goes on", || {
            self.received.load(Ordering::Relaxed) > before + 50_000
        });
    }

    /// Ends it; the connection must have lived all the time, and every byte have arrived.
    #[track_caller]
    pub fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let sent = join(self.sender, LIMIT).unwrap();
        assert_eq!(join(self.receiver, LIMIT).unwrap(), sent);
    }
}
