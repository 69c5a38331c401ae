/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Grant at a port (data leaves by it, ACKs come in), or behind one, as a receiver or a limit (data
 * comes in, ACKs leave).
 *
 * Flows are those of the table of all ports (flows.h): one is controlled from when it is proven, if
 * its scale is known and its headers are usual ones, and no packet counts that its ends would not
 * accept. Authenticated ones pass untouched.
 *
 * The object serves one port: the agent loads the two programs of its side, and pins its maps in
 * the port's folder.
 */
#define CORE_BRANCHLESS	 1
#define CORE_PARAMS_HELD 1 /* by grant_restart */

#include "port.h"

#include "grant_carrier.h"

/* Timestamps, if they are where RFC 7323 appendix A recommends them; 0: there are other options. */
static __always_inline _Bool read_timestamps(struct __sk_buff *skb, const struct packet *packet,
					     struct grant_packet *out, u32 *tcp_bytes)
{
	struct cursor c = {(void *)(long)skb->data, (void *)(long)skb->data_end, packet->tcp + 20,
			   0};
	u32 options[3], header_bytes = packet_header_bytes(packet);
	const u32 *linear = header_at(&c, sizeof(options));

	out->ts_val = out->ts_ecr = 0;
	*tcp_bytes = 20;
	if (header_bytes < 32)
		return header_bytes == 20;
	/* A load without a call, if they are not in pages. */
	if (linear)
		__builtin_memcpy(options, linear, sizeof(options));
	else if (bpf_skb_load_bytes(skb, packet->tcp + 20, options, sizeof(options)))
		return 0;
	if (options[0] == bpf_htonl(OPTIONS_TIMESTAMP)) {
		out->ts_val = bpf_ntohl(options[1]);
		out->ts_ecr = bpf_ntohl(options[2]);
		*tcp_bytes = 32;
		return 1;
	}
	/* Selective acknowledgements alone (RFC 2018 §3). */
	return (bpf_ntohl(options[0]) & 0xffffff00) == 0x01010500;
}

/*
 * What Grant has to know of a packet. Those of a super-packet show the size of segments exactly:
 * with a few bytes more, a number of them would seem to end with a short one, and so a message.
 */
static __always_inline void packet_note(struct grant_scratch *s, const struct packet *packet,
					const struct port_flow *flow, const struct port_ctx *ctx,
					const struct flow_packet *seen)
{
	s->packet.now_ns = seen->now_ns;
	s->packet.seq = packet->seq;
	s->packet.ack = packet->ack;
	s->packet.payload = packet->payload;
	s->packet.window = packet->window;
	s->packet.flags = (u8)packet_flags(packet);
	s->packet.scale = (u8)flow_scale(&flow->entry, FLOW_ACKS);
	s->packet.mss =
		seen->mss ? seen->mss : (u16)flow_mss(&flow->entry, ctx->port->segments.bytes);
}

/* What was `before` is the flow's no longer; 0: another CPU has changed it meanwhile. */
static __always_inline _Bool credit_swap(struct port_flow *flow, u32 before, u32 now)
{
	return __sync_val_compare_and_swap(&flow->credit, before, now) == before;
}

/*
 * Begins to control a flow, if all is known that this takes. The last packets of a handshake may
 * do so on two CPUs at once: the first that has a handle gives it to the flow.
 */
static __noinline int flow_control(struct __sk_buff *skb, const struct packet *packet,
				   struct port_flow *flow, struct grant_scratch *s,
				   u32 direction_and_bytes)
{
	u32 direction = direction_and_bytes & 1, tcp_bytes = direction_and_bytes >> 1;
	u32 before = flow->credit, handle;

	if (before & GRANT_IS_HANDLE || !flow_is_live(&flow->entry) ||
	    s->packet.scale == TCP_SCALE_UNKNOWN || is_authenticated(skb, packet) ||
	    !peer_read(skb, packet, direction, tcp_bytes))
		return 0;
	s->is_refused = !!(before & GRANT_IS_REFUSED);
	s->opening.seq = flow->entry.acked[FLOW_DATA];
	s->opening.window = (u16)(before >> GRANT_WINDOW_AT << 8);
	s->opening.shown = (u16)before;
	s->opening.by_sender = direction == FLOW_DATA;
	handle = grant_admit();
	if (!handle) {
		credit_swap(flow, before, before | GRANT_IS_REFUSED);
		return 0;
	}
	peer_keep(s, handle);
	if (!credit_swap(flow, before, handle))
		grant_dismiss(handle);
	return 0;
}

