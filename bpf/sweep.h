/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sweep: expires flows silent for too long, deletes those long over and those never proven,
 * and recounts all.
 *
 * The number of flows is kept by their changes. It drifts only if a counted entry is lost: when the
 * table is full, the least recently used makes room. So each sweep recounts, exactly although flows
 * change under it: every entry is stamped with the sweep's number when seen, under the port's lock,
 * and a change of an entry stamped already is added to the recount too (flow_count); new entries
 * are stamped at birth. At the end the recount is the number of flows.
 *
 * What remains: where entries are evicted while a sweep walks the table, the kernel's walk may
 * leave some out; and an ended flow forgotten at the very moment its ports are used again is not
 * followed. The next sweep sets the number right.
 */
#ifndef PENSTOCK_SWEEP_H
#define PENSTOCK_SWEEP_H

#include "flows.h"

#define SWEEP_LINGER_NS 1000000000ull	/* ended flows stay, for their last segments */
#define SWEEP_RESEND_NS 15000000000ull	/* longer if some may be sent again (RFC 6298 §5.5) */
#define SWEEP_FORGET_NS 900000000000ull /* idle ones stay 15 min, their scales are needed */

struct sweep_walk {
	u64 now_ns;
	u32 seen;      /* entries of flows */
	u32 half_open; /* handshakes under way */
};

/* How long the entry of a flow that does not count stays after its last packet. */
static __always_inline u64 sweep_linger_ns(const struct flow_entry *flow)
{
	if (flow->phase == FLOW_IDLE)
		return SWEEP_FORGET_NS;
	return flow_is_acknowledged(flow) ? SWEEP_LINGER_NS : SWEEP_RESEND_NS;
}

/* The same for both tables. */
static __always_inline void sweep_flow(void *map, const void *key, struct port_flow *flow,
				       struct flow_name name, struct sweep_walk *walk)
{
	u32 first = 0;
	struct port_config *setup = bpf_map_lookup_elem(&config, &first);
	struct port_state *state = bpf_map_lookup_elem(&port, &first);
	struct port_counters *counted = bpf_map_lookup_elem(&counters, &first);
	u64 silent_ns;
	_Bool is_over;
	s32 delta;

	if (!setup || !state || !counted)
		return;
	walk->seen++;
	bpf_spin_lock(&state->lock);
	delta = flow_expire(&flow->entry, walk->now_ns, window_idle_ns(&setup->window));
	flow_count(state, setup, flow, delta, state->scheme);
	if (flow->swept != (u16)state->sweep) {
		flow->swept = (u16)state->sweep;
		state->recount += flow_is_counted(&flow->entry);
	}
	silent_ns = elapsed_ns(flow->entry.last_ns, walk->now_ns);
	/*
	 * A unified flow's scale is needed as long as it may send an ACK, so it never expires. One
	 * that is unseen begins on another CPU just now.
	 */
	is_over = !flow->unified && flow->entry.phase != FLOW_UNSEEN &&
		  !flow_is_counted(&flow->entry) && silent_ns >= sweep_linger_ns(&flow->entry);
	bpf_spin_unlock(&state->lock);
	if (delta < 0) /* in one step: a packet on this CPU may come between */
		__sync_fetch_and_add(&counted->flows_ended, 1);
	if (setup->flags & PORT_FLOW_EVENTS) {
		event_of_delta(flow, name, delta, walk->now_ns);
		if (silent_ns >= FLOW_TRANSFER_GAP_NS)
			transfer_end(flow, name, walk->now_ns);
	}
	if (is_over)
		bpf_map_delete_elem(map, key);
}

static int sweep_flow4(void *map, const struct flow_key4 *key, struct port_flow *flow,
		       struct sweep_walk *walk)
{
	struct flow_name name = {key, 0};

	sweep_flow(map, key, flow, name, walk);
	return 0;
}

static int sweep_flow6(void *map, const struct flow_key6 *key, struct port_flow *flow,
		       struct sweep_walk *walk)
{
	struct flow_name name = {0, key};

	sweep_flow(map, key, flow, name, walk);
	return 0;
}

static int sweep_half(void *map, const struct flow_key6 *key, struct port_half *half,
		      struct sweep_walk *walk)
{
	u32 first = 0;
	struct port_counters *counted = bpf_map_lookup_elem(&counters, &first);

	if (!counted)
		return 0;
	if (!handshake_is_over(&half->handshake, walk->now_ns)) {
		walk->half_open += handshake_is_half_open(&half->handshake);
	} else if (!bpf_map_delete_elem(map, key)) {
		__sync_fetch_and_add(&counted->half_open_expired, 1);
	}
	return 0;
}

static __always_inline int sweep_port(void)
{
	u32 first = 0;
	struct port_config *setup = bpf_map_lookup_elem(&config, &first);
	struct port_state *state = bpf_map_lookup_elem(&port, &first);
	struct sweep_walk walk = {.now_ns = bpf_ktime_get_ns()};
	u32 number;

	if (!setup || !state || setup->abi != PENSTOCK_ABI)
		return 0;
	bpf_spin_lock(&state->lock);
	number = state->sweep >= 0xffff ? 1 : state->sweep + 1; /* 0 is no sweep's */
	state->sweep = number;
	state->recount = 0;
	bpf_spin_unlock(&state->lock);

	bpf_for_each_map_elem(&flows4, sweep_flow4, &walk, 0);
	bpf_for_each_map_elem(&flows6, sweep_flow6, &walk, 0);
	bpf_for_each_map_elem(&half_open, sweep_half, &walk, 0);

	bpf_spin_lock(&state->lock);
	if (state->sweep != number) {
		/* Another began meanwhile; the recount is its own, and not yet whole. */
		bpf_spin_unlock(&state->lock);
		return 0;
	}
	state->tracked = walk.seen;
	state->half_open = walk.half_open;
	if (counts_packets(setup, state->scheme)) {
		u32 flows = flow_counter_expire(&state->counter, walk.now_ns, FLOW_COUNTER_IDLE_NS);

		state_set_flows(state, setup, flows, state->scheme);
	} else if (state->flows != state->recount) {
		state->corrected += max_u32(state->flows, state->recount) -
				    min_u32(state->flows, state->recount);
		state_set_flows(state, setup, state->recount, state->scheme);
	}
	bpf_spin_unlock(&state->lock);
	return 0;
}

#endif
