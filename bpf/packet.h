/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs know of a packet once parse.h went through its headers.
 */
#ifndef PENSTOCK_PACKET_H
#define PENSTOCK_PACKET_H

#include "maps.h"

#define ECN_MASK 3u
#define ECN_CE	 3u

struct packet {
	union {
		struct flow_key4 v4;
		struct flow_key6 v6;
	} key;	  /* of its flow: source and destination of the data */
	u32 port; /* its number, port_state.id */
	u32 tcp;  /* offset of the TCP header */
	u32 seq, ack;
	u32 payload;	  /* bytes of TCP payload */
	u16 window;	  /* the field, host order */
	u16 offset_flags; /* the word of data offset, reserved bits and flags, host order */
	u16 checksum;	  /* of TCP, as on the wire */
	u8 family;	  /* 4 or 6; 0: not even the addresses could be read */
	u8 is_tunnelled;
	u8 traffic_class; /* of the outer IP header: DSCP and ECN */
};

static __always_inline u32 packet_ecn(const struct packet *packet)
{
	return packet->traffic_class & ECN_MASK;
}

static __always_inline u32 packet_dscp(const struct packet *packet)
{
	return packet->traffic_class >> 2;
}

/* The same number, of which verifiers know nothing from then on: so they follow fewer ways. */
static __always_inline u32 forgotten(u32 value, u64 any)
{
	u32 mask = (u32)any;

	value ^= mask;
	asm volatile("" : "+r"(value));
	return value ^ mask;
}

static __always_inline u32 packet_flags(const struct packet *packet)
{
	return packet->offset_flags & 0xff;
}

static __always_inline u32 packet_header_bytes(const struct packet *packet)
{
	return (packet->offset_flags >> 12) * 4;
}

#endif
