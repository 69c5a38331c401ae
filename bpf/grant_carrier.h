/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How Grant sends an ACK of its own: by a carrier, a copy of a packet that passes or of the
 * agent's, which goes where ACKs go. It has a mark, by which the programs know it there; they ask
 * which flow is to be granted, and write the headers of an ACK to its sender over it.
 *
 * At a port ACKs come in, and a carrier comes in too, from the kernel's backlog; behind the port it
 * leaves at once, while the packet that it was copied from waits. So the grant is decided when the
 * carrier is there; one that finds nothing to send is dropped.
 *
 * A carrier's headers are written whole: sequence number, acknowledgement and timestamps are those
 * of the last ACK that passed (RFC 7323 §5: the sender would discard others), the rest is noted in
 * `grant_peers`.
 */
#ifndef PENSTOCK_GRANT_CARRIER_H
#define PENSTOCK_GRANT_CARRIER_H

#include "grant_peer.h"

#define CARRIER_MAX_BYTES 16384u /* of a copied packet: all of it is copied */

/* The TCP header of an ACK, and its timestamps. */
struct grant_segment {
	u16 source, destination;
	u32 seq, ack;
	u16 offset_flags, window, checksum, urgent;
	u32 option, ts_val, ts_ecr;
};

_Static_assert(sizeof(struct grant_segment) == 32, "as on the wire");

enum partial_sum {
	SUM_WHOLE = 0,
	SUM_PARTIAL = 1, /* the rest is filled in on its way out, from the TCP header on */
	SUM_OUTER = 2,	 /* likewise, from a tunnel's UDP header on */
	SUM_ELSEWHERE = 3,
};

/* Whether a checksum is still to be filled in, and which: offsets of headers as written. */
static __always_inline u32 carrier_sum(struct __sk_buff *skb, u32 tcp, u32 udp)
{
	struct sk_buff *packet;
	u16 zero = 0, probe = 0;
	unsigned char *begin;

	if (has_kernel_view()) {
		packet = bpf_cast_to_kern_ctx(skb);
		if (BPF_CORE_READ_BITFIELD(packet, ip_summed) != CHECKSUM_PARTIAL)
			return SUM_WHOLE;
		begin = packet->head + packet->csum_start;
		if (begin == packet->data + tcp)
			return SUM_PARTIAL;
		return udp && begin == packet->data + udp ? SUM_OUTER : SUM_ELSEWHERE;
	}
	/* Before Linux 6.2: a partial sum is not changed by what comes behind the pseudo header. */
	if (bpf_skb_store_bytes(skb, tcp + TCP_CHECKSUM, &zero, sizeof(zero), 0) ||
	    bpf_l4_csum_replace(skb, tcp + TCP_CHECKSUM, 0, 1, sizeof(zero)) ||
	    bpf_skb_load_bytes(skb, tcp + TCP_CHECKSUM, &probe, sizeof(probe)))
		return SUM_ELSEWHERE;
	return probe ? SUM_WHOLE : SUM_PARTIAL;
}

