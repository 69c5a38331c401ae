/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An ACK's window: where its scale comes from, what a scheme makes of it, and how it is written.
 *
 * The kernel's helpers write, as only they handle super-packets. A sum in
 * one's complement does not change when a word and the checksum over it change together, so any sum
 * over the whole segment (a tunnel's outer UDP, CHECKSUM_COMPLETE) stays valid.
 */
#ifndef PENSTOCK_REWRITE_H
#define PENSTOCK_REWRITE_H

#include "kernel.h"
#include "known.h"

#define TCP_OFFSET_FLAGS 12
#define TCP_WINDOW	 14
#define TCP_CHECKSUM	 16

/* What an ACK offers, as the receiver meant it. */
struct offer {
	u16 window; /* the field, without a scale in its upper bits */
	u16 kind;   /* enum tcp_ack_kind */
	u32 scale;  /* TCP_SCALE_UNKNOWN: leave it alone */
	u32 mss;    /* 0: unknown */
};

static __always_inline struct offer offer_of(const struct packet *packet,
					     const struct port_config *config,
					     const struct port_flow *flow,
					     const struct port_half *half, u32 segment_bytes)
{
	u32 flags = packet_flags(packet);
	struct offer offer = {packet->window, TCP_ACK_LATER, TCP_SCALE_UNKNOWN, 0};

	if (flow) {
		offer.kind = (u16)flow_ack_kind(&flow->entry, flags, config->window.first_acks);
		offer.mss = flow_mss(&flow->entry, segment_bytes);
	}
	if (flags & TCP_FLAG_SYN) { /* not scaled, and carries no scale */
		offer.kind = TCP_ACK_SYN;
		offer.scale = 0;
		offer.mss = half ? handshake_mss(&half->handshake, segment_bytes) : 0;
		return offer;
	}
	switch (config->window.wscale_source) {
	case WSCALE_RESERVED_BITS:
		offer.scale = tcp_reserved_scale(packet->offset_flags);
		break;
	case WSCALE_WINDOW_BITS:
		offer.scale = tcp_window12_scale(packet->window);
		offer.window = tcp_window12_window(packet->window);
		break;
	case WSCALE_UNIFIED:
		/* Who has no scaling, or no shim, keeps to what its SYN has shown. */
		if (flow)
			offer.scale = flow_scale(&flow->entry, FLOW_ACKS);
		if (offer.scale == TCP_SCALE_UNKNOWN)
			offer.scale = window_network_wscale(&config->window);
		break;
	default:
		if (flow)
			offer.scale = flow_scale(&flow->entry, FLOW_ACKS);
	}
	return offer;
}

/*
 * Whether the packet's TCP checksum is still to be filled in. In a tunnel the outer UDP checksum
 * may be the partial one (no inner offload), which is all that the kernel's helper looks at.
 */
static __always_inline _Bool has_partial_sum(struct __sk_buff *skb, u32 tcp)
{
	struct sk_buff *packet = bpf_cast_to_kern_ctx(skb);

	if (BPF_CORE_READ_BITFIELD(packet, ip_summed) != CHECKSUM_PARTIAL)
		return 0;
	return packet->head + packet->csum_start == packet->data + tcp;
}

/* As below, where programs cannot see whether the checksum is partial (before Linux 6.2). */
static __noinline int write_by_helpers(struct __sk_buff *skb, const struct packet *packet,
				       u16 window)
{
	u16 from = bpf_htons(packet->window), to = bpf_htons(window);

	if (packet->is_tunnelled)
		return -1;
	/* The checksum first: it lies behind, so if it can be written, the window can. */
	if (bpf_l4_csum_replace(skb, packet->tcp + TCP_CHECKSUM, from, to, sizeof(to)))
		return -1;
	return (int)bpf_skb_store_bytes(skb, packet->tcp + TCP_WINDOW, &to, sizeof(to), 0);
}

/*
 * Writes the window field; values in host order. Not 0: the kernel refused, nothing changed. Window
 * and checksum are neighbours, and one call of a helper for both is less than two.
 */
static __always_inline int write_window(struct __sk_buff *skb, const struct packet *packet,
					u16 window)
{
	u16 checksum = bpf_ntohs(packet->checksum);
	u32 words;

	if (!has_kernel_view())
		return write_by_helpers(skb, packet, window);
	if (!has_partial_sum(skb, packet->tcp))
		checksum = tcp_checksum_update(checksum, packet->window, window);
	words = bpf_htonl((u32)window << 16 | checksum);
	return (int)bpf_skb_store_bytes(skb, packet->tcp + TCP_WINDOW, &words, sizeof(words), 0);
}

/*
 * The window field as it leaves, with the scale in its upper bits again: other ports and the shim
 * at the far end read it too.
 */
static __always_inline u16 carried_window(const struct port_config *config,
					  const struct offer *offer, u16 window)
{
	if (config->window.wscale_source != WSCALE_WINDOW_BITS || offer->kind == TCP_ACK_SYN)
		return window;
	return tcp_window12_put(window, offer->scale);
}

/* The same as below for a flow that begins while others do; a copy of the state is on the stack. */
static __noinline u32 scheme_first_window(const struct port_state *port,
					  const struct port_config *config,
					  const struct offer *offer, u64 now_ns, u32 scheme)
{
	struct tcp_window out =
		scheme_on_first_ack(scheme, scheme_state_of((void *)&port->schemes, scheme),
				    scheme_params_of(&config->schemes, scheme),
				    max_u32(port->flows, port->own_flows + port->half_open),
				    offer->window, offer->scale, offer->mss, offer->kind, now_ns);

	return (u32)out.window << 16 | (u32)out.changed << 8 | out.floored;
}

/* The window that a scheme grants; as it is for SCHEME_NONE. */
static __always_inline struct tcp_window scheme_window(const struct port_state *port,
						       const struct port_config *config,
						       const struct offer *offer, u64 now_ns,
						       u32 scheme)
{
	if (offer->kind != TCP_ACK_LATER && port->half_open && !counts_packets(config, scheme)) {
		u32 first = scheme_first_window(port, config, offer, now_ns, scheme);
		struct tcp_window out = {(u16)(first >> 16), first >> 8 & 1, first & 1};

		return out;
	}
	return scheme_on_ack(scheme, scheme_state_of((void *)&port->schemes, scheme),
			     scheme_params_of(&config->schemes, scheme), offer->window,
			     offer->scale, offer->mss, offer->kind, now_ns);
}

#endif
