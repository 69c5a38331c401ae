/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a packet's first byte to its TCP header: Ethernet, two VLAN tags and one more that the
 * kernel removed, IPv4 with options, IPv6 with extension headers, and the same once more inside
 * VXLAN (RFC 7348, on the ports of the configuration) or Geneve (RFC 8926).
 *
 * Not followed: fragments, IPsec, IP in IP, GRE, routing headers with segments left, tunnels on
 * other UDP ports, tunnels within tunnels. Such packets pass, counted by reason.
 */
#ifndef PENSTOCK_PARSE_H
#define PENSTOCK_PARSE_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>

#include "packet.h"

#define PARSE_TCP	 (-1) /* the packet is understood; else an enum pass_reason */
#define PARSE_TUNNEL	 (-2) /* VXLAN or Geneve: an inner frame follows */
#define PARSE_TAGS	 2
#define PARSE_EXTENSIONS 4
#define PARSE_PULL_BYTES 512u /* longer header stacks are not parsed */
#define PARSE_MAX_OFFSET 1024u

#define PORT_GENEVE 6081

struct tcp_header {
	u16 source, destination;
	u32 seq, ack;
	u16 offset_flags, window, checksum, urgent;
};

struct vlan_header {
	u16 tag, protocol;
};

/* VXLAN and Geneve: flags, then network identifier and a reserved byte. */
struct tunnel_header {
	u8 first, second;
	u16 protocol;
	u32 network;
};

struct cursor {
	void *data, *end;
	u32 at;	    /* offset of the next header */
	u32 length; /* where the packet ends, or what a header above left of it */
};

/* The next header of SIZE bytes, or null if the linear part ends before. */
static __always_inline void *header_at(const struct cursor *c, u32 size)
{
	u32 at = c->at;
	void *header;

	if (at > PARSE_MAX_OFFSET)
		return 0;
	header = c->data + at;
	asm volatile("" : "+r"(header)); /* or clang computes it again after the check */
	return header + size > c->end ? 0 : header;
}

/* Skips tags in the packet; returns the protocol beneath them, network order, 0 if truncated. */
static __always_inline u16 parse_tags(struct cursor *c, u16 protocol, u32 *network)
{
	for (u32 i = 0; i < PARSE_TAGS; i++) {
		struct vlan_header *vlan;

		if (protocol != bpf_htons(ETH_P_8021Q) && protocol != bpf_htons(ETH_P_8021AD))
			return protocol;
		vlan = header_at(c, sizeof(*vlan));
		if (!vlan)
			return 0;
		*network = *network << 12 | (bpf_ntohs(vlan->tag) & 0xfff);
		protocol = vlan->protocol;
		c->at += sizeof(*vlan);
	}
	return protocol;
}

/*
 * Words of a key are stored as the kernel's hash tables load them: a load that spans two stores
 * waits for these to retire, which took 6 ns of a packet.
 */
static __always_inline void key_store(u32 *at, u32 first, u32 second)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	u64 both = (u64)second << 32 | first;
#else
	u64 both = (u64)first << 32 | second;
#endif

	__builtin_memcpy(at, &both, sizeof(both));
}

/* The end of a key, which is the same for both families: from the ports on. */
static __always_inline void key_store_end(u32 *at, const struct tcp_header *tcp, u32 network,
					  u32 port, _Bool is_data)
{
	u32 ports;

	__builtin_memcpy(&ports, &tcp->source, sizeof(ports));
	if (!is_data)
		ports = ports << 16 | ports >> 16;
	key_store(at, ports, network);
	at[2] = port;
}

