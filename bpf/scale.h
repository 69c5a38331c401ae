/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What ports and shims change of the scale of windows: the option of SYNs and the reserved bits
 * that carry it (FairQ §III-B, §IV-C).
 */
#ifndef PENSTOCK_SCALE_H
#define PENSTOCK_SCALE_H

#include "options.h"
#include "rewrite.h"

/* Writes a byte of the header, at any offset. */
static __noinline int scale_write_byte(struct __sk_buff *skb, u32 tcp, u32 at, u8 to)
{
	u32 shift = at & 1 ? 0 : 8; /* its half of the checksum's word */
	u8 from;

	if (bpf_skb_load_bytes(skb, tcp + at, &from, sizeof(from)) ||
	    bpf_l4_csum_replace(skb, tcp + TCP_CHECKSUM, bpf_htons((u16)(from << shift)),
				bpf_htons((u16)(to << shift)), sizeof(u16)))
		return -1;
	return (int)bpf_skb_store_bytes(skb, tcp + at, &to, sizeof(to), 0);
}

/*
 * Writes the word of offset, reserved bits and flags. The checksum is that of the cleared bits: if
 * it is still a partial sum, the bits are taken out of it.
 */
static __always_inline int scale_write_reserved(struct __sk_buff *skb, const struct packet *packet,
						u16 word)
{
	u16 from = bpf_htons(packet->offset_flags), to = bpf_htons(word);

	if (has_kernel_view() && has_partial_sum(skb, packet->tcp) &&
	    bpf_l4_csum_replace(skb, packet->tcp + TCP_CHECKSUM, to, from,
				BPF_F_PSEUDO_HDR | sizeof(to)))
		return -1;
	return (int)bpf_skb_store_bytes(skb, packet->tcp + TCP_OFFSET_FLAGS, &to, sizeof(to),
					BPF_F_RECOMPUTE_CSUM);
}

/* Lowers the option of a SYN, or makes three NOPs of it; a tunnelled one passes. */
static __noinline int scale_change_syn(struct __sk_buff *skb, const struct port_config *config,
				       u32 tcp, u32 header_bytes, _Bool is_answer)
{
	u32 options = options_read(skb, tcp, header_bytes - 20);
	u32 scale = options >> 16 & 0xff, at = options_scale_at(options);
	u32 wanted = window_syn_scale(&config->window, scale, is_answer);
	int failed;

	if (scale == FLOW_SCALE_NONE || wanted == scale)
		return PASS_REASONS;
	if (options & OPTIONS_AUTHENTICATED)
		return PASS_AUTHENTICATED;
	if (wanted != TCP_SCALE_UNKNOWN)
		return scale_write_byte(skb, tcp, at, (u8)wanted) ? PASS_FAILED : PASS_REASONS;
	failed = scale_write_byte(skb, tcp, at - 2, OPTION_NOP);
	failed |= scale_write_byte(skb, tcp, at - 1, OPTION_NOP);
	failed |= scale_write_byte(skb, tcp, at, OPTION_NOP);
	return failed ? PASS_FAILED : PASS_REASONS;
}

/*
 * Takes the scale out of an ACK's reserved bits, once read. Also when the agent is dead, as the
 * bits spoil the checksum.
 */
static __noinline int scale_clear(struct __sk_buff *skb, const struct packet *packet)
{
	if (is_authenticated(skb, packet))
		return PASS_AUTHENTICATED;
	return scale_write_reserved(skb, packet, tcp_reserved_clear(packet->offset_flags))
		       ? PASS_FAILED
		       : PASS_REASONS;
}

#endif
