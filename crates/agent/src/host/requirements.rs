// SPDX-License-Identifier: Apache-2.0
//! The requirements of attaching programs; each that is missing is one line with its remedy.

use std::path::Path;

use anyhow::{Result, bail};
use libbpf_rs::{Btf, btf};

/// The capabilities needed, with their bits (`linux/capability.h`).
const CAPABILITIES: [(&str, u32); 3] =
    [("CAP_NET_ADMIN", 12), ("CAP_PERFMON", 38), ("CAP_BPF", 39)];

/// The oldest kernel: the programs' loops (`bpf_loop`) came with 5.17, and 6.1 has long support.
pub const OLDEST: (u32, u32) = (6, 1);

/// The first kernel with tcx.
pub const TCX_SINCE: (u32, u32) = (6, 6);

/// The first kernel whose programs can read kernel structs, and so a port's queue.
const QUEUE_SINCE: (u32, u32) = (6, 2);

/// Major and minor number of a kernel's release, as in `6.12.4-amd64`.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether programs can read the bytes in a port's queue, on which windows and marks depend.
///
/// # Errors
/// What still works without.
pub fn queue() -> Result<&'static str> {
    match version(&release()) {
        Some((major, minor)) if (major, minor) < QUEUE_SINCE => bail!(
            "Linux {major}.{minor} hides queues from eBPF programs (needs {}.{} or newer): only the first windows of flows are limited, nothing is marked",
            QUEUE_SINCE.0,
            QUEUE_SINCE.1
        ),
        _ => Ok("programs can read its bytes"),
    }
}

/// Whether programs can read this host's sockets, which have the scales of connections older than a port.
///
/// # Errors
/// The kernel's types have no such iterator.
pub fn sockets() -> Result<&'static str> {
    let types = Btf::from_vmlinux();
    match types.is_ok_and(|types| {
        types
            .type_by_name::<btf::types::Func<'_>>("bpf_iter_tcp")
            .is_some()
    }) {
        true => Ok("connections that are already open can be controlled"),
        false => bail!(
            "no iterator of TCP sockets: connections that are open at an attach stay as they are"
        ),
    }
}

/// Whether the JIT compiler of programs is on.
///
/// # Errors
/// It is off; how to turn it on.
pub fn jit() -> Result<&'static str> {
    match std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable") {
        Ok(text) if text.trim() == "0" => {
            bail!("off: programs are several times slower; do: sysctl net.core.bpf_jit_enable=1")
        }
        _ => Ok("on"),
    }
}

/// Whether the kernel takes qdiscs written in eBPF, as HCF is.
///
/// # Errors
/// One line.
pub fn bpf_qdisc() -> Result<&'static str> {
    let types = Btf::from_vmlinux();
    let has = types.is_ok_and(|types| {
        types
            .type_by_name::<btf::types::Struct<'_>>("bpf_struct_ops_Qdisc_ops")
            .is_some()
    });
    match has {
        true => Ok("HCF can be attached"),
        false => bail!(
            "HCF needs Linux 6.16 or newer with CONFIG_NET_SCH_BPF=y; this is Linux {}",
            release()
        ),
    }
}

/// The running kernel's release.
pub fn release() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    text.unwrap_or_default().trim().to_owned()
}

/// Refuses a kernel too old.
///
/// # Errors
/// One line.
pub fn require_kernel(release: &str) -> Result<()> {
    match version(release) {
        Some(found) if found < OLDEST => bail!(
            "Linux {release} is too old: penstockd needs {}.{} or newer",
            OLDEST.0,
            OLDEST.1
        ),
        _ => Ok(()),
    }
}

/// Refuses a kernel without BTF, by which programs are relocated.
///
/// # Errors
/// One line.
pub fn require_btf() -> Result<()> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        bail!(
            "no /sys/kernel/btf/vmlinux: the kernel lacks CONFIG_DEBUG_INFO_BTF; use a distribution's kernel"
        );
    }
    Ok(())
}

/// The capabilities that are missing, of `status` as in `/proc/self/status`.
pub fn missing_capabilities(status: &str) -> Vec<&'static str> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    // CAP_SYS_ADMIN (21) implies CAP_BPF and CAP_PERFMON.
    let is_held =
        |bit: u32| effective >> bit & 1 == 1 || matches!(bit, 38 | 39) && effective >> 21 & 1 == 1;
    let missing = CAPABILITIES.iter().filter(|(_, bit)| !is_held(*bit));
    missing.map(|(name, _)| *name).collect()
}

/// Refuses a caller without the capabilities.
///
/// # Errors
/// One line.
pub fn require_capabilities() -> Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    match missing_capabilities(&status) {
        missing if missing.is_empty() => Ok(()),
        missing => bail!(
            "needs {}; run it as root, or as a service (systemctl start penstockd)",
            missing.join(", ")
        ),
    }
}

/// Whether `path`, or the nearest folder above it that exists, is on a bpffs.
pub fn is_on_bpffs(path: &Path) -> bool {
    let Some(existing) = path.ancestors().find(|folder| folder.exists()) else {
        return false;
    };
    rustix::fs::statfs(existing).is_ok_and(|about| about.f_type == libc::BPF_FS_MAGIC)
}

/// Refuses a folder for pins that is not on a bpffs.
///
/// # Errors
/// One line.
pub fn require_bpffs(folder: &Path) -> Result<()> {
    if is_on_bpffs(folder) {
        return Ok(());
    }
    let is_usual = folder.starts_with("/sys/fs/bpf");
    let remedy = if is_usual {
        "no bpffs is mounted at /sys/fs/bpf (`ip netns exec` hides it: use nsenter --net); do: mount -t bpf bpf /sys/fs/bpf"
    } else {
        "choose a folder of a bpffs with --pins, as in /sys/fs/bpf/NAME"
    };
    bail!("{} is not on a bpffs: {remedy}", folder.display())
}

/// All requirements of a command that changes ports.
///
/// # Errors
/// The first that is missing, in one line.
pub fn require(pins: &Path) -> Result<()> {
    require_kernel(&release())?;
    require_btf()?;
    require_capabilities()?;
    require_bpffs(pins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_are_refused_by_number() {
        let refused = require_kernel("5.10.0-28-amd64").unwrap_err().to_string();
        assert_eq!(
            refused,
            "Linux 5.10.0-28-amd64 is too old: penstockd needs 6.1 or newer"
        );
        assert!(require_kernel("5.15.0-91-generic").is_err());
        for release in ["6.1.0-18-amd64", "6.18.44", "7.2-rc1"] {
            require_kernel(release).unwrap();
        }
        assert_eq!(version("6.12.4-amd64"), Some((6, 12)));
    }

    #[test]
    fn missing_capabilities_are_listed_by_name() {
        assert!(missing_capabilities("CapEff:\t000001ffffffffff\n").is_empty());
        assert!(missing_capabilities("CapEff:\t000000c000001000\n").is_empty());
        assert_eq!(
            missing_capabilities("CapEff:\t0000000000001000\n"),
            ["CAP_PERFMON", "CAP_BPF"]
        );
        assert_eq!(
            missing_capabilities("CapEff:\t0000000000200000\n"),
            ["CAP_NET_ADMIN"]
        );
        assert_eq!(missing_capabilities("").len(), 3);
    }
}
