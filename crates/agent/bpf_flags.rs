// SPDX-License-Identifier: Apache-2.0
/// How clang compiles the programs of `bpf/`, for machines of an architecture: by the build, and by
/// a test with a scheme of its own.
fn clang_args(architecture: &str) -> Vec<String> {
    let mut flags = ["-mcpu=v3", "-Wall", "-Wextra", "-Werror"]
        .map(str::to_owned)
        .to_vec();
    // Debian keeps asm/ there, the second for other machines than this one; clang looks there for its
    // own target only.
    for headers in [
        format!("/usr/include/{architecture}-linux-gnu"),
        format!("/usr/{architecture}-linux-gnu/include"),
    ] {
        flags.extend(["-idirafter".to_owned(), headers]);
    }
    flags
}
