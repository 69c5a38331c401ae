/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sweep of all ports: expires flows silent for too long, deletes those long over, those never
 * proven and those of ports that are gone, and recounts all.
 *
 * It walks the records (maps.h), one for each flow, and so costs as much as there are flows. A run
 * takes a slice of them, as before Linux 6.6 it keeps other work of its CPU waiting.
 *
 * The number of flows is kept by their changes; each sweep recounts, exactly although flows change
 * under it: every entry is stamped with the sweep's number when seen, under the port's lock, and a
 * change of an entry stamped already is added to the recount too (flow_count); new entries are
 * stamped at birth. At the end the recount is the number of flows.
 *
 * What remains: an ended flow forgotten at the very moment its ports are used again is not
 * followed.
 */
#ifndef PENSTOCK_SWEEP_H
#define PENSTOCK_SWEEP_H

#include "flows.h"

#define SWEEP_SLICE	4096		 /* records of a run: half a millisecond at most */
#define SWEEP_LINGER_NS 1000000000ull	 /* ended flows stay, for their last segments */
#define SWEEP_RESEND_NS 15000000000ull	 /* longer if some may be sent again (RFC 6298 §5.5) */
#define SWEEP_FORGET_NS 900000000000ull	 /* idle ones stay 15 min, their scales are needed */
#define SWEEP_CROWD_NS	30000000000ull	 /* less if their port has three quarters of its entries */
#define SWEEP_ALIVE_NS	9000000000000ull /* who is there shows it in 2 h (RFC 1122 §4.2.3.6) */

/* What a run looks at. */
enum sweep_phase {
	SWEEP_FLOWS = 0, /* a slice of the records */
	SWEEP_HALF_OWN = 1,
	SWEEP_HALF_OPEN = 2,
};

struct sweep_walk {
	struct sweep_state *sweep;
	u64 now_ns;
};

/* The port of an entry, null if that is gone. */
struct sweep_port {
	struct port_state *state;
	struct port_config *config;
	struct port_counters *counted;
};

static __always_inline _Bool sweep_find_port(struct sweep_port *found, u32 id)
{
	u32 slot = id & PORT_SLOT_MASK;
	struct port_stats *of_port = stats_find(slot);

	found->state = bpf_map_lookup_elem(&port, &slot);
	found->config = bpf_map_lookup_elem(&config, &slot);
	if (!of_port || !found->state || !found->config || found->state->id != id)
		return 0;
	found->counted = &of_port->counters;
	return 1;
}

/*
 * How long the entry of a flow that does not count stays after its last packet. A unified flow's
 * scale is needed as long as its host may send an ACK, also after its own FIN.
 */
static __always_inline u64 sweep_linger_ns(const struct sweep_port *at,
					   const struct port_flow *flow)
{
	_Bool is_crowded = at->state->tracked / 3 >= at->config->flows_max / 4;

	if (flow->unified && flow->entry.phase == FLOW_IDLE)
		return is_crowded ? SWEEP_ALIVE_NS : ~0ull;
	if (flow->unified || flow->entry.phase == FLOW_IDLE)
		return is_crowded ? SWEEP_CROWD_NS : SWEEP_FORGET_NS;
	return flow_is_acknowledged(&flow->entry) ? SWEEP_LINGER_NS : SWEEP_RESEND_NS;
}

/* The same for both tables: whether the entry is to be deleted. */
static __always_inline _Bool sweep_flow(const struct sweep_port *at, struct port_flow *flow,
					struct flow_name name, u64 now_ns)
{
	struct port_state *state = at->state;
	u64 silent_ns;
	_Bool is_over, is_first;
	s32 delta;

