// SPDX-License-Identifier: Apache-2.0
//! Where `penstockd` has its pins and locks, which other programs of the host look for, too.

use std::path::Path;

/// Where pins are by default.
pub const PINS: &str = "/sys/fs/bpf/penstock";

/// Where the files of locks are by default.
pub const LOCKS: &str = "/run/penstock";

/// Name of the lock of a folder of pins, `sys:fs:bpf:penstock`: the same for all names of the folder.
pub fn lock_name(pins: &Path) -> String {
    let real = pins.ancestors().find_map(|above| {
        let rest = pins.strip_prefix(above).ok()?;
        Some(std::fs::canonicalize(above).ok()?.join(rest))
    });
    let path = real.unwrap_or_else(|| pins.to_owned());
    path.to_string_lossy().trim_matches('/').replace('/', ":")
}

/// Name of the lock that the daemon of a folder of pins holds.
pub fn daemon_lock_name(pins: &Path) -> String {
    lock_name(pins) + ".daemon"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_name_by_whatever_path() {
        let folder = std::env::temp_dir().join(format!("penstock-names-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("real")).unwrap();
        std::os::unix::fs::symlink("real", folder.join("link")).unwrap();
        let [real, link] = ["real/pins", "link/pins"].map(|path| lock_name(&folder.join(path)));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(real, link);
        assert!(real.ends_with(":real:pins"), "{real}");
        assert_eq!(
            daemon_lock_name(Path::new("/none/pins")),
            "none:pins.daemon"
        );
    }
}