/* `key_end` is that of the packet's key, from its ports on. */
static __always_inline int parse_tcp(struct cursor *c, struct packet *packet, u32 ip_payload,
				     u32 *key_end, u32 network, u32 direction)
{
	struct tcp_header *tcp = header_at(c, sizeof(*tcp));
	u32 header_bytes;

	if (!tcp)
		return PASS_TRUNCATED;
	packet->tcp = c->at;
	packet->seq = bpf_ntohl(tcp->seq);
	packet->ack = bpf_ntohl(tcp->ack);
	packet->window = bpf_ntohs(tcp->window);
	packet->checksum = tcp->checksum;
	packet->offset_flags = bpf_ntohs(tcp->offset_flags);
	key_store_end(key_end, tcp, network, packet->port, direction == FLOW_DATA);
	header_bytes = packet_header_bytes(packet);
	if (header_bytes < sizeof(*tcp) || header_bytes > ip_payload)
		return PASS_MALFORMED;
	packet->payload = ip_payload - header_bytes;
	return PARSE_TCP;
}

static __always_inline _Bool is_vxlan(const struct port_config *setup, u16 port)
{
	_Bool is_listed = 0;

	for (u32 i = 0; i < PORT_VXLANS; i++)
		is_listed |= port && setup->vxlan_ports[i] == port;
	return is_listed;
}

/* From a UDP header to the frame inside, if its port is that of a tunnel. */
static __always_inline int parse_udp(struct cursor *c, const struct packet *packet, u32 *network)
{
	u32 slot = packet->port & PORT_SLOT_MASK;
	const struct port_config *setup = bpf_map_lookup_elem(&config, &slot);
	struct udphdr *udp = header_at(c, sizeof(*udp));
	struct tunnel_header *tunnel;
	_Bool is_geneve;
	u32 end, identifier;

	if (!udp)
		return PASS_TRUNCATED;
	is_geneve = udp->dest == bpf_htons(PORT_GENEVE);
	if (!setup || (!is_geneve && !is_vxlan(setup, udp->dest)))
		return PASS_NOT_TCP;
	end = c->at + bpf_ntohs(udp->len);
	if (udp->len) { /* else a super-packet of more than 64 kB */
		if (end > c->length)
			return PASS_MALFORMED;
		c->length = end;
	}
	c->at += sizeof(*udp);
	tunnel = header_at(c, sizeof(*tunnel));
	if (!tunnel)
		return PASS_TRUNCATED;
	c->at += sizeof(*tunnel);
	if (!is_geneve) {
		if (!(tunnel->first & 0x08)) /* the identifier must be valid */
			return PASS_NOT_TCP;
	} else {
		if (tunnel->first >> 6 || tunnel->protocol != bpf_htons(ETH_P_TEB))
			return PASS_NOT_TCP;
		c->at += (tunnel->first & 0x3f) * 4;
	}
	if (c->at > c->length)
		return PASS_MALFORMED;
	/* Of 24 bits, 0 if ignored; without a branch, which would double what verifiers follow. */
	identifier = bpf_ntohl(tunnel->network) >> 8;
	identifier *= !(setup->flags & PORT_IGNORE_VNI);
	/* Tags outside of the tunnel are mixed in. */
	*network = (*network << 8) ^ identifier ^ 1u << 31;
	return PARSE_TUNNEL;
}

static __always_inline int parse_ipv4(struct cursor *c, struct packet *packet, u32 *network,
				      u32 direction)
{
	struct iphdr *ip = header_at(c, sizeof(*ip));
	struct flow_key4 *key = &packet->key.v4;
	u32 header_bytes, total;
	u8 protocol;

	if (!ip)
		return PASS_TRUNCATED;
	header_bytes = ip->ihl * 4;
	total = bpf_ntohs(ip->tot_len);
	if (!total) /* a super-packet of more than 64 kB */
		total = c->length - c->at;
	if (ip->version != 4 || header_bytes < sizeof(*ip) || total < header_bytes)
		return PASS_MALFORMED;
	if (c->at > c->length || c->at + total > c->length)
		return PASS_TRUNCATED;
	if (!packet->is_tunnelled)
		packet->traffic_class = ip->tos;
	protocol = ip->protocol;
	packet->family = 4;
	key_store(&key->source, direction == FLOW_DATA ? ip->saddr : ip->daddr,
		  direction == FLOW_DATA ? ip->daddr : ip->saddr);
	if (ip->frag_off & bpf_htons(0x3fff)) /* more fragments, or not the first */
		return PASS_FRAGMENT;
	c->length = c->at + total;
	c->at += header_bytes;
	if (protocol == IPPROTO_UDP)
		return parse_udp(c, packet, network);
	if (protocol != IPPROTO_TCP)
		return PASS_NOT_TCP;
	return parse_tcp(c, packet, total - header_bytes, (u32 *)&key->source_port, *network,
			 direction);
}

