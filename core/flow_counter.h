/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The papers' count of the flows of a port: SYN-ACKs minus FINs, without knowing flows
 * (FairQ §IV-E). It drifts when these are retransmitted, lost or forged; it restarts after
 * `idle` without data. flow.h counts exactly.
 */
#ifndef PENSTOCK_FLOW_COUNTER_H
#define PENSTOCK_FLOW_COUNTER_H

#include "tcp_rewrite.h"

struct flow_counter {
	u64 last_data_ns; /* when data last passed */
	u32 flows;	  /* SYN-ACKs minus FINs and RSTs, never below 0 */
	u32 reserved;
};

/*
 * Counts one packet; returns the number of flows. `is_out`: the packet leaves by the port. A
 * SYN-ACK counts in both directions, a FIN or RST only on its way out (FairQ §IV-E).
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
