/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shim, below a host or a virtual machine: it carries the scale of each window to the ports of
 * the network, so that these need not follow flows (FairQ §III-B). Egress is what the host sends.
 *
 * WSCALE_RESERVED_BITS and WSCALE_WINDOW_BITS put the scale into each ACK that leaves; ACKs that
 * arrive are restored, as of several ports on the way none knows whether it is the last to read it.
 * WSCALE_UNIFIED writes the network's scale into the SYN, and each later window in that scale.
 *
 * When the agent is dead, the shim starts nothing new, but continues what others would misread if
 * it stopped:
 * - reserved bits are no longer written (a port then takes the window as unscaled, and lowers it
 *   less), but still cleared, or checksums would be wrong;
 * - twelve bits are written and read as before: the shim at the other end cannot know that a field
 *   is unchanged, and would cut it;
 * - SYNs keep their own scale, and the windows of flows whose SYN was changed are still written in
 *   the network's. These flows also outlast another source or scale in the config. Detach only when
 *   they have ended: `acks_rewritten` stands still then.
 *
 * Limits. A flow first seen in mid-life of which nothing is known (known.h) is left alone (its
 * window field is cut to twelve bits with the scale 0, though). Packets already in a tunnel pass.
 * The table of flows is bounded: entries of unified flows stay 15 min after their ends. Where three
 * quarters are taken, those silent for 2.5 h are given up, too.
 * Network cards that sum up TCP by themselves, not from the kernel's partial sum, spoil the
 * checksum under reserved bits.
 */
#ifndef PENSTOCK_SHIM_H
#define PENSTOCK_SHIM_H

#include "scale.h"

/* The host's SYN is to offer the network's scale. A repeated one repeats the first's. */
static __always_inline int shim_unify_syn(struct __sk_buff *skb, const struct port_ctx *ctx,
					  const struct packet *packet,
					  const struct flow_packet *seen, struct port_half *half)
{
	u32 scale = window_network_wscale(&ctx->config->window), options, at;

	if (!half || (half->is_repeated && !half->unified))
		return NEXT;
	if (half->is_repeated)
		scale = half->unified - 1u;
	else if (ctx->config->window.wscale_source != WSCALE_UNIFIED)
		return NEXT;
	else if (!is_alive(ctx, seen->now_ns))
		return pass(ctx->counted, PASS_STALE);
	if (seen->scale == FLOW_SCALE_NONE)
		return NEXT;
	options = options_read(skb, packet->tcp, packet_header_bytes(packet) - 20);
	if (options & OPTIONS_AUTHENTICATED)
		return pass(ctx->counted, PASS_AUTHENTICATED);
	at = options_scale_at(options);
	if (seen->scale != scale && scale_write_byte(skb, packet->tcp, at, (u8)scale))
		return pass(ctx->counted, PASS_FAILED);
	half->unified = (u8)(scale + 1);
	return NEXT;
}

/* Such a segment passes as it is, counted. */
static __always_inline _Bool shim_is_authenticated(struct __sk_buff *skb,
						   const struct port_ctx *ctx,
						   const struct packet *packet)
{
	_Bool is_so = is_authenticated(skb, packet);

	ctx->counted->passed[PASS_AUTHENTICATED] += is_so;
	return is_so;
}

/* What is known of an ACK's flow, by its own entry or else by others. */
static __always_inline struct flow_known shim_recall(const struct packet *packet,
						     struct port_flow *flow)
{
	struct flow_known recalled = {.scale = {TCP_SCALE_UNKNOWN, TCP_SCALE_UNKNOWN}};

	if (flow && flow->entry.phase != FLOW_UNSEEN) {
		recalled.scale[FLOW_DATA] = flow->entry.scale[FLOW_DATA];
		recalled.unified = flow->unified;
	}
	if (recalled.scale[FLOW_DATA] == TCP_SCALE_UNKNOWN)
		known_recall(packet, flow, &recalled);
	return recalled;
}

