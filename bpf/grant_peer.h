/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How an ACK gets to the sender of a flow's data: all headers above TCP's, as a packet of the flow
 * had them, with their lengths and checksums made those of an ACK.
 *
 * A tunnel's UDP checksum is one number for all ACKs of the flow, as the sum over a segment with
 * its checksum is that of its pseudo header, inverted.
 */
#ifndef PENSTOCK_GRANT_PEER_H
#define PENSTOCK_GRANT_PEER_H

#include "grant_flows.h"
#include "port.h"

#define UDP_CHECKSUM 6
#define TUNNEL_BYTES (8 + 8 + ETH_HLEN) /* UDP, VXLAN or Geneve, Ethernet */

static __always_inline u16 fold(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u16)sum;
}

/*
 * The same number, from 1 to the bytes that are kept, so that verifiers know it: those before Linux
 * 6.8 forget what a comparison showed of a number that is on the stack.
 */
static __always_inline u32 head_bounded(u32 bytes)
{
	bytes--;
	asm volatile("" : "+r"(bytes));
	return (bytes & (GRANT_HEAD_BYTES - 1)) + 1;
}

/* Sets the length of an IP header's payload; the sum of the pseudo header, not folded. */
static __always_inline u32 ipv4_resize(struct iphdr *ip, u32 protocol, u32 payload)
{
	u32 pseudo[3] = {ip->saddr, ip->daddr, bpf_htonl(protocol << 16 | payload)};

	ip->tos &= (u8)~ECN_MASK;
	ip->tot_len = bpf_htons((u16)(sizeof(*ip) + payload));
	ip->id = 0;
	ip->check = 0;
	ip->check = (u16)~fold((u32)bpf_csum_diff(0, 0, (void *)ip, sizeof(*ip), 0));
	return (u32)bpf_csum_diff(0, 0, pseudo, sizeof(pseudo), 0);
}

static __always_inline u32 ipv6_resize(struct ipv6hdr *ip, u32 protocol, u32 payload)
{
	u32 last[2] = {bpf_htonl(payload), bpf_htonl(protocol)}, pseudo;

	ip->flow_lbl[0] &= (u8) ~(ECN_MASK << 4);
	ip->payload_len = bpf_htons((u16)payload);
	pseudo = (u32)bpf_csum_diff(0, 0, last, sizeof(last), 0);
	return (u32)bpf_csum_diff(0, 0, (void *)&ip->saddr, 2 * sizeof(ip->saddr), pseudo);
}

/* Addresses of data become those of the way back. */
static __always_inline void ip_reverse(void *header, _Bool is_v4)
{
	struct ipv6hdr *v6 = header;
	struct iphdr *v4 = header;
	struct in6_addr source6;
	u32 source;

	if (is_v4) {
		source = v4->saddr;
		v4->saddr = v4->daddr;
		v4->daddr = source;
		v4->ttl = 64;
	} else {
		source6 = v6->saddr;
		v6->saddr = v6->daddr;
		v6->daddr = source6;
		v6->hop_limit = 64;
	}
}

static __always_inline void ethernet_reverse(u8 *head)
{
	u16 *words = (u16 *)head;

	for (u32 i = 0; i < 3; i++) {
		u16 destination = words[i];

		words[i] = words[i + 3];
		words[i + 3] = destination;
	}
}

/* The IP header above TCP's. */
static __always_inline void inner_note(struct grant_peer *peer, u32 at, _Bool is_v4)
{
	void *ip = peer->head + at;

	if (peer->is_reversed)
		ip_reverse(ip, is_v4);
	peer->pseudo = is_v4 ? ipv4_resize(ip, IPPROTO_TCP, peer->tcp_bytes)
			     : ipv6_resize(ip, IPPROTO_TCP, peer->tcp_bytes);
}

