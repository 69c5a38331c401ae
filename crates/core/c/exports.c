/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The inline functions of core/ as symbols that another language can call. */

#include <stddef.h>

#include "flow_counter.h"
#include "grant.h"
#include "handshake.h"
#include "hcf.h"
#include "schemes.h"
#include "sicc.h"

/* What Rust mirrors, in the module of the same name; of all else it knows only the size. */
#define BYTES(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type);
#define AT(type, field, offset)                                                                    \
	_Static_assert(offsetof(struct type, field) == (offset), #type "." #field);

BYTES(tcp_window, 4)
AT(tcp_window, changed, 2)
AT(tcp_window, floored, 3)
BYTES(port_segments, 16)
AT(port_segments, bytes, 8)
AT(port_segments, latest, 12)
BYTES(flow_packet, 32)
AT(flow_packet, seq, 8)
AT(flow_packet, ack, 12)
AT(flow_packet, payload, 16)
AT(flow_packet, mss, 20)
AT(flow_packet, scale, 22)
AT(flow_packet, flags, 23)
AT(flow_packet, direction, 24)
BYTES(flow_change, 8)
AT(flow_change, half_open, 4)
BYTES(grant_packet, 40)
AT(grant_packet, seq, 8)
AT(grant_packet, ack, 12)
AT(grant_packet, payload, 16)
AT(grant_packet, ts_val, 20)
AT(grant_packet, ts_ecr, 24)
AT(grant_packet, window, 28)
AT(grant_packet, mss, 30)
AT(grant_packet, scale, 32)
AT(grant_packet, flags, 33)
BYTES(grant_opening, 12)
AT(grant_opening, window, 4)
AT(grant_opening, shown, 6)
AT(grant_opening, by_sender, 8)
BYTES(grant_action, 24)
AT(grant_action, seq, 4)
AT(grant_action, ack, 8)
AT(grant_action, ts_val, 12)
AT(grant_action, ts_ecr, 16)
AT(grant_action, window, 20)
BYTES(flow_entry, 32)
BYTES(handshake, 24)
BYTES(flow_counter, 16)
BYTES(tcp_edge, 8)
BYTES(sicc_pair, 16)

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

static u32 syn_scale(u32 source, u32 network_scale, u32 scale, _Bool is_answer)
{
	struct window_params params = window_default_params();

	params.wscale_source = (u8)source;
	params.network_wscale = (u8)network_scale;
	return window_syn_scale(&params, scale, is_answer);
}

EXPORT(u32, syn_scale, (u32 source, u32 network_scale, u32 scale, _Bool is_answer),
       (source, network_scale, scale, is_answer))
EXPORT(struct tcp_window, tcp_release_window,
       (struct tcp_window wanted, u16 window, u32 scale, u32 mss_bytes, u64 since_ns),
       (wanted, window, scale, mss_bytes, since_ns))
EXPORT(struct flow_change, flow_follow,
       (struct flow_entry * flow, struct handshake *handshake, const struct flow_packet *packet),
       (flow, handshake, packet))
EXPORT(u32, handshake_mss, (const struct handshake *handshake, u32 port_bytes),
       (handshake, port_bytes))
EXPORT(_Bool, handshake_is_half_open, (const struct handshake *handshake), (handshake))
EXPORT(s32, flow_expire, (struct flow_entry * flow, u64 now_ns, u64 idle_ns),
       (flow, now_ns, idle_ns))

/* What each ACK needs of its flow, in one call; FlowAck in src/flow.rs. */
struct flow_ack {
	struct flow_change change;
	u32 kind;
	u32 scale;
	u32 mss_bytes;
};

struct flow_ack core_flow_follow_ack(struct flow_entry *flow, struct handshake *handshake,
				     const struct flow_packet *packet, u32 first_acks,
				     u32 port_bytes);
struct flow_ack core_flow_follow_ack(struct flow_entry *flow, struct handshake *handshake,
				     const struct flow_packet *packet, u32 first_acks,
				     u32 port_bytes)
{
	struct flow_ack ack = {.change = flow_follow(flow, handshake, packet)};

	ack.kind = flow_ack_kind(flow, packet->flags, first_acks);
	ack.scale = flow_scale(flow, FLOW_ACKS);
	ack.mss_bytes = flow_mss(flow, port_bytes);
	if (!ack.mss_bytes)
		ack.mss_bytes = handshake_mss(handshake, port_bytes);
	return ack;
}

/* flow_expire: -1 if the flow was counted, 0 if it was not; 1 if it still is. */
s32 core_flow_sweep(struct flow_entry *flow, u64 now_ns, u64 idle_ns);
s32 core_flow_sweep(struct flow_entry *flow, u64 now_ns, u64 idle_ns)
{
	s32 delta = flow_expire(flow, now_ns, idle_ns);

	return delta ? delta : (s32)flow_is_counted(flow);
}

EXPORT(u32, flow_is_counted, (const struct flow_entry *flow), (flow))
EXPORT(u32, flow_scale, (const struct flow_entry *flow, u32 direction), (flow, direction))
EXPORT(u32, flow_mss, (const struct flow_entry *flow, u32 port_bytes), (flow, port_bytes))
EXPORT(u32, flow_ack_kind, (const struct flow_entry *flow, u32 flags, u32 first_acks),
       (flow, flags, first_acks))
EXPORT(u32, flow_counter_on_packet,
       (struct flow_counter * counter, u32 flags, u32 payload, u32 is_out, u64 now_ns),
       (counter, flags, payload, is_out, now_ns))
EXPORT(u32, flow_counter_expire, (struct flow_counter * counter, u64 now_ns, u64 idle_ns),
       (counter, now_ns, idle_ns))

EXPORT_VOID(scheme_init, (u32 scheme, void *s, const void *p), (scheme, s, p))
EXPORT_VOID(scheme_on_flows, (u32 scheme, void *s, u32 flows), (scheme, s, flows))
EXPORT(u32, scheme_counting, (u32 scheme, const void *p), (scheme, p))
EXPORT_VOID(scheme_on_mss, (u32 scheme, void *s, u32 mss), (scheme, s, mss))
EXPORT(_Bool, segment_heeds,
       (const struct port_segments *port, u32 bytes, _Bool is_full, u64 now_ns),
       (port, bytes, is_full, now_ns))
EXPORT_VOID(segment_on_data, (struct port_segments * port, u32 bytes, _Bool is_full, u64 now_ns),
	    (port, bytes, is_full, now_ns))
EXPORT_VOID(scheme_on_queue, (u32 scheme, void *s, const void *p, u32 queue_bytes, u64 now_ns),
	    (scheme, s, p, queue_bytes, now_ns))
EXPORT(_Bool, scheme_heeds_queue,
       (u32 scheme, const void *s, const void *p, u32 queue_bytes, u64 now_ns),
       (scheme, s, p, queue_bytes, now_ns))
EXPORT(_Bool, scheme_is_clamping, (u32 scheme, const void *s, const void *p, u64 now_ns),
       (scheme, s, p, now_ns))
EXPORT(u64, scheme_tick_ns, (u32 scheme, const void *p), (scheme, p))
EXPORT_VOID(scheme_on_tick,
	    (u32 scheme, void *s, const void *p, u32 queue_bytes, u64 total_bytes, u64 now_ns),
	    (scheme, s, p, queue_bytes, total_bytes, now_ns))
EXPORT(struct tcp_window, scheme_on_ack,
       (u32 scheme, const void *s, const void *p, u16 window, u32 scale, u32 mss_bytes, u32 kind,
	u64 now_ns),
       (scheme, s, p, window, scale, mss_bytes, kind, now_ns))
EXPORT(u32, scheme_window_bytes, (u32 scheme, const void *s, const void *p), (scheme, s, p))
EXPORT(u32, scheme_drops,
       (u32 scheme, const void *p, u32 queue_bytes, u32 packet_bytes, _Bool is_control),
       (scheme, p, queue_bytes, packet_bytes, is_control))

/* What each packet needs, in one call: the queue and its data or its ACK; whether it clamps. */
_Bool core_scheme_follow(u32 scheme, void *s, const void *p, struct port_segments *segments,
			 u32 payload, _Bool is_full, u32 queue_bytes, u64 now_ns);
_Bool core_scheme_follow(u32 scheme, void *s, const void *p, struct port_segments *segments,
			 u32 payload, _Bool is_full, u32 queue_bytes, u64 now_ns)
{
	u32 mss = segments->bytes;

	segment_on_data(segments, payload, is_full, now_ns);
	if (segments->bytes != mss)
		scheme_on_mss(scheme, s, segments->bytes);
	scheme_on_queue(scheme, s, p, queue_bytes, now_ns);
	return scheme_is_clamping(scheme, s, p, now_ns);
}

/* `flows` is that of scheme_on_first_ack, 0 for any other ACK. */
struct tcp_window core_scheme_follow_ack(u32 scheme, void *s, const void *p, u32 flows,
					 u32 queue_bytes, u16 window, u32 scale, u32 mss_bytes,
					 u32 kind, u64 now_ns, _Bool *is_clamping);
struct tcp_window core_scheme_follow_ack(u32 scheme, void *s, const void *p, u32 flows,
					 u32 queue_bytes, u16 window, u32 scale, u32 mss_bytes,
					 u32 kind, u64 now_ns, _Bool *is_clamping)
{
	scheme_on_queue(scheme, s, p, queue_bytes, now_ns);
	*is_clamping = scheme_is_clamping(scheme, s, p, now_ns);
	if (flows)
		return scheme_on_first_ack(scheme, s, p, flows, window, scale, mss_bytes, kind,
					   now_ns);
	return scheme_on_ack(scheme, s, p, window, scale, mss_bytes, kind, now_ns);
}

/* FairQ's three parts of a tick, which the golden vectors call apart. */
EXPORT_VOID(fairq_on_sent,
	    (struct fairq_state * s, const struct fairq_params *p, u64 total_bytes, u64 now_ns),
	    (s, p, total_bytes, now_ns))
EXPORT_VOID(fairq_on_sample, (struct fairq_state * s, u32 queue_bytes), (s, queue_bytes))
EXPORT_VOID(fairq_on_interval,
	    (struct fairq_state * s, const struct fairq_params *p, u32 queue_bytes),
	    (s, p, queue_bytes))

EXPORT(u32, sicc_on_packet,
       (struct sicc_port * port, const struct sicc_params *p, u32 flags, u64 now_ns),
       (port, p, flags, now_ns))
EXPORT(u32, sicc_on_interval,
       (struct sicc_port * port, const struct sicc_params *p, u32 queue_bytes, u64 now_ns),
       (port, p, queue_bytes, now_ns))
EXPORT_VOID(sicc_pair_on,
	    (struct sicc_pair * pair, const struct sicc_params *p, u16 mss_bytes, u32 scale,
	     u64 now_ns),
	    (pair, p, mss_bytes, scale, now_ns))
EXPORT(_Bool, sicc_pair_is_on, (const struct sicc_pair *pair, u64 now_ns), (pair, now_ns))
EXPORT_VOID(sicc_pair_off, (struct sicc_pair * pair), (pair))
EXPORT(struct tcp_window, sicc_pair_on_ack,
       (const struct sicc_pair *pair, const struct sicc_params *p, u16 window, u32 scale, u32 kind,
	u64 now_ns),
       (pair, p, window, scale, kind, now_ns))

EXPORT(u32, hcf_flow_key,
       (u32 seed, u32 source, u32 destination, u16 source_port, u16 destination_port),
       (seed, source, destination, source_port, destination_port))
EXPORT(u32, hcf_fold6, (u32 seed, const u32 *address), (seed, address))
EXPORT(u32, hcf_key_seed, (const struct hcf_state *s), (s))
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

EXPORT_VOID(grant_init,
	    (struct grant_port * port, const struct grant_params *p, u64 rate, _Bool never_shrinks),
	    (port, p, rate, never_shrinks))
EXPORT(u64, grant_tick_ns, (const struct grant_port *port, const struct grant_params *p), (port, p))
EXPORT(u32, grant_begin,
       (struct grant_port * port, const struct grant_params *p, struct grant_flow *flows,
	const struct grant_packet *packet, const struct grant_opening *opening),
       (port, p, flows, packet, opening))
EXPORT(u32, grant_syn_window,
       (const struct grant_port *port, const struct grant_params *p, u32 mss, u32 half_open,
	_Bool must_open, u32 queue, u64 now_ns),
       (port, p, mss, half_open, must_open, queue, now_ns))
EXPORT_VOID(grant_close, (struct grant_port * port, struct grant_flow *flows, u32 index),
	    (port, flows, index))
EXPORT(_Bool, grant_is_open, (const struct grant_flow *flows, u32 index), (flows, index))
EXPORT_VOID(grant_on_bytes,
	    (struct grant_port * port, const struct grant_params *p, u32 bytes, u64 now_ns),
	    (port, p, bytes, now_ns))
EXPORT(u16, grant_on_ack,
       (struct grant_port * port, const struct grant_params *p, struct grant_flow *flows, u32 index,
	const struct grant_packet *packet, u32 queue),
       (port, p, flows, index, packet, queue))
EXPORT_VOID(grant_on_data,
	    (struct grant_port * port, const struct grant_params *p, struct grant_flow *flows,
	     u32 index, const struct grant_packet *packet),
	    (port, p, flows, index, packet))
EXPORT(struct grant_action, grant_next,
       (struct grant_port * port, const struct grant_params *p, struct grant_flow *flows, u32 queue,
	u64 now_ns),
       (port, p, flows, queue, now_ns))
EXPORT(struct grant_action, grant_on_timer,
       (struct grant_port * port, const struct grant_params *p, struct grant_flow *flows, u32 queue,
	u64 now_ns),
       (port, p, flows, queue, now_ns))
EXPORT_VOID(grant_learn, (struct grant_port * port, const struct grant_params *p), (port, p))
/* core_NAME returns a number that stands in core/. */
#define EXPORT_NUMBER(name, number)                                                                \
	u32 core_##name(void);                                                                     \
	u32 core_##name(void)                                                                      \
	{                                                                                          \
		return number;                                                                     \
	}

EXPORT_NUMBER(grant_flows, GRANT_FLOWS)
EXPORT_NUMBER(grant_flow_bytes, sizeof(struct grant_flow))
EXPORT_NUMBER(grant_burst, GRANT_BURST)
EXPORT_NUMBER(grant_learn_ns, GRANT_LEARN_NS)
EXPORT_NUMBER(grant_counts, offsetof(struct grant_port, grants))
