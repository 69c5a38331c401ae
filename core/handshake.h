/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow that is not proven to exist: its SYNs have passed, or, if it is older than the port, its
 * data. Its record is apart from the entry (flow.h) that it may become, so that those who forge
 * SYNs can fill only a small table of records.
 *
 * Proof of a handshake is the acknowledgement of a SYN, exactly one more than its initial
 * sequence number, in a packet that is itself no SYN and continues that of its own side: who
 * forges the SYN of another host does not see the SYN-ACK, and what was forged between the two is
 * not believed, though it may take the place of what was true, of which then nothing is known.
 * Proof of data in mid-life is its acknowledgement, too.
 *
 * Where an entry exists and has not ended, only a whole handshake replaces it: SYN, the SYN-ACK
 * that acknowledges this SYN, and the ACK of both. Until then the connection stays as it is.
 *
 * Limits: a client that acknowledges data of the server together with its SYN-ACK (TCP Fast Open)
 * proves its flow as in mid-life, without scales; a shim that unifies scales does not know them
 * then.
 */
#ifndef PENSTOCK_HANDSHAKE_H
#define PENSTOCK_HANDSHAKE_H

#include "flow.h"

#define HANDSHAKE_LIFE_NS  3000000000ull /* a SYN is repeated after 1 s, then 2 s (RFC 6298 §2) */
#define MID_LIFE_LIFE_NS   250000000ull	 /* data not acknowledged by then may be replaced */
#define MID_LIFE_ACK_BYTES (1u << 20)	 /* so far beyond its begin data may be acknowledged */
#define SYN_DATA_BYTES	   16384u /* so much may a SYN carry (RFC 7413), and its answer acknowledge */

enum handshake_mark {
	HANDSHAKE_SYN = 1u,	 /* shifted by the direction: its SYN was seen */
	HANDSHAKE_SYN_ACK = 4u,	 /* shifted by the direction: that SYN was a SYN-ACK */
	HANDSHAKE_MID_LIFE = 16u /* no SYN, but data: `isn` is one less than its begin */
};

/* All zero is the record of a flow never seen. */
struct handshake {
	u64 last_ns; /* when its last SYN passed, or its first data */
	u32 isn[2];  /* initial sequence number of each direction's SYN */
	u16 mss[2];  /* MSS option of each direction's SYN, at least MIN_MSS_BYTES */
	u8 scale[2]; /* option of each direction's SYN, or FLOW_SCALE_NONE */
	u8 marks;    /* enum handshake_mark */
	u8 reserved;
};

_Static_assert(sizeof(struct handshake) == 24, "half-open flows are small");

CORE_INLINE _Bool handshake_has_syn(const struct handshake *h, u32 direction)
{
	return h->marks >> (direction & 1) & HANDSHAKE_SYN;
}

CORE_INLINE _Bool handshake_has_syn_ack(const struct handshake *h, u32 direction)
{
	return (h->marks >> (direction & 1) & HANDSHAKE_SYN_ACK) != 0;
}

/* Whether its SYNs make it half-open; data in mid-life does not. */
CORE_INLINE _Bool handshake_is_half_open(const struct handshake *h)
{
	return h->marks && !(h->marks & HANDSHAKE_MID_LIFE);
}

CORE_INLINE _Bool handshake_is_over(const struct handshake *h, u64 now_ns)
{
	return elapsed_ns(h->last_ns, now_ns) >= HANDSHAKE_LIFE_NS;
}

/* Whether a SYN passed before. */
CORE_INLINE _Bool handshake_is_repeated(const struct handshake *h, const struct flow_packet *packet)
{
	u32 own = packet->direction & 1;

	return handshake_has_syn(h, own) && h->isn[own] == packet->seq &&
	       !handshake_is_over(h, packet->now_ns);
}

/*
 * A SYN or SYN-ACK passes. Of two of a direction the later holds. The other direction's is
 * forgotten only where the two contradict each other: a SYN-ACK (of a proxy, or with a cookie)
 * that acknowledges another SYN, or a SYN after the answer to another.
 */
