/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet's way through a port: watched at egress, rewritten at ingress. `acting` is the scheme, a
 * constant where these are inlined; with SCHEME_NONE nothing is rewritten, but the ACKs that each
 * scheme would have rewritten are counted. Flows that the policy leaves alone (policy.h) are
 * followed, but not rewritten.
 */
#ifndef PENSTOCK_PORT_H
#define PENSTOCK_PORT_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "observe.h"
#include "options.h"
#include "parse_fast.h"
#include "policy.h"
#include "scale.h"
#include "sender.h"

#define NEXT (-1) /* TCX_NEXT, TC_ACT_UNSPEC: the next program decides */

/* A program's view of its port. */
struct port_ctx {
	struct port_config *config;
	struct port_state *port;
	struct port_counters *counted; /* of its struct port_stats */
};

/* The slot of an interface, not in the first element for it; ~0: it has none. */
__noinline u32 slot_probe(u32 ifindex)
{
	for (u32 i = 1; i < PORT_PROBES; i++) {
		u32 at = (ifindex + i) & (PORT_INDEXES - 1);
		u32 *slot = bpf_map_lookup_elem(&slots, &at);
		struct port_config *setup = slot ? bpf_map_lookup_elem(&config, slot) : 0;

		if (setup && setup->ifindex == ifindex)
			return *slot;
	}
	return ~0u;
}

static __always_inline _Bool port_ctx_open(struct __sk_buff *skb, struct port_ctx *ctx)
{
	u32 ifindex = skb->ifindex, slot = ifindex & (PORT_INDEXES - 1), *found;
	struct port_stats *stats;

	found = bpf_map_lookup_elem(&slots, &slot);
	if (!found)
		return 0;
	slot = *found;
	ctx->config = bpf_map_lookup_elem(&config, &slot);
	if (ctx->config && ctx->config->ifindex != ifindex) {
		slot = slot_probe(ifindex);
		ctx->config = bpf_map_lookup_elem(&config, &slot);
	}
	if (!ctx->config)
		return 0;
	ctx->port = bpf_map_lookup_elem(&port, &slot);
	stats = stats_find(slot);
	if (!ctx->port || !stats)
		return 0;
	ctx->counted = &stats->counters;
	return 1;
}

/* Ethernet, IPv6, TCP with timestamps: what a super-packet has once, and its segments each. */
#define SEGMENT_HEADERS 86u

/*
 * Segments of a packet. A guest's super-packet comes without their number (SKB_GSO_DODGY), which
 * the kernel need not have computed before the hook; by the headers above it may be one less.
 */
static __always_inline u32 segments_of(const struct __sk_buff *skb)
{
	u32 segments = skb->gso_segs, size = skb->gso_size;

	if (segments || !size)
		return max_u32(segments, 1);
	return (max_u32(skb->len, SEGMENT_HEADERS + 1) - SEGMENT_HEADERS + size - 1) / size;
}

static __always_inline void count_passing(struct port_counters *counted, struct __sk_buff *skb,
					  _Bool is_egress)
{
	if (is_egress) {
		counted->egress_packets += segments_of(skb);
		counted->egress_bytes += skb->len;
	} else {
		counted->ingress_packets++;
	}
}

/* What verifiers need not follow further of a packet (forgotten). */
static __always_inline void packet_forget(struct packet *packet, u64 now_ns)
{
	packet->family = (u8)forgotten(packet->family, now_ns);
	packet->is_tunnelled = (u8)forgotten(packet->is_tunnelled, now_ns);
}

static __always_inline int pass(struct port_counters *counted, u32 reason)
{
	if (reason < PASS_REASONS)
		counted->passed[reason]++;
	return NEXT;
}

/*
 * For how long the port has not acted: since it was paused, or since its heartbeat became stale.
 * 0: it acts. Global, as release_window below: the verifier checks them once, by themselves.
 */
