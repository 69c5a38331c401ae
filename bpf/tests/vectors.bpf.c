/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests only: every event of tests/vectors as a program that calls core/, so that the golden
 * vectors run through the verifier and the JIT. Arguments, state and results are global data.
 *
 * run_FILE_EVENT leaves the event's result in `result` or `rewritten`; run_FILE_state, where the
 * vectors have more than a state's fields, in `derived`.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../../core/flow_counter.h"
#include "../../core/handshake.h"
#include "../../core/hcf.h"
#include "../../core/schemes.h"
#include "../../core/sicc.h"

/* The arguments of all events, by their names in the vectors. */
struct arguments {
	u64 ack, bytes, checksum, delta, destination, destination_port, direction, field, flags;
	u64 floor_bytes, idle_ns, is_control, is_full, is_out, key, kind, limit_bytes, mss,
		mss_bytes;
	u64 network, new, now_ns, offset, old, own, packet_bytes, payload;
	u64 queue, queue_bytes, scale, seed, seq, size_bytes, source, source_port, total_bytes,
		window, word;
};

/* Values of a state in the vectors that are not fields of it. */
struct derived {
	u64 is_counted, is_half_open, scale_data, scale_acks, mss, mss_at_port, is_clamping,
		credits;
};

struct arguments args;
struct derived derived;
s64 result;
struct tcp_window rewritten;

struct tcp_edge edge;
struct flow_entry flow;
struct handshake handshake;
struct port_segments segments;
struct flow_counter counter;
struct scheme_params params;
struct scheme_states states;
u8 state[sizeof(struct scheme_states)]; /* of one scheme, from its first byte on */
u32 flows;
struct sicc_params sicc_params;
struct sicc_port sicc;
struct sicc_pair pair;
struct hcf_params hcf_params;
struct hcf_state hcf;

#define RUN(NAME, STATEMENT)                                                                       \
	SEC("syscall")                                                                             \
	int run_##NAME(void *context)                                                              \
	{                                                                                          \
		(void)context;                                                                     \
		STATEMENT;                                                                         \
		return 0;                                                                          \
	}

RUN(tcp_rewrite_lower_window,
    rewritten = tcp_lower_window((u16)args.window, (u32)args.scale, (u32)args.limit_bytes,
				 (u32)args.floor_bytes))
RUN(tcp_rewrite_keep_edge,
    rewritten = tcp_lower_window((u16)args.window, (u32)args.scale, (u32)args.limit_bytes, 1448);
    rewritten = tcp_keep_edge(&edge, (u32)args.ack, (u16)args.window, (u32)args.scale, rewritten))
RUN(tcp_rewrite_checksum_update,
    result = tcp_checksum_update((u16)args.checksum, (u16)args.old, (u16)args.new))
RUN(tcp_rewrite_checksum_update_byte,
    result = tcp_checksum_update_byte((u16)args.checksum, (u32)args.offset, (u8)args.old,
				      (u8)args.new))
RUN(tcp_rewrite_reserved_put_scale,
    result = tcp_reserved_put_scale((u16)args.word, (u32)args.scale))
RUN(tcp_rewrite_reserved_scale, result = tcp_reserved_scale((u16)args.word))
RUN(tcp_rewrite_reserved_clear, result = tcp_reserved_clear((u16)args.word))
RUN(tcp_rewrite_window12_put, result = tcp_window12_put((u16)args.window, (u32)args.scale))
RUN(tcp_rewrite_window12_scale, result = tcp_window12_scale((u16)args.field))
RUN(tcp_rewrite_window12_window, result = tcp_window12_window((u16)args.field))
RUN(tcp_rewrite_unify_window,
    result = tcp_unify_window((u16)args.window, (u32)args.own, (u32)args.network))

static __always_inline s32 on_packet(void)
{
	struct flow_packet packet = {
		.now_ns = args.now_ns,
		.seq = (u32)args.seq,
		.ack = (u32)args.ack,
		.payload = (u32)args.payload,
		.mss = (u16)args.mss,
		.scale = (u8)args.scale,
		.flags = (u8)args.flags,
		.direction = (u8)args.direction,
	};

	return flow_follow(&flow, &handshake, &packet).flows;
}

RUN(flow_packet, result = on_packet())
RUN(flow_expire, result = flow_expire(&flow, args.now_ns, args.idle_ns))
RUN(flow_counter_packet,
    result = flow_counter_on_packet(&counter, (u32)args.flags, (u32)args.payload, (u32)args.is_out,
				    args.now_ns))
