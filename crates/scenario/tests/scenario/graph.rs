// SPDX-License-Identifier: Apache-2.0
//! Fabrics as lists of cables: what is refused, and how.

use std::path::Path;

use penstock_scenario::Scenario;
use proptest::prelude::*;

fn graph(keys: &str) -> Result<Scenario, String> {
    let text = format!(
        "title = \"graph\"\nduration = \"1 s\"\nschemes = [\"drop-tail\"]\n[fabric]\nkind = \"graph\"\n\
         host_link = {{ rate = \"1 Gb/s\", delay = \"1 us\" }}\n{keys}\n[traffic.t]\nkind = \"bulk\"\n\
         from = \"all\"\nto = \"all\"\npairs = \"all\"\n"
    );
    Scenario::parse(&text, Path::new("g.toml"), &[]).map_err(|error| error.to_string())
}

#[test]
fn what_is_no_fabric_is_refused() {
    for (keys, message) in [
        ("", "fabric.edges: is missing; allowed: edges or file"),
        (
            "edges = [[\"a\"]]",
            "fabric.edges[0]: has 1 fields; allowed: ",
        ),
        (
            "edges = [[\"a\", \"b\", \"1 Gb\"]]",
            "fabric.edges[0]: unknown unit \"Gb\"",
        ),
        (
            "edges = [[\"a b\", \"c\"]]",
            "fabric.edges: \"a b\" is no name",
        ),
        (
            "edges = [[\"a\", \"a\"]]",
            "fabric.edges: joins \"a\" to itself",
        ),
        (
            "edges = [[\"a\", \"s\"], [\"s\", \"a\"]]",
            "fabric.edges: joins \"s\" and \"a\" twice",
        ),
        (
            "edges = [[\"a\", \"b\"]]",
            "fabric.edges: joins the hosts \"a\" and \"b\"",
        ),
        (
            "edges = [[\"a\", \"s\"], [\"s\", \"t\"], [\"t\", \"s2\"], [\"s2\", \"s\"]]",
            "fabric.hosts: the fabric has 1 hosts",
        ),
        (
            "hosts = [\"a*\"]\nedges = [[\"a1\", \"s\"], [\"a1\", \"t\"], [\"a2\", \"s\"]]",
            "fabric.hosts: \"a1\" is a host with 2 cables; allowed: one",
        ),
        (
            "hosts_per_switch = 1\nedges = [[\"s\", \"t\"], [\"u\", \"v\"]]",
            "fabric.edges: there is no path from \"s\" to \"u\"",
        ),
        (
            "hosts_per_switch = 1\nedges = [[\"s\", \"t\", \"9 b/s\"]]",
            "fabric.edges[0]: is 9 b/s; allowed: 1 kb/s and more",
        ),
        (
            "hosts_per_switch = 2\nedges = [[\"all\", \"s\"]]",
            "fabric.edges: \"all\" names every host; allowed: another name",
        ),
        ("file = \"none.graphml\"", "fabric.file: cannot read "),
    ] {
        let error = graph(keys).unwrap_err();
        assert!(error.contains(message), "{error}\n{message}");
        assert!(!error.contains('\n'), "{error}");
    }
    assert!(graph("hosts_per_switch = 2\nedges = [[\"s\", \"t\"]]").is_ok());
}

proptest! {
    #[test]
    fn any_file_is_edges_or_one_line(
        parts in prop::collection::vec(prop::sample::select(vec![
            "<graphml>", "<graph>", "</graph>", "<node id=\"a\"/>", "<edge source=\"a\" target=\"b\">", "</edge>",
            "<edge source='b' target='c'/>", "<data key=\"delay\">1 us</data>", "<data key=\"rate\">x</data>", "<!--", "-->",
            "<edge source=\"a\nb\" target=\"c\">", "<data key=\"rate\">1\n2</data>", "<data key=\"delay\">1\nus</data>",
            "<", ">", "=", "\"", "a b\n", "a,b,1 Gb/s\n", "c d e f g\n", "&lt;", "é",
        ]), 0..12),
        is_graphml in any::<bool>(),
    ) {
        let folder = std::env::temp_dir().join(format!("penstock-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(if is_graphml { "f.graphml" } else { "f.csv" });
        std::fs::write(&file, parts.concat()).unwrap();
        if let Err(error) = graph(&format!("hosts_per_switch = 1\nfile = \"{}\"", file.display())) {
            prop_assert!(!error.trim_end().contains('\n'), "{}", error);
        }
    }
}

/// A name in an error is on its line, whatever characters it has.
#[test]
fn an_error_about_graphml_is_one_line() {
    let file = std::env::temp_dir().join(format!("penstock-{}.graphml", std::process::id()));
    std::fs::write(&file, "<node a\nb=c>").unwrap();
    let keys = format!("hosts_per_switch = 1\nfile = \"{}\"", file.display());
    let error = graph(&keys).unwrap_err();
    std::fs::remove_file(&file).unwrap();
    assert!(
        error.contains("the attribute a\\nb has no quotes"),
        "{error}"
    );
}

/// As the Internet Topology Zoo has them: labels name nodes, but not those that several have.
#[test]
fn nodes_of_graphml_are_called_by_their_labels() {
    let folder = std::env::temp_dir().join(format!("graphml-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let node =
        |id: &str, label: &str| format!("<node id=\"{id}\"><data key=\"d3\">{label}</data></node>");
    let edge = |a: &str, b: &str| format!("<edge source=\"{a}\" target=\"{b}\"/>");
    let text = [
        "<graphml><key attr.name=\"label\" for=\"node\" id=\"d3\"/><graph>".to_owned(),
        node("0", "New York"),
        node("1", "Rome"),
        node("2", "?"),
        node("3", "?"),
        "<node id=\"4\"/>".to_owned(),
        [
            edge("0", "1"),
            edge("1", "2"),
            edge("2", "3"),
            edge("3", "4"),
        ]
        .concat(),
        "</graph></graphml>".to_owned(),
    ];
    let file = folder.join("zoo.graphml");
    std::fs::write(&file, text.concat()).unwrap();
    let keys = format!("hosts_per_switch = 1\nfile = \"{}\"", file.display());
    let scenario = graph(&keys).unwrap();
    assert_eq!(
        scenario.fabric.switches(),
        ["New_York", "Rome", "2", "3", "4"]
    );
    std::fs::remove_dir_all(folder).unwrap();
}
