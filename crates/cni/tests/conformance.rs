// SPDX-License-Identifier: Apache-2.0
//! The plugin by the CNI specification 1.1, in namespaces, with a stand-in for penstockd that keeps a file
//! for each port. Needs root. python/tests/test_cni.py has the same with penstockd itself.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use penstock_linux::netns::NetNs;
use penstock_linux::testkit::{cable, namespace};
use penstock_linux::{filter, link, qdisc};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Commands of penstockd: `attach`, `detach` and `status` of an interface, after which options follow.
const STAND_IN: &str = r#"#!/bin/sh
echo "$@" >>"$(dirname "$0")/calls"
case $1 in
attach) echo "$@" >"$(dirname "$0")/port-$2" ;;
detach) rm "$(dirname "$0")/port-$2" ;;
status) test -e "$(dirname "$0")/port-$2" &&
	echo '[{"scheme": "grant", "attached": {"egress": true, "ingress": true}}]' ;;
esac
"#;

const RATE: u64 = 80_000_000;

struct Pod {
    host: NetNs,
    inside: NetNs,
    folder: TempDir,
}

/// An exit code and what was printed.
type Answer = (bool, Value);

impl Pod {
    fn new() -> Pod {
        let pod = Pod {
            host: namespace(),
            inside: namespace(),
            folder: tempfile::tempdir().unwrap(),
        };
        // So that indexes differ on both sides.
        pod.host
            .run(|| link::create_bridge("cni0"))
            .unwrap()
            .unwrap();
        cable((&pod.host, "veth7"), (&pod.inside, "eth0"), 1);
        pod.stand_in(STAND_IN);
        pod
    }

    fn stand_in(&self, text: &str) {
        let path = self.penstockd();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn penstockd(&self) -> PathBuf {
        self.folder.path().join("penstockd")
    }

    fn previous(&self) -> Value {
        json!({
            "cniVersion": "1.1.0",
            "interfaces": [
                { "name": "cni0" },
                { "name": "veth7", "mac": "52:00:00:00:00:07" },
                { "name": "eth0", "sandbox": self.inside.path() },
            ],
            "ips": [{ "interface": 2, "address": "10.0.0.2/24" }],
            "dns": { "nameservers": ["10.0.0.1"] },
        })
    }

    fn config(&self) -> Value {
        json!({
            "cniVersion": "1.1.0",
            "name": "pods",
            "type": "penstock-cni",
            "penstockd": self.penstockd(),
            "locks": self.folder.path().join("run"),
            "runtimeConfig": { "bandwidth": {
                "ingressRate": RATE, "ingressBurst": 800_000,
                "egressRate": RATE / 2, "egressBurst": 400_000,
            }},
            "prevResult": self.previous(),
        })
    }

    /// The same for a port in the pod's namespace.
    fn config_of_limit(&self) -> Value {
        let mut config = self.config();
        config["side"] = json!("limit");
        config["pins"] = json!(self.folder.path().join("pins"));
        config
    }

    /// Runs a command; variables of the environment replace those of a normal call.
    fn call_with(&self, command: &str, config: &str, changed: &[(&str, &str)]) -> Answer {
        let netns = self.inside.path();
        let mut variables = BTreeMap::from([
            ("CNI_COMMAND", command),
            ("CNI_CONTAINERID", "c0ffee"),
            ("CNI_NETNS", netns.to_str().unwrap()),
            ("CNI_IFNAME", "eth0"),
            ("CNI_PATH", "/opt/cni/bin"),
        ]);
        variables.extend(changed.iter().copied());
        variables.retain(|_, value| !value.is_empty());
        let run = || {
            let mut child = Command::new(env!("CARGO_BIN_EXE_penstock-cni"))
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap())
                .envs(&variables)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut input = child.stdin.take().unwrap();
            input.write_all(config.as_bytes()).unwrap();
            drop(input);
            child.wait_with_output().unwrap()
        };
        let output = self.host.run(run).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let value = match text.is_empty() {
            true => Value::Null,
            false => serde_json::from_str(&text).unwrap(),
        };
        (output.status.success(), value)
    }

    fn call(&self, command: &str, config: &Value) -> Answer {
        self.call_with(command, &config.to_string(), &[])
    }

