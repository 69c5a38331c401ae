/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The port's state, shared by all CPUs: its schemes and the number of flows.
 *
 * `acting` is the scheme of the program, a constant where it is inlined. Programs update the state
 * of that scheme alone; those that observe (SCHEME_NONE) update the states of all.
 *
 * One spin lock guards what must change together: the schemes' states, and the phase of each flow
 * with the port's own count of them. The schemes get a new number after that, by state_settle,
 * which looks at the counts again, so that any CPU may call it, and in any order. The lock is taken
 * at a flow's SYN, FIN, RST, its return from idleness, where a scheme heeds a queue or a segment,
 * and once an interval; never by other data or ACKs. Those read a few words without it: each is
 * written in one store, and the core is total, so at worst they see a window just replaced.
 */
#ifndef PENSTOCK_STATE_H
#define PENSTOCK_STATE_H

#include "maps.h"

#define TICKS_AT_ONCE FAIRQ_SAMPLES /* caught up with after silence; the rest is skipped */

/* The counters of a port on this CPU. */
static __always_inline struct port_stats *stats_find(u32 slot)
{
	u32 part = slot / STATS_PORTS, at = slot % STATS_PORTS;
	void *of_part = bpf_map_lookup_elem(&stats, &part);

	return of_part ? bpf_map_lookup_elem(of_part, &at) : 0;
}

/* Its counters are the first of a port's statistics. */
static __always_inline struct port_stats *stats_of(struct port_counters *counted)
{
	return (struct port_stats *)counted;
}

/*
 * The packet where functions that are called may read it. Were its own address passed to them, it
 * would always lie on the stack, and ordinary packets would pay for it.
 */
static __always_inline const struct flow_packet *seen_apart(struct port_counters *counted,
							    const struct flow_packet *seen)
{
	struct flow_packet *apart = &stats_of(counted)->seen;

	*apart = *seen;
	return apart;
}

