/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of flows: found, made at a SYN, followed by each packet.
 *
 * A flow's data and its ACKs may pass on two CPUs at once. What changes its phase, and with it the
 * number of flows, happens under the port's lock. Any other packet updates a copy of the entry, of
 * which only `last_ns` and `acks` are written back, each by one store: a lost update is a
 * time some nanoseconds older or an ACK counted once less.
 */
#ifndef PENSTOCK_FLOWS_H
#define PENSTOCK_FLOWS_H

#include "events.h"
#include "packet.h"
#include "state.h"

#define FLOW_TURNS	  (TCP_FLAG_SYN | TCP_FLAG_FIN | TCP_FLAG_RST)
#define COUNTER_REPORT_NS 1000000 /* so exact is the papers' idle time of 1 s */

/*
 * Two calls, as the verifier turns each into a direct call for its map. clang would merge them into
 * one call with the map in a register, which stays indirect and is 10 ns slower.
 */
static __always_inline struct port_flow *flow_find(const struct packet *packet)
{
	struct port_flow *flow;

	if (packet->family != 4)
		return bpf_map_lookup_elem(&flows6, &packet->key.v6);
	flow = bpf_map_lookup_elem(&flows4, &packet->key.v4);
	asm volatile("" : "+r"(flow)); /* keeps clang from merging them */
	return flow;
}

/* Another CPU may have made it first. Its last packet is now, or a sweep could expire it. */
static __always_inline struct port_flow *flow_make(const struct packet *packet, u64 now_ns)
{
	struct port_flow blank = {.entry.last_ns = now_ns};

	if (packet->family == 4)
		bpf_map_update_elem(&flows4, &packet->key.v4, &blank, BPF_NOEXIST);
	else
		bpf_map_update_elem(&flows6, &packet->key.v6, &blank, BPF_NOEXIST);
	return flow_find(packet);
}

static __always_inline struct flow_name flow_name(const struct packet *packet)
{
	struct flow_name name = {packet->family == 4 ? &packet->key.v4 : 0, &packet->key.v6};

	return name;
}

/*
 * With the lock held: the number of flows follows a change of phase. A sweep counts all flows
 * while they change: what it has seen already, or came since it began, is corrected in its count.
 */
static __always_inline void flow_count(struct port_state *port, const struct port_config *config,
				       const struct port_flow *flow, s32 delta, u32 acting)
{
	if (!delta)
		return;
	if (flow->swept == (u16)port->sweep)
		port->recount += delta;
	if (!counts_packets(config, acting) && (delta > 0 || port->flows > 0))
		state_set_flows(port, config, port->flows + delta, acting);
}

/* Updates a flow by a packet; returns the change of the number of flows. */
static __always_inline s32 flow_follow(struct port_state *port, const struct port_config *config,
				       struct port_flow *flow, const struct flow_packet *packet,
				       u32 acting)
{
	struct flow_entry entry = flow->entry;
	s32 delta;

	if (!(packet->flags & FLOW_TURNS) && !flow_on_packet(&entry, packet)) {
		flow->entry.last_ns = entry.last_ns;
		if (packet->direction == FLOW_ACKS && flow->entry.acks != entry.acks)
			flow->entry.acks = entry.acks;
		return 0;
	}
	bpf_spin_lock(&port->lock);
	if (flow->entry.phase == FLOW_UNSEEN)
		flow->swept = (u16)port->sweep;
	delta = flow_on_packet(&flow->entry, packet);
	flow_count(port, config, flow, delta, acting);
	bpf_spin_unlock(&port->lock);
	if (packet->flags & TCP_FLAG_SYN && packet->direction == FLOW_ACKS)
		flow->edge.is_known = 0;
	if (delta > 0)
		flow->begun_ms = (u32)(packet->now_ns / 1000000);
	return delta;
}

/* The count as printed: SYN-ACKs minus FINs; data only shows that the port is in use. */
static __always_inline void flow_count_packet(struct port_state *port,
					      const struct port_config *config,
					      const struct flow_packet *packet, u32 acting)
{
	_Bool turns = packet->flags & FLOW_TURNS;

	if (!turns && (!packet->payload ||
		       elapsed_ns(port->counter.last_data_ns, packet->now_ns) < COUNTER_REPORT_NS))
		return;
	bpf_spin_lock(&port->lock);
	state_set_flows(port, config,
			flow_counter_on_packet(&port->counter, packet->flags, packet->payload,
					       packet->direction == FLOW_DATA, packet->now_ns),
			acting);
	bpf_spin_unlock(&port->lock);
}

/* Finds the packet's flow, or makes it at a SYN, and follows it; null if it is not followed. */
static __always_inline struct port_flow *
flow_on(struct port_state *port, const struct port_config *config, struct port_counters *counted,
	const struct packet *packet, const struct flow_packet *seen, u32 acting)
{
	struct port_flow *flow = flow_find(packet);
	u32 new_bytes = 0;
	u64 silent_ns;
	s32 delta;

	if (seen->flags & TCP_FLAG_SYN)
		counted->syns++;
	if (counts_packets(config, acting))
		flow_count_packet(port, config, seen, acting);
	if (!flow) {
		/* For its events, a flow first seen in mid-life is followed too, but not counted.
		 */
		_Bool has_events = config->flags & PORT_FLOW_EVENTS && seen->payload &&
				   seen->direction == FLOW_DATA;

		if (!(seen->flags & TCP_FLAG_SYN || has_events) || seen->flags & TCP_FLAG_RST)
			return 0;
		flow = flow_make(packet, seen->now_ns);
		if (!flow) {
			counted->passed[PASS_TABLE_FULL]++;
			return 0;
		}
	}
	silent_ns = elapsed_ns(flow->entry.last_ns, seen->now_ns);
	delta = flow_follow(port, config, flow, seen, acting);
	if (delta > 0)
		counted->flows_begun++;
	if (delta < 0)
		counted->flows_ended++;
	if (seen->direction == FLOW_DATA) {
		new_bytes = flow_new_bytes(flow, seen, packet->payload);
		if (silent_ns >= PORT_STALL_NS && !new_bytes &&
		    (packet->payload || seen->flags & TCP_FLAG_SYN))
			counted->timeouts_seen++;
	}
	if (config->flags & PORT_FLOW_EVENTS) {
		transfer_follow(flow, flow_name(packet), seen, new_bytes, silent_ns);
		event_of_delta(flow, flow_name(packet), delta, seen->now_ns);
	}
	return flow;
}

#endif