    /// Runs `penstock-cni restore`; whether it succeeded.
    fn restore(&self, config: &Value) -> bool {
        let mut input = Command::new(env!("CARGO_BIN_EXE_penstock-cni"));
        input
            .arg("restore")
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        let mut child = self.host.run(|| input.spawn()).unwrap().unwrap();
        write!(child.stdin.take().unwrap(), "{config}").unwrap();
        child.wait().unwrap().success()
    }

    fn root(&self, interface: &str) -> qdisc::Qdisc {
        let root = || qdisc::root(link::get(interface)?.index);
        self.host.run(root).unwrap().unwrap()
    }

    fn devices(&self) -> Vec<String> {
        let all = self.host.run(link::all).unwrap().unwrap();
        let names = all.into_iter().map(|link| link.name);
        names.filter(|name| name.starts_with("pnk")).collect()
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default()
    }

    fn records(&self) -> usize {
        let folder = self.folder.path().join("run/cni/pods");
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }
}

fn refused(answer: &Answer, code: u64) -> bool {
    let (done, value) = answer;
    assert!(
        !done && value["cniVersion"].is_string() && value["msg"].is_string(),
        "{value}"
    );
    value["code"] == code
}

#[test]
fn a_pod_is_limited_in_both_directions_until_it_is_deleted() {
    let pod = Pod::new();
    let config = pod.config();
    for _ in 0..2 {
        let (done, result) = pod.call("ADD", &config);
        assert!(done, "{result}");
        let device = pod.devices().pop().unwrap();
        let mut expected = pod.previous();
        expected["interfaces"]
            .as_array_mut()
            .unwrap()
            .push(json!({ "name": device }));
        assert_eq!(result, expected);
        assert_eq!(pod.devices().len(), 1);
        let (ingress, egress) = (pod.root("veth7"), pod.root(&device));
        assert_eq!(
            (ingress.kind.as_str(), ingress.rate_bps),
            ("tbf", Some(RATE))
        );
        // 25 ms of the rate, and the burst.
        assert_eq!(ingress.limit, Some(qdisc::Limit::Bytes(250_000 + 100_000)));
        assert_eq!(egress.rate_bps, Some(RATE / 2));
        assert_eq!(pod.call("CHECK", &config), (true, Value::Null));
    }
    assert!(pod.calls().contains(
        "attach veth7 --locks RUN --scheme grant --side port --rate 80000000 b/s --buffer 250000 B"
            .replace("RUN", &pod.folder.path().join("run").to_string_lossy())
            .as_str()
    ));
    // The runtime may have lost all but the names.
    let mut bare = config.clone();
    bare.as_object_mut().unwrap().remove("prevResult");
    for _ in 0..2 {
        let deleted = pod.call_with("DEL", &bare.to_string(), &[("CNI_NETNS", "")]);
        assert_eq!(deleted, (true, Value::Null));
        assert_eq!((pod.devices().len(), pod.records()), (0, 0));
        assert!(!pod.folder.path().join("port-veth7").exists());
    }
}

#[test]
fn a_pod_without_limits_is_left_alone() {
    let pod = Pod::new();
    let mut config = pod.config();
    config.as_object_mut().unwrap().remove("runtimeConfig");
    for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        config["cniVersion"] = json!(version);
        let (done, result) = pod.call("ADD", &config);
        let mut expected = pod.previous();
        expected["cniVersion"] = json!(version);
        assert_eq!((done, result), (true, expected));
    }
    assert_eq!((pod.calls().as_str(), pod.records()), ("", 0));
    assert_ne!(pod.root("veth7").kind, "tbf");
}

