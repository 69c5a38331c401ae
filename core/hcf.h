/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HCF: two FIFO queues per port; flows that were served little go first.
 *
 * Source: HCF Algorithm 1, §III-D (queue swap), §IV-A (Bloom counters), §IV-C (fixed period).
 * Arrival: a bin with credits and room in the high queue: high, credits less; else room in the
 * low queue: low, and the bin's credits end; else drop. When a departure leaves the high queue
 * empty, the priority period ends: the queues swap roles, credits return, the hash changes.
 *
 * Order. With the swap and HCF_PERIOD_DYNAMIC or HCF_PERIOD_ORDERED no flow is reordered
 * (Theorem 1): credits return only when the high queue is empty, and then the low queue, where a
 * flow's older packets may wait, becomes the high one. Flows are reordered without the swap; with
 * HCF_PERIOD_FIXED as in §IV-C (credits return while both queues hold packets); with
 * HCF_DROP_BOTH and with low_keeps_credits (a packet joins the high queue though older ones of its
 * flow wait in the low one). All packets of a flow must carry the same key within a period.
 *
 * Waiting. By the swap the low queue is served after at most the credits of one period. Without it,
 * with HCF_DROP_BOTH, or with a fixed period in which the high queue does not empty, it waits until
 * less arrives than leaves: until then the high queue is refilled all the time.
 *
 * Algorithm 1 drops a packet when the queue it is meant for is full; the prose of §III-B only "if
 * both queues are full": HCF_DROP_BOTH. That a bin's credits end with a packet in the low queue
 * "was not included in the conference version" (footnote 1): low_keeps_credits.
 *
 * Only the caller stores packets; here are counts, and the queues are physical indices 0 and 1.
 * Returning all credits costs O(1): a bin's credits count only if its epoch is the current one. (A
 * bin untouched for 2^32 periods has its old credits for one period, never more than full.)
 */
#ifndef PENSTOCK_HCF_H
#define PENSTOCK_HCF_H

#include "params.h"

/* 2^32 and 2^64 by the golden ratio, odd: they spread what is multiplied. */
#define HCF_GOLDEN_32  0x9e3779b1u
#define HCF_GOLDEN_64  0x9e3779b97f4a7c15ull
#define HCF_MAX_BINS   256u
#define HCF_MAX_HASHES 4u

enum hcf_queue {
	HCF_QUEUE_0 = 0,
	HCF_QUEUE_1 = 1,
	HCF_NONE = 2, /* enqueue: drop; dequeue: both queues are empty */
};

/* When the priority period ends and all credits return. */
#define HCF_PERIODS(E)                                                                             \
	E(HCF_PERIOD_DYNAMIC, "dynamic",                                                           \
	  "When a departure leaves the high-priority queue empty (HCF Alg. 1)")                    \
	E(HCF_PERIOD_FIXED, "fixed", "Every `every`, whatever is queued (HCF §IV); reorders")      \
	E(HCF_PERIOD_ORDERED, "ordered",                                                           \
	  "Every `every`, but not before the high-priority queue is empty: keeps the order")

enum hcf_period {
	HCF_PERIODS(PARAM_ENUM)
};

/* When a packet is dropped. */
#define HCF_DROPS(E)                                                                               \
	E(HCF_DROP_OWN, "own", "When the queue that it is meant for is full (HCF Alg. 1)")         \
	E(HCF_DROP_BOTH, "both",                                                                   \
	  "When both queues are full, with or without credits (HCF §III-B); reorders")

enum hcf_drop {
	HCF_DROPS(PARAM_ENUM)
};

#define HCF_TITLE                                                                                  \
	"Hashed credits fair: two queues that share the port's buffer (HCF Alg. 1). Variant "      \
	"`paper`: the queues do not swap roles"