__noinline u64 port_released_ns(u32 port, u64 now_ns)
{
	u32 slot = port & PORT_SLOT_MASK;
	struct port_config *setup = bpf_map_lookup_elem(&config, &slot);
	u64 *beat = bpf_map_lookup_elem(&heartbeat, &slot);
	u64 age_ns, released_ns = 0;

	if (!setup || !beat || !*beat || elapsed_ns(now_ns, *beat) > setup->stale_ns)
		return ~0ull; /* none yet, or far in the future: of another clock */
	age_ns = elapsed_ns(*beat, now_ns);
	if (age_ns > setup->stale_ns)
		released_ns = age_ns - setup->stale_ns;
	if (now_ns >= setup->pause_ns && now_ns < setup->resume_ns)
		released_ns = max_u64(released_ns, now_ns - setup->pause_ns + 1);
	return released_ns;
}

/* The window field while a port lets go. */
__noinline u32 release_window(u32 wanted, u32 window, u32 scale, u32 mss, u64 since_ns)
{
	struct tcp_window from = {(u16)wanted, 1, 0};

	return tcp_release_window(from, (u16)window, scale, mss, since_ns).window;
}

/* The same where it is called for each packet: mostly, the port acts. */
static __always_inline u64 released_ns(const struct port_ctx *ctx, u64 now_ns)
{
	u32 slot = ctx->port->id & PORT_SLOT_MASK;
	const struct port_config *setup = ctx->config;
	const u64 *beat = bpf_map_lookup_elem(&heartbeat, &slot);

	if (beat && now_ns >= *beat && now_ns - *beat <= setup->stale_ns &&
	    (now_ns < setup->pause_ns || now_ns >= setup->resume_ns))
		return 0;
	return port_released_ns(ctx->port->id, now_ns);
}

static __always_inline _Bool is_alive(const struct port_ctx *ctx, u64 now_ns)
{
	return !port_released_ns(ctx->port->id, now_ns);
}

static __always_inline struct flow_packet
flow_packet_of(struct __sk_buff *skb, const struct packet *packet, u32 direction, u64 now_ns)
{
	struct flow_packet seen = {
		.now_ns = now_ns,
		.seq = packet->seq,
		.ack = packet->ack,
		.payload = packet->payload,
		.scale = FLOW_SCALE_NONE,
		.flags = (u8)packet_flags(packet),
		.direction = (u8)direction,
	};

	seen.mss = direction == FLOW_DATA ? (u16)skb->gso_size : 0;
	if (seen.flags & TCP_FLAG_SYN) {
		u32 options = options_read(skb, packet->tcp, packet_header_bytes(packet) - 20);

		seen.mss = (u16)options;
		seen.scale = (u8)(options >> 16);
	}
	return seen;
}

/* An RST with a SYN is neither's. */
static __always_inline _Bool is_syn(const struct flow_packet *seen)
{
	return (seen->flags & (TCP_FLAG_SYN | TCP_FLAG_RST)) == TCP_FLAG_SYN;
}

/*
 * SYNs whose scale the port changes, of all flows, before its tables see them; with the papers'
 * shims at one end only, also the bits of ACKs, which are read from `packet` later.
 */
static __always_inline void scale_on_packet(struct __sk_buff *skb, const struct port_ctx *ctx,
					    struct packet *packet, u32 direction, u64 now_ns)
{
	const struct window_params *window = &ctx->config->window;
	u32 flags = packet_flags(packet), source = window->wscale_source;

	if (packet->is_tunnelled || flags & TCP_FLAG_RST)
		return;
	if (flags & TCP_FLAG_SYN) {
		if ((source != WSCALE_STRIPPED && source != WSCALE_LOWERED) ||
		    !is_alive(ctx, now_ns))
			return;
		pass(ctx->counted, (u32)scale_change_syn(skb, ctx->config, packet->tcp,
							 packet_header_bytes(packet),
							 (flags & TCP_FLAG_ACK) != 0));
	} else if (direction == FLOW_ACKS && source == WSCALE_RESERVED_BITS &&
		   window->clears_bits && tcp_reserved_scale(packet->offset_flags)) {
		pass(ctx->counted, (u32)scale_clear(skb, packet));
	} else {
		return;
	}
	/* It changed; a header that could be written can be read. */
	bpf_skb_load_bytes(skb, packet->tcp + TCP_CHECKSUM, &packet->checksum,
			   sizeof(packet->checksum));
}

