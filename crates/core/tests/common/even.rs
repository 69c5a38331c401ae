// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! A copy of the C sources with one more window scheme: the one that docs/adding-a-scheme.md shows.

use std::path::{Path, PathBuf};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for file in std::fs::read_dir(from).expect("a folder of sources") {
        let file = file.expect("a file");
        match file.file_type().expect("its type").is_dir() {
            true => copy(&file.path(), &to.join(file.file_name())),
            false => drop(std::fs::copy(file.path(), to.join(file.file_name())).expect("a copy")),
        }
    }
}

/// A copy of the C sources with the scheme of the page in the list; `name` distinguishes copies.
pub fn tree_with_even(name: &str) -> PathBuf {
    let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&tree);
    for folder in ["core", "bpf", "crates/core/c", "crates/core/tests"] {
        copy(&root().join(folder), &tree.join(folder));
    }
    let page = std::fs::read_to_string(root().join("docs/adding-a-scheme.md")).expect("the page");
    let header = page
        .split_once("```c\n")
        .and_then(|(_, rest)| rest.split_once("```\n"))
        .expect("the page shows a header")
        .0;
    std::fs::write(tree.join("core/even.h"), header).expect("a copy");
    let list = tree.join("core/schemes.h");
    let text = std::fs::read_to_string(&list).expect("core/schemes.h");
    let (before, rest) = text
        .split_once("#define WINDOW_SCHEMES")
        .expect("the list of schemes");
    let (rows, after) = rest.split_once("\n\n").expect("the end of the list");
    let text = format!(
        "{before}#include \"even.h\"\n#define WINDOW_SCHEMES{rows} \\\n\
         \tS(even, EVEN, __VA_ARGS__)\n\n{after}"
    );
    std::fs::write(&list, text).expect("a copy");
    tree
}
