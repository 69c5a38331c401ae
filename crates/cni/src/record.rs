// SPDX-License-Identifier: Apache-2.0
//! What the plugin set up for each pod, as one file each, so that DEL and GC need neither the pod's
//! namespace nor the results of other plugins.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::{Attachment, Config};
use crate::error::{Code, Error, Result};

/// What one attachment has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The host's end of the pod's veth.
    pub host_interface: String,
    /// Its number: after the pod, another one's may have its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_index: Option<u32>,
    /// The pod's network namespace.
    pub netns: PathBuf,
    /// The interface in the pod.
    pub interface: String,
    /// The device whose token bucket limits what the pod sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ifb: Option<String>,
    /// What follows `penstockd attach`, without the folders.
    pub attach: Vec<String>,
    /// The folders of pins and locks, where the port is in the pod's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_folder: Option<String>,
}

/// The records of a network.
pub struct Records(PathBuf);

impl Records {
    /// Those of the configuration's network.
    pub fn of(config: &Config) -> Records {
        Records(config.locks.join("cni").join(&config.name))
    }

    fn path(&self, attachment: &Attachment) -> PathBuf {
        self.0
            .join(format!("{}:{}", attachment.container, attachment.interface))
    }

    /// Writes a record, whole or not at all.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn write(&self, attachment: &Attachment, record: &Record) -> Result<()> {
        let path = self.path(attachment);
        let written = std::fs::create_dir_all(&self.0).and_then(|()| {
            // No container's name begins with a dot.
            let temporary = self.0.join(format!(".{}", std::process::id()));
            std::fs::write(&temporary, serde_json::to_vec(record)?)?;
            std::fs::rename(&temporary, &path)
        });
        written.map_err(|error| refused(&path, &error))
    }

    /// The record of an attachment; none if it was not added, or was deleted.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, attachment: &Attachment) -> Result<Option<Record>> {
        let path = self.path(attachment);
        match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| refused(&path, &error.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused(&path, &error)),
        }
    }

    /// Removes a record.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn remove(&self, attachment: &Attachment) -> Result<()> {
        let path = self.path(attachment);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(refused(&path, &error)),
            _ => {
                let _ = std::fs::remove_dir(&self.0); // the network's, with its last pod
                Ok(())
            }
        }
    }

    /// All attachments that have a record.
    pub fn all(&self) -> Vec<Attachment> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut all: Vec<_> = names
            .filter_map(|name| {
                let (container, interface) = name.split_once(':')?;
                Some(Attachment {
                    container: container.to_owned(),
                    interface: interface.to_owned(),
                })
            })
            .collect();
        all.sort_by(|a, b| a.container.cmp(&b.container));
        all
    }
}

fn refused(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::Io, format!("{}: {error}", path.display()))
}
