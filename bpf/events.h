/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of flows and their transfers, with PORT_FLOW_EVENTS (abi.h defines them). A full ring
 * loses events; the programs never wait.
 */
#ifndef PENSTOCK_EVENTS_H
#define PENSTOCK_EVENTS_H

#include "maps.h"

#define TRANSFER_MAX_BYTES (1u << 31)

/* A flow's key: of a packet, a record, or a copy of it. */
struct flow_name {
	const struct flow_key4 *v4; /* null: IPv6 */
	const struct flow_key6 *v6;
};

/* An event, of which only the flow is still to be written; null: there is no room. */
static __always_inline struct flow_event *event_reserve(u32 port, u32 kind, u64 now_ns,
							u64 begun_ns, u64 bytes)
{
	u32 slot = port & PORT_SLOT_MASK;
	void *ring = bpf_map_lookup_elem(&events, &slot);
	struct flow_event *event;

	if (!ring)
		return 0;
	event = bpf_ringbuf_reserve(ring, sizeof(*event), 0);
	if (!event)
		return 0;
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = now_ns;
	event->begun_ns = begun_ns;
	event->bytes = bytes;
	event->kind = (u8)kind;
	return event;
}

/*
 * Global functions, so that the verifier checks them once: the ways through them would multiply
 * those of each packet.
 */
__noinline int event_send4(const struct flow_key4 *key, u32 kind, u64 now_ns, u64 begun_ns,
			   u64 bytes)
{
	struct flow_event *event =
		key ? event_reserve(key->port, kind, now_ns, begun_ns, bytes) : 0;

	if (!event)
		return 0;
	event->family = 4;
	event->source[0] = key->source;
	event->destination[0] = key->destination;
	event->source_port = key->source_port;
	event->destination_port = key->destination_port;
	event->network = key->network;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

__noinline int event_send6(const struct flow_key6 *key, u32 kind, u64 now_ns, u64 begun_ns,
			   u64 bytes)
{
	struct flow_event *event =
		key ? event_reserve(key->port, kind, now_ns, begun_ns, bytes) : 0;

	if (!event)
		return 0;
	event->family = 6;
	__builtin_memcpy(event->source, key->source, 16);
	__builtin_memcpy(event->destination, key->destination, 16);
	event->source_port = key->source_port;
	event->destination_port = key->destination_port;
	event->network = key->network;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

static __always_inline void event_write(struct flow_name name, u32 kind, u64 now_ns, u64 begun_ns,
					u64 bytes)
{
	if (name.v4)
		event_send4(name.v4, kind, now_ns, begun_ns, bytes);
	else
		event_send6(name.v6, kind, now_ns, begun_ns, bytes);
}

/* The time, at most 71 minutes ago, of which only microseconds modulo 2^32 are known. */
static __always_inline u64 time_of_us(u32 us, u64 now_ns)
{
	return now_ns - (u64)((u32)(now_ns / 1000) - us) * 1000;
}

static __always_inline void transfer_end(struct port_flow *flow, struct flow_name name, u64 now_ns)
{
	if (!flow->burst_bytes)
		return;
	event_write(name, FLOW_EVENT_TRANSFER, time_of_us(flow->last_us, now_ns),
		    time_of_us(flow->burst_us, now_ns), flow->burst_bytes);
	flow->burst_bytes = 0;
}

/* How much of a data packet that a flow is about to be followed by is new to it. */
static __always_inline u32 flow_new_bytes(const struct flow_entry *flow,
					  const struct flow_packet *packet)
{
	u32 ahead = packet->seq + packet->payload - flow->next[FLOW_DATA];

	return ahead >> 31 ? 0 : min_u32(ahead, packet->payload);
}

/* A transfer is under way that began before the flow was known. */
static __always_inline void transfer_begin(struct port_flow *flow, u64 begun_ns, u32 bytes)
{
	flow->burst_us = flow->last_us = (u32)(begun_ns / 1000);
	flow->burst_bytes = bytes;
}

/* New payload of a transfer. */
static __always_inline void transfer_add(struct port_flow *flow, u64 now_ns, u32 bytes)
{
	u32 now_us = (u32)(now_ns / 1000);

	if (!flow->burst_bytes)
		flow->burst_us = now_us;
	flow->last_us = now_us;
	flow->burst_bytes += bytes;
}

/* Follows the transfers of a flow by one packet; `silent_ns` since the packet before. */
static __always_inline void transfer_follow(struct port_flow *flow, struct flow_name name,
					    const struct flow_packet *packet, u32 new_bytes,
					    u64 silent_ns)
{
	if (!packet->payload)
		return;
	if (packet->direction == FLOW_ACKS || silent_ns >= FLOW_TRANSFER_GAP_NS ||
	    flow->burst_bytes >= TRANSFER_MAX_BYTES)
		transfer_end(flow, name, packet->now_ns);
	if (packet->direction == FLOW_DATA && new_bytes)
		transfer_add(flow, packet->now_ns, new_bytes);
}

/* A flow begins or ends to be counted. */
static __always_inline void event_of_delta(struct port_flow *flow, struct flow_name name, s32 delta,
					   u64 now_ns)
{
	u32 age_ms = (u32)(now_ns / 1000000) - flow->begun_ms;

	if (delta > 0) {
		event_write(name, FLOW_EVENT_BEGIN, now_ns, now_ns, 0);
	} else if (delta < 0) {
		transfer_end(flow, name, now_ns);
		event_write(name, FLOW_EVENT_END, now_ns, now_ns - (u64)age_ms * 1000000, 0);
	}
}

#endif
