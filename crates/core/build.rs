// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Compiles the headers of `core/` into callable functions.

fn main() {
    println!("cargo::rerun-if-changed=../../core");
    println!("cargo::rerun-if-changed=c");
    cc::Build::new()
        .files(["c/exports.c", "c/definitions.c"])
        .include("../../core")
        .std("c11")
        .flags(["-Wall", "-Wextra", "-Werror"])
        .opt_level(2)
        .compile("penstock_core");
}