/* Skips extension headers; returns the protocol beneath them, or minus an enum pass_reason. */
static __always_inline int parse_extensions(struct cursor *c, u8 protocol)
{
	for (u32 i = 0; i < PARSE_EXTENSIONS; i++) {
		u8 *extension;

		if (protocol == IPPROTO_FRAGMENT)
			return -PASS_FRAGMENT;
		if (protocol != IPPROTO_HOPOPTS && protocol != IPPROTO_DSTOPTS &&
		    protocol != IPPROTO_ROUTING)
			return protocol;
		extension = header_at(c, 4);
		if (!extension)
			return -PASS_TRUNCATED;
		if (protocol == IPPROTO_ROUTING && extension[3])
			return -PASS_TOO_DEEP; /* the addresses are not the flow's */
		protocol = extension[0];
		c->at += (extension[1] + 1) * 8;
	}
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP ? protocol : -PASS_TOO_DEEP;
}

static __always_inline int parse_ipv6(struct cursor *c, struct packet *packet, u32 *network,
				      u32 direction)
{
	struct ipv6hdr *ip = header_at(c, sizeof(*ip));
	struct flow_key6 *key = &packet->key.v6;
	u32 start = c->at + sizeof(*ip), payload;
	int protocol;

	if (!ip)
		return PASS_TRUNCATED;
	payload = bpf_ntohs(ip->payload_len);
	if (!payload) /* a super-packet of more than 64 kB */
		payload = c->length - start;
	if (ip->version != 6)
		return PASS_MALFORMED;
	if (start > c->length || start + payload > c->length)
		return PASS_TRUNCATED;
	if (!packet->is_tunnelled)
		packet->traffic_class = (u8)(ip->priority << 4 | ip->flow_lbl[0] >> 4);
	packet->family = 6;
	if (direction == FLOW_DATA) {
		__builtin_memcpy(key->source, &ip->saddr, 16);
		__builtin_memcpy(key->destination, &ip->daddr, 16);
	} else {
		__builtin_memcpy(key->source, &ip->daddr, 16);
		__builtin_memcpy(key->destination, &ip->saddr, 16);
	}
	protocol = ip->nexthdr;
	c->at = start;
	c->length = start + payload;
	if (protocol != IPPROTO_TCP)
		protocol = parse_extensions(c, (u8)protocol);
	if (protocol == IPPROTO_UDP)
		return parse_udp(c, packet, network);
	if (protocol != IPPROTO_TCP)
		return protocol < 0 ? -protocol : PASS_NOT_TCP;
	if (c->at - start > payload)
		return PASS_MALFORMED;
	payload -= c->at - start;
	return parse_tcp(c, packet, payload, (u32 *)&key->source_port, *network, direction);
}

static __always_inline int parse_ip(struct cursor *c, struct packet *packet, u16 protocol,
				    u32 *network, u32 direction)
{
	if (protocol == bpf_htons(ETH_P_IP))
		return parse_ipv4(c, packet, network, direction);
	if (protocol == bpf_htons(ETH_P_IPV6))
		return parse_ipv6(c, packet, network, direction);
	if (protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD))
		return PASS_TOO_DEEP;
	return protocol ? PASS_NOT_IP : PASS_TRUNCATED;
}

