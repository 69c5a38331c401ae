/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection that has been proven to exist, at one output port.
 *
 * A flow is half-open (handshake.h) until the other side acknowledges what it sent, which no one
 * can forge who does not see its packets. From then on it has an entry here, stored by the caller
 * (a hash map in eBPF, an array in the simulator), and counts towards the port's share, until the
 * FIN of its data direction (that sender has nothing new to send; a FIN of the other side leaves
 * it counted), an RST of either side, or silence. An idle flow that sends data again is counted
 * again.
 *
 * An entry changes only by packets that the connection's ends would accept: the entry holds what
 * each side has sent and what of it is acknowledged, and a packet is plausible if its sequence
 * number is within the window and its acknowledgement within what was sent (RFC 9293 §3.10.7.4,
 * RFC 5961). Everything else is ignored, above all SYNs, which only a whole new handshake turns
 * into another connection. A flow that a forged FIN or RST ended by luck is counted again as soon
 * as new data passes and is acknowledged.
 *
 * Directions: 0 leaves by the port in question and carries the data, 1 comes back with the ACKs.
 * Packets of different directions may be followed at once: apart from the time and the phase they
 * write different fields.
 *
 * Limits: a connection of which the port misses packets (another path) looks implausible until
 * its data is proven again as in mid-life. Of the scale, nothing more than the two SYNs is known.
 */
#ifndef PENSTOCK_FLOW_H
#define PENSTOCK_FLOW_H

#include "segment.h"
#include "tcp_rewrite.h"

#define FLOW_DATA 0u /* direction of the data: out by the port */
#define FLOW_ACKS 1u /* direction of the ACKs: in by the port */

#define FLOW_SCALE_NONE	 0xfeu	/* a SYN without the window scale option */
#define FLOW_SLACK_BYTES 65536u /* so late may a packet be that others overtook */

enum flow_phase {
	FLOW_UNSEEN = 0,  /* not proven */
	FLOW_COUNTED = 1, /* established */
	FLOW_IDLE = 2,	  /* uncounted by time; data counts it again */
	FLOW_ENDED = 3,	  /* uncounted by FIN or RST */
	FLOW_DOUBTED = 4, /* the same, but new data has passed since */
};

/* One connection at one port. All zero is the entry of a flow never seen. */
struct flow_entry {
	u64 last_ns;  /* when its last packet passed */
	u32 acked[2]; /* of what each direction sent: the other acknowledged all before this */
	u32 next[2];  /* just beyond the last byte that each direction sent */
	u16 mss;      /* the lesser of both SYNs' options, bytes; 0 unknown */
	u8 scale[2];  /* shift of each direction's windows, or FLOW_SCALE_NONE, TCP_SCALE_UNKNOWN */
	u8 phase;     /* enum flow_phase */
	u8 acks;      /* packets of the ACK direction after its SYN, saturating */
	u16 segment;  /* size of the data's segments as those passed show it: segment.h */
};

_Static_assert(sizeof(struct flow_entry) == 32, "a million flows fit in 32 MB");

/* What has to be known of a packet. */
struct flow_packet {
	u64 now_ns;
	u32 seq;     /* sequence number, host order */
	u32 ack;     /* acknowledgement number, host order */
	u32 payload; /* TCP payload, bytes */
	u16 mss;  /* on a SYN: MSS option, 0 if absent; else segments of a super-packet, 0 if one */
	u8 scale; /* on a SYN: scale option, FLOW_SCALE_NONE if absent */
	u8 flags; /* TCP_FLAG_* */
	u8 direction; /* FLOW_DATA or FLOW_ACKS */
	u8 reserved[7];
};

/* Size of the segments of a packet that is no SYN. */
CORE_INLINE u32 flow_segment_bytes(const struct flow_packet *packet)
{
	return packet->mss ? packet->mss : packet->payload;
}

/* Whether these are as large as their sender makes them. */
CORE_INLINE _Bool flow_has_full_segment(const struct flow_packet *packet)
{
	return packet->mss || !(packet->flags & (TCP_FLAG_PSH | TCP_FLAG_FIN));
}

CORE_INLINE u32 flow_is_counted(const struct flow_entry *flow)
{
	return flow->phase == FLOW_COUNTED;
}

/* Whether it has not ended: only a whole handshake replaces it. */
CORE_INLINE _Bool flow_is_live(const struct flow_entry *flow)
{
	return flow->phase == FLOW_COUNTED || flow->phase == FLOW_IDLE;
}

/* Whether sequence number `a` is after `b` (RFC 9293 §3.4). */
CORE_INLINE _Bool flow_is_after(u32 a, u32 b)
{
	return (s32)(a - b) > 0;
}

/* Largest window that a direction can have offered, bytes. */
CORE_INLINE u32 flow_max_window(const struct flow_entry *flow, u32 direction)
{
	u8 scale = flow->scale[direction];

	return 65535u << (scale == FLOW_SCALE_NONE ? 0 : min_u32(scale, TCP_MAX_SCALE));
}