static __always_inline void mark(struct __sk_buff *skb, const struct port_ctx *ctx,
				 const struct packet *packet, u32 queue_bytes, u64 now_ns)
{
	u32 ecn = packet_ecn(packet);

	if (!ctx->config->mark_bytes || queue_bytes < ctx->config->mark_bytes)
		return;
	if (!ecn || ecn == ECN_CE || !is_alive(ctx, now_ns))
		return;
	if (policy_spares(ctx->config, ctx->counted))
		return;
	/* The helper looks beneath tags in the packet, but would write into the tag. */
	if (skb->protocol == bpf_htons(ETH_P_8021Q) || skb->protocol == bpf_htons(ETH_P_8021AD))
		return;
	if (bpf_skb_ecn_set_ce(skb) > 0)
		ctx->counted->ecn_marks++;
}

/*
 * Packets for which a full queue costs most: a lost SYN waits a second, a lost ACK is a lost
 * window. They may overtake the data of their flow, since none is before a SYN and receivers take
 * ACKs in any order; a FIN or RST that overtakes it looks like loss, or cuts it off.
 */
static __always_inline _Bool may_overtake(const struct packet *packet)
{
	u32 flags = packet_flags(packet) & (TCP_FLAG_SYN | TCP_FLAG_FIN | TCP_FLAG_RST);

	return flags == TCP_FLAG_SYN || (!flags && !packet->payload);
}

static __always_inline void prioritize(struct __sk_buff *skb, const struct port_ctx *ctx,
				       const struct packet *packet, u64 now_ns)
{
	if (!ctx->config->control_priority || !may_overtake(packet) || !is_alive(ctx, now_ns) ||
	    policy_spares(ctx->config, ctx->counted))
		return;
	skb->priority = ctx->config->control_priority;
	ctx->counted->control_prioritized++;
}

/*
 * Whether the scheme drops the packet, a super-packet as its segments, whole also where it would
 * rather cut the payload. Other than TCP passes.
 */
static __always_inline _Bool drops(struct __sk_buff *skb, const struct port_ctx *ctx,
				   const struct packet *packet, u32 queue_bytes, u64 now_ns,
				   u32 acting)
{
	_Bool is_control = !packet->payload ||
			   packet_flags(packet) & (TCP_FLAG_SYN | TCP_FLAG_FIN | TCP_FLAG_RST);
	u32 packet_bytes = skb->len / segments_of(skb);

	return ctx->config->flags & PORT_DROPS &&
	       scheme_drops(acting, scheme_params_of(&ctx->config->schemes, acting), queue_bytes,
			    packet_bytes, is_control) &&
	       is_alive(ctx, now_ns) && !policy_spares(ctx->config, ctx->counted);
}

static __always_inline int watch_egress(struct __sk_buff *skb, u32 acting)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct port_flow *flow = 0;
	struct port_half *half = 0;
	struct packet packet;
	struct flow_packet seen;
	struct port_ctx ctx;
	u32 queue_bytes;
	int found;

	if (!port_ctx_open(skb, &ctx))
		return NEXT;
	if (ctx.config->abi != PENSTOCK_ABI)
		return pass(ctx.counted, PASS_STALE);
	policy_begin(ctx.config, ctx.port, ctx.counted);
	queue_bytes = queue_read(skb, ctx.port, now_ns);
	ms_sample_follow(skb, ctx.port, stats_of(ctx.counted), queue_bytes, now_ns);
	state_follow(ctx.port, ctx.config, queue_bytes, now_ns, acting);

	found = parse(skb, &packet, ctx.port->id, FLOW_DATA, ctx.config->flags & PORT_BARE_IP);
	policy_on_data(ctx.config, ctx.counted, skb, &packet, found == PARSE_TCP);
	if (acting != SCHEME_NONE && found == PARSE_TCP) {
		if (drops(skb, &ctx, &packet, queue_bytes, now_ns, acting)) {
			ctx.counted->data_dropped += segments_of(skb);
			return TC_ACT_SHOT;
		}
		prioritize(skb, &ctx, &packet, now_ns);
	}
	count_passing(ctx.counted, skb, 1);
	if (acting != SCHEME_NONE)
		mark(skb, &ctx, &packet, queue_bytes, now_ns);
	if (found != PARSE_TCP)
		return pass(ctx.counted, (u32)found);
	packet_forget(&packet, now_ns);
	if (acting != SCHEME_NONE)
		scale_on_packet(skb, &ctx, &packet, FLOW_DATA, now_ns);
	seen = flow_packet_of(skb, &packet, FLOW_DATA, now_ns);
	if (counts_packets(ctx.config, acting))
		flow_count_packet(ctx.port, &seen, acting);
	if (is_syn(&seen)) {
		half_on(ctx.port, ctx.counted, &packet, &seen, FLOW_DATA);
		half = ctx.config->policy ? half_find(&packet) : 0;
		if (half)
			policy_stamp(ctx.config, ctx.counted, &half->side, &half->policy);
	} else {
		flow = flow_on(ctx.port, ctx.config, ctx.counted, &packet, &seen, FLOW_DATA,
			       acting);
		if (flow)
			policy_stamp(ctx.config, ctx.counted, &flow->side, &flow->policy);
	}
	if (flow) /* anybody may send one packet */
		state_on_segment(ctx.port, ctx.counted, &seen, acting);
	policy_end(ctx.config, ctx.counted);
	return NEXT;
}

