// SPDX-License-Identifier: Apache-2.0
//! Random scenarios: nothing panics or overflows, and no byte is made up.

use super::outcome;
use penstock_scenario::builtin_schemes;
use penstock_sim::Outcome;
use penstock_sim::rng::Rng;

struct Generator(Rng);

impl Generator {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn link(&mut self) -> String {
        let rate = self.one_of(&["10 Mb/s", "100 Mb/s", "1 Gb/s", "10 Gb/s", "100 Gb/s"]);
        let delay = self.one_of(&["0 s", "1 us", "13 us", "2 ms"]);
        format!("{{ rate = \"{rate}\", delay = \"{delay}\" }}")
    }

    fn fabric(&mut self) -> String {
        let buffer = self.one_of(&["2 packets", "30 packets", "9 kB", "200 kB", "10 MB"]);
        let shape = match self.below(4) {
            0 => format!(
                "kind = \"dumbbell\"\nsenders = {}\nreceivers = {}\naccess = {}\nbottleneck = {}",
                1 + self.below(5),
                1 + self.below(5),
                self.link(),
                self.link()
            ),
            1 => format!(
                "kind = \"tree\"\naggregations = {}\nracks = {}\nhosts_per_rack = {}\n\
                 host_link = {}\nrack_link = {}\ncore_link = {}",
                1 + self.below(3),
                1 + self.below(3),
                2 + self.below(3),
                self.link(),
                self.link(),
                self.link()
            ),
            2 => format!(
                "kind = \"leaf-spine\"\nleaves = {}\nspines = {}\nhosts_per_leaf = {}\n\
                 host_link = {}\nspine_link = {}",
                1 + self.below(3),
                1 + self.below(3),
                2 + self.below(3),
                self.link(),
                self.link()
            ),
            _ => format!("kind = \"fat-tree\"\nk = 4\nhost_link = {}", self.link()),
        };
        format!("[fabric]\n{shape}\nbuffer = \"{buffer}\"\n")
    }

    fn tcp(&mut self) -> String {
        let mut text = format!(
            "[tcp]\nprofile = \"{}\"\n",
            self.one_of(&["linux", "newreno-ns2"])
        );
        let keys = [
            "congestion = \"newreno\"",
            "congestion = \"cubic\"",
            "mss = 536",
            "mss = 8960",
            "max_window = 2",
            "initial_window = 100",
            "window_scale = 0",
            "window_scale = 14",
            "sack = false\nrecovery = \"newreno\"\ntimestamps = true",
            "receive_buffer = \"10 kB\"",
            "sack = true\nrecovery = \"sack\"",
            "delayed_ack = false",
            "min_rto = \"1 ms\"\ninitial_rto = \"1 ms\"",
            "ecn = true",
        ];
        let first = self.one_of(&keys);
        let second = self.one_of(&keys);
        text += first;
        if second.split(' ').next() != first.split(' ').next() {
            text = format!("{text}\n{second}");
        }
        text + "\n"
    }

    fn mode(&mut self) -> &'static str {
        self.one_of(&[
            "mode = \"push\"",
            "mode = \"pull\"",
            "mode = \"pull\"\nserver_think = { exponential = \"300 us\" }",
        ])
    }

    fn traffic(&mut self, number: usize) -> String {
        let size = self.one_of(&["1 B", "10 kB", "websearch", "datamining", "5 MB"]);
        let ends = "from = \"all\"\nto = \"all\"\npairs = \"random\"";
        let start = self.one_of(&["0 s", "3 ms", "15.999 ms"]);
        let what = match self.below(4) {
            0 => format!(
                "kind = \"bulk\"\nflows = {}\nstop = \"15 ms\"",
                1 + self.below(9)
            ),
            1 => format!(
                "kind = \"incast\"\nflows = {}\nsize = \"{size}\"\nrequests = {}\n\
                 {}\nconnection = \"{}\"\nthink = \"{}\"\nepochs = 3\nevery = \"2 ms\"\n\
                 event_loop = \"{}\"",
                1 + self.below(20),
                1 + self.below(4),
                self.mode(),
                self.one_of(&["new", "persistent"]),
                self.one_of(&["0 s", "100 us"]),
                self.one_of(&["0 s", "0 s", "20 us"])
            ),
            2 => format!(
                "kind = \"poisson\"\nload = \"{} %\"\nsize = \"{size}\"\nflows = 300\n{}",
                1 + self.below(90),
                self.mode()
            ),
            _ => format!(
                "kind = \"udp\"\nflows = 2\nrate = \"{}\"\npacket = \"{}\"",
                self.one_of(&["1 kb/s", "300 Mb/s"]),
                self.one_of(&["64 B", "1500 B", "9000 B"])
            ),
        };
        let start = match what.contains("bulk") {
            true => "1 ms",
            false => start,
        };
        format!("[traffic.t{number}]\n{what}\nstart = \"{start}\"\n{ends}\n")
    }

    fn scheme(&mut self, base: &str) -> String {
        let scale = self.one_of(&["tracked", "unified", "reserved-bits", "window-bits"]);
        let counting = self.one_of(&["exact", "packets"]);
        let window = match base {
            _ if base.contains("fairq") => {
                format!("wscale_source = \"{scale}\"\ncounting = \"{counting}\"\n")
            }
            _ if base.contains("hscc") => format!("wscale_source = \"{scale}\"\n"),
            _ => return String::new(),
        };
        format!("[scheme.{base}.window]\n{window}")
    }
}

/// Random scenario number `seed`, under the `seed`th scheme, which is named first.
pub(super) fn draw(seed: u64) -> (&'static str, String) {
    let schemes: Vec<&'static str> = builtin_schemes().keys().map(String::as_str).collect();
    let mut generator = Generator(Rng::new(seed, 77));
    let scheme = schemes[seed as usize % schemes.len()];
    let mut text =
        format!("title = \"fuzz {seed}\"\nduration = \"20 ms\"\nschemes = [\"{scheme}\"]\n");
    text += &generator.fabric();
    text += &generator.tcp();
    text += &generator.scheme(scheme);
    // By the seed, so that the other draws stay as they are.
    if seed.is_multiple_of(3) {
        text = text.replace("[fabric]", "[fabric]\nsymmetric_paths = false");
    }
    if scheme.contains("fairq") && (seed / 16).is_multiple_of(2) {
        text += &format!("[scheme.{scheme}.controller]\nkind = \"flow-counts\"\nloss = 0.1\n");
    }
    for number in 0..1 + generator.below(3) as usize {
        text += &generator.traffic(number);
    }
    (scheme, text)
}

/// What holds of every run.
pub(super) fn check(outcome: &Outcome) {
    for flow in &outcome.flows {
        assert!(flow.bytes.is_none_or(|bytes| flow.delivered_bytes <= bytes));
        let is_done = flow.bytes == Some(flow.delivered_bytes);
        assert_eq!(flow.end_s.is_some(), is_done, "{flow:?}");
    }
    for port in outcome.ports.values() {
        let drops: u64 = port.drops_by_reason.values().sum();
        assert!(port.utilization < 1.001 && drops == port.drops);
    }
}

#[test]
fn nothing_breaks() {
    for seed in 0..150 {
        let (scheme, text) = draw(seed);
        // The scenario is shown if the run panics.
        println!("{text}");
        check(&outcome(&text, scheme));
    }
}
