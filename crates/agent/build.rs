// SPDX-License-Identifier: Apache-2.0
//! Compiles the programs of `bpf/` and generates their skeletons.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use libbpf_cargo::SkeletonBuilder;

include!("bpf_flags.rs");

/// The programs of the agent, then those of its benchmark and its tests.
const OBJECTS: [&str; 6] = [
    "port",
    "hcf",
    "grant",
    "bench/packet_cost",
    "tests/vectors",
    "tests/cilium",
];

fn main() {
    println!("cargo::rerun-if-changed=../../bpf");
    println!("cargo::rerun-if-changed=../../core");
    let variable = |name| std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let out = variable("OUT_DIR");
    let mut flags = clang_args(&variable("CARGO_CFG_TARGET_ARCH"));
    // Lines of the sources are named from this crate, so that the folder of a build does not matter.
    let here = variable("CARGO_MANIFEST_DIR");
    flags.push(format!("-ffile-prefix-map={here}=crates/agent"));
    for object in OBJECTS {
        let stem = object.rsplit('/').next().unwrap_or(object);
        let skeleton = Path::new(&out).join(format!("{stem}.skel.rs"));
        SkeletonBuilder::new()
            .source(format!("../../bpf/{object}.bpf.c"))
            .clang_args(&flags)
            .build_and_generate(&skeleton)
            .unwrap_or_else(|error| panic!("bpf/{object}.bpf.c: {error:#}"));
        if ["hcf", "port", "grant"].contains(&stem) {
            let mut hasher = DefaultHasher::new();
            std::fs::read(&skeleton)
                .unwrap_or_default()
                .hash(&mut hasher);
            let build = hasher.finish();
            let name = stem.to_uppercase();
            println!("cargo::rustc-env=PENSTOCK_{name}_BUILD={build:016x}");
        }
    }
}