/* The scale of a flow whose SYNs have not passed, if its socket or another version has it. */
static __noinline int scale_recall(struct __sk_buff *skb, const struct packet *packet,
				   struct port_flow *flow)
{
	struct flow_known recalled = {};

	if (sender_recall(skb, packet, &recalled))
		known_enter(flow, &recalled);
	else
		known_recall(packet, flow, &recalled);
	return 0;
}

/* A packet of the data's direction. */
static __always_inline int watch_data(struct __sk_buff *skb, _Bool is_behind)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct port_flow *flow = 0;
	struct flow_packet seen;
	struct packet *packet;
	struct grant_ctx own;
	struct port_ctx ctx;
	u32 tcp_bytes;
	int found;

	if (!port_ctx_open(skb, &ctx) || !grant_ctx_open(&own))
		return NEXT;
	if (ctx.config->abi != PENSTOCK_ABI)
		return pass(ctx.counted, PASS_STALE);
	packet = &own.scratch->parsed;
	own.scratch->queue_bytes = is_behind ? 0 : queue_read(skb, ctx.port, now_ns);
	if (!is_behind)
		ms_sample_follow(skb, ctx.port, stats_of(ctx.counted), own.scratch->queue_bytes,
				 now_ns);
	count_passing(ctx.counted, skb, !is_behind);
	own.scratch->is_let_go = !!released_ns(&ctx, now_ns);
	own.scratch->bytes = skb->len;
	own.scratch->handle = 0;
	found = parse(skb, packet, ctx.port->id, FLOW_DATA, ctx.config->flags & PORT_BARE_IP);
	if (found != PARSE_TCP) {
		pass(ctx.counted, (u32)found);
		grant_pass_data(now_ns);
		return NEXT;
	}
	packet_forget(packet, now_ns);
	/* On the wire each segment of a super-packet has headers. */
	if (skb->gso_size && packet->payload > skb->gso_size && packet->payload < skb->len)
		own.scratch->bytes +=
			(packet->payload - 1) / skb->gso_size * (skb->len - packet->payload);
	seen = flow_packet_of(skb, packet, FLOW_DATA, now_ns);
	if (is_syn(&seen))
		half_on(ctx.port, ctx.counted, packet, &seen, FLOW_DATA);
	else
		flow = flow_on(ctx.port, ctx.config, ctx.counted, packet, &seen, FLOW_DATA,
			       SCHEME_NONE);
	if (flow) /* anybody may send one packet */
		state_on_segment(ctx.port, ctx.counted, &seen, SCHEME_NONE);
	if (flow && (seen.flags & TCP_FLAG_RST || flow_is_plausible(&flow->entry, &seen))) {
		packet_note(own.scratch, packet, flow, &ctx, &seen);
		/* The end of a handshake; what is in mid-life begins with an ACK. */
		if (flow->credit && !(flow->credit & GRANT_IS_HANDLE) && flow->entry.acks <= 1 &&
		    read_timestamps(skb, packet, &own.scratch->packet, &tcp_bytes))
			flow_control(skb, packet, flow, own.scratch, tcp_bytes << 1 | FLOW_DATA);
		if (flow->credit & GRANT_IS_HANDLE &&
		    (!(seen.flags & TCP_FLAG_RST) || !flow_is_live(&flow->entry)))
			own.scratch->handle = flow->credit;
	}
	grant_pass_data(now_ns);
	if (flow && own.scratch->is_lost)
		credit_swap(flow, own.scratch->handle, 0);
	if (own.scratch->is_due && can_be_cut(skb))
		carriers_send(skb, now_ns);
	return NEXT;
}