	bpf_spin_lock(&state->lock);
	delta = flow_expire(&flow->entry, now_ns, window_idle_ns(&at->config->window));
	flow_count(state, at->config, flow, delta, state->scheme);
	is_first = flow->swept != (u16)state->sweep;
	if (is_first) {
		flow->swept = (u16)state->sweep;
		state->recount += flow_is_counted(&flow->entry);
	}
	silent_ns = elapsed_ns(flow->entry.last_ns, now_ns);
	/* One that is unseen begins on another CPU just now. */
	is_over = flow->entry.phase != FLOW_UNSEEN && !flow_is_counted(&flow->entry) &&
		  silent_ns >= sweep_linger_ns(at, flow);
	bpf_spin_unlock(&state->lock);
	flow_settle(state, delta, state->scheme);
	if (is_first && flow->policy && flow->policy == (u8)at->config->policy &&
	    flow->side < SIDES && flow_is_counted(&flow->entry)) {
		struct port_stats *stats = stats_of(at->counted);
		u64 *ms = &stats->sides[flow->side == SIDE_HELD_OUT].flow_ms;

		__sync_fetch_and_add(ms, state->sweep_ms);
	}
	if (delta < 0) /* in one step: a packet on this CPU may come between */
		__sync_fetch_and_add(&at->counted->flows_ended, 1);
	if (at->config->flags & PORT_FLOW_EVENTS) {
		event_of_delta(flow, name, delta, now_ns);
		if (silent_ns >= FLOW_TRANSFER_GAP_NS)
			transfer_end(flow, name, now_ns);
	}
	return is_over;
}

/* Visits the flow of a record; whether the record is still needed. */
static __noinline int sweep_record(struct flow_record *record, u64 now_ns)
{
	_Bool is_v4 = record->family == 4, is_over = 1;
	struct flow_name name = {is_v4 ? &record->key.v4 : 0, &record->key.v6};
	struct sweep_port at;
	struct port_flow *flow;
	_Bool has_port = sweep_find_port(&at, is_v4 ? record->key.v4.port : record->key.v6.port);

	if (is_v4)
		flow = bpf_map_lookup_elem(&flows4, &record->key.v4);
	else
		flow = bpf_map_lookup_elem(&flows6, &record->key.v6);
	if (flow && has_port)
		is_over = sweep_flow(&at, flow, name, now_ns);
	if (!is_over)
		return 1;
	if (flow && is_v4)
		bpf_map_delete_elem(&flows4, &record->key.v4);
	else if (flow)
		bpf_map_delete_elem(&flows6, &record->key.v6);
	if (has_port)
		__sync_fetch_and_add(&at.state->tracked, -1);
	return 0;
}

/*
 * Gives up a record: the last one moves to its place, so that there are no more records to walk
 * than flows. Where that would race with a new flow, a hole remains until the next sweep.
 */
static __always_inline void sweep_remove(struct sweep_state *sweep, struct flow_record *record,
					 u32 index)
{
	u32 last = sweep->records - 1, state;
	struct flow_record *end = bpf_map_lookup_elem(&records, &last);

	record->state = RECORD_HOLE;
	if (!end)
		return;
	state = end->state;
	if (state == RECORD_EMPTY)
		return;
	end->state = RECORD_EMPTY; /* as a new flow expects it */
	if (state == RECORD_USED)
		__builtin_memcpy(&record->key, &end->key, sizeof(record->key));
	record->family = end->family;
	if (__sync_val_compare_and_swap(&sweep->records, last + 1, last) != last + 1)
		end->state = state; /* another came behind it */
	else if (index != last)
		record->state = state;
}

static long sweep_visit(u32 step, struct sweep_walk *walk)
{
	u32 index = walk->sweep->cursor;
	struct flow_record *record;

	(void)step;
	if (index >= walk->sweep->records)
		return 1;
	record = bpf_map_lookup_elem(&records, &index);
	if (!record)
		return 1;
	if (record->state == RECORD_HOLE ||
	    (record->state == RECORD_USED && !sweep_record(record, walk->now_ns))) {
		sweep_remove(walk->sweep, record, index);
		if (record->state == RECORD_USED)
			return 0; /* it is another now */
	}
	walk->sweep->cursor = index + 1;
	return 0;
}

/* A half-open flow of either map; whether it was deleted while its port exists. */
static __always_inline _Bool sweep_half(struct sweep_port *at, void *map,
					const struct flow_key6 *key, struct port_half *half,
					struct sweep_walk *walk)
{
	if (!sweep_find_port(at, key->port)) {
		bpf_map_delete_elem(map, key);
		return 0;
	}
	if (!handshake_is_over(&half->handshake, walk->now_ns)) {
		at->state->half_open_seen += handshake_is_half_open(&half->handshake);
		walk->sweep->has_half = 1;
		return 0;
	}
	if (bpf_map_delete_elem(map, key))
		return 0;
	__sync_fetch_and_add(&at->counted->half_open_expired, 1);
	return 1;
}

