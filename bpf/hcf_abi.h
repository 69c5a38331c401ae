/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What HCF's qdisc and the agent share: the values of its maps `hcf_config` and `hcf_port`.
 *
 * A port has one object, loaded for it alone, and so its own maps.
 */
#ifndef PENSTOCK_HCF_ABI_H
#define PENSTOCK_HCF_ABI_H

#include "../core/hcf.h"

enum hcf_abi {
	HCF_ABI = 2,
};

/* Map `hcf_config`, one element; the agent writes it whole, before or while packets pass. */
struct hcf_config {
	enum hcf_abi abi;    /* with anything else the qdisc refuses to start */
	u32 seed;	     /* of the hashes; 0: random */
	u64 period_ns;	     /* HCF_PERIOD_FIXED, HCF_PERIOD_ORDERED: their length */
	u64 ns_per_byte_q16; /* emulates a port of that rate; 0: as fast as the device takes */
	u64 burst_ns;	     /* how far a late timer may be made up for */
	struct hcf_params params;
};

_Static_assert(sizeof(struct hcf_config) ==
		       __builtin_offsetof(struct hcf_config, params) + sizeof(struct hcf_params),
	       "the agent compares its bytes, so it has no padding");

/* Since the qdisc was attached. */
struct hcf_counters {
	u64 high_packets;    /* put into the queue that was high */
	u64 low_packets;     /* put into the low one */
	u64 dropped_packets; /* for want of room */
	u64 dropped_bytes;
	u64 failed_packets; /* dropped for want of memory */
	u64 sent_packets;
	u64 sent_bytes;
	u64 waits; /* the rate's timer was set */
};

/* Map `hcf_port`, one element. The agent only reads it. */
struct hcf_port {
	u32 attached; /* 1 while a qdisc uses it */
	u32 ifindex;  /* whose */
	u64 next_tick_ns;
	u64 next_departure_ns;
	struct hcf_counters counters;
	struct hcf_state state;
};

#endif
