// SPDX-License-Identifier: Apache-2.0
//! Quantities are read exactly and written so that they read the same.

use penstock_scenario::units::{Rate, Time};
use penstock_scenario::{Buffer, Bytes, Share};
use proptest::prelude::*;

use super::parse_with;

#[test]
fn units_as_people_write_them() {
    assert_eq!(Time::read("100 us"), Ok(Time::from_micros(100)));
    assert_eq!(Time::read("12.5 us"), Ok(Time::from_nanos(12_500)));
    assert_eq!(Time::read("1.5ms"), Ok(Time::from_micros(1500)));
    assert_eq!(Time::read("3 µs"), Ok(Time::from_micros(3)));
    assert_eq!(Time::read("3 min"), Ok(Time::from_secs(180)));
    assert_eq!(Time::read("0 s"), Ok(Time::ZERO));
    assert_eq!(Rate::read("1 Gb/s"), Ok(Rate(1_000_000_000)));
    assert_eq!(Rate::read("2.5 Gb/s"), Ok(Rate(2_500_000_000)));
    assert_eq!(Rate::read("10Gbps"), Ok(Rate(10_000_000_000)));
    assert_eq!(Bytes::read("125 kB"), Ok(Bytes(125_000)));
    assert_eq!(Bytes::read("64 KiB"), Ok(Bytes(65_536)));
    assert_eq!(Bytes::read("1_000 B"), Ok(Bytes(1_000)));
    assert_eq!(Buffer::read("83 packets"), Ok(Buffer::Packets(83)));
    assert_eq!(Buffer::read("1 packet"), Ok(Buffer::Packets(1)));
    assert_eq!(Buffer::read("0.125 MB"), Ok(Buffer::Bytes(125_000)));
    for (text, share) in [
        ("20 %", 0.2),
        ("0.1%", 0.001),
        ("97 %", 0.97),
        ("12.5 %", 0.125),
    ] {
        assert_eq!(Share::read(text), Ok(Share(share)));
    }
}

#[test]
fn what_takes_too_long_never_ends() {
    let slow = Rate::read("1 kb/s").unwrap();
    assert_eq!(slow.transmission(1500), Time::from_secs(12));
    let most = Bytes::read("1000 GB").unwrap();
    assert_eq!(slow.transmission(most.0), Time::NEVER);
}

#[test]
fn what_is_no_quantity() {
    for text in [
        "", "10", "s", "-1 s", "1,5 s", "1..2 s", "1 s s", "1e3 s", ".5 s", "0.1 ps",
    ] {
        assert!(Time::read(text).is_err(), "{text}");
    }
    for text in ["0 b/s", "1 GB/s", "1 gb/s", "99999999999 Tb/s"] {
        assert!(Rate::read(text).is_err(), "{text}");
    }
    assert!(Buffer::read("1.5 packets").is_err());
    assert!(Buffer::read("5000000000 packets").is_err());
    assert!(Bytes::read("0.3 B").is_err());
    assert!(Rate::read("101 Tb/s").is_err());
    assert!(Share::read("20").is_err());
}

proptest! {
    #[test]
    fn written_quantities_read_the_same(value in 1..1u64 << 60, packets in 0..u32::MAX) {
        prop_assert_eq!(Time::read(&Time(value).to_string()), Ok(Time(value)));
        let rate = Rate(value.min(100_000_000_000_000));
        prop_assert_eq!(Rate::read(&rate.to_string()), Ok(rate));
        prop_assert_eq!(Bytes::read(&Bytes(value).to_string()), Ok(Bytes(value)));
        let buffer = Buffer::Packets(packets);
        prop_assert_eq!(Buffer::read(&buffer.to_string()), Ok(buffer));
    }

    #[test]
    fn digits_are_not_rounded(whole in 0..100_000u64, nanos in 0..1_000_000_000u64) {
        let time = Time::read(&format!("{whole}.{nanos:09} s"));
        prop_assert_eq!(time, Ok(Time(whole * 1_000_000_000_000 + nanos * 1000)));
    }

    #[test]
    fn percent_is_the_same_number_as_the_decimal(thousandths in 0..1000u32) {
        let decimal: f64 = format!("0.{thousandths:03}").parse().unwrap();
        let percent = format!("{}.{} %", thousandths / 10, thousandths % 10);
        prop_assert_eq!(Share::read(&percent), Ok(Share(decimal)));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".*") {
        let _ = (Time::read(&text), Rate::read(&text), Bytes::read(&text), Buffer::read(&text), Share::read(&text));
    }
}

#[test]
fn a_segment_is_bytes_with_or_without_a_unit() {
    for written in ["8960", "\"8960 B\"", "\"8.96 kB\""] {
        let scenario = parse_with("tcp.mss", written).unwrap();
        assert_eq!(scenario.tcp.mss, Some(8960));
    }
}
