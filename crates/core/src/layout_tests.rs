// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! The mirrors have the layout of the C structs, field by field.

use std::mem::offset_of;

macro_rules! same_layout {
    ($test:ident, $symbol:ident, $mirror:ty, [$($field:ident),+ $(,)?]) => {
        #[test]
        fn $test() {
            const MIRROR: &[usize] = &[size_of::<$mirror>(), $(offset_of!($mirror, $field)),+];
            unsafe extern "C" {
                safe static $symbol: [usize; MIRROR.len()];
            }
            assert_eq!(MIRROR, &$symbol);
        }
    };
}

same_layout!(
    tcp_window,
    core_layout_tcp_window,
    crate::tcp_rewrite::TcpWindow,
    [window, changed, floored]
);
same_layout!(
    tcp_edge,
    core_layout_tcp_edge,
    crate::tcp_rewrite::Edge,
    [seq, is_known]
);
same_layout!(
    flow_entry,
    core_layout_flow_entry,
    crate::flow_count::FlowEntry,
    [
        last_ns, isn, mss, scale, syns, syn_acks, phase, acks, reserved
    ]
);
same_layout!(
    flow_packet,
    core_layout_flow_packet,
    crate::flow_count::FlowPacket,
    [now_ns, seq, payload, mss, scale, flags, direction]
);
same_layout!(
    flow_counter,
    core_layout_flow_counter,
    crate::flow_count::FlowCounter,
    [last_data_ns, flows, reserved]
);
same_layout!(
    fairq_params,
    core_layout_fairq_params,
    crate::fairq::FairqParams,
    [
        buffer_bytes,
        mss_bytes,
        alpha_q16,
        interval_ns,
        intervals,
        shares_slow_start,
        floor_segments,
        first_floor_segments,
        averaged,
        paths,
        counting
    ]
);
same_layout!(
    fairq_state,
    core_layout_fairq_state,
    crate::fairq::FairqState,
    [
        window_q8,
        gamma_q8,
        sample_sum,
        target_bytes,
        flows,
        mss_bytes,
        ticks,
        samples,
        next_sample,
        in_slow_start,
        has_data,
        reserved
    ]
);
same_layout!(
    hscc_params,
    core_layout_hscc_params,
    crate::hscc::HsccParams,
    [
        buffer_bytes,
        mss_bytes,
        alpha1_bytes,
        alpha2_bytes,
        sigma_bytes,
        floor_segments,
        first_flight_segments,
        release_step_bytes,
        release_interval_ns,
        expiry_ns
    ]
);
same_layout!(
    hscc_state,
    core_layout_hscc_state,
    crate::hscc::HsccState,
    [queue_seen_ns, released_ns, mode, is_released, reserved]
);
same_layout!(
    sicc_params,
    core_layout_sicc_params,
    crate::sicc::SiccParams,
    [
        buffer_bytes,
        mss_bytes,
        alpha1_q16,
        alpha2_q16,
        interval_ns,
        initial_window_segments,
        duration_ns,
        floor_segments,
        off_needs_both
    ]
);
same_layout!(
    sicc_port,
    core_layout_sicc_port,
    crate::sicc::SiccPortState,
    [on_since_ns, queue_q8, beta, is_on, reserved]
);
same_layout!(
    sicc_pair,
    core_layout_sicc_pair,
    crate::sicc::SiccPairState,
    [until_ns, mss_bytes, scale, is_on, reserved]
);
same_layout!(
    hcf_params,
    core_layout_hcf_params,
    crate::hcf::HcfParams,
    [
        capacity_packets,
        capacity_bytes,
        bins,
        credits,
        credits_in_bytes,
        hashes,
        period,
        swap
    ]
);
same_layout!(
    hcf_bin,
    core_layout_hcf_bin,
    crate::hcf::HcfBin,
    [epoch, credits]
);
same_layout!(
    hcf_state,
    core_layout_hcf_state,
    crate::hcf::HcfState,
    [
        bytes, packets, epoch, random, multiplier, offset, high, is_due, reserved, bins
    ]
);
