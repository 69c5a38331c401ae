/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of flows: followed by each packet; an entry is made when a flow is proven.
 *
 * A flow's data and its ACKs may pass on two CPUs at once. What changes its phase, and with it the
 * number of flows, happens under the port's lock. Any other packet updates a copy of the entry, of
 * which the fields of its own direction and the time are written back, each by one store: a lost
 * update is a time some nanoseconds older.
 */
#ifndef PENSTOCK_FLOWS_H
#define PENSTOCK_FLOWS_H

#include "events.h"
#include "packet.h"
#include "state.h"

#define COUNTER_REPORT_NS 1000000 /* so exact is the papers' idle time of 1 s */

static __always_inline struct flow_name flow_name(const struct packet *packet)
{
	struct flow_name name = {packet->family == 4 ? &packet->key.v4 : 0, &packet->key.v6};

	return name;
}

/*
 * Two calls, as the verifier turns each into a direct call for its map. clang would merge them into
 * one call with the map in a register, which stays indirect and is 10 ns slower.
 */
static __always_inline struct port_flow *flow_find(struct flow_name name)
{
	struct port_flow *flow;

	if (!name.v4)
		return bpf_map_lookup_elem(&flows6, name.v6);
	flow = bpf_map_lookup_elem(&flows4, name.v4);
	asm volatile("" : "+r"(flow)); /* keeps clang from merging them */
	return flow;
}

/* Not on the stack, which has no room for them. */
static const struct port_flow unseen_flow = {0};
static const struct port_half unseen_half = {0};

/* The record of a new entry; 0: there is no room. */
static __always_inline _Bool record_make(struct flow_name name)
{
	u32 first = 0, index;
	struct sweep_state *sweep = bpf_map_lookup_elem(&sweeps, &first);
	struct flow_record *record;

	if (!sweep)
		return 0;
	index = __sync_fetch_and_add(&sweep->records, 1);
	record = bpf_map_lookup_elem(&records, &index);
	if (!record) {
		__sync_fetch_and_add(&sweep->records, -1);
		return 0;
	}
	if (name.v4)
		record->key.v4 = *name.v4;
	else
		record->key.v6 = *name.v6;
	record->family = name.v4 ? 4 : 6;
	__sync_lock_test_and_set(&record->state, RECORD_USED);
	return 1;
}

static __always_inline void flow_delete(struct flow_name name)
{
	if (name.v4)
		bpf_map_delete_elem(&flows4, name.v4);
	else
		bpf_map_delete_elem(&flows6, name.v6);
}

/* Another CPU may have made it first. A sweep finds it only by its record. */
static __always_inline struct port_flow *
flow_make(struct port_state *port, const struct port_config *config, struct flow_name name)
{
	struct port_flow *flow;
	long status;

	if (port->tracked >= config->flows_max)
		return 0;
	if (name.v4)
		status = bpf_map_update_elem(&flows4, name.v4, &unseen_flow, BPF_NOEXIST);
	else
		status = bpf_map_update_elem(&flows6, name.v6, &unseen_flow, BPF_NOEXIST);
	flow = flow_find(name);
	if (!flow || status)
		return flow;
	if (!record_make(name)) {
		flow_delete(name);
		return 0;
	}
	__sync_fetch_and_add(&port->tracked, 1);
	return flow;
}

static __always_inline struct flow_key6 mapped_key(const struct flow_key4 *v4)
{
	struct flow_key6 key = {
		.source = {0, 0, bpf_htonl(0xffff), v4->source},
		.destination = {0, 0, bpf_htonl(0xffff), v4->destination},
		.source_port = v4->source_port,
		.destination_port = v4->destination_port,
		.network = v4->network,
		.port = v4->port,
	};

	return key;
}

/* The key of a flow's record in `half_open`. */
static __always_inline struct flow_key6 half_key(const struct packet *packet)
{
	return packet->family == 4 ? mapped_key(&packet->key.v4) : packet->key.v6;
}

static __always_inline struct port_half *half_lookup(const struct flow_key6 *key)
{
	struct port_half *half = bpf_map_lookup_elem(&half_own, key);

	return half ? half : bpf_map_lookup_elem(&half_open, key);
}