RUN(flow_counter_expire, result = flow_counter_expire(&counter, args.now_ns, args.idle_ns))
RUN(flow_state, derived.is_counted = flow_is_counted(&flow);
    derived.is_half_open = handshake_is_half_open(&handshake);
    derived.scale_data = flow_scale(&flow, FLOW_DATA);
    derived.scale_acks = flow_scale(&flow, FLOW_ACKS); derived.mss = flow_mss(&flow, 0);
    derived.mss_at_port = flow_mss(&flow, 8960))
RUN(segment_data,
    segment_on_data(&segments, (u32)args.size_bytes, (_Bool)args.is_full, args.now_ns))

/* The events of every window scheme; `flow` counts as the caller of a scheme does. */
static __always_inline u32 changed_flows(void)
{
	s64 changed = (s64)flows + (s32)args.delta;

	flows = changed > 0 ? (u32)changed : 0;
	return flows;
}

#define RUN_SCHEME(name, NAME, ...)                                                                \
	RUN(name##_init, name##_init(&states.name, &params.name))                                  \
	RUN(name##_flow, name##_on_flows(&states.name, changed_flows()))                           \
	RUN(name##_mss, name##_on_mss(&states.name, (u32)args.mss_bytes))                          \
	RUN(name##_queue,                                                                          \
	    name##_on_queue(&states.name, &params.name, (u32)args.queue_bytes, args.now_ns))       \
	RUN(name##_tick, name##_on_tick(&states.name, &params.name, (u32)args.queue_bytes,         \
					args.total_bytes, args.now_ns))                            \
	RUN(name##_ack, rewritten = name##_on_ack(&states.name, &params.name, (u16)args.window,    \
						  (u32)args.scale, (u32)args.mss_bytes,            \
						  (u32)args.kind, args.now_ns))                    \
	RUN(name##_drops, result = name##_drops(&params.name, (u32)args.queue_bytes,               \
						(u32)args.packet_bytes, (_Bool)args.is_control))   \
	RUN(name##_state,                                                                          \
	    derived.is_clamping = name##_is_clamping(&states.name, &params.name, args.now_ns);     \
	    __builtin_memcpy(state, &states.name, sizeof(states.name)))

WINDOW_SCHEMES(RUN_SCHEME)

/* FairQ's three parts of a tick. */
RUN(fairq_sent, fairq_on_sent(&states.fairq, &params.fairq, args.total_bytes, args.now_ns))
RUN(fairq_sample, fairq_on_sample(&states.fairq, (u32)args.queue_bytes))
RUN(fairq_interval, fairq_on_interval(&states.fairq, &params.fairq, (u32)args.queue_bytes))

RUN(sicc_packet, result = sicc_on_packet(&sicc, &sicc_params, (u32)args.flags, args.now_ns))
RUN(sicc_interval,
    result = sicc_on_interval(&sicc, &sicc_params, (u32)args.queue_bytes, args.now_ns))
RUN(sicc_pair_on,
    sicc_pair_on(&pair, &sicc_params, (u16)args.mss_bytes, (u32)args.scale, args.now_ns))
RUN(sicc_pair_off, sicc_pair_off(&pair))
RUN(sicc_pair_ack, rewritten = sicc_pair_on_ack(&pair, &sicc_params, (u16)args.window,
						(u32)args.scale, (u32)args.kind, args.now_ns))

static __always_inline u64 all_credits(void)
{
	u64 credits = 0;
	u32 bin;

	for (bin = 0; bin < HCF_MAX_BINS && bin < hcf_params.bins; bin++)
		credits += hcf_credits_left(&hcf, &hcf_params, bin);
	return credits;
}

RUN(hcf_init, hcf_init(&hcf, &hcf_params, (u32)args.seed))
RUN(hcf_enqueue, result = hcf_on_enqueue(&hcf, &hcf_params, (u32)args.key, (u32)args.size_bytes))
RUN(hcf_dequeue, result = hcf_on_dequeue(&hcf))
RUN(hcf_departed, hcf_departed(&hcf, &hcf_params, (u32)args.queue, (u32)args.size_bytes))
RUN(hcf_tick, hcf_on_tick(&hcf, &hcf_params))
RUN(hcf_flow_key, result = hcf_flow_key((u32)args.seed, (u32)args.source, (u32)args.destination,
					(u16)args.source_port, (u16)args.destination_port))
RUN(hcf_state, derived.credits = all_credits())

char LICENSE[] SEC("license") = "Dual BSD/GPL";
