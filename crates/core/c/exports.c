/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The inline functions of core/ as symbols that another language can call. */

#include "fairq.h"
#include "flow_count.h"
#include "hcf.h"
#include "hscc.h"
#include "sicc.h"
#include "tcp_rewrite.h"

/* core_NAME is NAME. */
#define EXPORT(type, name, parameters, arguments)                                                  \
	type core_##name parameters;                                                               \
	type core_##name parameters                                                                \
	{                                                                                          \
		return name arguments;                                                             \
	}

#define EXPORT_VOID(name, parameters, arguments)                                                   \
	void core_##name parameters;                                                               \
	void core_##name parameters                                                                \
	{                                                                                          \
		name arguments;                                                                    \
	}

EXPORT(struct tcp_window, tcp_lower_window,
       (u16 window, u32 scale, u32 limit_bytes, u32 floor_bytes),
       (window, scale, limit_bytes, floor_bytes))
EXPORT(struct tcp_window, tcp_keep_edge,
       (struct tcp_edge * edge, u32 ack, u16 window, u32 scale, struct tcp_window wanted),
       (edge, ack, window, scale, wanted))
EXPORT(u16, tcp_checksum_update, (u16 checksum, u16 old_word, u16 new_word),
       (checksum, old_word, new_word))
EXPORT(u16, tcp_checksum_update_byte, (u16 checksum, u32 offset, u8 old_byte, u8 new_byte),
       (checksum, offset, old_byte, new_byte))
EXPORT(u16, tcp_reserved_put_scale, (u16 offset_flags, u32 scale), (offset_flags, scale))
EXPORT(u32, tcp_reserved_scale, (u16 offset_flags), (offset_flags))
EXPORT(u16, tcp_reserved_clear, (u16 offset_flags), (offset_flags))
EXPORT(u16, tcp_window12_put, (u16 window, u32 scale), (window, scale))
EXPORT(u32, tcp_window12_scale, (u16 field), (field))
EXPORT(u16, tcp_window12_window, (u16 field), (field))
EXPORT(u16, tcp_unify_window, (u16 window, u32 own_scale, u32 network_scale),
       (window, own_scale, network_scale))

EXPORT(s32, flow_on_packet, (struct flow_entry * flow, const struct flow_packet *packet),
       (flow, packet))
EXPORT(s32, flow_expire, (struct flow_entry * flow, u64 now_ns, u64 idle_ns),
       (flow, now_ns, idle_ns))
EXPORT(u32, flow_scale, (const struct flow_entry *flow, u32 direction), (flow, direction))
EXPORT(u32, flow_mss, (const struct flow_entry *flow), (flow))
EXPORT(u32, flow_ack_kind, (const struct flow_entry *flow, u32 flags, u32 first_acks),
       (flow, flags, first_acks))
EXPORT(u32, flow_counter_on_packet,
       (struct flow_counter * counter, u32 flags, u32 payload, u32 is_out, u64 now_ns),
       (counter, flags, payload, is_out, now_ns))
EXPORT(u32, flow_counter_expire, (struct flow_counter * counter, u64 now_ns, u64 idle_ns),
       (counter, now_ns, idle_ns))

EXPORT(struct fairq_params, fairq_default_params, (u32 buffer_bytes), (buffer_bytes))
EXPORT(struct fairq_params, fairq_paper_params, (u32 buffer_bytes), (buffer_bytes))
EXPORT_VOID(fairq_init, (struct fairq_state * s, const struct fairq_params *p), (s, p))
EXPORT_VOID(fairq_on_flows, (struct fairq_state * s, u32 flows), (s, flows))
EXPORT_VOID(fairq_on_data, (struct fairq_state * s, u32 payload_bytes), (s, payload_bytes))
EXPORT_VOID(fairq_on_sample, (struct fairq_state * s, u32 queue_bytes), (s, queue_bytes))
EXPORT_VOID(fairq_on_interval,
	    (struct fairq_state * s, const struct fairq_params *p, u32 queue_bytes),
	    (s, p, queue_bytes))
