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

extern const size_t core_layout_fairq_params[12];
const size_t core_layout_fairq_params[] = {
	sizeof(struct fairq_params),
	offsetof(struct fairq_params, buffer_bytes),
	offsetof(struct fairq_params, mss_bytes),
	offsetof(struct fairq_params, alpha_q16),
	offsetof(struct fairq_params, interval_ns),
	offsetof(struct fairq_params, intervals),
	offsetof(struct fairq_params, shares_slow_start),
	offsetof(struct fairq_params, floor_segments),
	offsetof(struct fairq_params, first_floor_segments),
	offsetof(struct fairq_params, averaged),
	offsetof(struct fairq_params, paths),
	offsetof(struct fairq_params, counting),
};

extern const size_t core_layout_fairq_state[13];
const size_t core_layout_fairq_state[] = {
	sizeof(struct fairq_state),
	offsetof(struct fairq_state, window_q8),
	offsetof(struct fairq_state, gamma_q8),
	offsetof(struct fairq_state, sample_sum),
	offsetof(struct fairq_state, target_bytes),
	offsetof(struct fairq_state, flows),
	offsetof(struct fairq_state, mss_bytes),
	offsetof(struct fairq_state, ticks),
	offsetof(struct fairq_state, samples),
	offsetof(struct fairq_state, next_sample),
	offsetof(struct fairq_state, in_slow_start),
	offsetof(struct fairq_state, has_data),
	offsetof(struct fairq_state, reserved),
};

extern const size_t core_layout_hscc_params[11];
const size_t core_layout_hscc_params[] = {
	sizeof(struct hscc_params),
	offsetof(struct hscc_params, buffer_bytes),
	offsetof(struct hscc_params, mss_bytes),
	offsetof(struct hscc_params, alpha1_bytes),
	offsetof(struct hscc_params, alpha2_bytes),
	offsetof(struct hscc_params, sigma_bytes),
	offsetof(struct hscc_params, floor_segments),
	offsetof(struct hscc_params, first_flight_segments),
	offsetof(struct hscc_params, release_step_bytes),
	offsetof(struct hscc_params, release_interval_ns),
	offsetof(struct hscc_params, expiry_ns),
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
	offsetof(struct sicc_params, buffer_bytes),
	offsetof(struct sicc_params, mss_bytes),
	offsetof(struct sicc_params, alpha1_q16),
	offsetof(struct sicc_params, alpha2_q16),
	offsetof(struct sicc_params, interval_ns),
	offsetof(struct sicc_params, initial_window_segments),
	offsetof(struct sicc_params, duration_ns),
	offsetof(struct sicc_params, floor_segments),
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
	offsetof(struct hcf_params, capacity_packets),
	offsetof(struct hcf_params, capacity_bytes),
	offsetof(struct hcf_params, bins),
	offsetof(struct hcf_params, credits),
	offsetof(struct hcf_params, credits_in_bytes),
	offsetof(struct hcf_params, hashes),
	offsetof(struct hcf_params, period),
	offsetof(struct hcf_params, swap),
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