#[test]
fn check_finds_what_others_removed() {
    let pod = Pod::new();
    let config = pod.config();
    assert!(refused(&pod.call("CHECK", &config), 100));
    assert!(pod.call("ADD", &config).0);
    std::fs::remove_file(pod.folder.path().join("port-veth7")).unwrap();
    assert!(refused(&pod.call("CHECK", &config), 100));
    assert!(pod.call("ADD", &config).0);
    pod.host
        .run(|| qdisc::delete_root(link::get("veth7")?.index))
        .unwrap()
        .unwrap();
    assert!(refused(&pod.call("CHECK", &config), 100));
    assert!(pod.call("ADD", &config).0);
    assert!(pod.call("CHECK", &config).0);
    let mut faster = config.clone();
    faster["runtimeConfig"]["bandwidth"]["ingressRate"] = json!(2 * RATE);
    assert!(refused(&pod.call("CHECK", &faster), 100));
    // A filter of another is no redirection.
    let clsact = ["clsact"].as_slice();
    let other = "ingress prio 1 protocol all u32 match u32 0 0 flowid 1:1";
    let other: Vec<_> = other.split(' ').collect();
    for (verb, object, words) in [
        ("del", "qdisc", clsact),
        ("add", "qdisc", clsact),
        ("add", "filter", &other),
    ] {
        let tc = || {
            let mut tc = Command::new("tc");
            tc.args([object, verb, "dev", "veth7"]).args(words).status()
        };
        assert!(pod.host.run(tc).unwrap().unwrap().success());
    }
    assert!(refused(&pod.call("CHECK", &config), 100));
    pod.host
        .run(|| link::delete(&pod.devices()[0]))
        .unwrap()
        .unwrap();
    assert!(refused(&pod.call("CHECK", &config), 100));
    assert!(pod.call("DEL", &config).0);
}

#[test]
fn del_succeeds_whatever_is_left() {
    let pod = Pod::new();
    let config = pod.config();
    // Never added.
    for netns in ["", "/nowhere"] {
        let deleted = pod.call_with("DEL", &config.to_string(), &[("CNI_NETNS", netns)]);
        assert_eq!(deleted, (true, Value::Null));
    }
    // ADD refused these limits; the runtime calls DEL with the same ones.
    let mut wrong = config.clone();
    wrong["runtimeConfig"]["bandwidth"]["ingressBurst"] = json!(0);
    for command in ["ADD", "CHECK", "STATUS"] {
        assert!(refused(&pod.call(command, &wrong), 7), "{command}");
    }
    assert_eq!(pod.call("DEL", &wrong), (true, Value::Null));
    // The namespace went with the pod, and its record was cut.
    assert!(pod.call("ADD", &config).0);
    let record = pod.folder.path().join("run/cni/pods/c0ffee:eth0");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, &text[..text.len() / 2]).unwrap();
    let deleted = pod.call_with("DEL", &config.to_string(), &[("CNI_NETNS", "/nowhere")]);
    assert_eq!(deleted, (true, Value::Null));
    assert_eq!((pod.devices().len(), pod.records()), (0, 0));
}

#[test]
fn what_the_plugin_does_not_know_is_passed_over() {
    let pod = Pod::new();
    let mut config = pod.config();
    config["capabilities"] = json!({ "bandwidth": true, "portMappings": true });
    config["runtimeConfig"]["portMappings"] = json!([{ "hostPort": 80, "containerPort": 80 }]);
    config["runtimeConfig"]["bandwidth"]["unshaped"] = json!(["10.0.0.0/8"]);
    config["prevResult"]["routes"] = json!([{ "dst": "0.0.0.0/0", "gw": "10.0.0.1", "mtu": 1400 }]);
    let (done, result) = pod.call("ADD", &config);
    assert!(done, "{result}");
    for key in ["routes", "ips", "dns"] {
        assert_eq!(result[key], config["prevResult"][key]);
    }
    assert!(pod.call("CHECK", &config).0);
    assert!(pod.call("DEL", &config).0);
    config["runtimeConfig"] = Value::Null;
    assert_eq!(
        pod.call("ADD", &config),
        (true, config["prevResult"].clone())
    );
}

#[test]
fn gc_removes_what_the_runtime_no_longer_lists() {
    let pod = Pod::new();
    let mut config = pod.config();
    assert!(pod.call("ADD", &config).0);
    assert!(refused(&pod.call("GC", &config), 7));
    let listed = json!([{ "containerID": "c0ffee", "ifname": "eth0" }]);
    config["cni.dev/valid-attachments"] = listed;
    assert!(
        pod.call_with("GC", &config.to_string(), &[("CNI_NETNS", "")])
            .0
    );
    assert_eq!((pod.devices().len(), pod.records()), (1, 1));
    config["cni.dev/valid-attachments"] = json!(null);
    for _ in 0..2 {
        assert_eq!(pod.call("GC", &config), (true, Value::Null));
        assert_eq!((pod.devices().len(), pod.records()), (0, 0));
    }
    config["cniVersion"] = json!("1.0.0");
    assert!(refused(&pod.call("GC", &config), 1));
}

