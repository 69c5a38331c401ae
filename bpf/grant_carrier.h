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

#include "grant_flows.h"
#include "port.h"

#define CARRIER_MAX_BYTES 16384u /* of a copied packet: all of it is copied */

#define IPV4_DONT_FRAGMENT 0x4000

/* The TCP header of an ACK, and its timestamps. */
struct grant_segment {
	u16 source, destination;
	u32 seq, ack;
	u16 offset_flags, window, checksum, urgent;
	u32 option, ts_val, ts_ecr;
};

_Static_assert(sizeof(struct grant_segment) == 32, "as on the wire");

static __always_inline u16 fold(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u16)sum;
}

/* The headers of IP in `peer` become those of an ACK; `tcp_bytes` is known. */
static __always_inline void peer_note_ipv4(struct grant_peer *peer, _Bool is_reversed)
{
	struct iphdr *ip = (void *)peer->ip;
	u32 pseudo[3], source = ip->saddr;

	if (is_reversed) {
		ip->saddr = ip->daddr;
		ip->daddr = source;
		ip->ttl = 64;
	}
	ip->tos &= (u8)~ECN_MASK;
	ip->tot_len = bpf_htons(sizeof(*ip) + peer->tcp_bytes);
	ip->id = 0;
	ip->frag_off = bpf_htons(IPV4_DONT_FRAGMENT);
	ip->check = 0;
	ip->check = (u16)~fold((u32)bpf_csum_diff(0, 0, (void *)ip, sizeof(*ip), 0));
	pseudo[0] = ip->saddr;
	pseudo[1] = ip->daddr;
	pseudo[2] = bpf_htonl(IPPROTO_TCP << 16 | peer->tcp_bytes);
	peer->pseudo = (u32)bpf_csum_diff(0, 0, pseudo, sizeof(pseudo), 0);
}

static __always_inline void peer_note_ipv6(struct grant_peer *peer, _Bool is_reversed)
{
	struct ipv6hdr *ip = (void *)peer->ip;
	struct in6_addr source = ip->saddr;
	u32 last[2];

	if (is_reversed) {
		ip->saddr = ip->daddr;
		ip->daddr = source;
		ip->hop_limit = 64;
	}
	ip->flow_lbl[0] &= (u8) ~(ECN_MASK << 4);
	ip->payload_len = bpf_htons(peer->tcp_bytes);
	last[0] = bpf_htonl(peer->tcp_bytes);
	last[1] = bpf_htonl(IPPROTO_TCP);
	peer->pseudo = (u32)bpf_csum_diff(0, 0, last, sizeof(last), 0);
	peer->pseudo =
		(u32)bpf_csum_diff(0, 0, (void *)&ip->saddr, 2 * sizeof(source), peer->pseudo);
}

/*
 * Notes how a packet gets to the sender of its flow's data, by one of the ACK direction, or by one
 * of the other. 0: not known, as the packet has tags or options that are not followed.
 */
static __noinline _Bool peer_note(struct __sk_buff *skb, const struct packet *packet, u32 index,
				  u32 direction, u32 tcp_bytes)
{
	struct grant_peer *peer = bpf_map_lookup_elem(&grant_peers, &index);
	u32 ip_bytes = packet->family == 4 ? 20 : 40;
	_Bool is_reversed = direction == FLOW_DATA;
	u16 *ethernet;

	if (!peer || packet->is_tunnelled ||
	    (packet->tcp != ETH_HLEN + ip_bytes && packet->tcp != ip_bytes))
		return 0;
	peer->ethernet_bytes = (u8)(packet->tcp - ip_bytes);
	peer->ip_bytes = (u8)ip_bytes;
	peer->tcp_bytes = (u8)tcp_bytes;
	peer->is_reversed = is_reversed;
	if (packet->tcp > ip_bytes) {
		bpf_skb_load_bytes(skb, 0, peer->ethernet, ETH_HLEN);
		ethernet = (u16 *)peer->ethernet;
		for (u32 i = 0; i < 3 && is_reversed; i++) {
			u16 destination = ethernet[i];

			ethernet[i] = ethernet[i + 3];
			ethernet[i + 3] = destination;
		}
	}
	peer->protocol = packet->family == 4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	peer->vlan_protocol = skb->vlan_present ? (u16)skb->vlan_proto : 0;
	peer->vlan_tag = (u16)skb->vlan_tci;
	if (packet->family == 4) {
		bpf_skb_load_bytes(skb, packet->tcp - 20, peer->ip, 20);
		peer->source = packet->key.v4.destination_port;
		peer->destination = packet->key.v4.source_port;
		peer_note_ipv4(peer, is_reversed);
	} else {
		bpf_skb_load_bytes(skb, packet->tcp - 40, peer->ip, 40);
		peer->source = packet->key.v6.destination_port;
		peer->destination = packet->key.v6.source_port;
		peer_note_ipv6(peer, is_reversed);
	}
	return 1;
}

