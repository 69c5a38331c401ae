/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The scales that a TCP socket has, and the socket that an ACK came from: a packet that reaches the
 * host's end of a veth still belongs to the socket of the container that sent it.
 *
 * Namespaces may use the same addresses and ports, which cannot mislead here: no address is looked
 * up, the packet itself leads to its socket. Once a router, a tunnel's end or a card is between the
 * two, there is no such socket, and nothing is known.
 */
#ifndef PENSTOCK_SENDER_H
#define PENSTOCK_SENDER_H

#include <bpf/bpf_core_read.h>

#include "kernel.h"
#include "maps.h"
#include "packet.h"

#define TIMESTAMP_BYTES 12 /* in each segment, aligned: advmss is without, once they are agreed */

/* What the socket's SYN and that of the other end offered; `own` is the direction of its data. */
static __always_inline void socket_options(struct tcp_sock *tcp, u32 own, struct flow_known *seen)
{
	struct tcp_options_received *options = &tcp->rx_opt;
	u32 mss = tcp->advmss;

	if (BPF_CORE_READ_BITFIELD(options, tstamp_ok))
		mss += TIMESTAMP_BYTES;
	seen->mss = (u16)max_u32(min_u32(mss, options->mss_clamp), MIN_MSS_BYTES);
	seen->scale[FLOW_DATA] = seen->scale[FLOW_ACKS] = FLOW_SCALE_NONE;
	if (BPF_CORE_READ_BITFIELD(options, wscale_ok)) {
		seen->scale[own] = (u8)BPF_CORE_READ_BITFIELD(options, rcv_wscale);
		seen->scale[own ^ 1] = (u8)BPF_CORE_READ_BITFIELD(options, snd_wscale);
	}
}

/*
 * Whether the socket sent this ACK as it is. Other programs may have assigned the packet to the
 * socket that receives it (bpf_sk_assign), and a namespace may translate addresses.
 */
static __always_inline _Bool is_sender(struct bpf_sock *socket, const struct packet *packet)
{
	const struct flow_key4 *v4 = &packet->key.v4;
	const struct flow_key6 *v6 = &packet->key.v6;

	if (packet->family == 4)
		return socket->src_ip4 == v4->destination && socket->dst_ip4 == v4->source &&
		       socket->src_port == bpf_ntohs(v4->destination_port) &&
		       socket->dst_port == v4->source_port;
	return socket->src_ip6[0] == v6->destination[0] && socket->dst_ip6[0] == v6->source[0] &&
	       socket->src_ip6[1] == v6->destination[1] && socket->dst_ip6[1] == v6->source[1] &&
	       socket->src_ip6[2] == v6->destination[2] && socket->dst_ip6[2] == v6->source[2] &&
	       socket->src_ip6[3] == v6->destination[3] && socket->dst_ip6[3] == v6->source[3] &&
	       socket->src_port == bpf_ntohs(v6->destination_port) &&
	       socket->dst_port == v6->source_port;
}

/* What the socket that sent an ACK has; 0: there is none. */
static __noinline _Bool sender_recall(struct __sk_buff *skb, const struct packet *packet,
				      struct flow_known *recalled)
{
	struct bpf_sock *socket = skb->sk;
	struct tcp_sock *tcp;

	if (!socket || !is_sender(socket, packet))
		return 0;
	tcp = bpf_skc_to_tcp_sock(socket);
	if (!tcp)
		return 0;
	socket_options(tcp, FLOW_ACKS, recalled);
	return 1;
}

#endif
