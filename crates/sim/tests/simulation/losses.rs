// SPDX-License-Identifier: Apache-2.0
//! Links that fail, ports that differ, and buffers that ports share.

use super::outcome;
use penstock_sim::Outcome;

/// Datagrams from four senders through a wide link to receivers, of which each pair of senders
/// shares one. `differing`: keys of the fabric; `rate`: of all senders together.
fn datagrams(differing: &str, rate: &str) -> Outcome {
    let text = format!(
        r#"
        title = "datagrams"
        duration = "100 ms"
        schemes = ["drop-tail"]
        [fabric]
        kind = "dumbbell"
        senders = 4
        receivers = 2
        access = {{ rate = "1 Gb/s", delay = "10 us" }}
        bottleneck = {{ rate = "10 Gb/s", delay = "10 us" }}
        {differing}
        [traffic.stream]
        kind = "udp"
        flows = 4
        rate = "{rate}"
        from = "senders"
        to = "receivers"
        [measure]
        ports = ["*"]
        "#
    );
    outcome(&text, "drop-tail")
}

#[test]
fn a_lossy_port_loses_its_share() {
    let outcome = datagrams(
        r#"port_at = { "left->right" = { loss = "10 %" } }"#,
        "1 Gb/s",
    );
    let port = &outcome.ports["left->right"];
    let lost = port.drops_by_reason["lossy"] as f64;
    let offered = lost + port.egress_packets as f64;
    let deviation = (offered * 0.1 * 0.9).sqrt();
    assert!(offered > 5000.0, "{offered}");
    assert!(
        (lost - 0.1 * offered).abs() < 5.0 * deviation,
        "{lost} of {offered}"
    );
    assert_eq!(outcome.drops, port.drops, "nothing is lost elsewhere");
}

#[test]
fn a_link_that_is_down_loses_all_for_that_time() {
    let down = r#"port_at = { "left->*" = { down = [{ from = "20 ms", to = "45 ms" }] } }"#;
    let outcome = datagrams(down, "1 Gb/s");
    let port = &outcome.ports["left->right"];
    let lost = port.drops_by_reason["down"];
    let offered = lost + port.egress_packets;
    let share = lost as f64 / offered as f64;
    assert!((share - 0.25).abs() < 0.01, "{lost} of {offered}");
}

#[test]
fn the_first_name_that_fits_makes_a_port_differ() {
    let slow = r#"port_at = { "right->receiver2" = { rate = "100 Mb/s", buffer = "30 kB" }, "right->*" = { rate = "2 Gb/s" } }"#;
    let outcome = datagrams(slow, "2 Gb/s");
    let utilization = |name: &str| outcome.ports[name].utilization;
    assert!(utilization("right->receiver2") > 0.99);
    assert!((utilization("right->receiver1") - 0.5).abs() < 0.01);
    assert_eq!(outcome.ports["right->receiver2"].queue_bytes.max, 30_000);
}

/// The longest queues of the ports to both receivers, as shares of the buffer that they share.
fn shares(alpha: f64, size: &str, receiver: &str) -> [f64; 2] {
    let shared = format!(r#"shared_at = {{ right = {{ size = "{size}", alpha = {alpha} }} }}"#);
    let text =
        format!("{shared}\nport_at = {{ \"right->{receiver}\" = {{ rate = \"500 Mb/s\" }} }}");
    let outcome = datagrams(&text, "3.6 Gb/s");
    ["right->receiver1", "right->receiver2"].map(|name| {
        let port = &outcome.ports[name];
        assert_eq!(
            port.drops,
            port.drops_by_reason.get("full").copied().unwrap_or(0)
        );
        port.queue_bytes.max as f64 / 300_000.0
    })
}

/// Both receivers are offered more than their links carry. Of a buffer B each of n congested ports
/// gets a B / (1 + n a) (Choudhury and Hahne, §III).
#[test]
fn congested_ports_share_a_buffer_by_the_dynamic_threshold() {
    for alpha in [0.5, 1.0, 4.0] {
        // The slower port is full first and has, for a time, what one alone may have.
        let alone = alpha / (1.0 + alpha);
        let both = alpha / (1.0 + 2.0 * alpha);
        let near = |share: f64, expected: f64| (share - expected).abs() < 1500.0 * 3.0 / 300_000.0;
        let [slow, fast] = shares(alpha, "300 kB", "receiver1");
        assert!(slow <= alone && slow > both, "{alpha}: {slow}");
        assert!(near(fast, both), "{alpha}: {fast} {both}");
    }
}