enum partial_sum {
	SUM_WHOLE = 0,
	SUM_PARTIAL = 1, /* the rest is filled in on its way out, from the TCP header on */
	SUM_ELSEWHERE = 2,
};

/* Whether the checksum is still to be filled in; `tcp` is the offset of the header as written. */
static __always_inline u32 carrier_sum(struct __sk_buff *skb, u32 tcp)
{
	struct sk_buff *packet;
	u16 zero = 0, probe = 0;

	if (has_kernel_view()) {
		packet = bpf_cast_to_kern_ctx(skb);
		if (BPF_CORE_READ_BITFIELD(packet, ip_summed) != CHECKSUM_PARTIAL)
			return SUM_WHOLE;
		return packet->head + packet->csum_start == packet->data + tcp ? SUM_PARTIAL
									       : SUM_ELSEWHERE;
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
	u32 ethernet_bytes, ip_bytes, tcp_bytes, sum, total;

	if (!peer)
		return 0;
	ethernet_bytes = peer->ethernet_bytes ? ETH_HLEN : 0;
	ip_bytes = peer->ip_bytes == 20 ? 20 : 40;
	tcp_bytes = peer->tcp_bytes == 20 ? 20 : 32;
	total = ethernet_bytes + ip_bytes + tcp_bytes;
	if (skb->vlan_present && bpf_skb_vlan_pop(skb))
		return 0;
	if (skb->protocol != peer->protocol && bpf_skb_change_proto(skb, peer->protocol, 0))
		return 0;
	if (skb->len != total && bpf_skb_change_tail(skb, total, 0))
		return 0;
	if (ethernet_bytes &&
	    bpf_skb_store_bytes(skb, 0, peer->ethernet, ETH_HLEN, BPF_F_RECOMPUTE_CSUM))
		return 0;
	if (bpf_skb_store_bytes(skb, ethernet_bytes, peer->ip, ip_bytes, BPF_F_RECOMPUTE_CSUM))
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
	sum = carrier_sum(skb, ethernet_bytes + ip_bytes);
	if (sum == SUM_ELSEWHERE)
		return 0;
	if (sum == SUM_PARTIAL)
		segment.checksum = fold(peer->pseudo);
	else
		segment.checksum = (u16)~fold(
			(u32)bpf_csum_diff(0, 0, (void *)&segment, sizeof(segment), peer->pseudo));
	if (bpf_skb_store_bytes(skb, ethernet_bytes + ip_bytes, &segment, tcp_bytes,
				BPF_F_RECOMPUTE_CSUM))
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
	u32 index;

	if (!grant_ctx_open(&ctx))
		return TC_ACT_SHOT;
	index = grant_take(now_ns);
	if (!index)
		return TC_ACT_SHOT;
	if (is_at_port(ctx.config) && grant_has_more(now_ns))
		carrier_send(skb, ctx.config);
	if (!carrier_write(skb, ctx.scratch, index)) {
		__sync_fetch_and_add(&ctx.own->counters.carriers_failed, 1);
		return TC_ACT_SHOT;
	}
	skb->mark = 0;
	if (is_at_port(ctx.config))
		bpf_skb_change_type(skb, 0 /* PACKET_HOST: it was addressed to the receiver */);
	return NEXT;
}

#endif
