/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SICC's shim, on the interface below a virtual machine or container (tap, veth): ACKs that it gets
 * are clamped while their pair of source and destination is ON (SICC Algorithm 2, core/sicc.h).
 * Egress is what it gets, ingress what it sends.
 *
 * Both sides follow its flows, so that each ACK is clamped in its own flow's scale. When the agent
 * is dead, or the port paused, ACKs pass as they are; a clamp also ends by itself.
 *
 * Limits. A pair has no VLAN or tunnel: those with the same addresses are clamped together. The
 * message is the only thing that knows the MSS; one that is too large clamps less.
 *
 * Where the agent takes frames, those of the controller come towards the guest, which never sees
 * them. Those that a guest sends are dropped.
 */
#ifndef PENSTOCK_SICC_SHIM_H
#define PENSTOCK_SICC_SHIM_H

#include "port.h"
#include "sicc_abi.h"

PORT_ARRAY(sicc, BPF_MAP_TYPE_ARRAY, struct sicc_params, PORTS, 0);

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SICC_PAIRS);
	__type(key, struct sicc_key);
	__type(value, struct sicc_pair);
} sicc_pairs SEC(".maps");

PORT_RINGS(sicc_frames);

/*
 * A frame of the controller's type. It passes as any other if no agent takes frames. No other frame
 * is needed, so that one for which there is no room is lost, as it may be on its way.
 */
static __noinline int sicc_take_frame(struct __sk_buff *skb, _Bool is_from_guest)
{
	u32 slot, last = skb->len - ETH_HLEN - 1; /* of the bytes */
	struct sicc_frame *frame;
	struct port_ctx ctx;
	void *ring;

	if (!port_ctx_open(skb, &ctx))
		return NEXT;
	slot = ctx.port->id & PORT_SLOT_MASK;
	ring = bpf_map_lookup_elem(&sicc_frames, &slot);
	if (!ring)
		return NEXT;
	if (is_from_guest)
		return TC_ACT_SHOT;
	frame = bpf_ringbuf_reserve(ring, sizeof(*frame), 0);
	if (!frame)
		return TC_ACT_SHOT;
	frame->bytes = last + 1;
	/* In one register, and never 0: else Linux 6.1 sees no bounds of the length. */
	asm volatile("" : "+r"(last));
	if (last >= SICC_FRAME_BYTES || bpf_skb_load_bytes(skb, ETH_HLEN, frame->data, last + 1))
		bpf_ringbuf_discard(frame, 0);
	else
		bpf_ringbuf_submit(frame, 0);
	return TC_ACT_SHOT;
}

static __always_inline _Bool sicc_is_frame(const struct __sk_buff *skb)
{
	return skb->protocol == bpf_htons(SICC_ETHERTYPE);
}

/* Does what a message orders. A pair that is OFF needs no entry. Not 0: the kernel refused. */
static __noinline int sicc_take(const struct sicc_message *message)
{
	u32 slot = message->pair.port & PORT_SLOT_MASK;
	struct sicc_params *params = bpf_map_lookup_elem(&sicc, &slot);
	struct sicc_pair pair = {};

	if (!params)
		return -1;
	if (message->order == SICC_ON)
		sicc_pair_on(&pair, params, message->mss_bytes, message->scale, bpf_ktime_get_ns());
	if (pair.is_on)
		return (int)bpf_map_update_elem(&sicc_pairs, &message->pair, &pair, BPF_ANY);
	if (message->order == SICC_OFF)
		bpf_map_delete_elem(&sicc_pairs, &message->pair);
	return 0;
}

/* Run by the agent for a message that it has got. */
SEC("syscall")
int sicc_order(struct sicc_message *message)
{
	struct sicc_message copy = *message;

	return sicc_take(&copy);
}

/* The entry of a packet's pair; `packet` has the flow of the data. */
static __noinline struct sicc_pair *sicc_pair_find(const struct packet *packet)
{
	struct flow_key6 flow = half_key(packet);
	struct sicc_key key = {.port = flow.port};

	__builtin_memcpy(key.source, flow.source, sizeof(key.source));
	__builtin_memcpy(key.destination, flow.destination, sizeof(key.destination));
	return bpf_map_lookup_elem(&sicc_pairs, &key);
}

/* An ACK that offers so much: lowers it if its pair is ON. */
static __always_inline int sicc_clamp(struct __sk_buff *skb, const struct port_ctx *ctx,
				      const struct packet *packet, const struct offer *offer,
				      u64 now_ns)
{
	u32 slot = ctx->port->id & PORT_SLOT_MASK;
	struct sicc_params *params = bpf_map_lookup_elem(&sicc, &slot);
	struct sicc_pair *found = sicc_pair_find(packet);
	struct tcp_window out;
	struct sicc_pair pair;

	if (!params || !found)
		return NEXT;
	pair = *found; /* it may be evicted while it is read */
	out = sicc_pair_on_ack(&pair, params, offer->window, offer->scale, offer->kind, now_ns);
	if (!out.changed)
		return NEXT;
	if (!is_alive(ctx, now_ns))
		return pass(ctx->counted, PASS_STALE);
	if (is_authenticated(skb, packet))
		return pass(ctx->counted, PASS_AUTHENTICATED);
	if (write_window(skb, packet, out.window))
		return pass(ctx->counted, PASS_FAILED);
	ctx->counted->acks_rewritten++;
	ctx->counted->acks_first_rewritten += offer->kind != TCP_ACK_LATER;
	return NEXT;
}

SEC("tc")
int sicc_egress(struct __sk_buff *skb)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct port_flow *flow = 0;
	struct port_half *half = 0;
	struct packet packet = {};
	struct flow_packet seen;
	struct port_ctx ctx;
	struct offer offer;

	if (sicc_is_frame(skb))
		return sicc_take_frame(skb, 0);
	if (!open_below_host(skb, &ctx, &packet, FLOW_ACKS, 1))
		return NEXT;
	seen = flow_packet_of(skb, &packet, FLOW_ACKS, now_ns);
	if (is_syn(&seen)) {
		half_on(ctx.port, ctx.counted, &packet, &seen, FLOW_ACKS);
		half = half_find(&packet);
	} else {
		flow = flow_on(ctx.port, ctx.config, ctx.counted, &packet, &seen, FLOW_ACKS,
			       SCHEME_NONE);
	}
	if (seen.flags & TCP_FLAG_RST || !(seen.flags & TCP_FLAG_ACK))
		return NEXT;
	ctx.counted->acks++;
	offer = offer_of(&packet, ctx.config, flow, half, 0);
	return sicc_clamp(skb, &ctx, &packet, &offer, now_ns);
}

SEC("tc")
int sicc_ingress(struct __sk_buff *skb)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct packet packet = {};
	struct flow_packet seen;
	struct port_ctx ctx;

	if (sicc_is_frame(skb))
		return sicc_take_frame(skb, 1);
	if (!open_below_host(skb, &ctx, &packet, FLOW_DATA, 0))
		return NEXT;
	seen = flow_packet_of(skb, &packet, FLOW_DATA, now_ns);
	if (is_syn(&seen))
		half_on(ctx.port, ctx.counted, &packet, &seen, FLOW_DATA);
	else
		flow_on(ctx.port, ctx.config, ctx.counted, &packet, &seen, FLOW_DATA, SCHEME_NONE);
	return NEXT;
}

#endif