/*
 * A SYN-ACK offers what its sender may send when the handshake is over: an allowance at least if
 * the flow will not be followed, as then nothing but an ACK of its own opens its window.
 */
static __noinline int lower_syn(struct __sk_buff *skb, const struct port_ctx *ctx,
				const struct packet *packet, struct port_half *half, u64 now_ns)
{
	u32 segment_bytes = ctx->port->segments.bytes, before = half->edge.seq, bytes, must_open;
	_Bool is_lowered;

	if (!(packet_flags(packet) & TCP_FLAG_ACK) || is_authenticated(skb, packet))
		return 0;
	must_open = !is_symmetric(packet, ctx->config->flags) ||
		    ctx->port->tracked >= ctx->config->flows_max ||
		    !peer_read(skb, packet, FLOW_ACKS, 20);
	bytes = syn_window(handshake_mss(&half->handshake, segment_bytes),
			   ctx->port->half_open ? ctx->port->half_open - 1 : 0, must_open, now_ns);
	is_lowered = bytes < packet->window && !write_window(skb, packet, (u16)bytes);
	if (!is_lowered)
		bytes = packet->window;
	/* A sender takes no window of a second SYN-ACK, if it has had the first. */
	if (half->is_repeated && before & GRANT_HAS_SYN_ACK)
		bytes = min_u32(bytes, before & 0xffff);
	half->edge.seq = GRANT_HAS_SYN_ACK | packet->window >> 8 << GRANT_WINDOW_AT | bytes;
	return is_lowered;
}

