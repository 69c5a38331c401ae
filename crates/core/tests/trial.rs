// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! A new window scheme is its header and one line in a list: the one that docs/adding-a-scheme.md
//! shows, put into a copy of the tree, compiles and holds in all that is written over the list.

#[path = "common/even.rs"]
mod even;

use even::tree_with_even;
use std::process::{Command, Output};

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the program runs");
    assert!(
        output.status.success(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// What the simulator calls, the definitions, and the fuzzer over all schemes.
#[test]
fn a_header_and_a_line_make_a_scheme_of_the_simulator() {
    let tree = tree_with_even("trial-simulator");
    let main = tree.join("main.c");
    let program = tree.join("trial");
    std::fs::write(
        &main,
        r#"#include <stdio.h>
        #include <string.h>
        struct definition { const char *name, *title; const void *lists[4]; unsigned numbers[4];
            void (*preset)(void *, unsigned, unsigned); };
        extern const struct definition core_definitions[];
        int main(void)
        {
            for (const struct definition *d = core_definitions; d->name; d++)
                printf("%s %u\n", d->name, d->numbers[0]);
            return 0;
        }"#,
    )
    .expect("a source");
    let sources = ["crates/core/c/exports.c", "crates/core/c/definitions.c"];
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Icore", "-o"];
    run(Command::new("cc")
        .current_dir(&tree)
        .args(flags)
        .arg(&program)
        .arg(&main)
        .args(sources));
    let listed = run(&mut Command::new(&program)).stdout;
    let listed = String::from_utf8_lossy(&listed);
    let list = std::fs::read_to_string(tree.join("core/schemes.h")).expect("the list");
    let names = list.lines().filter_map(|row| row.strip_prefix("\tS("));
    let expected: String = names
        .zip(1..)
        .map(|(row, number)| format!("{} {number}\n", row.split(',').next().unwrap_or("")))
        .collect();
    assert!(expected.starts_with("fairq 1\nhscc 2\n"), "{expected}");
    assert!(expected.contains("\neven "), "{expected}");
    assert!(listed.starts_with(&expected), "{listed}");

    let fuzzer = tree.join("fuzz");
    let sanitize = ["-fsanitize=undefined,address", "-fno-sanitize-recover=all"];
    run(Command::new("cc")
        .current_dir(&tree)
        .args(["-std=c11", "-O1", "-Icore", "-o"])
        .arg(&fuzzer)
        .args(sanitize)
        .arg("crates/core/tests/fuzz.c"));
    run(&mut Command::new(&fuzzer));
}

/// One number changed in a table is the default of the struct and that of the definition, from
/// which all else comes.
#[test]
fn a_default_changed_in_the_header_is_changed_everywhere() {
    let tree = tree_with_even("trial-default");
    let header = tree.join("core/fairq.h");
    let text = std::fs::read_to_string(&header).expect("core/fairq.h");
    let (before, row) = text
        .split_once("P(X, SHARE, alpha, ABOVE_0, 1, ")
        .expect("the row of alpha");
    let (_, after) = row.split_once(',').expect("its default");
    let changed = format!("{before}P(X, SHARE, alpha, ABOVE_0, 1, 0.375,{after}");
    std::fs::write(&header, changed).expect("a copy");
    std::fs::write(
        tree.join("main.c"),
        r#"#include <stdio.h>
        #include "definitions.c"
        int main(void)
        {
            const struct core_param *alpha = core_definitions[0].params;
            printf("%s %g %u\n", alpha->key, alpha->standard,
                   fairq_default_params(1000).alpha_q16);
            return 0;
        }"#,
    )
    .expect("a source");
    let program = tree.join("trial");
    let flags = ["-std=c11", "-Icore", "-Icrates/core/c", "-o"];
    run(Command::new("cc")
        .current_dir(&tree)
        .args(flags)
        .arg(&program)
        .arg("main.c"));
    let output = run(&mut Command::new(&program)).stdout;
    let expected = format!("alpha 0.375 {}\n", 65536 * 3 / 8);
    assert_eq!(String::from_utf8_lossy(&output), expected);
}