#define HCF_PARAMS(P, X)                                                                           \
	P(X, COUNT, bins, 1, HCF_MAX_BINS, 20, 20, "K: bins that flows are hashed to (HCF §V-B)")  \
	P(X, AMOUNT, credits, 1, 0xffffffffu, 1, 1,                                                \
	  "c0: credits of a bin per period, in packets or, for packets of varying size, in bytes " \
	  "(HCF §V-B)")                                                                            \
	P(X, COUNT, hashes, 1, HCF_MAX_HASHES, 1, 1,                                               \
	  "Hash functions: bins per flow as in a Bloom counter (HCF §IV)")                         \
	P(X, ENUM, period, HCF_PERIODS, HCF_PERIOD_ORDERED, HCF_PERIOD_DYNAMIC,                    \
	  HCF_PERIOD_DYNAMIC, "When the priority period ends")                                     \
	P(X, FLAG, swap, 0, 1, 1, 0,                                                               \
	  "The queues swap roles at the end of a period, which keeps every flow's order (HCF "     \
	  "Theorem 1)")                                                                            \
	P(X, ENUM, drop, HCF_DROPS, HCF_DROP_BOTH, HCF_DROP_OWN, HCF_DROP_OWN,                     \
	  "When a packet is dropped")                                                              \
	P(X, FLAG, low_keeps_credits, 0, 1, 0, 0,                                                  \
	  "A packet that joins the low-priority queue leaves its bins their credits, as in the "   \
	  "conference version (HCF footnote 1); reorders")

/* What the caller makes of the period and of the port's buffer. */
#define HCF_PORT_PARAMS(P, X)                                                                      \
	P(X, TIME, every, NS(1), MAX_TIME, NS(0), NS(0), "Length of a fixed or ordered period")    \
	P(X, SHARE, high_share, ABOVE_0, 1, 0.5, 0.5,                                              \
	  "The high-priority queue's share of the buffer; below 1 (HCF §V)")

/* A capacity of 0 means unlimited; of packets and bytes at least one is limited. */
struct hcf_params {
	u32 capacity_packets[2]; /* of the queue that is high now, of the low one */
	u32 capacity_bytes[2];
	HCF_PARAMS(PARAM_MEMBER, hcf)
};

HCF_PARAMS(PARAM_READER, hcf)

struct hcf_bin {
	u32 epoch;   /* `credits` holds only in this epoch */
	u32 credits; /* left */
};

/* A port. Prepare zeroed memory with hcf_init. */
struct hcf_state {
	u64 bytes[2];	/* queued, by physical queue */
	u32 packets[2]; /* queued, by physical queue */
	u32 epoch;	/* number of the priority period */
	u32 random;	/* state of the seed generator, never 0 */
	u32 multiplier; /* of this period's hash, which makes it odd */
	u32 offset;	/* of this period's hash */
	u8 high;	/* physical index of the high queue */
	u8 is_due;	/* HCF_PERIOD_ORDERED: the period ends once the high queue is empty */
	u8 reserved[6];
	struct hcf_bin bins[HCF_MAX_BINS];
};

/* Whether they may be used: those of a port without a configuration may not. */
CORE_INLINE _Bool hcf_params_ok(const struct hcf_params *p)
{
	return (p->capacity_packets[0] || p->capacity_bytes[0]) &&
	       (p->capacity_packets[1] || p->capacity_bytes[1]) HCF_PARAMS(PARAM_OK, hcf);
}

/* The halves of a buffer that the queues share by default; the low queue has the odd packet. */
#define HCF_HALVES(packets)                                                                        \
	{                                                                                          \
		max_u32((packets) / 2, 1), max_u32((packets) - (packets) / 2, 1)                   \
	}

CORE_INLINE struct hcf_params hcf_default_params(u32 buffer_packets)
{
	struct hcf_params params = {.capacity_packets = HCF_HALVES(buffer_packets),
				    HCF_PARAMS(PARAM_DEFAULT, hcf)};
	return params;
}

CORE_INLINE struct hcf_params hcf_paper_params(u32 buffer_packets)
{
	struct hcf_params params = {.capacity_packets = HCF_HALVES(buffer_packets),
				    HCF_PARAMS(PARAM_PAPER, hcf)};
	return params;
}

/*
 * One number from a 4-tuple, the same for each packet of a flow. Any byte order, if always it.
 * Flows of equal keys share their bins: with hcf_key_seed they part in the next period. With a seed
 * of 0 keys are the same in all periods, which is enough for flows that are numbered, as in
 * simulators.
 */
