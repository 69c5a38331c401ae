/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP options: of a SYN, window scale (RFC 7323 §2.2) and segment size (RFC 9293 §3.7.1); of any
 * segment, whether it is authenticated (RFC 2385, RFC 5925), which nothing may change.
 */
#ifndef PENSTOCK_OPTIONS_H
#define PENSTOCK_OPTIONS_H

#include <bpf/bpf_endian.h>

#include "packet.h"

#define OPTIONS_MAX_BYTES 40u	      /* a TCP header has at most 60 bytes */
#define OPTIONS_TIMESTAMP 0x0101080au /* two NOPs, then timestamps of ten bytes */

enum tcp_option {
	OPTION_END = 0,
	OPTION_NOP = 1,
	OPTION_MSS = 2,
	OPTION_SCALE = 3,
	OPTION_MD5 = 19,
	OPTION_AO = 29,
};

struct option_walk {
	u8 list[64];
	u32 at, length;
	u32 mss, scale, scale_at;
	_Bool is_authenticated;
};

static long option_read(u32 index, struct option_walk *walk)
{
	u32 at = walk->at;
	u8 kind = walk->list[at & 63], bytes = walk->list[(at + 1) & 63];

	(void)index;
	if (at >= walk->length || kind == OPTION_END)
		return 1;
	if (kind == OPTION_NOP) {
		walk->at = at + 1;
		return 0;
	}
	if (bytes < 2 || at + bytes > walk->length)
		return 1;
	if (kind == OPTION_MSS && bytes == 4)
		walk->mss = walk->list[(at + 2) & 63] << 8 | walk->list[(at + 3) & 63];
	if (kind == OPTION_SCALE && bytes == 3) {
		walk->scale = min_u32(walk->list[(at + 2) & 63], TCP_MAX_SCALE); /* RFC 7323 §2.3 */
		walk->scale_at = 20 + at + 2;
	}
	if (kind == OPTION_MD5 || kind == OPTION_AO)
		walk->is_authenticated = 1;
	walk->at = at + bytes;
	return 0;
}

#define OPTIONS_AUTHENTICATED (1u << 31)

/*
 * Segment size (0: none) in 16 bits, above it the scale (or FLOW_SCALE_NONE) in 8, where in the
 * header its value stands in 7, and OPTIONS_AUTHENTICATED. A bad list is read up to where it
 * contradicts itself.
 */
__noinline u32 options_read(struct __sk_buff *skb, u32 at_tcp, u32 length)
{
	struct option_walk walk = {.length = length, .scale = FLOW_SCALE_NONE};
	_Bool is_sound = length >= 1 && length <= OPTIONS_MAX_BYTES;

	/* The bounds once more, as a mask: verifiers before Linux 6.8 do not follow the test. */
	asm volatile("" : "+r"(length));
	length = ((length - 1) & (sizeof(walk.list) - 1)) + 1;
	if (is_sound && !bpf_skb_load_bytes(skb, at_tcp + 20, walk.list, length))
		bpf_loop(OPTIONS_MAX_BYTES, option_read, &walk, 0);
	return (walk.is_authenticated ? OPTIONS_AUTHENTICATED : 0) | walk.scale_at << 24 |
	       walk.scale << 16 | walk.mss;
}

static __always_inline u32 options_scale_at(u32 options)
{
	return options >> 24 & 0x7f;
}

/*
 * Whether the segment carries a digest of its header (TCP-MD5, TCP-AO). Most have no options, or
 * timestamps alone, laid out as RFC 7323 appendix A recommends: one word shows these.
 */
static __always_inline _Bool is_authenticated(struct __sk_buff *skb, const struct packet *packet)
{
	u32 length = packet_header_bytes(packet) - 20, first = 0;

	if (!length)
		return 0;
	if (length == 12 && !bpf_skb_load_bytes(skb, packet->tcp + 20, &first, sizeof(first)) &&
	    bpf_ntohl(first) == OPTIONS_TIMESTAMP)
		return 0;
	return !!(options_read(skb, packet->tcp, length) & OPTIONS_AUTHENTICATED);
}

#endif