/* Whether the ends of the connection would take the packet for their own; of SYNs they never do. */
CORE_INLINE _Bool flow_is_plausible(const struct flow_entry *flow, const struct flow_packet *packet)
{
	u32 own = packet->direction & 1, peer = own ^ 1;
	u32 seq = packet->seq - flow->acked[own] + FLOW_SLACK_BYTES;
	u32 ack = packet->ack - flow->acked[peer] + FLOW_SLACK_BYTES;

	return flow->phase != FLOW_UNSEEN &&
	       (packet->flags & (TCP_FLAG_SYN | TCP_FLAG_ACK)) == TCP_FLAG_ACK &&
	       seq <= flow_max_window(flow, peer) + FLOW_SLACK_BYTES &&
	       ack <= flow->next[peer] - flow->acked[peer] + FLOW_SLACK_BYTES;
}

/* An RST needs no acknowledgement; it comes where its sender is, or where the other's ACK was. */
CORE_INLINE _Bool flow_is_reset_by(const struct flow_entry *flow, const struct flow_packet *packet)
{
	u32 own = packet->direction & 1;

	return flow->phase != FLOW_UNSEEN &&
	       packet->seq - flow->acked[own] <= flow->next[own] - flow->acked[own];
}

/* Follows a flow by a plausible packet that is no RST; returns the change of the count. */
CORE_INLINE s32 flow_on_plausible(struct flow_entry *flow, const struct flow_packet *packet)
{
	u32 own = packet->direction & 1, peer = own ^ 1;
	_Bool is_data = own == FLOW_DATA, is_fin = packet->flags & TCP_FLAG_FIN;
	u32 end = packet->seq + packet->payload + is_fin;
	_Bool is_new = flow_is_after(end, flow->next[own]);
	_Bool is_progress = flow_is_after(packet->ack, flow->acked[peer]);
	s32 was_counted = flow->phase == FLOW_COUNTED;

	flow->last_ns = packet->now_ns;
	if (is_new)
		flow->next[own] = end;
	if (is_progress)
		flow->acked[peer] = packet->ack;
	if (!is_data && flow->acks < 0xff)
		flow->acks++;
	if (is_data && packet->payload)
		flow->segment = segment_follow(flow->segment, flow_segment_bytes(packet),
					       flow_has_full_segment(packet));
	if (is_data && is_fin && end == flow->next[own])
		flow->phase = FLOW_ENDED;
	else if (is_data && packet->payload && flow->phase == FLOW_IDLE)
		flow->phase = FLOW_COUNTED;
	else if (is_data && is_new && flow->phase == FLOW_ENDED)
		flow->phase = FLOW_DOUBTED;
	else if (!is_data && is_progress && flow->phase == FLOW_DOUBTED)
		flow->phase = FLOW_COUNTED;
	return (s32)(flow->phase == FLOW_COUNTED) - was_counted;
}

/* Follows a flow by one packet; returns by how much the number of flows changes: -1, 0 or 1. */
CORE_INLINE s32 flow_on_packet(struct flow_entry *flow, const struct flow_packet *packet)
{
	s32 was_counted = flow->phase == FLOW_COUNTED;

	if (packet->flags & TCP_FLAG_RST) {
		if (!flow_is_reset_by(flow, packet))
			return 0;
		flow->phase = FLOW_ENDED;
		return -was_counted;
	}
	return flow_is_plausible(flow, packet) ? flow_on_plausible(flow, packet) : 0;
}

/* Uncounts a flow silent for at least `idle_ns`; returns -1 if it was counted, else 0. */
CORE_INLINE s32 flow_expire(struct flow_entry *flow, u64 now_ns, u64 idle_ns)
{
	if (flow->phase != FLOW_COUNTED || elapsed_ns(flow->last_ns, now_ns) < idle_ns)
		return 0;
	flow->phase = FLOW_IDLE;
	return -1;
}

/* Whether the sender of the data has nothing to send again. */
CORE_INLINE _Bool flow_is_acknowledged(const struct flow_entry *flow)
{
	return flow->acked[FLOW_DATA] == flow->next[FLOW_DATA];
}

/* Shift of the windows in packets of a direction, TCP_SCALE_UNKNOWN if not known. */
CORE_INLINE u32 flow_scale(const struct flow_entry *flow, u32 direction)
{
	u8 scale = flow->scale[direction & 1];

	if (flow->phase == FLOW_UNSEEN)
		return TCP_SCALE_UNKNOWN;
	return scale == FLOW_SCALE_NONE ? 0 : scale;
}

/* Largest segment to expect of the data direction, bytes; 0 unknown. See segment_expected. */
CORE_INLINE u32 flow_mss(const struct flow_entry *flow, u32 port_bytes)
{
	return segment_expected(flow->mss, flow->segment, port_bytes);
}

/* Which kind of ACK the packet just followed is; of flows first seen in mid-life, none is first. */
CORE_INLINE u32 flow_ack_kind(const struct flow_entry *flow, u32 flags, u32 first_acks)
{
	if (flags & TCP_FLAG_SYN)
		return TCP_ACK_SYN;
	return flow->phase != FLOW_UNSEEN && flow->acks <= first_acks ? TCP_ACK_FIRST
								      : TCP_ACK_LATER;
}

#endif
