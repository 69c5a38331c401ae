// SPDX-License-Identifier: Apache-2.0
//! The compiled programs of `bpf/`, with their maps and the types of `bpf/abi.h`.

/// The programs and maps of a port (`bpf/port.bpf.c`).
#[allow(missing_docs, clippy::unwrap_used, clippy::all, dead_code)]
pub mod port {
    include!(concat!(env!("OUT_DIR"), "/port.skel.rs"));
}

/// Grant's programs (`bpf/grant.bpf.c`), with the types of `bpf/grant_abi.h`.
#[allow(missing_docs, clippy::unwrap_used, clippy::all, dead_code)]
pub mod grant {
    include!(concat!(env!("OUT_DIR"), "/grant.skel.rs"));
}

/// HCF as a qdisc (`bpf/hcf.bpf.c`), with the types of `bpf/hcf_abi.h`.
#[allow(missing_docs, clippy::unwrap_used, clippy::all, dead_code)]
pub mod hcf {
    include!(concat!(env!("OUT_DIR"), "/hcf.skel.rs"));
}