CORE_INLINE void handshake_on_syn(struct handshake *h, const struct flow_packet *packet)
{
	const struct handshake none = {0};
	u32 own = packet->direction & 1, peer = own ^ 1;
	_Bool is_answer = packet->flags & TCP_FLAG_ACK;
	_Bool is_repeated = handshake_is_repeated(h, packet);

	if (handshake_is_over(h, packet->now_ns) || h->marks & HANDSHAKE_MID_LIFE)
		*h = none;
	h->last_ns = packet->now_ns;
	if (is_answer ? packet->ack - h->isn[peer] - 1 > SYN_DATA_BYTES
		      : !is_repeated && handshake_has_syn_ack(h, peer))
		h->marks &= (u8) ~((HANDSHAKE_SYN | HANDSHAKE_SYN_ACK) << peer);
	if (is_answer)
		h->marks |= (u8)(HANDSHAKE_SYN_ACK << own);
	else if (!is_repeated)
		h->marks &= (u8) ~(HANDSHAKE_SYN_ACK << own);
	if (is_repeated)
		return;
	h->marks |= (u8)(HANDSHAKE_SYN << own);
	h->isn[own] = packet->seq;
	h->mss[own] = (u16)max_u32(packet->mss, MIN_MSS_BYTES);
	h->scale[own] = packet->scale == FLOW_SCALE_NONE
				? FLOW_SCALE_NONE
				: (u8)min_u32(packet->scale, TCP_MAX_SCALE);
}

/* Whether a packet is data of which handshake_on_data takes note. */
CORE_INLINE _Bool handshake_heeds_data(const struct flow_packet *packet)
{
	return packet->payload && (packet->direction & 1) == FLOW_DATA &&
	       (packet->flags & (TCP_FLAG_FIN | TCP_FLAG_SYN | TCP_FLAG_RST | TCP_FLAG_ACK)) ==
		       TCP_FLAG_ACK;
}

/* Data leaves by the port that fits no entry. */
CORE_INLINE void handshake_on_data(struct handshake *h, const struct flow_packet *packet)
{
	const struct handshake none = {0};
	u64 life_ns = h->marks & HANDSHAKE_MID_LIFE ? MID_LIFE_LIFE_NS : HANDSHAKE_LIFE_NS;

	if (h->marks && elapsed_ns(h->last_ns, packet->now_ns) < life_ns)
		return;
	*h = none;
	h->last_ns = packet->now_ns;
	h->isn[FLOW_DATA] = packet->seq - 1;
	h->marks = HANDSHAKE_MID_LIFE;
}

/*
 * Whether a packet ends what the record is about: an RST that answers a SYN, as of a port without
 * a listener, or follows on it; the FIN or RST of a flow in mid-life, which would count too late.
 */
CORE_INLINE _Bool handshake_is_ended(const struct handshake *h, const struct flow_packet *packet)
{
	u32 own = packet->direction & 1, peer = own ^ 1;

	if (h->marks & HANDSHAKE_MID_LIFE)
		return own == FLOW_DATA && packet->flags & (TCP_FLAG_FIN | TCP_FLAG_RST);
	if (!(packet->flags & TCP_FLAG_RST))
		return 0;
	return (handshake_has_syn(h, own) && packet->seq == h->isn[own] + 1) ||
	       (handshake_has_syn(h, peer) && packet->flags & TCP_FLAG_ACK &&
		packet->ack == h->isn[peer] + 1);
}

/* Whether a packet comes after the SYN of its own direction, if that was seen. */
CORE_INLINE _Bool handshake_continues(const struct handshake *h, const struct flow_packet *packet)
{
	u32 own = packet->direction & 1;

	return !handshake_has_syn(h, own) || packet->seq - h->isn[own] - 1 <= FLOW_SLACK_BYTES;
}

/* Whether SYN and SYN-ACK were seen, in the order that a packet of this direction completes. */
CORE_INLINE _Bool handshake_is_whole(const struct handshake *h, const struct flow_packet *packet)
{
	u32 own = packet->direction & 1, peer = own ^ 1;

	return handshake_has_syn(h, own) && handshake_has_syn_ack(h, peer);
}

/*
 * Whether a packet proves that the flow of the record exists. `flow` is the entry that it would
 * replace, null if there is none; data in mid-life proves nothing to an entry that fits.
 */
CORE_INLINE _Bool handshake_is_proven(const struct handshake *h, const struct flow_entry *flow,
				      const struct flow_packet *packet)
{
	u32 own = packet->direction & 1, peer = own ^ 1;
	u32 acked = packet->ack - h->isn[peer] - 1;

	if ((packet->flags & (TCP_FLAG_SYN | TCP_FLAG_RST | TCP_FLAG_ACK)) != TCP_FLAG_ACK ||
	    handshake_is_over(h, packet->now_ns))
		return 0;
	if (h->marks & HANDSHAKE_MID_LIFE)
		return own == FLOW_ACKS && acked - 1 < MID_LIFE_ACK_BYTES &&
		       !(flow && flow_is_plausible(flow, packet));
	return handshake_has_syn(h, peer) && !acked && handshake_continues(h, packet) &&
	       (!(flow && flow_is_live(flow)) || handshake_is_whole(h, packet));
}