#[test]
fn a_missing_agent_stops_no_pod() {
    let pod = Pod::new();
    let config = pod.config();
    pod.stand_in("#!/bin/sh\necho 'penstockd: no BTF' >&2\nexit 1\n");
    // A runtime whose plugin reports that it is not available starts no pods at all.
    for command in ["STATUS", "ADD"] {
        assert!(pod.call(command, &config).0);
    }
    assert_eq!(pod.root("veth7").kind, "tbf");
    let filtered = || filter::has_any(link::get("veth7")?.index);
    assert!(pod.host.run(filtered).unwrap().unwrap());
    // Back again: it has the ports of all pods.
    pod.stand_in(STAND_IN);
    assert!(pod.restore(&config));
    assert!(pod.call("CHECK", &config).0);
    std::fs::remove_file(pod.penstockd()).unwrap();
    assert!(pod.call("DEL", &config).0);
    assert_eq!((pod.devices().len(), pod.records()), (0, 0));
}

#[test]
fn restore_goes_on_after_a_record_that_cannot_be_read() {
    let pod = Pod::new();
    let config = pod.config();
    assert!(pod.call("ADD", &config).0);
    let records = pod.folder.path().join("run/cni/pods");
    std::fs::write(records.join("broken:eth0"), "{").unwrap();
    // Of a pod that is gone, whose interface had the same name.
    let text = std::fs::read_to_string(records.join("c0ffee:eth0")).unwrap();
    let mut gone: Value = serde_json::from_str(&text).unwrap();
    gone["host_index"] = json!(99_999);
    gone["attach"] = json!(["--scheme", "of-another"]);
    std::fs::write(records.join("b0a:eth0"), gone.to_string()).unwrap();
    let port = pod.folder.path().join("port-veth7");
    std::fs::remove_file(&port).unwrap();
    assert!(!pod.restore(&config), "it reports the broken record");
    let attached = std::fs::read_to_string(&port).unwrap();
    assert!(attached.contains("--scheme grant"), "{attached}");
}

#[test]
fn a_burst_of_less_than_a_packet_is_refused() {
    let pod = Pod::new();
    let mut config = pod.config();
    for key in ["ingressBurst", "egressBurst"] {
        config["runtimeConfig"] = pod.config()["runtimeConfig"].clone();
        config["runtimeConfig"]["bandwidth"][key] = json!(1513 * 8);
        let answer = pod.call("ADD", &config);
        assert!(refused(&answer, 7));
        assert!(answer.1["msg"].as_str().unwrap().starts_with(key));
        assert_eq!((pod.records(), pod.devices().len()), (0, 0));
        config["runtimeConfig"]["bandwidth"][key] = json!(1514 * 8);
        assert!(pod.call("ADD", &config).0);
        assert!(pod.call("DEL", &config).0);
    }
}

#[test]
fn an_unknown_verb_is_an_error() {
    let run = |verb: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock-cni"));
        let output = command.arg(verb).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), output.stdout.is_empty())
    };
    assert_eq!(run("restroe"), (Some(2), true));
    assert_eq!(run("--help"), (Some(0), false));
}

#[test]
fn a_port_in_the_pods_namespace_is_looked_at_there() {
    let pod = Pod::new();
    let config = pod.config_of_limit();
    // It stays until the port is detached.
    let stays = r#"#!/bin/sh
cd "$(dirname "$0")"
echo "$1 $(readlink /proc/self/ns/net)" >>calls
case $1 in
attach) echo $$ >pid; exec sleep 60 ;;
detach) test -e pid && kill "$(cat pid)" && rm pid ;;
status) test -e pid &&
	echo '[{"scheme": "grant", "attached": {"egress": true, "ingress": true}}]' ;;