/* Not inlined, as its key takes much of the stack. */
static __noinline struct port_half *half_find(const struct packet *packet)
{
	struct flow_key6 key = half_key(packet);

	return half_lookup(&key);
}

/* How many records a port may have in `half_own`: what it takes there is no other's. */
static __always_inline u32 half_share(void)
{
	u32 first = 0, *ports = bpf_map_lookup_elem(&slots_used, &first);

	return min_u32(HALF_OWN / max_u32(ports ? *ports : 0, 1), HALF_PORT);
}

static __always_inline struct port_half *
half_make(struct port_state *port, struct port_counters *counted, const struct flow_key6 *key)
{
	u32 first = 0;
	struct sweep_state *sweep = bpf_map_lookup_elem(&sweeps, &first);
	_Bool has_room = port->half_own < half_share();

	if (has_room && !bpf_map_update_elem(&half_own, key, &unseen_half, BPF_NOEXIST)) {
		__sync_fetch_and_add(&port->half_own, 1);
		counted->half_open_begun++;
	} else if (!bpf_map_update_elem(&half_open, key, &unseen_half, BPF_NOEXIST)) {
		counted->half_open_begun++;
	}
	if (sweep && !sweep->has_half)
		sweep->has_half = 1;
	return half_lookup(key);
}

/* One handshake more is under way, or one less: on several CPUs at once, and a sweep may set it. */
static __always_inline void half_count(struct port_state *port, s32 delta)
{
	if (delta && !__sync_fetch_and_add(&port->half_open, (u32)delta) && delta < 0)
		__sync_fetch_and_add(&port->half_open, 1);
}

/* Deletes a flow's record, of which this is a copy. Whether it was there: of two CPUs one does. */
static __always_inline _Bool half_delete(struct port_state *port, const struct handshake *copy,
					 const struct flow_key6 *key)
{
	if (!bpf_map_delete_elem(&half_own, key))
		__sync_fetch_and_add(&port->half_own, -1);
	else if (bpf_map_delete_elem(&half_open, key))
		return 0;
	half_count(port, -(s32)handshake_is_half_open(copy));
	return 1;
}

/*
 * With the lock held: the port's own count follows a change of phase. A sweep counts all flows
 * while they change: what it has seen already, or came since it began, is corrected in its count.
 */
static __always_inline void flow_count(struct port_state *port, const struct port_config *config,
				       const struct port_flow *flow, s32 delta, u32 acting)
{
	if (flow->swept == (u16)port->sweep)
		port->recount += delta;
	if (!counts_packets(config, acting) && (delta > 0 || port->own_flows > 0))
		port->own_flows += delta;
}

/* After flow_count, without the lock: the schemes get the new number. */
static __always_inline void flow_settle(const struct port_state *port, s32 delta, u32 acting)
{
	if (delta)
		state_settle(port->id & PORT_SLOT_MASK, acting);
}

/*
 * A sequence number of an entry, which another CPU may have moved on since it was read: what took
 * it back would make the packets that follow implausible, a FIN among them.
 */
static __always_inline void flow_move(u32 *seq, u32 to)
{
	if (flow_is_after(to, *(volatile u32 *)seq))
		*seq = to;
}

/* Updates a flow by an ordinary packet; returns the change of the number of flows. */
static __always_inline s32 flow_update(struct port_state *port, const struct port_config *config,
				       struct port_flow *flow, struct flow_entry *copy,
				       const struct flow_packet *packet, u32 acting)
{
	u32 own = packet->direction, peer = own ^ 1;
	s32 delta = packet->flags & TCP_FLAG_RST ? flow_on_packet(copy, packet)
						 : flow_on_plausible(copy, packet);

	if (copy->phase == flow->entry.phase) {
		flow->entry.last_ns = copy->last_ns;
		flow_move(&flow->entry.next[own], copy->next[own]);
		flow_move(&flow->entry.acked[peer], copy->acked[peer]);
		if (own == FLOW_ACKS && flow->entry.acks != copy->acks)
			flow->entry.acks = copy->acks;
		if (own == FLOW_DATA && flow->entry.segment != copy->segment)
			flow->entry.segment = copy->segment;
		return 0;
	}
	bpf_spin_lock(&port->lock);
	delta = flow_on_packet(&flow->entry, packet);
	flow_count(port, config, flow, delta, acting);
	bpf_spin_unlock(&port->lock);
	flow_settle(port, delta, acting);
	return delta;
}

