/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many flows can still send through a port?
 *
 * Exact: one `flow_entry` per connection and output port, stored by the caller (a hash map in
 * eBPF, an array in the simulator). A flow is counted once, at the first SYN or SYN-ACK seen, and
 * uncounted once: at the first FIN of its data direction (that sender has nothing new to send; a
 * FIN of the other side leaves it counted), at an RST of either side, or when idle for too long.
 * Retransmitted SYNs and FINs change nothing; they differ from a reuse of the ports by the
 * initial sequence number. An idle flow that sends data again is counted again. A flow first
 * seen in mid-life is not counted and its scales stay unknown.
 *
 * The papers': `flow_counter` counts SYN-ACKs and FINs without knowing flows (FairQ §IV-E) and
 * drifts when these are retransmitted or lost; it restarts after 1 s without data.
 *
 * Directions: 0 leaves by the port in question and carries the data, 1 comes back with the ACKs.
 *
 * Limits: 32 bytes an entry. A SYN-ACK first seen after an RST of its connection counts a flow
 * until it idles.
 */
#ifndef PENSTOCK_FLOW_COUNT_H
#define PENSTOCK_FLOW_COUNT_H

#include "tcp_rewrite.h"

#define FLOW_DATA 0u /* direction of the data: out by the port */
#define FLOW_ACKS 1u /* direction of the ACKs: in by the port */

#define FLOW_SCALE_NONE	     0xfeu	   /* a SYN without the window scale option */
#define FLOW_COUNTER_IDLE_NS 1000000000ull /* FairQ §IV-E: 1 s without data */

enum flow_phase {
	FLOW_UNSEEN = 0,  /* no SYN seen yet */
	FLOW_COUNTED = 1, /* counted: it can send */
	FLOW_IDLE = 2,	  /* uncounted by time; data counts it again */
	FLOW_ENDED = 3,	  /* uncounted by FIN or RST; a new SYN counts the next connection */
};

/* One connection at one port. All zero is the entry of a flow never seen. */
struct flow_entry {
	u64 last_ns; /* when its last packet passed */
	u32 isn[2];  /* initial sequence number of each direction's SYN */
	u16 mss[2];  /* MSS option of each direction's SYN, 0 unknown */
	u8 scale[2]; /* option of each direction's SYN; valid with `syns` */
	u8 syns;     /* bit per direction: its SYN was seen */
	u8 syn_acks; /* bit per direction: that SYN was a SYN-ACK */
	u8 phase;    /* enum flow_phase */
	u8 acks;     /* packets of the ACK direction after its SYN, saturating */
	u8 reserved[6];
};

_Static_assert(sizeof(struct flow_entry) == 32, "a million flows fit in 32 MB");

/* What an entry has to know of a packet. */
struct flow_packet {
	u64 now_ns;
	u32 seq;      /* sequence number, host order */
	u16 payload;  /* TCP payload, bytes */
	u16 mss;      /* on a SYN: MSS option, 0 if absent */
	u8 scale;     /* on a SYN: scale option, FLOW_SCALE_NONE if absent */
	u8 flags;     /* TCP_FLAG_* */
	u8 direction; /* FLOW_DATA or FLOW_ACKS */
};

CORE_INLINE u32 flow_is_counted(const struct flow_entry *flow)
{
	return flow->phase == FLOW_COUNTED;
}

CORE_INLINE s32 flow_on_syn(struct flow_entry *flow, const struct flow_packet *packet)
{
	u32 direction = packet->direction & 1;
	u8 bit = (u8)(1u << direction);
	s32 delta = flow->phase == FLOW_COUNTED ? 0 : 1;

	if (flow->syns & bit && flow->isn[direction] == packet->seq)
		return 0; /* retransmitted */
	if (flow->syns & bit || flow->phase == FLOW_ENDED) {
		/* The ports are used again: nothing learned from the last connection holds. */
		flow->syns = 0;
		flow->syn_acks = 0;
		flow->acks = 0;
		flow->mss[direction ^ 1] = 0;
	}
	flow->isn[direction] = packet->seq;
	flow->mss[direction] = packet->mss;
	flow->scale[direction] = packet->scale == FLOW_SCALE_NONE
					 ? FLOW_SCALE_NONE
					 : (u8)min_u32(packet->scale, TCP_MAX_SCALE);
	flow->syns |= bit;
	if (packet->flags & TCP_FLAG_ACK)
		flow->syn_acks |= bit;
	flow->phase = FLOW_COUNTED;
	return delta;
}

