/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of flows whose SYNs the programs have not seen, because they are older or took
 * another path: the kernel has the scales of its own sockets, and the agent copies those of flows
 * that another version followed, and those that a controller has learned at the edge of the
 * network. What an ACK shows itself comes first (sender.h).
 *
 * It is looked up for packets whose scale is unknown, so that it costs nothing to all others and
 * takes no room in the tables of flows. As any flow in mid-life, one gets its entry, and counts,
 * when its data passes and is acknowledged.
 */
#ifndef PENSTOCK_KNOWN_H
#define PENSTOCK_KNOWN_H

#include "flows.h"

/* Completes the flow's entry. */
static __always_inline void known_enter(struct port_flow *flow, const struct flow_known *recalled)
{
	if (!flow)
		return;
	flow->entry.mss = recalled->mss;
	flow->entry.scale[FLOW_DATA] = recalled->scale[FLOW_DATA];
	flow->entry.scale[FLOW_ACKS] = recalled->scale[FLOW_ACKS];
}

/*
 * Looks up a packet's flow, and completes its entry if it has one. 0: nothing is known. Not
 * inlined, as the stack has no room for the key.
 */
static __noinline _Bool known_recall(const struct packet *packet, struct port_flow *flow,
				     struct flow_known *recalled)
{
	struct flow_key6 key = half_key(packet);
	const struct flow_known *found = bpf_map_lookup_elem(&known, &key);

	if (!found) {
		/* A socket does not know by which port and VLAN its packets leave. */
		key.network = 0;
		key.port = 0;
		found = bpf_map_lookup_elem(&known, &key);
	}
	if (!found)
		return 0;
	*recalled = *found;
	if (!flow)
		return 1;
	known_enter(flow, recalled);
	if (recalled->unified)
		flow->unified = recalled->unified;
	recalled->unified = flow->unified;
	if (key.port)
		bpf_map_delete_elem(&known, &key);
	return 1;
}

/* A scale in the way of flow_scale. */
static __always_inline u32 known_scale(const struct flow_known *recalled, u32 direction)
{
	return recalled->scale[direction] == FLOW_SCALE_NONE ? 0 : recalled->scale[direction];
}

#endif