CORE_INLINE u32 hcf_flow_key(u32 seed, u32 source, u32 destination, u16 source_port,
			     u16 destination_port)
{
	u64 addresses = ((u64)source << 32 | destination) * ((u64)seed << 1 | 1);
	u64 mixed = (addresses ^ ((u64)source_port << 16 | destination_port)) * HCF_GOLDEN_64;

	return (u32)((mixed ^ mixed >> 29) * HCF_GOLDEN_64 >> 32);
}

/*
 * An address of IPv6 as one word, for hcf_flow_key. XOR alone would confuse host 2 of network 1
 * with host 1 of network 2 in all periods.
 */
CORE_INLINE u32 hcf_fold6(u32 seed, const u32 address[4])
{
	return hcf_flow_key(seed, address[0], address[1], (u16)(address[2] >> 16),
			    (u16)address[2]) ^
	       address[3];
}

/* Marsaglia's xorshift: every value but 0 once in 2^32 - 1 calls. */
CORE_INLINE u32 hcf_random(struct hcf_state *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 17;
	s->random ^= s->random << 5;
	return s->random;
}

/* The seed of this period's keys. */
CORE_INLINE u32 hcf_key_seed(const struct hcf_state *s)
{
	return s->offset;
}

/* Bin number `index` of a flow: multiply-shift of the key, with this period's multiplier. */
CORE_INLINE u32 hcf_bin_of(const struct hcf_state *s, const struct hcf_params *p, u32 key,
			   u32 index)
{
	u32 hash = (key + index * HCF_GOLDEN_32) * (s->multiplier | 1) + s->offset;

	hash = (hash ^ hash >> 16) * HCF_GOLDEN_32;
	return (u32)((u64)hash * hcf_bins(p) >> 32) & (HCF_MAX_BINS - 1);
}

CORE_INLINE u32 hcf_credits_left(const struct hcf_state *s, const struct hcf_params *p, u32 bin)
{
	const struct hcf_bin *b = &s->bins[bin & (HCF_MAX_BINS - 1)];

	return b->epoch == s->epoch ? b->credits : p->credits;
}

CORE_INLINE void hcf_set_credits(struct hcf_state *s, u32 bin, u32 credits)
{
	s->bins[bin & (HCF_MAX_BINS - 1)].epoch = s->epoch;
	s->bins[bin & (HCF_MAX_BINS - 1)].credits = credits;
}

/* A new priority period: all credits back, another hash, and the other queue first if allowed. */
CORE_INLINE void hcf_start_period(struct hcf_state *s, const struct hcf_params *p)
{
	s->epoch++;
	s->multiplier = hcf_random(s);
	s->offset = hcf_random(s);
	s->is_due = 0;
	/* Only an empty high queue may become the low one, or its packets would be overtaken. */
	if (p->swap && s->packets[s->high & 1] == 0)
		s->high ^= 1;
}

/*
 * Empties a port. Its memory must be all zero or a port used before: the bins are not cleared, a
 * new epoch voids them. Ports with different seeds use different hashes.
 */
CORE_INLINE void hcf_init(struct hcf_state *s, const struct hcf_params *p, u32 seed)
{
	s->bytes[0] = s->bytes[1] = 0;
	s->packets[0] = s->packets[1] = 0;
	s->random = seed ? seed : HCF_GOLDEN_32; /* xorshift stays at 0 */
	hcf_start_period(s, p);
	s->high = 0;
}

/* Room for a packet in the queue of a role: 0 high, 1 low. */
CORE_INLINE _Bool hcf_has_room(const struct hcf_state *s, const struct hcf_params *p, u32 role,
			       u32 size_bytes)
{
	u32 queue = (s->high ^ role) & 1;
	u32 max_packets = p->capacity_packets[role & 1], max_bytes = p->capacity_bytes[role & 1];

	if (s->packets[queue] == 0xffffffffu)
		return 0;
	return (!max_packets || s->packets[queue] < max_packets) &&
	       (!max_bytes || s->bytes[queue] + size_bytes <= max_bytes);
}

/*
 * Room for a packet in both queues together, for the low queue to ask: after a swap the high one
 * may hold a low one's share. Where the high queue has room, so has the buffer.
 */
