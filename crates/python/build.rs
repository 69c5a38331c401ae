// SPDX-License-Identifier: Apache-2.0
//! Names the commit that the module is built from, for the provenance of results.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A source archive may be unpacked inside another project's repository.
    let git = Path::new("../../.git");
    for file in ["HEAD", "logs/HEAD"].map(|name| git.join(name)) {
        if file.exists() {
            println!("cargo:rerun-if-changed={}", file.display());
        }
    }
    let commit = git.exists().then(described).flatten().unwrap_or_default();
    println!("cargo:rustc-env=PENSTOCK_COMMIT={commit}");
}

fn described() -> Option<String> {
    let arguments = ["describe", "--always", "--dirty", "--abbrev=12", "--match="];
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