/* Writes the window field or the reserved bits of an ACK that leaves. */
static __always_inline int shim_carry(struct __sk_buff *skb, const struct port_ctx *ctx,
				      const struct packet *packet, struct port_flow *flow,
				      u64 now_ns)
{
	struct flow_known recalled = shim_recall(packet, flow);
	u32 scale = known_scale(&recalled, FLOW_DATA);
	u16 window = packet->window;

	if (scale == TCP_SCALE_UNKNOWN)
		ctx->counted->passed[PASS_UNKNOWN_SCALE]++;
	if (recalled.unified) {
		/* Only if both ends offered to scale do they (RFC 7323 §2.2). */
		if (recalled.scale[FLOW_DATA] <= TCP_MAX_SCALE)
			window = tcp_unify_window(window, scale, recalled.unified - 1u);
	} else if (ctx->config->window.wscale_source == WSCALE_WINDOW_BITS) {
		window = tcp_window12_put(window, scale == TCP_SCALE_UNKNOWN ? 0 : scale);
	} else if (ctx->config->window.wscale_source == WSCALE_RESERVED_BITS &&
		   scale != TCP_SCALE_UNKNOWN) {
		if (!is_alive(ctx, now_ns)) {
			ctx->counted->passed[PASS_STALE]++;
			return 0;
		}
		if (shim_is_authenticated(skb, ctx, packet))
			return 0;
		ctx->counted->acks_rewritten++;
		return scale_write_reserved(skb, packet,
					    tcp_reserved_put_scale(packet->offset_flags, scale));
	}
	if (window == packet->window || shim_is_authenticated(skb, ctx, packet))
		return 0;
	ctx->counted->acks_rewritten++;
	return write_window(skb, packet, window);
}

SEC("tc")
int shim_egress(struct __sk_buff *skb)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct packet packet = {};
	struct flow_packet seen;
	struct port_flow *flow;
	struct port_ctx ctx;

	if (!open_below_host(skb, &ctx, &packet, FLOW_DATA, 1))
		return NEXT;
	if (packet.is_tunnelled)
		return pass(ctx.counted, PASS_TOO_DEEP);
	seen = flow_packet_of(skb, &packet, FLOW_DATA, now_ns);
	ctx.counted->acks += !!(seen.flags & TCP_FLAG_ACK);
	if (is_syn(&seen)) {
		half_on(ctx.port, ctx.counted, &packet, &seen, FLOW_DATA);
		return shim_unify_syn(skb, &ctx, &packet, &seen, half_find(&packet));
	}
	flow = flow_on(ctx.port, ctx.config, ctx.counted, &packet, &seen, FLOW_DATA, SCHEME_NONE);
	if (seen.flags & TCP_FLAG_RST)
		return NEXT;
	if (seen.flags & TCP_FLAG_ACK && shim_carry(skb, &ctx, &packet, flow, now_ns))
		return pass(ctx.counted, PASS_FAILED);
	return NEXT;
}

SEC("tc")
int shim_ingress(struct __sk_buff *skb)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct packet packet = {};
	struct flow_packet seen;
	struct port_ctx ctx;
	u16 window;

	if (!open_below_host(skb, &ctx, &packet, FLOW_ACKS, 0))
		return NEXT;
	if (packet.is_tunnelled)
		return pass(ctx.counted, PASS_TOO_DEEP);
	seen = flow_packet_of(skb, &packet, FLOW_ACKS, now_ns);
	if (is_syn(&seen)) {
		half_on(ctx.port, ctx.counted, &packet, &seen, FLOW_ACKS);
		return NEXT;
	}
	flow_on(ctx.port, ctx.config, ctx.counted, &packet, &seen, FLOW_ACKS, SCHEME_NONE);
	if (seen.flags & TCP_FLAG_RST || !(seen.flags & TCP_FLAG_ACK))
		return NEXT;
	if (ctx.config->window.wscale_source == WSCALE_RESERVED_BITS &&
	    tcp_reserved_scale(packet.offset_flags) && !shim_is_authenticated(skb, &ctx, &packet) &&
	    scale_write_reserved(skb, &packet, tcp_reserved_clear(packet.offset_flags)))
		return pass(ctx.counted, PASS_FAILED);
	window = tcp_window12_window(packet.window);
	if (ctx.config->window.wscale_source == WSCALE_WINDOW_BITS && window != packet.window &&
	    !shim_is_authenticated(skb, &ctx, &packet) && write_window(skb, &packet, window))
		return pass(ctx.counted, PASS_FAILED);
	return NEXT;
}

#endif
