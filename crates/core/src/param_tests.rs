// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! The ranges told in Rust are those of the C headers.

use crate::fairq::{FairQParams, core_fq_params_ok};
use crate::hcf::{HcfParams, core_hcf_params_ok};
use crate::hscc::{HsccParams, core_hscc_params_ok};
use crate::sicc::{SiccParams, core_sicc_params_ok};
use proptest::prelude::*;

/// Numbers at and around the limits of the ranges.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => prop::sample::select(vec![0, 1, 2, 4, 5, 256, 257, 65535, 65536, 65537, 1 << 24, u32::MAX]),
        4 => Just(1000u32),
        1 => any::<u32>(),
    ]
}

fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0u8), Just(1), Just(4), Just(5), Just(255)]
}

proptest! {
    #[test]
    fn fairq(n in prop::array::uniform6(number()), b in prop::array::uniform2(byte())) {
        let params = FairQParams {
            interval_ns: n[0].into(),
            alpha_q16: n[1],
            intervals: n[2],
            mss_bytes: n[3],
            paths: n[4],
            floor_segments: b[0],
            first_floor_segments: b[1],
            ..FairQParams::new(n[5])
        };
        prop_assert_eq!(params.check().is_ok(), core_fq_params_ok(&params));
    }

    #[test]
    fn hscc(n in prop::array::uniform4(number()), clamp in byte()) {
        let params = HsccParams {
            release_interval_ns: n[0].into(),
            alpha1_bytes: n[1],
            alpha2_bytes: n[2],
            mss_bytes: n[3],
            clamp_segments: clamp,
            ..HsccParams::new(1000)
        };
        prop_assert_eq!(params.check().is_ok(), core_hscc_params_ok(&params));
    }

    #[test]
    fn sicc(n in prop::array::uniform7(number()), clamp in byte()) {
        let params = SiccParams {
            interval_ns: n[0].into(),
            duration_ns: n[1].into(),
            alpha1_q16: n[2],
            alpha2_q16: n[3],
            initial_segments: n[4],
            mss_bytes: n[5],
            clamp_segments: clamp,
            ..SiccParams::new(n[6])
        };
        prop_assert_eq!(params.check().is_ok(), core_sicc_params_ok(&params));
    }

    #[test]
    fn hcf(n in prop::array::uniform6(number()), hashes in byte()) {
        let params = HcfParams {
            bins: n[0],
            credits: n[1],
            capacity_packets: [n[2], n[3]],
            capacity_bytes: [n[4], n[5]],
            hashes,
            ..HcfParams::new(20)
        };
        prop_assert_eq!(params.check().is_ok(), core_hcf_params_ok(&params));
    }

    #[test]
    fn defaults_are_in_range(buffer in 20u32..) {
        prop_assert!(FairQParams::new(buffer).check().is_ok());
        prop_assert!(FairQParams::paper(buffer).check().is_ok());
        prop_assert!(HsccParams::new(buffer).check().is_ok());
        prop_assert!(HsccParams::paper(buffer).check().is_ok());
        prop_assert!(SiccParams::new(buffer).check().is_ok());
        prop_assert!(HcfParams::new(buffer).check().is_ok());
    }
}