CORE_INLINE _Bool hcf_has_buffer(const struct hcf_state *s, const struct hcf_params *p,
				 u32 size_bytes)
{
	const u32 *packets = p->capacity_packets, *bytes = p->capacity_bytes;

	if (packets[0] && packets[1] &&
	    (u64)s->packets[0] + s->packets[1] >= (u64)packets[0] + packets[1])
		return 0;
	return !bytes[0] || !bytes[1] ||
	       s->bytes[0] + s->bytes[1] + size_bytes <= (u64)bytes[0] + bytes[1];
}

/* The bins of one flow and what is left in them. They are a set, though two may be the same. */
struct hcf_flow_bins {
	u32 count;
	u32 bin[HCF_MAX_HASHES];
	u32 left[HCF_MAX_HASHES];
	_Bool has_credits; /* in at least one of them (HCF §IV-A) */
};

CORE_INLINE void hcf_find_bins(const struct hcf_state *s, const struct hcf_params *p, u32 key,
			       struct hcf_flow_bins *bins)
{
	u32 i;

	bins->count = hcf_hashes(p);
	bins->has_credits = 0;
	for (i = 0; i < HCF_MAX_HASHES && i < bins->count; i++) {
		bins->bin[i] = hcf_bin_of(s, p, key, i);
		bins->left[i] = hcf_credits_left(s, p, bins->bin[i]);
		bins->has_credits |= bins->left[i] > 0;
	}
}

/* Takes `cost` credits, or what is left, from each of the bins. */
CORE_INLINE void hcf_spend(struct hcf_state *s, const struct hcf_flow_bins *bins, u32 cost)
{
	u32 i;

	for (i = 0; i < HCF_MAX_HASHES && i < bins->count; i++)
		hcf_set_credits(s, bins->bin[i], bins->left[i] - min_u32(bins->left[i], cost));
}

/*
 * A packet arrives: the physical queue to put it into, or HCF_NONE to drop it. The counts take
 * the packet in.
 */
CORE_INLINE u32 hcf_on_enqueue(struct hcf_state *s, const struct hcf_params *p, u32 key,
			       u32 size_bytes)
{
	_Bool low_has_room = hcf_has_room(s, p, 1, size_bytes) && hcf_has_buffer(s, p, size_bytes);
	struct hcf_flow_bins bins;
	u32 queue;

	hcf_find_bins(s, p, key, &bins);
	if ((bins.has_credits || (p->drop == HCF_DROP_BOTH && !low_has_room)) &&
	    hcf_has_room(s, p, 0, size_bytes)) {
		hcf_spend(s, &bins, p->credits_in_bytes ? size_bytes : 1);
		queue = s->high & 1;
	} else if (low_has_room) {
		if (!p->low_keeps_credits)
			hcf_spend(s, &bins, 0xffffffffu); /* keeps the flow behind this packet */
		queue = ~s->high & 1;
	} else {
		return HCF_NONE;
	}
	s->packets[queue]++;
	s->bytes[queue] += size_bytes;
	return queue;
}

/* The physical queue to send from, or HCF_NONE. Then call hcf_departed. */
CORE_INLINE u32 hcf_on_dequeue(const struct hcf_state *s)
{
	u32 high = s->high & 1;

	if (s->packets[high])
		return high;
	return s->packets[high ^ 1] ? high ^ 1 : HCF_NONE;
}

/* The head of `queue` has left. */
CORE_INLINE void hcf_departed(struct hcf_state *s, const struct hcf_params *p, u32 queue,
			      u32 size_bytes)
{
	u32 from = queue & 1;
	_Bool ends = p->period == HCF_PERIOD_DYNAMIC || s->is_due;

	if (!s->packets[from])
		return;
	s->packets[from]--;
	s->bytes[from] -= min_u64(s->bytes[from], size_bytes);
	if (from == (s->high & 1) && s->packets[from] == 0 && ends)
		hcf_start_period(s, p);
}

/* The end of a fixed period; nothing with HCF_PERIOD_DYNAMIC. */
CORE_INLINE void hcf_on_tick(struct hcf_state *s, const struct hcf_params *p)
{
	if (p->period == HCF_PERIOD_FIXED ||
	    (p->period == HCF_PERIOD_ORDERED && s->packets[s->high & 1] == 0))
		hcf_start_period(s, p);
	else if (p->period == HCF_PERIOD_ORDERED)
		s->is_due = 1;
}

#endif