EXPORT(u32, fairq_window_bytes, (const struct fairq_state *s, const struct fairq_params *p), (s, p))
EXPORT(struct tcp_window, fairq_on_ack,
       (const struct fairq_state *s, const struct fairq_params *p, u16 window, u32 scale,
	u32 mss_bytes, u32 kind, u64 now_ns),
       (s, p, window, scale, mss_bytes, kind, now_ns))

EXPORT(struct hscc_params, hscc_default_params, (u32 buffer_bytes), (buffer_bytes))
EXPORT(struct hscc_params, hscc_paper_params, (u32 buffer_bytes), (buffer_bytes))
EXPORT_VOID(hscc_on_queue,
	    (struct hscc_state * s, const struct hscc_params *p, u32 queue_bytes, u64 now_ns),
	    (s, p, queue_bytes, now_ns))
EXPORT(_Bool, hscc_is_clamping,
       (const struct hscc_state *s, const struct hscc_params *p, u64 now_ns), (s, p, now_ns))
EXPORT(struct tcp_window, hscc_on_ack,
       (const struct hscc_state *s, const struct hscc_params *p, u16 window, u32 scale,
	u32 mss_bytes, u32 kind, u64 now_ns),
       (s, p, window, scale, mss_bytes, kind, now_ns))
EXPORT(_Bool, hscc_drops,
       (const struct hscc_params *p, u32 queue_bytes, u32 packet_bytes, _Bool is_control),
       (p, queue_bytes, packet_bytes, is_control))

EXPORT(struct sicc_params, sicc_default_params, (u32 buffer_bytes), (buffer_bytes))
EXPORT(struct sicc_params, sicc_paper_params, (u32 buffer_bytes), (buffer_bytes))
EXPORT_VOID(sicc_on_packet, (struct sicc_port * port, u32 flags), (port, flags))
EXPORT(u32, sicc_on_interval,
       (struct sicc_port * port, const struct sicc_params *p, u32 queue_bytes, u64 now_ns),
       (port, p, queue_bytes, now_ns))
EXPORT_VOID(sicc_pair_on,
	    (struct sicc_pair * pair, const struct sicc_params *p, u16 mss_bytes, u32 scale,
	     u64 now_ns),
	    (pair, p, mss_bytes, scale, now_ns))
EXPORT_VOID(sicc_pair_off, (struct sicc_pair * pair), (pair))
EXPORT(struct tcp_window, sicc_pair_on_ack,
       (const struct sicc_pair *pair, const struct sicc_params *p, u16 window, u32 scale, u32 kind,
	u64 now_ns),
       (pair, p, window, scale, kind, now_ns))

EXPORT(struct hcf_params, hcf_default_params, (u32 buffer_packets), (buffer_packets))
EXPORT(struct hcf_params, hcf_paper_params, (u32 buffer_packets), (buffer_packets))
EXPORT(u32, hcf_flow_key, (u32 source, u32 destination, u16 source_port, u16 destination_port),
       (source, destination, source_port, destination_port))
EXPORT_VOID(hcf_init, (struct hcf_state * s, const struct hcf_params *p, u32 seed), (s, p, seed))
EXPORT(u32, hcf_bin_of, (const struct hcf_state *s, const struct hcf_params *p, u32 key, u32 index),
       (s, p, key, index))
EXPORT(u32, hcf_credits_left, (const struct hcf_state *s, const struct hcf_params *p, u32 bin),
       (s, p, bin))
EXPORT(u32, hcf_on_enqueue,
       (struct hcf_state * s, const struct hcf_params *p, u32 key, u32 size_bytes),
       (s, p, key, size_bytes))
EXPORT(u32, hcf_on_dequeue, (const struct hcf_state *s), (s))
EXPORT_VOID(hcf_departed,
	    (struct hcf_state * s, const struct hcf_params *p, u32 queue, u32 size_bytes),
	    (s, p, queue, size_bytes))
EXPORT_VOID(hcf_on_tick, (struct hcf_state * s, const struct hcf_params *p), (s, p))