/* Follows a flow by one packet; returns by how much the number of flows changes: -1, 0 or 1. */
CORE_INLINE s32 flow_on_packet(struct flow_entry *flow, const struct flow_packet *packet)
{
	u32 is_data = (packet->direction & 1) == FLOW_DATA;
	u32 was_counted = flow->phase == FLOW_COUNTED;

	flow->last_ns = packet->now_ns;
	if (packet->flags & TCP_FLAG_RST) {
		if (flow->phase != FLOW_UNSEEN)
			flow->phase = FLOW_ENDED;
		return was_counted ? -1 : 0;
	}
	if (packet->flags & TCP_FLAG_SYN)
		return flow_on_syn(flow, packet);
	if (!is_data && packet->flags & TCP_FLAG_ACK && flow->acks < 0xff)
		flow->acks++;
	if (is_data && packet->flags & TCP_FLAG_FIN) {
		if (flow->phase != FLOW_UNSEEN)
			flow->phase = FLOW_ENDED;
		return was_counted ? -1 : 0;
	}
	if (is_data && packet->payload && flow->phase == FLOW_IDLE) {
		flow->phase = FLOW_COUNTED;
		return 1;
	}
	return 0;
}

/* Uncounts a flow silent for at least `idle_ns`; returns -1 if it was counted, else 0. */
CORE_INLINE s32 flow_expire(struct flow_entry *flow, u64 now_ns, u64 idle_ns)
{
	if (flow->phase != FLOW_COUNTED || elapsed_ns(flow->last_ns, now_ns) < idle_ns)
		return 0;
	flow->phase = FLOW_IDLE;
	return -1;
}

/*
 * Shift of the windows in packets of a direction. It holds only if both sides offered one
 * (RFC 7323 §2.2); a SYN-ACK with the option proves that the SYN had it too.
 */
CORE_INLINE u32 flow_scale(const struct flow_entry *flow, u32 direction)
{
	u32 own = direction & 1, peer = own ^ 1;
	u32 has_own = flow->syns >> own & 1, has_peer = flow->syns >> peer & 1;

	if (has_own && flow->scale[own] == FLOW_SCALE_NONE)
		return 0;
	if (has_peer && flow->scale[peer] == FLOW_SCALE_NONE)
		return 0;
	if (has_own && (has_peer || flow->syn_acks >> own & 1))
		return flow->scale[own];
	return TCP_SCALE_UNKNOWN;
}

/* Largest segment of the data direction: what the other side's SYN takes; 0 unknown. */
CORE_INLINE u32 flow_mss(const struct flow_entry *flow)
{
	return flow->syns >> FLOW_ACKS & 1 ? flow->mss[FLOW_ACKS] : 0;
}

/* Which kind of ACK the packet just given to flow_on_packet is. */
CORE_INLINE u32 flow_ack_kind(const struct flow_entry *flow, u32 flags, u32 first_acks)
{
	if (flags & TCP_FLAG_SYN)
		return TCP_ACK_SYN;
	return flow->syns && flow->acks <= first_acks ? TCP_ACK_FIRST : TCP_ACK_LATER;
}

/* The papers' counter of a port. */
struct flow_counter {
	u64 last_data_ns; /* when data last passed */
	u32 flows;	  /* SYN-ACKs minus FINs and RSTs, never below 0 */
	u32 reserved;
};

/*
 * Counts one packet; returns the number of flows. `is_out`: the packet leaves by the
 * port: a SYN-ACK counts in both directions, a FIN or RST only on its way out (FairQ §IV-E).
 */
CORE_INLINE u32 flow_counter_on_packet(struct flow_counter *counter, u32 flags, u32 payload,
				       u32 is_out, u64 now_ns)
{
	u32 has_syn_ack = (flags & TCP_FLAG_SYN) && (flags & TCP_FLAG_ACK);

	if (payload || has_syn_ack)
		counter->last_data_ns = now_ns;
	if (has_syn_ack && counter->flows < 0xffffffffu)
		counter->flows++;
	if (is_out && flags & (TCP_FLAG_FIN | TCP_FLAG_RST) && counter->flows > 0)
		counter->flows--;
	return counter->flows;
}

/* Restarts the count after `idle_ns` without data; returns the number of flows. */
CORE_INLINE u32 flow_counter_expire(struct flow_counter *counter, u64 now_ns, u64 idle_ns)
{
	if (elapsed_ns(counter->last_data_ns, now_ns) >= idle_ns)
		counter->flows = 0;
	return counter->flows;
}

#endif