esac
"#;
    pod.stand_in(stays);
    let left = || {
        let folders = std::fs::read_dir(pod.folder.path().join("run/pods"));
        folders.unwrap().count()
    };
    for command in ["ADD", "CHECK", "DEL"] {
        let (done, answer) = pod.call(command, &config);
        assert!(done, "{command}: {answer}");
    }
    assert_eq!(left(), 0);
    // The port has gone before.
    assert!(pod.call("ADD", &config).0);
    let pid = pod.folder.path().join("pid");
    let ended = Command::new("kill")
        .arg(std::fs::read_to_string(&pid).unwrap().trim())
        .status();
    assert!(ended.unwrap().success());
    std::fs::remove_file(&pid).unwrap();
    let checked = pod.call("CHECK", &config);
    assert!(refused(&checked, 100));
    assert_eq!(checked.1["msg"], "Grant is not attached to eth0");
    assert_eq!(left(), 1);
    assert!(pod.call("DEL", &config).0);
    assert_eq!(left(), 0);
    let inside = format!("net:[{}]", pod.inside.inode());
    let calls = pod.calls();
    assert!(calls.contains("status") && calls.contains("detach"));
    assert!(calls.lines().all(|call| call.ends_with(&inside)), "{calls}");
    assert!(!pod.folder.path().join("pid").exists());
}

#[test]
fn an_agent_that_does_not_attach_in_time_is_ended() {
    let pod = Pod::new();
    let config = pod.config_of_limit();
    // Its last line is run in place of the shell, as the number shows.
    let stays = "#!/bin/sh\necho \"$@\" >>\"$(dirname \"$0\")/calls\"\n\
                 test $1 = attach || exit 1\necho $$ >\"$(dirname \"$0\")/pid\"\nexec sleep 60\n";
    pod.stand_in(stays);
    assert!(refused(&pod.call("ADD", &config), 5));
    let pid = std::fs::read_to_string(pod.folder.path().join("pid")).unwrap();
    assert!(!PathBuf::from("/proc").join(pid.trim()).exists());
    assert!(
        pod.calls().lines().last().unwrap().starts_with("detach"),
        "{}",
        pod.calls()
    );
    let left = std::fs::read_dir(pod.folder.path().join("run/pods")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn a_late_del_leaves_the_port_of_a_successor() {
    let pod = Pod::new();
    let config = pod.config();
    assert!(pod.call("ADD", &config).0);
    let port = pod.folder.path().join("port-veth7");
    pod.host.run(|| link::delete("veth7")).unwrap().unwrap();
    cable((&pod.host, "veth7"), (&pod.inside, "eth0"), 1);
    let next = [("CNI_CONTAINERID", "decaf")];
    assert!(pod.call_with("ADD", &config.to_string(), &next).0);
    assert!(pod.call("DEL", &config).0);
    assert!(port.exists());
    assert!(pod.call_with("DEL", &config.to_string(), &next).0);
    assert!(!port.exists());
    assert_eq!(pod.records(), 0);
}

#[test]
fn errors_have_the_codes_of_the_specification() {
    let pod = Pod::new();
    let config = pod.config();
    let (done, version) = pod.call("VERSION", &json!({ "cniVersion": "1.1.0" }));
    assert!(
        done && version["supportedVersions"][4] == "1.1.0",
        "{version}"
    );
    let text = config.to_string();
    assert!(refused(&pod.call_with("ADD", "{", &[]), 6));
    assert!(refused(&pod.call_with("LIST", &text, &[]), 4));
    for variable in ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS"] {
        assert!(refused(&pod.call_with("ADD", &text, &[(variable, "")]), 4));
    }
    for (variable, value) in [("CNI_CONTAINERID", "../c"), ("CNI_IFNAME", "a/b")] {
        assert!(refused(
            &pod.call_with("DEL", &text, &[(variable, value)]),
            4
        ));
    }
    assert!(refused(
        &pod.call_with("ADD", &text, &[("CNI_NETNS", "/nowhere")]),
        5
    ));
    let changed = |key: &str, value: Value| {
        let mut config = config.clone();
        config[key] = value;
        config
    };
    assert!(refused(
        &pod.call("ADD", &changed("cniVersion", json!("2.0.0"))),
        1
    ));
    assert!(refused(&pod.call("ADD", &changed("name", json!(""))), 7));
    assert!(refused(
        &pod.call("ADD", &changed("prevResult", Value::Null)),
        7
    ));
    assert!(refused(
        &pod.call("ADD", &changed("ingressRate", json!(1))),
        7
    ));
    // The loopback is no end of a veth.
    assert!(refused(
        &pod.call_with("ADD", &text, &[("CNI_IFNAME", "lo")]),
        7
    ));
    assert_eq!(pod.records(), 0);
}