/* Calls FUNCTION(port, config, ..., scheme) for each scheme that `acting` updates. */
#define FOR_UPDATED(name, NAME, FUNCTION, acting, ...)                                             \
	if ((acting) == SCHEME_NONE || (acting) == SCHEME_##NAME)                                  \
		FUNCTION(__VA_ARGS__, SCHEME_##NAME);

/* With the lock held: the number of flows changed. */
static __always_inline void scheme_set_flows(struct port_state *port, u32 flows, u32 scheme)
{
	scheme_on_flows(scheme, scheme_state_of(&port->schemes, scheme), flows);
}

/* With the lock held: publishes the window of the acting scheme. */
static __always_inline void state_publish(struct port_state *port, const struct port_config *config,
					  u32 acting)
{
	port->window_bytes = scheme_window_bytes(acting, scheme_state_of(&port->schemes, acting),
						 scheme_params_of(&config->schemes, acting));
}

/* With the lock held: a new number of flows. */
static __always_inline void state_set_flows(struct port_state *port,
					    const struct port_config *config, u32 flows, u32 acting)
{
	port->flows = flows;
	WINDOW_SCHEMES(FOR_UPDATED, scheme_set_flows, acting, port, flows)
	state_publish(port, config, acting);
}

/* Whether flows are counted as printed, SYN-ACKs minus FINs. */
static __always_inline _Bool counts_packets(const struct port_config *config, u32 acting)
{
	return scheme_counting(acting, scheme_params_of(&config->schemes, acting)) ==
	       COUNTING_PACKETS;
}

/*
 * With the lock held: the number of flows is what the port has counted itself. Of what a controller
 * has counted, it takes more than these, but not less, unless its own count is the one that drifts.
 */
static __always_inline void state_count(struct port_state *port, const struct port_config *config,
					u32 acting)
{
	u32 flows = max_u32(port->own_flows, port->counted);

	if (port->counted && counts_packets(config, acting))
		flows = port->counted;
	if (flows != port->flows)
		state_set_flows(port, config, flows, acting);
}

/*
 * The port has counted another number of flows. Global, so that the verifier checks it once: the
 * ways through it would multiply those through the programs, beyond the limit of Linux 6.1.
 */
__noinline int state_settle(u32 slot, u32 acting)
{
	struct port_state *state = bpf_map_lookup_elem(&port, &slot);
	struct port_config *setup = bpf_map_lookup_elem(&config, &slot);

	if (!state || !setup)
		return 0;
	bpf_spin_lock(&state->lock);
	state_count(state, setup, acting);
	bpf_spin_unlock(&state->lock);
	return 0;
}

/* How many flows a controller has counted; 0: none does. */
static __always_inline u32 state_counted(const struct port_state *port,
					 const struct port_config *config, u64 now_ns)
{
	u32 slot = port->id & PORT_SLOT_MASK;
	const struct flow_count *count = bpf_map_lookup_elem(&flow_counts, &slot);

	if (!(config->flags & PORT_COUNTED) || !count || count->port != port->id ||
	    now_ns >= count->until_ns)
		return 0;
	return min_u32(count->flows, config->flows_max);
}

/* Takes a controller's number, where it is another. */
static __always_inline void state_follow_count(struct port_state *port,
					       const struct port_config *config, u64 now_ns,
					       u32 acting)
{
	u32 counted = state_counted(port, config, now_ns);

	if (counted == port->counted)
		return;
	bpf_spin_lock(&port->lock);
	port->counted = counted;
	state_count(port, config, acting);
	bpf_spin_unlock(&port->lock);
}

static __always_inline void scheme_reset(struct port_state *port, const struct port_config *config,
					 u64 now_ns, u32 scheme)
{
	const void *params = scheme_params_of(&config->schemes, scheme);

	scheme_init(scheme, scheme_state_of(&port->schemes, scheme), params);
	if (port->segments.bytes)
		scheme_on_mss(scheme, scheme_state_of(&port->schemes, scheme),
			      port->segments.bytes);
	port->next_tick_ns[scheme] = now_ns + scheme_tick_ns(scheme, params);
}

/* Resets the schemes where the agent wrote other parameters. */
static __always_inline void state_renew(struct port_state *port, const struct port_config *config,
					u64 now_ns, u32 acting)
{
	if (port->generation == config->generation && port->scheme == acting)
		return;
	bpf_spin_lock(&port->lock);
	if (port->generation != config->generation || port->scheme != acting) {
		port->scheme = acting;
		port->generation = config->generation;
		WINDOW_SCHEMES(FOR_UPDATED, scheme_reset, acting, port, config, now_ns)
		state_set_flows(port, config, port->flows, acting);
	}
	bpf_spin_unlock(&port->lock);
}

/* The scheme's timer: the first packet after the end of an interval runs it. */
static __always_inline void scheme_tick(struct port_state *port, const struct port_config *config,
					u32 queue_bytes, u64 now_ns, u32 acting, u32 *goes_on,
					u32 scheme)
{
	void *state = scheme_state_of(&port->schemes, scheme);
	const void *params = scheme_params_of(&config->schemes, scheme);
	u64 *next_ns = &port->next_tick_ns[scheme];
	u64 tick_ns = scheme_tick_ns(scheme, params);

	if (!tick_ns || now_ns < *next_ns)
		return;
	bpf_spin_lock(&port->lock);
	if (now_ns >= *next_ns) {
		/* After a long silence it goes on from now, whichever CPUs catch up. */
		if (now_ns - *next_ns >= TICKS_AT_ONCE * tick_ns)
			*next_ns = now_ns - (TICKS_AT_ONCE - 1) * tick_ns;
		scheme_on_tick(scheme, state, params, queue_bytes, port->sent_bytes, now_ns);
		*next_ns += tick_ns;
		state_publish(port, config, acting);
	}
	bpf_spin_unlock(&port->lock);
	*goes_on |= now_ns >= *next_ns;
}

/* An interval of each scheme that is due; 1: there are more. Global, as state_settle. */
__noinline u32 state_tick(u32 slot, u32 acting, u32 queue_bytes, u64 now_ns)
{
	struct port_state *state = bpf_map_lookup_elem(&port, &slot);
	struct port_config *setup = bpf_map_lookup_elem(&config, &slot);
	u32 goes_on = 0;

	if (!state || !setup)
		return 0;
	WINDOW_SCHEMES(FOR_UPDATED, scheme_tick, acting, state, setup, queue_bytes, now_ns, acting,
		       &goes_on)
	return goes_on;
}

/* The scheme gets the queue if it heeds it; counts when it begins to clamp. */
static __always_inline void scheme_see_queue(struct port_state *port,
					     const struct port_config *config,
					     struct port_counters *counted, u32 queue_bytes,
					     u64 now_ns, u32 scheme)
{
	void *state = scheme_state_of(&port->schemes, scheme);
	const void *params = scheme_params_of(&config->schemes, scheme);
	_Bool was_clamping, is_clamping;

	if (!scheme_heeds_queue(scheme, state, params, queue_bytes, now_ns))
		return;
	bpf_spin_lock(&port->lock);
	was_clamping = scheme_is_clamping(scheme, state, params, now_ns);
	scheme_on_queue(scheme, state, params, queue_bytes, now_ns);
	is_clamping = scheme_is_clamping(scheme, state, params, now_ns);
	bpf_spin_unlock(&port->lock);
	counted->clamps += is_clamping && !was_clamping;
}

/* With the lock held: the size of the port's segments changed. */
static __always_inline void scheme_set_mss(struct port_state *port, u32 scheme)
{
	scheme_on_mss(scheme, scheme_state_of(&port->schemes, scheme), port->segments.bytes);
}

/* Global, as state_settle. */
__noinline int state_update(u32 slot, u32 acting, u32 queue_bytes, u64 now_ns)
{
	struct port_state *state = bpf_map_lookup_elem(&port, &slot);
	struct port_config *setup = bpf_map_lookup_elem(&config, &slot);
	struct port_stats *of_port = stats_find(slot);

	if (!state || !setup || !of_port)
		return 0;
	state_renew(state, setup, now_ns, acting);
	state_follow_count(state, setup, now_ns, acting);
	for (u32 i = 0; i < TICKS_AT_ONCE; i++)
		if (!state_tick(slot, acting, queue_bytes, now_ns))
			break;
	WINDOW_SCHEMES(FOR_UPDATED, scheme_see_queue, acting, state, setup, &of_port->counters,
		       queue_bytes, now_ns)
	return 0;
}

static __always_inline void scheme_is_due(struct port_state *port, const struct port_config *config,
					  u32 queue_bytes, u64 now_ns, u32 *is_due, u32 scheme)
{
	void *state = scheme_state_of(&port->schemes, scheme);
	const void *params = scheme_params_of(&config->schemes, scheme);

	*is_due |= scheme_tick_ns(scheme, params) && now_ns >= port->next_tick_ns[scheme];
	*is_due |= scheme_heeds_queue(scheme, state, params, queue_bytes, now_ns);
}

/* The schemes get the queue and the time, if they heed them. */
static __always_inline void state_follow(struct port_state *port, const struct port_config *config,
					 u32 queue_bytes, u64 now_ns, u32 acting)
{
	u32 is_due = port->generation != config->generation || port->scheme != acting;

	WINDOW_SCHEMES(FOR_UPDATED, scheme_is_due, acting, port, config, queue_bytes, now_ns,
		       &is_due)
	if (is_due)
		state_update(port->id & PORT_SLOT_MASK, acting, queue_bytes, now_ns);
}

/* A packet whose segments are larger than others, or the first of a period; apart for its stack. */
static __noinline void state_heed_segment(struct port_state *port, const struct flow_packet *seen,
					  u32 acting)
{
	bpf_spin_lock(&port->lock);
	segment_on_data(&port->segments, flow_segment_bytes(seen), flow_has_full_segment(seen),
			seen->now_ns);
	WINDOW_SCHEMES(FOR_UPDATED, scheme_set_mss, acting, port)
	bpf_spin_unlock(&port->lock);
}

/* Data leaves by the port; its segments rarely show anything new. */
static __always_inline void state_on_segment(struct port_state *port, struct port_counters *counted,
					     const struct flow_packet *seen, u32 acting)
{
	if (seen->payload && !(seen->flags & TCP_FLAG_SYN) &&
	    segment_heeds(&port->segments, flow_segment_bytes(seen), flow_has_full_segment(seen),
			  seen->now_ns))
		state_heed_segment(port, seen_apart(counted, seen), acting);
}

#endif
