// SPDX-License-Identifier: Apache-2.0
//! A new window scheme is its header and one line in a list: the kernel takes the programs of the one
//! that docs/adding-a-scheme.md shows. Needs root.

#![allow(clippy::unwrap_used)]

#[path = "../../core/tests/common/even.rs"]
mod even;

use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::ObjectBuilder;

include!("../bpf_flags.rs");

#[test]
fn a_header_and_a_line_make_a_scheme_of_the_datapath() {
    let tree = even::tree_with_even("trial-datapath");
    let object = tree.join("port.bpf.o");
    SkeletonBuilder::new()
        .source(tree.join("bpf/port.bpf.c"))
        .obj(&object)
        .clang_args(clang_args(std::env::consts::ARCH))
        .build()
        .unwrap();
    let loaded = ObjectBuilder::default()
        .open_file(&object)
        .unwrap()
        .load()
        .expect("the kernel takes the programs; loading them needs root and BTF");
    for scheme in ["fairq", "hscc", "even"] {
        for side in ["egress", "ingress"] {
            let name = format!("{scheme}_{side}");
            assert!(
                loaded
                    .progs()
                    .any(|program| program.name() == name.as_str()),
                "{name}"
            );
        }
    }
}
