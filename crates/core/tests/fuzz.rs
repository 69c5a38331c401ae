// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! No undefined behaviour in C at hostile inputs: `fuzz.c` under the sanitizers, and every header
//! on its own for the strictest warnings and, where clang is installed, for eBPF.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn core() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core")
}

/// Runs a compiler; `None` if it is not installed.
fn compile(compiler: &str, args: &[&str], source: &Path) -> Option<Output> {
    let command = Command::new(compiler)
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Wconversion",
            "-Werror",
            "-I",
        ])
        .arg(core())
        .args(args)
        .arg(source)
        .output();
    command.ok()
}

fn assert_success(output: &Output) {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn hostile_inputs_meet_no_undefined_behaviour() {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz.c");
    let sanitize = [
        "-O1",
        "-fsanitize=undefined,address",
        "-fno-sanitize-recover=all",
        "-o",
    ];
    let args = [&sanitize[..], &[program.to_str().expect("a UTF-8 path")]].concat();
    assert_success(&compile("cc", &args, &source).expect("a C compiler"));
    assert_success(&Command::new(&program).output().expect("the fuzzer runs"));
}

#[test]
fn every_header_stands_alone() {
    let mut headers = 0;
    for file in std::fs::read_dir(core()).expect("core/") {
        let args = ["-fsyntax-only", "-x", "c"];
        let source = file.expect("a file of core/").path();
        assert_success(&compile("cc", &args, &source).expect("a C compiler"));
        headers += 1;
    }
    assert!(headers > 0, "core/ has no header");
}

/// A program that calls the whole of core/, as the kernel would load it: clang refuses calls to
/// libc and signed division.
#[test]
fn the_headers_compile_for_ebpf() {
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exports.bpf.o");
    let object = object.to_str().expect("a UTF-8 path");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bpf.c");
    let args = ["-target", "bpf", "-mcpu=v2", "-O2", "-c", "-o", object];
    match compile("clang", &args, &source) {
        Some(output) => assert_success(&output),
        None => eprintln!("clang is not installed: not tried for eBPF"),
    }
}