/* Counts the effect on an ACK whose window the scheme wanted to be `wanted`. */
static __always_inline void count_rewritten(const struct port_ctx *ctx, struct tcp_window out,
					    struct tcp_window wanted, u32 kind)
{
	struct port_counters *counted = ctx->counted;

	counted->acks_edge_kept += out.window > wanted.window;
	if (!out.changed)
		return;
	counted->acks_rewritten++;
	policy_on_rewritten(ctx->config, ctx->counted);
	counted->acks_floored += out.floored;
	counted->acks_first_rewritten += kind != TCP_ACK_LATER;
}

static __always_inline void count_would_rewrite(const struct port_ctx *ctx,
						const struct offer *offer, u64 now_ns, u32 scheme)
{
	ctx->counted->would_rewrite[scheme] +=
		scheme_window(ctx->port, ctx->config, offer, now_ns, scheme).changed;
}

/*
 * What was offered to the sender before; an ACK that it would ignore has offered nothing. It is
 * found again, as the three maps that it may be in would multiply what verifiers follow between.
 */
static __noinline struct tcp_edge *edge_find(const struct packet *packet,
					     const struct flow_packet *seen)
{
	struct port_flow *flow;
	struct port_half *half;

	if (!is_syn(seen)) {
		flow = flow_find(flow_name(packet));
		return flow && flow_is_plausible(&flow->entry, seen) ? &flow->edge : 0;
	}
	half = half_find(packet);
	return half ? &half->edge : 0;
}

/* Completes the offer of a flow whose scale no packet has shown, if it is known all the same. */
static __noinline void offer_recall(struct offer *offer, struct __sk_buff *skb,
				    const struct port_ctx *ctx, const struct packet *packet,
				    struct port_flow *flow)
{
	u32 segment_bytes = ctx->port->segments.bytes;
	struct flow_known recalled = {};

	/* A scale that the port lowered is another than the socket's. */
	if (ctx->config->window.wscale_source != WSCALE_LOWERED &&
	    sender_recall(skb, packet, &recalled))
		known_enter(flow, &recalled);
	else if (!known_recall(packet, flow, &recalled))
		return;
	offer->scale = known_scale(&recalled, FLOW_ACKS);
	offer->mss = segment_expected(recalled.mss, flow ? flow->entry.segment : 0, segment_bytes);
}

/* The window that leaves, if the scheme wants `wanted`: it opens if the port no longer acts. */
static __always_inline struct tcp_window decide(const struct port_ctx *ctx,
						const struct packet *packet, struct tcp_edge *edge,
						const struct offer *offer, struct tcp_window wanted,
						u64 now_ns)
{
	u64 since_ns = wanted.changed ? released_ns(ctx, now_ns) : 0;

	if (since_ns) {
		ctx->counted->passed[PASS_STALE]++;
		wanted.window = (u16)release_window(wanted.window, offer->window, offer->scale,
						    offer->mss, since_ns);
		wanted.changed = wanted.window < offer->window;
	}
	if (edge && packet_flags(packet) & TCP_FLAG_ACK)
		return tcp_keep_edge(edge, packet->ack, offer->window, offer->scale, wanted);
	return wanted;
}