/* A packet of the ACKs' direction. */
static __always_inline int lower_acks(struct __sk_buff *skb, _Bool is_behind)
{
	u64 now_ns = bpf_ktime_get_ns(), since_ns;
	struct port_flow *flow = 0;
	struct port_half *half;
	struct flow_packet seen;
	struct packet *packet;
	struct grant_ctx own;
	struct port_ctx ctx;
	u32 tcp_bytes = 20, handle;
	_Bool has_options;
	u16 window;
	int found;

	if (!port_ctx_open(skb, &ctx) || !grant_ctx_open(&own))
		return NEXT;
	packet = &own.scratch->parsed;
	own.scratch->queue_bytes = is_behind ? 0 : queue_read(skb, ctx.port, now_ns);
	since_ns = released_ns(&ctx, now_ns);
	own.scratch->is_let_go = !!since_ns;
	if (skb->mark == own.config->mark) {
		found = carry(skb, now_ns);
		if (found != NEXT || !is_behind)
			return found;
		count_passing(ctx.counted, skb, 1);
		return NEXT;
	}
	count_passing(ctx.counted, skb, is_behind);
	if (ctx.config->abi != PENSTOCK_ABI)
		return pass(ctx.counted, PASS_STALE);
	found = parse(skb, packet, ctx.port->id, FLOW_ACKS, ctx.config->flags & PORT_BARE_IP);
	if (found != PARSE_TCP)
		return pass(ctx.counted, (u32)found);
	packet_forget(packet, now_ns);
	seen = flow_packet_of(skb, packet, FLOW_ACKS, now_ns);
	ctx.counted->acks++;
	if (is_syn(&seen)) {
		half_on(ctx.port, ctx.counted, packet, &seen, FLOW_ACKS);
		half = half_find(packet);
		if (half && !since_ns && lower_syn(skb, &ctx, packet, half, now_ns)) {
			ctx.counted->acks_rewritten++;
			ctx.counted->acks_first_rewritten++;
		}
		return NEXT;
	}
	flow = flow_on(ctx.port, ctx.config, ctx.counted, packet, &seen, FLOW_ACKS, SCHEME_NONE);
	if (!flow)
		return NEXT;
	if (!(seen.flags & TCP_FLAG_RST) && !flow_is_plausible(&flow->entry, &seen))
		return NEXT;
	if (seen.flags & TCP_FLAG_RST && flow_is_live(&flow->entry))
		return NEXT;
	if (flow_scale(&flow->entry, FLOW_ACKS) == TCP_SCALE_UNKNOWN)
		scale_recall(skb, packet, flow);
	packet_note(own.scratch, packet, flow, &ctx, &seen);
	if (own.scratch->packet.scale == TCP_SCALE_UNKNOWN)
		ctx.counted->passed[PASS_UNKNOWN_SCALE]++;
	if (!packet->window)
		ctx.counted->zero_windows++;
	has_options = read_timestamps(skb, packet, &own.scratch->packet, &tcp_bytes);
	handle = flow->credit;
	if (handle & GRANT_IS_HANDLE) {
		own.scratch->handle = handle;
		grant_pass_ack(now_ns);
		/* Its entry has gone to another flow while it rested. */
		if (own.scratch->is_lost) {
			credit_swap(flow, handle, 0);
			handle = 0;
		} else if (has_options && own.scratch->handle && own.scratch->is_first &&
			   peer_read(skb, packet, FLOW_ACKS, tcp_bytes)) {
			peer_keep(own.scratch, own.scratch->handle); /* routes change */
		}
	}
	if (!(handle & GRANT_IS_HANDLE)) {
		if (!has_options)
			return NEXT;
		flow_control(skb, packet, flow, own.scratch, tcp_bytes << 1 | FLOW_ACKS);
		own.scratch->handle = flow->credit & GRANT_IS_HANDLE ? flow->credit : 0;
		grant_pass_ack(now_ns);
	}
	window = own.scratch->window;
	if (window < packet->window && since_ns) {
		ctx.counted->passed[PASS_STALE]++;
		window = (u16)release_window(window, packet->window, own.scratch->packet.scale,
					     own.scratch->packet.mss, since_ns);
	}
	if (window < packet->window) {
		if (write_window(skb, packet, window))
			return pass(ctx.counted, PASS_FAILED);
		ctx.counted->acks_rewritten++;
	}
	/* An ACK without other options is as long as one of its own to the same flow. */
	if (own.scratch->is_due && (skb->len == packet->tcp + tcp_bytes || can_be_cut(skb)))
		carriers_send(skb, now_ns);
	return NEXT;
}

SEC("tc")
int grant_egress(struct __sk_buff *skb)
{
	return watch_data(skb, 0);
}

SEC("tc")
int grant_ingress(struct __sk_buff *skb)
{
	return lower_acks(skb, 0);
}

/* The same behind a port. */
SEC("tc")
int grant_egress_behind(struct __sk_buff *skb)
{
	return lower_acks(skb, 1);
}

SEC("tc")
int grant_ingress_behind(struct __sk_buff *skb)
{
	return watch_data(skb, 1);
}

/*
 * Run by the agent while flows wait, as the timer of last resort: a packet of its own is where
 * carriers are copied from. Returns 1 while there is something to wait for.
 */
SEC("tc")
int grant_timer(struct __sk_buff *skb)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct grant_ctx own;
	struct port_ctx ctx;

	if (!port_ctx_open(skb, &ctx) || !grant_ctx_open(&own))
		return 0;
	own.scratch->queue_bytes = is_at_port(own.config) ? queue_read(skb, ctx.port, now_ns) : 0;
	own.scratch->is_let_go = !!released_ns(&ctx, now_ns);
	grant_follow_sizes(now_ns);
	if (grant_has_more(now_ns))
		carriers_send(skb, now_ns);
	return own.own->port.waiting || own.own->port.active;
}

/* Run by the agent once the configuration has changed. */
SEC("tc")
int grant_reset(struct __sk_buff *skb)
{
	(void)skb;
	return grant_restart();
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