static int sweep_half_own(void *map, const struct flow_key6 *key, struct port_half *half,
			  struct sweep_walk *walk)
{
	struct sweep_port at;

	if (sweep_half(&at, map, key, half, walk))
		__sync_fetch_and_add(&at.state->half_own, -1);
	return 0;
}

static int sweep_half_open(void *map, const struct flow_key6 *key, struct port_half *half,
			   struct sweep_walk *walk)
{
	struct sweep_port at;

	sweep_half(&at, map, key, half, walk);
	return 0;
}

static long sweep_begin(u32 slot, struct sweep_walk *walk)
{
	struct port_state *state = bpf_map_lookup_elem(&port, &slot);

	if (!state)
		return 1;
	bpf_spin_lock(&state->lock);
	state->sweep = walk->sweep->number;
	state->recount = 0;
	state->half_open_seen = 0;
	state->sweep_ms = state->sweep_ns ? elapsed_ns(state->sweep_ns, walk->now_ns) / 1000000 : 0;
	state->sweep_ns = walk->now_ns;
	bpf_spin_unlock(&state->lock);
	return 0;
}

static long sweep_finish(u32 slot, struct sweep_walk *walk)
{
	struct port_config *setup = bpf_map_lookup_elem(&config, &slot);
	struct port_state *state = bpf_map_lookup_elem(&port, &slot);

	if (!setup || !state)
		return 1;
	state_follow_count(state, setup, walk->now_ns, state->scheme);
	bpf_spin_lock(&state->lock);
	if (state->sweep != walk->sweep->number || setup->abi != PENSTOCK_ABI) {
		bpf_spin_unlock(&state->lock); /* attached meanwhile, or not at all */
		return 0;
	}
	state->half_open = state->half_open_seen;
	if (counts_packets(setup, state->scheme)) {
		state->own_flows = flow_counter_expire(&state->counter, walk->now_ns,
						       window_idle_ns(&setup->window));
	} else if (state->own_flows != state->recount) {
		state->corrected += max_u32(state->own_flows, state->recount) -
				    min_u32(state->own_flows, state->recount);
		state->own_flows = state->recount;
	}
	state_count(state, setup, state->scheme);
	bpf_spin_unlock(&state->lock);
	return 0;
}

/* A slice of a sweep. Returns 1 if the sweep goes on: run it again. */
static __always_inline int sweep_run(struct sweep_state *sweep)
{
	struct sweep_walk walk = {sweep, bpf_ktime_get_ns()};
	u32 first = 0, *used = bpf_map_lookup_elem(&slots_used, &first);

	if (!used)
		return 0;

	switch (sweep->phase) {
	case SWEEP_FLOWS:
		if (!sweep->cursor) {
			sweep->number = sweep->number >= 0xffff ? 1 : sweep->number + 1; /* not 0 */
			bpf_loop(*used, sweep_begin, &walk, 0);
		}
		bpf_loop(SWEEP_SLICE, sweep_visit, &walk, 0);
		if (sweep->cursor < sweep->records)
			return 1;
		if (!sweep->has_half)
			break;
		sweep->phase = SWEEP_HALF_OWN;
		return 1;
	case SWEEP_HALF_OWN:
		sweep->has_half = 0;
		bpf_for_each_map_elem(&half_own, sweep_half_own, &walk, 0);
		sweep->phase = SWEEP_HALF_OPEN;
		return 1;
	default:
		bpf_for_each_map_elem(&half_open, sweep_half_open, &walk, 0);
	}
	bpf_loop(*used, sweep_finish, &walk, 0);
	sweep->phase = SWEEP_FLOWS;
	sweep->cursor = 0;
	return 0;
}

/* One at a time: records move. 0 if another CPU is at it. */
static __always_inline int sweep_ports(void)
{
	u32 first = 0;
	struct sweep_state *sweep = bpf_map_lookup_elem(&sweeps, &first);
	int goes_on;

	if (!sweep || __sync_val_compare_and_swap(&sweep->is_running, 0, 1))
		return 0;
	goes_on = sweep_run(sweep);
	__sync_lock_test_and_set(&sweep->is_running, 0);
	return goes_on;
}

#endif