/* The count as printed: SYN-ACKs minus FINs; data only shows that the port is in use. */
static __always_inline void flow_count_packet(struct port_state *port,
					      const struct flow_packet *packet, u32 acting)
{
	_Bool turns = packet->flags & (TCP_FLAG_SYN | TCP_FLAG_FIN | TCP_FLAG_RST);
	u32 before;
	s32 delta;

	if (!turns && (!packet->payload ||
		       elapsed_ns(port->counter.last_data_ns, packet->now_ns) < COUNTER_REPORT_NS))
		return;
	bpf_spin_lock(&port->lock);
	before = port->own_flows;
	port->own_flows = flow_counter_on_packet(&port->counter, packet->flags, packet->payload,
						 packet->direction == FLOW_DATA, packet->now_ns);
	delta = (s32)(port->own_flows - before);
	bpf_spin_unlock(&port->lock);
	flow_settle(port, delta, acting);
}

/*
 * The packet with a constant direction, as verifiers follow no variable index. By its fields: of a
 * whole copy clang makes one of bytes.
 */
static __always_inline struct flow_packet flow_packet_in(const struct flow_packet *packet,
							 u32 direction)
{
	struct flow_packet here = {
		.now_ns = packet->now_ns,
		.seq = packet->seq,
		.ack = packet->ack,
		.payload = packet->payload,
		.mss = packet->mss,
		.scale = packet->scale,
		.flags = packet->flags,
		.direction = (u8)direction,
	};

	return here;
}

/* What the functions below need, in one argument. */
struct flow_ctx {
	struct port_state *port;
	const struct port_config *config;
	struct port_counters *counted;
	const struct flow_packet *seen;
};

static __always_inline _Bool flow_ctx_open(struct flow_ctx *ctx, u32 slot)
{
	struct port_stats *of_port = stats_find(slot);

	ctx->port = bpf_map_lookup_elem(&port, &slot);
	ctx->config = bpf_map_lookup_elem(&config, &slot);
	if (!ctx->port || !ctx->config || !of_port)
		return 0;
	ctx->counted = &of_port->counters;
	ctx->seen = &of_port->seen;
	return 1;
}

/* What came of a packet that is not ordinary, in bits. */
enum flow_outcome {
	FLOW_SETTLES = 1,   /* the port's own count may have changed: state_settle */
	FLOW_HAS_BEGUN = 2, /* that of a record */
	FLOW_HAS_ENDED = 4, /* at once */
};

/*
 * The packet proves the flow of the record, which begins, or replaces that of the entry. The last
 * packets of a handshake may do so on two CPUs at once: the second finds the flow begun, and
 * follows it. Who began it deletes the record; if it was deleted already, the flow has begun and
 * ended since the record was read, and ends again.
 */
static __always_inline int flow_begin(const struct flow_ctx *ctx, const struct flow_packet *seen,
				      const struct port_half *half, const struct flow_key6 *key,
				      struct flow_name name, struct port_flow *flow)
{
	const struct handshake *handshake = &half->handshake;
	const struct port_config *config = ctx->config;
	struct port_state *port = ctx->port;
	_Bool begins;
	s32 delta = 0;