/* A tunnel's headers, from the outer IP header to the inner one; 0: there are others. */
static __always_inline _Bool tunnel_note(struct grant_peer *peer, u32 outer, u32 inner)
{
	_Bool is_v4 = peer->head[outer] >> 4 == 4;
	u32 at = outer + (is_v4 ? 20 : 40), payload, pseudo, options = 0;
	struct udphdr *udp = (void *)(peer->head + at);
	struct tunnel_header *tunnel = (void *)(udp + 1);
	void *ip = peer->head + outer;

	if (udp->dest == bpf_htons(PORT_GENEVE))
		options = (tunnel->first & 0x3f) * 4;
	if (inner != at + TUNNEL_BYTES + options)
		return 0;
	if (peer->is_reversed) {
		ip_reverse(ip, is_v4);
		ethernet_reverse(peer->head + inner - ETH_HLEN);
	}
	payload = peer->head_bytes - at + peer->tcp_bytes;
	pseudo = is_v4 ? ipv4_resize(ip, IPPROTO_UDP, payload)
		       : ipv6_resize(ip, IPPROTO_UDP, payload);
	peer->udp = (u8)at;
	peer->outer_pseudo = fold(pseudo);
	udp->len = bpf_htons((u16)payload);
	if (!udp->check) /* none is used */
		return 1;
	udp->check = 0;
	pseudo = fold(pseudo) + (u16)~fold(peer->pseudo);
	/* What is behind the headers is 0, up to a whole number of words. */
	udp->check = (u16)~fold((u32)bpf_csum_diff(0, 0, (void *)udp,
						   (peer->head_bytes - at + 3u) & 0x7cu, pseudo));
	if (!udp->check)
		udp->check = 0xffff;
	return 1;
}

/*
 * Whether the way back has the same headers, reversed. With options, as with the identifiers of
 * senders, the two directions of a tunnel differ.
 */
static __always_inline _Bool is_symmetric(const struct packet *packet, u32 flags)
{
	u32 inner_bytes = packet->family == 4 ? 20 : 40;
	u32 start = flags & PORT_BARE_IP ? 0 : ETH_HLEN;
	u32 outer_bytes = packet->tcp - start - inner_bytes - TUNNEL_BYTES;

	if (!packet->is_tunnelled)
		return 1;
	return !(flags & PORT_IGNORE_VNI) && (outer_bytes == 20 || outer_bytes == 40);
}

/*
 * Reads how a packet gets to the sender of its flow's data, from one of the ACK direction, or from
 * one of the other, into `grant_scratch`. 0: not known, as it has tags or options that are not
 * followed.
 */
static __noinline _Bool peer_read(struct __sk_buff *skb, const struct packet *packet, u32 direction,
				  u32 tcp_bytes)
{
	u32 slot = packet->port & PORT_SLOT_MASK, first = 0;
	struct port_config *setup = bpf_map_lookup_elem(&config, &slot);
	u32 ip_bytes = packet->family == 4 ? 20 : 40, head_bytes = packet->tcp, at, start;
	struct grant_scratch *s = bpf_map_lookup_elem(&grant_scratch, &first);
	struct grant_peer *noted;

	if (!setup || !s || (packet->is_tunnelled && !has_kernel_view()) ||
	    (direction == FLOW_DATA && !is_symmetric(packet, setup->flags)))
		return 0;
	noted = &s->noted;
	start = setup->flags & PORT_BARE_IP ? 0 : ETH_HLEN;
	noted->protocol = (u16)skb->protocol;
	noted->vlan_protocol = skb->vlan_present ? (u16)skb->vlan_proto : 0;
	noted->vlan_tag = (u16)skb->vlan_tci;
	if (noted->protocol != bpf_htons(ETH_P_IP) && noted->protocol != bpf_htons(ETH_P_IPV6))
		return 0;
	if (head_bytes < start + ip_bytes || head_bytes > GRANT_HEAD_BYTES)
		return 0;
	head_bytes = head_bounded(head_bytes);
	at = head_bounded(head_bytes - ip_bytes + 1) - 1;
	__builtin_memset(noted->head + head_bytes, 0, sizeof(u32));
	if (bpf_skb_load_bytes(skb, 0, noted->head, head_bytes))
		return 0;
	noted->head_bytes = (u8)head_bytes;
	noted->tcp_bytes = (u8)tcp_bytes;
	noted->is_reversed = direction == FLOW_DATA;
	noted->udp = 0;
	noted->source = packet->family == 4 ? packet->key.v4.destination_port
					    : packet->key.v6.destination_port;
	noted->destination =
		packet->family == 4 ? packet->key.v4.source_port : packet->key.v6.source_port;
	if (start && noted->is_reversed)
		ethernet_reverse(noted->head);
	inner_note(noted, at, packet->family == 4);
	if (packet->is_tunnelled)
		return tunnel_note(noted, start, at);
	return at == start;
}

/* What was read is the flow's. */
static __always_inline void peer_keep(const struct grant_scratch *s, u32 handle)
{
	u32 index = handle & (GRANT_FLOWS - 1);
	struct grant_peer *peer = bpf_map_lookup_elem(&grant_peers, &index);

	if (peer)
		*peer = s->noted;
}

#endif