/* Writes the ACK in `grant_scratch` over a packet; 0: the kernel refused. */
static __noinline _Bool carrier_write(struct __sk_buff *skb, const struct grant_scratch *s,
				      u32 index)
{
	const struct grant_peer *peer = bpf_map_lookup_elem(&grant_peers, &index);
	const struct grant_action *action = &s->action;
	struct grant_segment segment = {0};
	u32 head_bytes, tcp_bytes, sum;

	if (!peer)
		return 0;
	tcp_bytes = peer->tcp_bytes == 20 ? 20 : 32;
	head_bytes = head_bounded(peer->head_bytes);
	if (skb->vlan_present && bpf_skb_vlan_pop(skb))
		return 0;
	if (skb->protocol != peer->protocol && bpf_skb_change_proto(skb, peer->protocol, 0))
		return 0;
	if (skb->len != head_bytes + tcp_bytes &&
	    bpf_skb_change_tail(skb, head_bytes + tcp_bytes, 0))
		return 0;
	if (bpf_skb_store_bytes(skb, 0, peer->head, head_bytes, BPF_F_RECOMPUTE_CSUM))
		return 0;
	segment.source = peer->source;
	segment.destination = peer->destination;
	segment.seq = bpf_htonl(action->seq);
	segment.ack = bpf_htonl(action->ack);
	segment.offset_flags = bpf_htons((u16)(tcp_bytes / 4 << 12 | TCP_FLAG_ACK));
	segment.window = bpf_htons(action->window);
	if (tcp_bytes > 20) {
		segment.option = bpf_htonl(OPTIONS_TIMESTAMP);
		segment.ts_val = bpf_htonl(action->ts_val);
		segment.ts_ecr = bpf_htonl(action->ts_ecr);
	}
	sum = carrier_sum(skb, head_bytes, peer->udp);
	if (sum == SUM_ELSEWHERE)
		return 0;
	if (sum == SUM_PARTIAL)
		segment.checksum = fold(peer->pseudo);
	else
		segment.checksum = (u16)~fold(
			(u32)bpf_csum_diff(0, 0, (void *)&segment, sizeof(segment), peer->pseudo));
	if (sum == SUM_OUTER &&
	    bpf_skb_store_bytes(skb, peer->udp + UDP_CHECKSUM, &peer->outer_pseudo,
				sizeof(peer->outer_pseudo), 0))
		return 0;
	if (bpf_skb_store_bytes(skb, head_bytes, &segment, tcp_bytes, BPF_F_RECOMPUTE_CSUM))
		return 0;
	return !peer->vlan_protocol || !bpf_skb_vlan_push(skb, peer->vlan_protocol, peer->vlan_tag);
}

static __always_inline _Bool is_at_port(const struct grant_config *config)
{
	return grant_side(&config->params) == GRANT_PORT;
}

/* Sends a carrier to where ACKs go. */
static __always_inline _Bool carrier_send(struct __sk_buff *skb, const struct grant_config *config)
{
	u64 flags = is_at_port(config) ? BPF_F_INGRESS : 0;
	u32 mark = skb->mark;
	long status;

	skb->mark = config->mark;
	status = bpf_clone_redirect(skb, skb->ifindex, flags);
	skb->mark = mark;
	return !status;
}

/* The kernel does not cut packets that it has encapsulated (bpf_skb_change_tail). */
static __always_inline _Bool can_be_cut(struct __sk_buff *skb)
{
	struct sk_buff *packet;

	if (!has_kernel_view())
		return 1;
	packet = bpf_cast_to_kern_ctx(skb);
	return !BPF_CORE_READ_BITFIELD(packet, encapsulation);
}

/*
 * Sends what is due by carriers, copies of this packet. Behind the port each has left when the call
 * returns; at a port one comes in later, and sends the next itself.
 */
static __noinline int carriers_send(struct __sk_buff *skb, u64 now_ns)
{
	struct grant_ctx ctx;
	u32 i;

	if (skb->len > CARRIER_MAX_BYTES || !grant_ctx_open(&ctx))
		return 0;
	for (i = 0; i < GRANT_BURST; i++) {
		if (!carrier_send(skb, ctx.config) || is_at_port(ctx.config))
			return 0;
		if (!grant_has_more(now_ns))
			return 0;
	}
	return 0;
}

/* A carrier is where ACKs are: it becomes one, or ends. */
static __noinline int carry(struct __sk_buff *skb, u64 now_ns)
{
	struct grant_ctx ctx;
	_Bool is_written;
	u32 index;

	if (!grant_ctx_open(&ctx))
		return TC_ACT_SHOT;
	index = grant_take(now_ns);
	if (!index)
		return TC_ACT_SHOT;
	is_written = carrier_write(skb, ctx.scratch, index);
	/* Where the length was wrong, it would be for most others, too. */
	if (is_at_port(ctx.config) && (is_written || can_be_cut(skb)) && grant_has_more(now_ns))
		carrier_send(skb, ctx.config);
	if (!is_written) {
		__sync_fetch_and_add(&ctx.own->counters.carriers_failed, 1);
		return TC_ACT_SHOT;
	}
	skb->mark = 0;
	if (is_at_port(ctx.config))
		bpf_skb_change_type(skb, 0 /* PACKET_HOST: it was addressed to the receiver */);
	return NEXT;
}

#endif
