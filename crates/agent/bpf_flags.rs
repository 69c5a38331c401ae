// SPDX-License-Identifier: Apache-2.0
/// How clang compiles the programs of `bpf/`, for machines of an architecture: by the build, and by
/// a test with a scheme of its own.
fn clang_args(architecture: &str) -> Vec<String> {
    // Debian keeps asm/ there; clang looks there for its own target only.
    let headers = format!("/usr/include/{architecture}-linux-gnu");
    ["-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-idirafter", &headers]
        .map(str::to_owned)
        .to_vec()
}