/*
 * Shift of a direction's windows. It holds only if both sides offered one (RFC 7323 §2.2); a
 * SYN-ACK with the option proves that the SYN had it too.
 */
CORE_INLINE u8 handshake_scale(const struct handshake *h, u32 direction)
{
	u32 own = direction & 1, peer = own ^ 1;
	_Bool has_own = handshake_has_syn(h, own), has_peer = handshake_has_syn(h, peer);

	if ((has_own && h->scale[own] == FLOW_SCALE_NONE) ||
	    (has_peer && h->scale[peer] == FLOW_SCALE_NONE))
		return FLOW_SCALE_NONE;
	if (has_own && (has_peer || handshake_has_syn_ack(h, own)))
		return h->scale[own];
	return TCP_SCALE_UNKNOWN;
}

/* The lesser of both MSS options, as far as they are known; 0: neither is. */
CORE_INLINE u32 handshake_mss_option(const struct handshake *h)
{
	u32 data = handshake_has_syn(h, FLOW_DATA) ? h->mss[FLOW_DATA] : 0;
	u32 acks = handshake_has_syn(h, FLOW_ACKS) ? h->mss[FLOW_ACKS] : 0;

	return data && acks ? min_u32(data, acks) : data | acks;
}

/* As flow_mss, before there is an entry. */
CORE_INLINE u32 handshake_mss(const struct handshake *h, u32 port_bytes)
{
	return segment_expected(handshake_mss_option(h), 0, port_bytes);
}

/* The flow of a record, proven by a packet, takes over an entry. Follow it by the packet then. */
CORE_INLINE s32 flow_establish(struct flow_entry *flow, const struct handshake *h,
			       const struct flow_packet *packet)
{
	u32 own = packet->direction & 1, peer = own ^ 1;
	s32 delta = flow->phase == FLOW_COUNTED ? 0 : 1;

	if (!(h->marks & HANDSHAKE_MID_LIFE)) {
		flow->scale[FLOW_DATA] = handshake_scale(h, FLOW_DATA);
		flow->scale[FLOW_ACKS] = handshake_scale(h, FLOW_ACKS);
		flow->mss = (u16)handshake_mss_option(h);
		flow->segment = 0;
		flow->acks = 0;
	} else if (flow->phase == FLOW_UNSEEN) {
		flow->scale[FLOW_DATA] = TCP_SCALE_UNKNOWN;
		flow->scale[FLOW_ACKS] = TCP_SCALE_UNKNOWN;
		flow->acks = 0xff;
	}
	/* Other CPUs or a loss may have kept back what was sent before the packet. */
	flow->acked[own] = flow->next[own] = packet->seq;
	if (!(h->marks & HANDSHAKE_MID_LIFE) && handshake_has_syn(h, own))
		flow->acked[own] = h->isn[own] + 1;
	flow->acked[peer] = flow->next[peer] = packet->ack;
	flow->phase = FLOW_COUNTED;
	return delta;
}

/* Whether a packet is followed without a look at the flow's record. */
CORE_INLINE _Bool flow_is_ordinary(const struct flow_entry *flow, const struct flow_packet *packet)
{
	return flow_is_live(flow) &&
	       (packet->flags & TCP_FLAG_RST || flow_is_plausible(flow, packet));
}

/* By how much a packet changes the numbers of flows and of half-open ones: -1, 0 or 1. */
struct flow_change {
	s32 flows;
	s32 half_open;
};

/* The whole of it, for callers that store record and entry together: follows one packet. */
CORE_INLINE struct flow_change flow_follow(struct flow_entry *flow, struct handshake *h,
					   const struct flow_packet *packet)
{
	const struct handshake none = {0};
	struct flow_change change = {0, 0};
	s32 was_half_open;

	if (flow_is_ordinary(flow, packet)) {
		change.flows = flow_on_packet(flow, packet);
		return change;
	}
	was_half_open = handshake_is_half_open(h);
	if (handshake_is_ended(h, packet)) {
		*h = none;
	} else if (packet->flags & TCP_FLAG_SYN && !(packet->flags & TCP_FLAG_RST)) {
		handshake_on_syn(h, packet);
	} else if (handshake_is_proven(h, flow, packet)) {
		change.flows = flow_establish(flow, h, packet);
		*h = none;
	} else if (!flow_is_plausible(flow, packet) && handshake_heeds_data(packet)) {
		handshake_on_data(h, packet);
	}
	change.flows += flow_on_packet(flow, packet);
	change.half_open = (s32)handshake_is_half_open(h) - was_half_open;
	return change;
}

#endif