	if (!flow)
		flow = flow_make(port, config, name);
	if (!flow) {
		half_delete(port, handshake, key);
		ctx->counted->passed[PASS_TABLE_FULL]++;
		return 0;
	}
	bpf_spin_lock(&port->lock);
	if (flow->entry.phase == FLOW_UNSEEN)
		flow->swept = (u16)port->sweep;
	begins = !flow_is_ordinary(&flow->entry, seen);
	if (begins) {
		/* Before its phase: other CPUs read that without the lock. */
		flow->edge = half->edge;
		if (!(handshake->marks & HANDSHAKE_MID_LIFE))
			flow->unified = half->unified;
		asm volatile("" ::: "memory");
		delta = flow_establish(&flow->entry, handshake, seen);
	}
	delta += flow_on_packet(&flow->entry, seen);
	flow_count(port, config, flow, delta, port->scheme);
	bpf_spin_unlock(&port->lock);
	if (!begins)
		return FLOW_SETTLES;
	if (!half_delete(port, handshake, key)) {
		bpf_spin_lock(&port->lock);
		delta = -(s32)flow_is_counted(&flow->entry);
		flow->entry.phase = FLOW_ENDED;
		flow_count(port, config, flow, delta, port->scheme);
		bpf_spin_unlock(&port->lock);
		return FLOW_SETTLES;
	}
	ctx->counted->half_open_proven++;
	if (config->flags & PORT_FLOW_EVENTS) {
		if (handshake->marks & HANDSHAKE_MID_LIFE)
			transfer_begin(flow, handshake->last_ns,
				       seen->ack - handshake->isn[FLOW_DATA] - 1);
		else if (seen->direction == FLOW_DATA && seen->payload)
			transfer_add(flow, seen->now_ns, seen->payload);
	}
	if (delta < 0)
		return FLOW_SETTLES | FLOW_HAS_ENDED;
	if (!delta)
		return 0;
	flow->begun_ms = (u32)(seen->now_ns / 1000000);
	ctx->counted->flows_begun++;
	return FLOW_SETTLES | FLOW_HAS_BEGUN;
}

/*
 * A packet that is not ordinary: of a flow without an entry, of one that has ended, or that does
 * not fit it. The record is looked up before the entry, and deleted after the entry is made: see
 * flow_begin. Returns enum flow_outcome.
 */
static __always_inline int flow_on_other(const struct flow_ctx *ctx, const struct packet *packet,
					 u32 direction)
{
	const struct flow_packet here = flow_packet_in(ctx->seen, direction), *seen = &here;
	/* Copies: before Linux 6.2 memory that a function was given is no key of a map. */
	struct flow_key4 v4 = packet->key.v4;
	struct flow_key6 key = half_key(packet);
	struct flow_name name = {packet->family == 4 ? &v4 : 0, &key};
	struct port_half *half = half_lookup(&key);
	struct port_flow *flow = flow_find(name);
	struct port_state *port = ctx->port;
	s32 delta;

	if (half) {
		struct port_half copy = *half; /* it may be evicted while it is read */
		_Bool is_ended = handshake_is_ended(&copy.handshake, seen);

		if (is_ended)
			half_delete(port, &copy.handshake, &key);
		else if (handshake_is_proven(&copy.handshake, flow ? &flow->entry : 0, seen))
			return flow_begin(ctx, seen, &copy, &key, name, flow);
	}
	if (flow && (seen->flags & TCP_FLAG_RST || flow_is_plausible(&flow->entry, seen))) {
		bpf_spin_lock(&port->lock);
		delta = flow_on_packet(&flow->entry, seen);
		flow_count(port, ctx->config, flow, delta, port->scheme);
		bpf_spin_unlock(&port->lock);
		if (delta > 0)
			ctx->counted->flows_begun++;
		return delta ? FLOW_SETTLES : 0;
	}
	if (handshake_heeds_data(seen)) {
		if (!half)
			half = half_make(port, ctx->counted, &key);
		if (half)
			handshake_on_data(&half->handshake, seen);
	}
	return 0;
}

static __always_inline int half_on_syn(const struct flow_ctx *ctx, const struct packet *packet,
				       u32 direction)
{
	const struct flow_packet here = flow_packet_in(ctx->seen, direction), *seen = &here;
	struct port_counters *counted = ctx->counted;
	struct flow_key6 key = half_key(packet);
	struct port_half *half = half_lookup(&key);

	counted->syns++;
	if (!half)
		half = half_make(ctx->port, counted, &key);
	if (!half) {
		counted->passed[PASS_TABLE_FULL]++;
		return 0;
	}
	half->is_repeated = handshake_is_repeated(&half->handshake, seen);
	if (direction == FLOW_ACKS)
		half->edge.is_known = 0;
	else if (!half->is_repeated)
		half->unified = 0;
	else if (elapsed_ns(half->handshake.last_ns, seen->now_ns) >= PORT_STALL_NS)
		counted->timeouts_seen++;
	half_count(ctx->port, !handshake_is_half_open(&half->handshake));
	handshake_on_syn(&half->handshake, seen);
	return 0;
}

