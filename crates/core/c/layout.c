/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Size and field offsets of the structs that Rust mirrors; its tests compare them. */

#include <stddef.h>

#include "fairq.h"
#include "flow_count.h"
#include "hcf.h"
#include "hscc.h"
#include "sicc.h"

extern const size_t core_layout_tcp_window[4];
const size_t core_layout_tcp_window[] = {
	sizeof(struct tcp_window),
	offsetof(struct tcp_window, window),
	offsetof(struct tcp_window, changed),
	offsetof(struct tcp_window, floored),
};

extern const size_t core_layout_tcp_edge[3];
const size_t core_layout_tcp_edge[] = {
	sizeof(struct tcp_edge),
	offsetof(struct tcp_edge, seq),
	offsetof(struct tcp_edge, is_known),
};

extern const size_t core_layout_flow_entry[10];
const size_t core_layout_flow_entry[] = {
	sizeof(struct flow_entry),
	offsetof(struct flow_entry, last_ns),
	offsetof(struct flow_entry, isn),
	offsetof(struct flow_entry, mss),
	offsetof(struct flow_entry, scale),
	offsetof(struct flow_entry, syns),
	offsetof(struct flow_entry, syn_acks),
	offsetof(struct flow_entry, phase),
	offsetof(struct flow_entry, acks),
	offsetof(struct flow_entry, reserved),
};

extern const size_t core_layout_flow_packet[8];
const size_t core_layout_flow_packet[] = {
	sizeof(struct flow_packet),	     offsetof(struct flow_packet, now_ns),
	offsetof(struct flow_packet, seq),   offsetof(struct flow_packet, payload),
	offsetof(struct flow_packet, mss),   offsetof(struct flow_packet, scale),
	offsetof(struct flow_packet, flags), offsetof(struct flow_packet, direction),
};

extern const size_t core_layout_flow_counter[4];
const size_t core_layout_flow_counter[] = {
	sizeof(struct flow_counter),
	offsetof(struct flow_counter, last_data_ns),
	offsetof(struct flow_counter, flows),
	offsetof(struct flow_counter, reserved),
};

extern const size_t core_layout_fq_params[11];
const size_t core_layout_fq_params[] = {
	sizeof(struct fq_params),
	offsetof(struct fq_params, interval_ns),
	offsetof(struct fq_params, buffer_bytes),
	offsetof(struct fq_params, alpha_q16),
	offsetof(struct fq_params, intervals),
	offsetof(struct fq_params, mss_bytes),
	offsetof(struct fq_params, paths),
	offsetof(struct fq_params, shares_slow_start),
	offsetof(struct fq_params, floor_segments),
	offsetof(struct fq_params, first_floor_segments),
	offsetof(struct fq_params, is_averaged),
};

extern const size_t core_layout_fq_state[13];
const size_t core_layout_fq_state[] = {
	sizeof(struct fq_state),
	offsetof(struct fq_state, window_q8),
	offsetof(struct fq_state, gamma_q8),
	offsetof(struct fq_state, sample_sum),
	offsetof(struct fq_state, target_bytes),
	offsetof(struct fq_state, flows),
	offsetof(struct fq_state, mss_bytes),
	offsetof(struct fq_state, ticks),
	offsetof(struct fq_state, samples),
	offsetof(struct fq_state, next_sample),
	offsetof(struct fq_state, in_slow_start),
	offsetof(struct fq_state, has_data),
	offsetof(struct fq_state, reserved),
};

extern const size_t core_layout_hscc_params[10];
const size_t core_layout_hscc_params[] = {
	sizeof(struct hscc_params),
	offsetof(struct hscc_params, expiry_ns),
	offsetof(struct hscc_params, release_interval_ns),
	offsetof(struct hscc_params, release_step_bytes),
	offsetof(struct hscc_params, alpha1_bytes),
	offsetof(struct hscc_params, alpha2_bytes),
	offsetof(struct hscc_params, sigma_bytes),
	offsetof(struct hscc_params, mss_bytes),
	offsetof(struct hscc_params, clamp_segments),
	offsetof(struct hscc_params, first_segments),
};

extern const size_t core_layout_hscc_state[6];
const size_t core_layout_hscc_state[] = {
	sizeof(struct hscc_state),
	offsetof(struct hscc_state, queue_seen_ns),
	offsetof(struct hscc_state, released_ns),
	offsetof(struct hscc_state, mode),
	offsetof(struct hscc_state, is_released),
	offsetof(struct hscc_state, reserved),
};

extern const size_t core_layout_sicc_params[10];
const size_t core_layout_sicc_params[] = {
	sizeof(struct sicc_params),
	offsetof(struct sicc_params, interval_ns),
	offsetof(struct sicc_params, duration_ns),
	offsetof(struct sicc_params, buffer_bytes),
	offsetof(struct sicc_params, alpha1_q16),
	offsetof(struct sicc_params, alpha2_q16),
	offsetof(struct sicc_params, initial_segments),
	offsetof(struct sicc_params, mss_bytes),
	offsetof(struct sicc_params, clamp_segments),
	offsetof(struct sicc_params, off_needs_both),
};

extern const size_t core_layout_sicc_port[6];
const size_t core_layout_sicc_port[] = {
	sizeof(struct sicc_port),
	offsetof(struct sicc_port, on_since_ns),
	offsetof(struct sicc_port, queue_q8),
	offsetof(struct sicc_port, beta),
	offsetof(struct sicc_port, is_on),
	offsetof(struct sicc_port, reserved),
};

extern const size_t core_layout_sicc_pair[6];
const size_t core_layout_sicc_pair[] = {
	sizeof(struct sicc_pair),
	offsetof(struct sicc_pair, until_ns),
	offsetof(struct sicc_pair, mss_bytes),
	offsetof(struct sicc_pair, scale),
	offsetof(struct sicc_pair, is_on),
	offsetof(struct sicc_pair, reserved),
};

extern const size_t core_layout_hcf_params[9];
const size_t core_layout_hcf_params[] = {
	sizeof(struct hcf_params),
	offsetof(struct hcf_params, bins),
	offsetof(struct hcf_params, credits),
	offsetof(struct hcf_params, capacity_packets),
	offsetof(struct hcf_params, capacity_bytes),
	offsetof(struct hcf_params, hashes),
	offsetof(struct hcf_params, period),
	offsetof(struct hcf_params, swaps),
	offsetof(struct hcf_params, counts_bytes),
};

extern const size_t core_layout_hcf_bin[3];
const size_t core_layout_hcf_bin[] = {
	sizeof(struct hcf_bin),
	offsetof(struct hcf_bin, epoch),
	offsetof(struct hcf_bin, credits),
};

extern const size_t core_layout_hcf_state[11];
const size_t core_layout_hcf_state[] = {
	sizeof(struct hcf_state),
	offsetof(struct hcf_state, bytes),
	offsetof(struct hcf_state, packets),
	offsetof(struct hcf_state, epoch),
	offsetof(struct hcf_state, random),
	offsetof(struct hcf_state, multiplier),
	offsetof(struct hcf_state, offset),
	offsetof(struct hcf_state, high),
	offsetof(struct hcf_state, is_due),
	offsetof(struct hcf_state, reserved),
	offsetof(struct hcf_state, bins),
};