/* The frame at the cursor; without an Ethernet header if `is_bare`. */
static __always_inline int parse_frame(struct cursor *c, struct packet *packet, u32 *network,
				       u32 direction, u32 is_bare)
{
	u16 protocol;

	if (is_bare) {
		u8 *version = header_at(c, 1);

		protocol = !version		? 0
			   : *version >> 4 == 6 ? bpf_htons(ETH_P_IPV6)
						: bpf_htons(ETH_P_IP);
	} else {
		struct ethhdr *ethernet = header_at(c, sizeof(*ethernet));

		if (!ethernet)
			return PASS_TRUNCATED;
		c->at += sizeof(*ethernet);
		protocol = parse_tags(c, ethernet->h_proto, network);
	}
	return parse_ip(c, packet, protocol, network, direction);
}

/* The inner frame of a tunnel: at this offset, of a packet that ends at `length`. */
static __always_inline int parse_inner(struct __sk_buff *skb, struct packet *packet, u32 at,
				       u32 length, u32 network, u32 direction)
{
	struct cursor c = {(void *)(long)skb->data, (void *)(long)skb->data_end, at, length};
	int found;

	packet->is_tunnelled = 1;
	found = parse_frame(&c, packet, &network, direction, 0);
	return found == PARSE_TUNNEL ? PASS_TOO_DEEP : found;
}

/*
 * PARSE_TCP or an enum pass_reason. These are global functions, which the verifier checks by
 * themselves: else it would follow every way through the headers to the program's end.
 */
__noinline int parse_inner_data(struct __sk_buff *skb, struct packet *packet, u32 at, u32 length,
				u32 network)
{
	return packet ? parse_inner(skb, packet, at, length, network, FLOW_DATA) : PASS_FAILED;
}

__noinline int parse_inner_acks(struct __sk_buff *skb, struct packet *packet, u32 at, u32 length,
				u32 network)
{
	return packet ? parse_inner(skb, packet, at, length, network, FLOW_ACKS) : PASS_FAILED;
}

static __always_inline int parse_once(struct __sk_buff *skb, struct packet *packet, u32 direction,
				      u32 is_bare)
{
	struct cursor c = {(void *)(long)skb->data, (void *)(long)skb->data_end, 0, skb->len};
	u32 network = skb->vlan_present ? skb->vlan_tci & 0xfff : 0;
	int found = parse_frame(&c, packet, &network, direction, is_bare);

	if (found != PARSE_TUNNEL)
		return found;
	return direction == FLOW_DATA ? parse_inner_data(skb, packet, c.at, c.length, network)
				      : parse_inner_acks(skb, packet, c.at, c.length, network);
}

__noinline int parse_data(struct __sk_buff *skb, struct packet *packet, u32 is_bare)
{
	return packet ? parse_once(skb, packet, FLOW_DATA, is_bare) : PASS_FAILED;
}

__noinline int parse_acks(struct __sk_buff *skb, struct packet *packet, u32 is_bare)
{
	return packet ? parse_once(skb, packet, FLOW_ACKS, is_bare) : PASS_FAILED;
}

static __always_inline int parse_any(struct __sk_buff *skb, struct packet *packet, u32 direction,
				     u32 is_bare)
{
	int found = direction == FLOW_DATA ? parse_data(skb, packet, is_bare)
					   : parse_acks(skb, packet, is_bare);

	/* Headers may lie in pages; a packet that is linear as a whole is just too short. */
	if (found != PASS_TRUNCATED || skb->data_end - skb->data >= skb->len)
		return found;
	if (bpf_skb_pull_data(skb, min_u32(skb->len, PARSE_PULL_BYTES)))
		return found;
	packet->is_tunnelled = 0;
	return direction == FLOW_DATA ? parse_data(skb, packet, is_bare)
				      : parse_acks(skb, packet, is_bare);
}

#endif
