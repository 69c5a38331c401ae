// SPDX-License-Identifier: Apache-2.0
//! Configurations that an operator gets wrong: one line each, with what is allowed; and the socket of the
//! status, which takes the place of nothing but a dead one.

use penstock_controller::config::Config;
use penstock_controller::server::Server;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const RIGHT: &str = "openflow = \"127.0.0.1:0\"\nagents = \"127.0.0.1:0\"\n\
    [controller]\nkind = \"sicc\"\n\
    [watch.a]\ndatapath = \"2\"\nport = 1\nbuffer = \"100 kB\"\n\
    [agent.h]\nnumber = 1\nkey = \"key\"\n";

/// The configuration as a file of its own.
fn read(folder: &Path, text: &str) -> anyhow::Result<Config> {
    let key = folder.join("key");
    std::fs::write(&key, [7; 32])?;
    let path = folder.join("controller.toml");
    std::fs::write(&path, text.replace("\"key\"", &format!("{key:?}")))?;
    Config::read(&path)
}

#[test]
fn what_cannot_be_meant_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    read(folder.path(), RIGHT).expect("it is right");
    for (right, wrong, expected) in [
        ("\"100 kB\"", "\"0 B\"", "watch.a: buffer: is 0; allowed"),
        (
            "[agent.h]",
            "[link.x]\ndatapaths = [\"1\", \"2\"]\nports = [0, 1]\n[agent.h]",
            "link.x: ports: is 0; allowed: 1 to 4294967040",
        ),
        (
            "[agent.h]",
            "[link.x]\ndatapaths = [\"2\", \"2\"]\nports = [3, 4]\n[agent.h]",
            "link.x: datapaths: both are 2; allowed: two switches",
        ),
        (
            "port = 1",
            "port = 0",
            "watch.a: port: is 0; allowed: 1 to 4294967040",
        ),
        (
            "port = 1",
            "port = 4294967294",
            "watch.a: port: is 4294967294; allowed: 1 to 4294967040",
        ),
        (
            "\"2\"",
            "\"zz\"",
            "watch.a: datapath: \"zz\" is no datapath_id",
        ),
        (
            "[agent.h]",
            "[watch.b]\ndatapath = \"02\"\nport = 1\nbuffer = \"1 MB\"\n[agent.h]",
            "watch.b: this port is watched under another name",
        ),
        (
            "\"sicc\"",
            "\"sicc\"\nalpha1 = 0.9\nalpha2 = 0.5",
            "controller.toml:5: controller.alpha1: 0.9 is not below alpha2, 0.5",
        ),
        (
            "\"sicc\"",
            "\"sicc\"\ninterval = \"0 s\"",
            "controller.toml:5: controller.interval: is 0",
        ),
    ] {
        let read = read(folder.path(), &RIGHT.replace(right, wrong));
        let error = format!("{:#}", read.expect_err(wrong));
        assert!(
            error.contains("controller.toml") && error.contains(expected) && !error.contains('\n'),
            "{wrong}: {error}"
        );
    }
}

#[test]
fn what_is_no_text_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = folder.path().join("binary");
    std::fs::write(&binary, b"[controller]\n\xff\n").expect("it is written");
    for (path, expected) in [
        (folder.path(), "is a folder; give a file"),
        (&binary, "line 2 is not UTF-8; give a text file"),
        (Path::new("/dev/zero"), "is longer than 1048576 bytes"),
    ] {
        let error = format!("{:#}", Config::read(path).expect_err(expected));
        let expected = format!("{}: {expected}", path.display());
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn the_status_takes_the_place_of_a_dead_socket_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (run, file) = (folder.path().join("run"), folder.path().join("file"));
    std::fs::write(&file, "precious").expect("it is written");
    let begin = |status: &Path| {
        let config = read(folder.path(), &format!("status = {status:?}\n{RIGHT}"));
        Server::new(&config.expect("it is right"))
    };
    // A folder that is not there is made, for root alone.
    let socket = run.join("socket");
    let first = begin(&socket).expect("it listens");
    let mode = std::fs::metadata(&run).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let error = begin(&socket).err().expect("another one is there");
    assert!(format!("{error:#}").starts_with("status: "), "{error:#}");
    drop(first); // as if it was killed: the socket stays
    assert!(socket.exists());
    begin(&socket).expect("it takes the place");

    begin(&file).err().expect("that is no socket");
    let kept = std::fs::read_to_string(&file).expect("it is there");
    assert_eq!(kept, "precious");
}

#[test]
fn parameters_of_the_simulator_and_of_shims_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let given = "kind = \"sicc\"\nloss = 0.5\nduration = \"5 ms\"\nfloor = 2\n";
    let text = RIGHT.replace("kind = \"sicc\"\n", given);
    let mut named = read(folder.path(), &text)
        .expect("it is right")
        .without_effect();
    named.sort_unstable();
    assert_eq!(named, ["floor", "loss"]);
}