static __always_inline int rewrite_ingress(struct __sk_buff *skb, u32 acting)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct packet packet;
	struct tcp_window wanted, out;
	struct flow_packet seen;
	struct port_flow *flow = 0;
	struct port_half *half = 0;
	struct tcp_edge *edge;
	struct offer offer;
	struct port_ctx ctx;
	int found;

	if (!port_ctx_open(skb, &ctx))
		return NEXT;
	count_passing(ctx.counted, skb, 0);
	if (ctx.config->abi != PENSTOCK_ABI)
		return pass(ctx.counted, PASS_STALE);
	policy_begin(ctx.config, ctx.port, ctx.counted);
	state_follow(ctx.port, ctx.config, queue_read(skb, ctx.port, now_ns), now_ns, acting);

	found = parse(skb, &packet, ctx.port->id, FLOW_ACKS, ctx.config->flags & PORT_BARE_IP);
	if (found != PARSE_TCP)
		return pass(ctx.counted, (u32)found);
	packet_forget(&packet, now_ns);
	if (acting != SCHEME_NONE)
		scale_on_packet(skb, &ctx, &packet, FLOW_ACKS, now_ns);
	seen = flow_packet_of(skb, &packet, FLOW_ACKS, now_ns);
	if (counts_packets(ctx.config, acting))
		flow_count_packet(ctx.port, &seen, acting);
	if (is_syn(&seen)) {
		half_on(ctx.port, ctx.counted, &packet, &seen, FLOW_ACKS);
		half = half_find(&packet);
	} else {
		flow = flow_on(ctx.port, ctx.config, ctx.counted, &packet, &seen, FLOW_ACKS,
			       acting);
	}
	if (!(seen.flags & (TCP_FLAG_ACK | TCP_FLAG_SYN)))
		return NEXT;
	ctx.counted->acks++;
	policy_on_acks(ctx.config, ctx.counted, skb, &packet, flow, half);
	policy_end(ctx.config, ctx.counted);
	if (seen.flags & TCP_FLAG_RST || policy_spares(ctx.config, ctx.counted))
		return NEXT;

	offer = offer_of(&packet, ctx.config, flow, half, ctx.port->segments.bytes);
	if (offer.scale == TCP_SCALE_UNKNOWN)
		offer_recall(&offer, skb, &ctx, &packet, flow);
	offer.kind = (u16)forgotten(offer.kind, now_ns);
	offer.scale = forgotten(offer.scale, now_ns);
	offer.mss = forgotten(offer.mss, now_ns);
	if (!offer.window)
		ctx.counted->zero_windows++;
	else if (offer.scale == TCP_SCALE_UNKNOWN)
		ctx.counted->passed[PASS_UNKNOWN_SCALE]++;
	if (acting == SCHEME_NONE) {
		WINDOW_SCHEMES(FOR_UPDATED, count_would_rewrite, acting, &ctx, &offer, now_ns)
		return NEXT;
	}
	wanted = scheme_window(ctx.port, ctx.config, &offer, now_ns, acting);
	if (wanted.changed && is_authenticated(skb, &packet))
		return pass(ctx.counted, PASS_AUTHENTICATED);
	edge = ctx.config->window.never_shrink ? edge_find(&packet, seen_apart(ctx.counted, &seen))
					       : 0;
	out = decide(&ctx, &packet, edge, &offer, wanted, now_ns);
	if (out.changed &&
	    write_window(skb, &packet, carried_window(ctx.config, &offer, out.window)))
		return pass(ctx.counted, PASS_FAILED);
	count_rewritten(&ctx, out, wanted, offer.kind);
	return NEXT;
}

/*
 * How the programs below a host begin: counts and parses the packet, which has this direction in
 * its flow. 0: it is not TCP, or not ours, and passes.
 */
static __always_inline _Bool open_below_host(struct __sk_buff *skb, struct port_ctx *ctx,
					     struct packet *packet, u32 direction, _Bool is_egress)
{
	int found;

	if (!port_ctx_open(skb, ctx))
		return 0;
	if (ctx->config->abi != PENSTOCK_ABI) {
		pass(ctx->counted, PASS_STALE);
		return 0;
	}
	count_passing(ctx->counted, skb, is_egress);
	found = parse(skb, packet, ctx->port->id, direction, ctx->config->flags & PORT_BARE_IP);
	if (found != PARSE_TCP)
		pass(ctx->counted, (u32)found);
	return found == PARSE_TCP;
}

#endif