/*
 * Both for each direction, as global functions, so that the verifier checks them once. The packet
 * is also in `seen` of the port's statistics (seen_apart); what they have made of its flow is found
 * by its key.
 */
#define FLOW_GLOBAL(function, name, direction)                                                     \
	__noinline int function##_##name(struct packet *packet, u32 slot)                          \
	{                                                                                          \
		struct flow_ctx ctx;                                                               \
                                                                                                   \
		return packet && flow_ctx_open(&ctx, slot) ? function(&ctx, packet, direction)     \
							   : 0;                                    \
	}

FLOW_GLOBAL(flow_on_other, data, FLOW_DATA)
FLOW_GLOBAL(flow_on_other, acks, FLOW_ACKS)
FLOW_GLOBAL(half_on_syn, data, FLOW_DATA)
FLOW_GLOBAL(half_on_syn, acks, FLOW_ACKS)

/* A SYN or SYN-ACK: its flow has a record then, which half_find finds, if there is room. */
static __always_inline void half_on(const struct port_state *port, struct port_counters *counted,
				    struct packet *packet, const struct flow_packet *seen,
				    u32 direction)
{
	u32 slot = port->id & PORT_SLOT_MASK;

	seen_apart(counted, seen);
	if (direction == FLOW_DATA)
		half_on_syn_data(packet, slot);
	else
		half_on_syn_acks(packet, slot);
}

/* Finds the flow of a packet that is no SYN, and follows it; null if it is not proven. */
static __always_inline struct port_flow *
flow_on(struct port_state *port, const struct port_config *config, struct port_counters *counted,
	struct packet *packet, const struct flow_packet *seen, u32 direction, u32 acting)
{
	struct port_flow *flow = flow_find(flow_name(packet));
	struct flow_packet here = flow_packet_in(seen, direction);
	struct flow_entry copy;
	u32 new_bytes = 0;
	u64 silent_ns;
	int outcome;
	s32 delta;

	if (flow)
		copy = flow->entry;
	if (!flow || !flow_is_ordinary(&copy, &here)) {
		u32 slot = port->id & PORT_SLOT_MASK;

		seen_apart(counted, seen);
		outcome = direction == FLOW_DATA ? flow_on_other_data(packet, slot)
						 : flow_on_other_acks(packet, slot);
		flow = flow_find(flow_name(packet));
		if (outcome & FLOW_SETTLES)
			state_settle(slot, port->scheme);
		if (flow && outcome & (FLOW_HAS_BEGUN | FLOW_HAS_ENDED) &&
		    config->flags & PORT_FLOW_EVENTS)
			event_of_delta(flow, flow_name(packet), outcome & FLOW_HAS_BEGUN ? 1 : -1,
				       here.now_ns);
		return flow;
	}
	silent_ns = elapsed_ns(copy.last_ns, here.now_ns);
	if (direction == FLOW_DATA && here.payload) {
		new_bytes = flow_new_bytes(&copy, &here);
		counted->repeated_bytes += here.payload - new_bytes;
		if (silent_ns >= PORT_STALL_NS && !new_bytes)
			counted->timeouts_seen++;
	}
	delta = flow_update(port, config, flow, &copy, &here, acting);
	if (delta > 0)
		counted->flows_begun++;
	if (delta < 0)
		counted->flows_ended++;
	if (config->flags & PORT_FLOW_EVENTS) {
		transfer_follow(flow, flow_name(packet), &here, new_bytes, silent_ns);
		event_of_delta(flow, flow_name(packet), delta, here.now_ns);
	}
	return flow;
}

#endif
