/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of a SYN: window scale (RFC 7323 §2.2) and segment size (RFC 9293 §3.7.1).
 */
#ifndef PENSTOCK_OPTIONS_H
#define PENSTOCK_OPTIONS_H

#include "packet.h"

#define OPTIONS_MAX_BYTES 40u /* a TCP header has at most 60 bytes */

enum tcp_option {
	OPTION_END = 0,
	OPTION_NOP = 1,
	OPTION_MSS = 2,
	OPTION_SCALE = 3,
};

struct option_walk {
	u8 list[64];
	u32 at, length;
	u32 mss, scale, scale_at;
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
		walk->scale = walk->list[(at + 2) & 63];
		walk->scale_at = 20 + at + 2;
	}
	walk->at = at + bytes;
	return 0;
}

/*
 * Segment size (0: none) in 16 bits, above it the scale (or FLOW_SCALE_NONE) in 8, and where in the
 * header its value stands. A bad list is read up to where it contradicts itself.
 */
static __noinline u32 options_read(struct __sk_buff *skb, u32 at_tcp, u32 length)
{
	struct option_walk walk = {.length = length, .scale = FLOW_SCALE_NONE};
	_Bool is_sound = length >= 1 && length <= OPTIONS_MAX_BYTES;

	/* The bounds once more, as a mask: verifiers before Linux 6.8 do not follow the test. */
	asm volatile("" : "+r"(length));
	length = ((length - 1) & (sizeof(walk.list) - 1)) + 1;
	if (is_sound && !bpf_skb_load_bytes(skb, at_tcp + 20, walk.list, length))
		bpf_loop(OPTIONS_MAX_BYTES, option_read, &walk, 0);
	return walk.scale_at << 24 | walk.scale << 16 | walk.mss;
}

#endif
