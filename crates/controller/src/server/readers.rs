// SPDX-License-Identifier: Apache-2.0
//! Readers of the status, at a socket of a file.

use anyhow::Result;
use mio::net::{UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::Path;

/// Most readers that have not read all; of more, the oldest is cut off.
const MOST: usize = 16;

/// The socket, and what is left for each reader, by the number of its token.
pub(super) struct Readers {
    pub listener: UnixListener,
    waiting: BTreeMap<usize, (UnixStream, Vec<u8>)>,
}

impl Readers {
    /// Listens at a path, in a folder that is made if it is not there, for root alone. The socket of a
    /// controller that was killed is removed; that of one that runs, and a file, stay.
    pub fn listen(path: &Path) -> Result<Readers> {
        if let Some(folder) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let is_socket =
            std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
        if is_socket && UnixStream::connect(path).is_err() {
            std::fs::remove_file(path)?;
        }
        Ok(Readers {
            listener: UnixListener::bind(path)?,
            waiting: BTreeMap::new(),
        })
    }

    /// Takes a connection, and sends it a text.
    pub fn accept(
        &mut self,
        registry: &Registry,
        number: usize,
        text: impl FnOnce() -> Vec<u8>,
    ) -> io::Result<()> {
        let (mut stream, _) = self.listener.accept()?;
        registry.register(&mut stream, Token(number), Interest::WRITABLE)?;
        if self.waiting.len() == MOST {
            self.waiting.pop_first();
        }
        self.waiting.insert(number, (stream, text()));
        self.write(number);
        Ok(())
    }

    /// Sends more to a reader, as much as it takes. Returns whether the number is one of a reader.
    pub fn write(&mut self, number: usize) -> bool {
        let Some((stream, text)) = self.waiting.get_mut(&number) else {
            return false;
        };
        let is_left = loop {
            match stream.write(text) {
                Ok(bytes @ 1..) => drop(text.drain(..bytes)),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                Ok(_) | Err(_) => break false,
            }
        };
        if !is_left {
            self.waiting.remove(&number);
        }
        true
    }
}
