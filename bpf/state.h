/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The port's state, shared by all CPUs: its schemes and the number of flows.
 *
 * One spin lock guards what must change together: the schemes' states, the number of flows, and
 * the phase of each flow, as its change and the number's are one. It is taken at a flow's SYN, FIN,
 * RST, its return from idleness, and once an interval; never by other data or ACKs. Those read a
 * few words without it: each is written in one store, and the core is total, so the worst is a
 * window of a moment ago.
 */
#ifndef PENSTOCK_STATE_H
#define PENSTOCK_STATE_H

#include "maps.h"

#define TICKS_AT_ONCE 16u /* caught up with after silence; the rest is skipped */

/* Schemes whose state a program moves on; constants when inlined. */
static __always_inline _Bool has_fairq(u32 scheme)
{
	return scheme != PORT_HSCC;
}

static __always_inline _Bool has_hscc(u32 scheme)
{
	return scheme != PORT_FAIRQ;
}

/* With the lock held: tells the others what changed. */
static __always_inline void state_publish(struct port_state *port, const struct port_config *config,
					  u32 scheme)
{
	port->window_bytes = scheme == PORT_FAIRQ ? fairq_window_bytes(&port->fairq, &config->fairq)
						  : TCP_MAX_WINDOW;
}

/* With the lock held: a new number of flows. */
static __always_inline void state_set_flows(struct port_state *port,
					    const struct port_config *config, u32 flows, u32 scheme)
{
	port->flows = flows;
	if (has_fairq(scheme))
		fairq_on_flows(&port->fairq, flows);
	state_publish(port, config, scheme);
}

/* Begins anew where the agent wrote other parameters. */
static __always_inline void state_renew(struct port_state *port, const struct port_config *config,
					u64 now_ns, u32 scheme)
{
	if (port->generation == config->generation && port->scheme == scheme)
		return;
	bpf_spin_lock(&port->lock);
	if (port->generation != config->generation || port->scheme != scheme) {
		port->scheme = scheme;
		port->generation = config->generation;
		fairq_init(&port->fairq, &config->fairq);
		hscc_init(&port->hscc, &config->hscc);
		port->next_tick_ns = now_ns + config->fairq.interval_ns;
		state_set_flows(port, config, port->flows, scheme);
	}
	bpf_spin_unlock(&port->lock);
}

/* FairQ's timer: whichever packet comes first after an interval ended runs it. */
static __always_inline void state_tick(struct port_state *port, const struct port_config *config,
				       u32 queue_bytes, u64 now_ns, u32 scheme)
{
	u64 interval = max_u64(config->fairq.interval_ns, 1);

	if (now_ns < port->next_tick_ns)
		return;
	bpf_spin_lock(&port->lock);
	for (u32 i = 0; i < TICKS_AT_ONCE && now_ns >= port->next_tick_ns; i++) {
		fairq_on_tick(&port->fairq, &config->fairq, queue_bytes);
		port->next_tick_ns += interval;
	}
	if (now_ns >= port->next_tick_ns)
		port->next_tick_ns = now_ns + interval;
	state_publish(port, config, scheme);
	bpf_spin_unlock(&port->lock);
}

/* Whether data may hold a longer segment than seen; of a super-packet, its segments tell. */
static __always_inline _Bool is_longer_segment(const struct port_state *port, u32 payload)
{
	return payload && (!port->fairq.has_data || payload > port->fairq.mss_bytes);
}

/* FairQ learns the segment size from the data; rarely anything new. */
static __always_inline void state_on_data(struct port_state *port, u32 segment_bytes)
{
	if (port->fairq.has_data && segment_bytes <= port->fairq.mss_bytes)
		return;
	bpf_spin_lock(&port->lock);
	fairq_on_data(&port->fairq, segment_bytes);
	bpf_spin_unlock(&port->lock);
}

/*
 * HSCC hears of the queue. A report that would change nothing but its own time is left out if the
 * last is younger than 1 ms, so that CPUs do not fight for the line: hscc_params.expiry_ns is so
 * much less exact. Returns 1 if clamping begins.
 */
static __always_inline u32 state_on_queue(struct port_state *port, const struct port_config *config,
					  u32 queue_bytes, u64 now_ns)
{
	const struct hscc_params *params = &config->hscc;
	u32 mode = port->hscc.mode;
	_Bool turns = mode == HSCC_CLAMP ? queue_bytes <= params->alpha1_bytes
					 : queue_bytes >= params->alpha2_bytes;
	u32 begins;

	if (!turns && elapsed_ns(port->hscc.queue_seen_ns, now_ns) < HSCC_REPORT_NS)
		return 0;
	bpf_spin_lock(&port->lock);
	mode = port->hscc.mode;
	hscc_on_queue(&port->hscc, params, queue_bytes, now_ns);
	begins = mode == HSCC_FREE && port->hscc.mode == HSCC_CLAMP;
	bpf_spin_unlock(&port->lock);
	return begins;
}

#endif
