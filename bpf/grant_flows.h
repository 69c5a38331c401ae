/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * core/grant.h under the port's lock, one function for each event. They are global, so that the
 * verifier checks each once, by itself; what they take and return is in a CPU's `grant_scratch`.
 *
 * Before Linux 6.8 no function may be called while a lock is held, so all of core/ is inlined.
 */
#ifndef PENSTOCK_GRANT_FLOWS_H
#define PENSTOCK_GRANT_FLOWS_H

#include "grant_abi.h"
#include "packet.h"

#define GRANT_SEEN_BITS	 30u /* flows are seen in units of 2^30 ns, as 10^9 takes a division */
#define GRANT_FORGET	 56u /* such units; an idle flow's entry may go to another after */
#define GRANT_LOOKS	 4u  /* entries looked at for idleness when one is made */
#define GRANT_INDEX_BITS 15u

_Static_assert(1u << GRANT_INDEX_BITS == GRANT_FLOWS, "a handle has the number of a flow");

PORT_ARRAY(grant_config, BPF_MAP_TYPE_ARRAY, struct grant_config, 1, 0);
PORT_ARRAY(grant_own, BPF_MAP_TYPE_ARRAY, struct grant_own, 1, 0);
PORT_ARRAY(grant_peers, BPF_MAP_TYPE_ARRAY, struct grant_peer, GRANT_FLOWS, 0);

/* What the functions below take and return, as registers and the stack have no room. */
struct grant_scratch {
	struct packet parsed;
	struct grant_packet packet;
	struct grant_action action;
	struct grant_peer noted;
	u32 handle;		      /* of the packet's flow, 0: none */
	u32 bytes;		      /* of the packet */
	u32 queue_bytes;	      /* of the port, where it is known */
	u32 is_let_go;		      /* 1: the port does not act */
	struct grant_opening opening; /* of the flow */
	u32 is_refused;		      /* opening: not for the first time */
	u16 window;		      /* the field that the ACK is to have */
	u8 is_due;		      /* 1: there may be something to send */
	u8 is_lost;		      /* 1: the handle is no longer that of an entry */
	u8 is_first; /* 1: no ACK of the flow passed in this unit of time (seen_at) */
};

PORT_ARRAY(grant_scratch, BPF_MAP_TYPE_PERCPU_ARRAY, struct grant_scratch, 1, 0);

/* The look-ups cannot fail, but the verifier requires a test. */
struct grant_ctx {
	struct grant_config *config;
	struct grant_own *own;
	struct grant_scratch *scratch;
};

static __always_inline _Bool grant_ctx_open(struct grant_ctx *ctx)
{
	u32 first = 0;

	ctx->config = bpf_map_lookup_elem(&grant_config, &first);
	ctx->own = bpf_map_lookup_elem(&grant_own, &first);
	ctx->scratch = bpf_map_lookup_elem(&grant_scratch, &first);
	return ctx->config && ctx->own && ctx->scratch && ctx->config->abi == GRANT_ABI;
}

/*
 * A flow's entry in the table of all ports has a handle: its number here, and the serial number of
 * that use, as the number may be another flow's by now. The entry here has the same serial number
 * in `owner`, and above it when an ACK of the flow last passed.
 */
#define GRANT_IS_HANDLE (1u << 31)
/*
 * Until it has one: the window that the SYN-ACK showed, and in units of 256 bytes, above it, the
 * one that it came with.
 */
#define GRANT_WINDOW_AT	  16u
#define GRANT_HAS_SYN_ACK (1u << 24)
#define GRANT_IS_REFUSED  (1u << 25) /* there was no room for it */

static __always_inline u32 seen_at(u64 now_ns)
{
	return (u32)(now_ns >> GRANT_SEEN_BITS);
}

static __always_inline u32 handle_of(u32 index, u32 serial)
{
	return GRANT_IS_HANDLE | (serial & 0xffff) << GRANT_INDEX_BITS | index;
}

/* With the lock held: the number of the flow, 0 if it is no longer followed. */
static __always_inline u32 handle_index(const struct grant_own *own, u32 handle)
{
	u32 index = handle & (GRANT_FLOWS - 1);
	const struct grant_flow *f = &own->flows[index];

	if (!(handle & GRANT_IS_HANDLE) || index >= own->port.used || f->state == GRANT_FREE ||
	    (f->owner & 0xffff) != (handle >> GRANT_INDEX_BITS & 0xffff))
		return 0;
	return index;
}

/* With the lock held: an ACK of the flow passes. Whether it is the first in its unit of time. */
static __always_inline _Bool flow_stamp(struct grant_own *own, u32 index, u64 now_ns)
{
	struct grant_flow *f = &own->flows[index & (GRANT_FLOWS - 1)];
	u32 owner = (f->owner & 0xffff) | seen_at(now_ns) << 16;
	_Bool is_first = f->owner != owner;

	f->owner = owner;
	return is_first;
}

/* With the lock held: gives back an entry whose flow has been idle for long, if it is at the
 * cursor. */
static __always_inline void grant_forget(struct grant_own *own, u64 now_ns)
{
	u32 index = ++own->cursor & (GRANT_FLOWS - 1);
	struct grant_flow *f = &own->flows[index];
	u16 silent = (u16)(seen_at(now_ns) - (f->owner >> 16));

	if (index && index < own->port.used && f->state == GRANT_IDLE && silent > GRANT_FORGET)
		grant_close(&own->port, own->flows, index);
}

/*
 * Follows the flow of the packet in `grant_scratch`, which is the first that proves it or one in
 * mid-life. Returns its handle, 0 if there is no room.
 */
__noinline u32 grant_admit(void)
{
	struct grant_scratch *s;
	struct grant_ctx ctx;
	u32 index, i, handle = 0;
	u64 now_ns;

	if (!grant_ctx_open(&ctx))
		return 0;
	s = ctx.scratch;
	now_ns = s->packet.now_ns;
	bpf_spin_lock(&ctx.own->lock);
	for (i = 0; i < GRANT_LOOKS; i++)
		grant_forget(ctx.own, now_ns);
	index = grant_begin(&ctx.own->port, &ctx.config->params, ctx.own->flows, &s->packet,
			    &s->opening);
	if (index) {
		ctx.own->serial++;
		/* Headers that data has shown give way to those of the first ACK. */
		grant_flow_at(ctx.own->flows, index)->owner =
			(ctx.own->serial & 0xffff) | (seen_at(now_ns) - s->opening.by_sender) << 16;
		handle = handle_of(index, ctx.own->serial);
	} else {
		ctx.own->counters.flows_refused += !s->is_refused;
	}
	bpf_spin_unlock(&ctx.own->lock);
	return handle;
}

/* A flow is not followed by this handle. */
__noinline int grant_dismiss(u32 handle)
{
	struct grant_ctx ctx;
	u32 index;

	if (!grant_ctx_open(&ctx))
		return 0;
	bpf_spin_lock(&ctx.own->lock);
	index = handle_index(ctx.own, handle);
	if (index)
		grant_close(&ctx.own->port, ctx.own->flows, index);
	bpf_spin_unlock(&ctx.own->lock);
	return 0;
}

/* The packet in `grant_scratch` passes in the direction of the data. */
__noinline int grant_pass_data(u64 now_ns)
{
	const struct grant_params *p;
	struct grant_own *own;
	struct grant_ctx ctx;
	struct grant_scratch *s;
	u32 index;

	if (!grant_ctx_open(&ctx))
		return 0;
	own = ctx.own;
	p = &ctx.config->params;
	s = ctx.scratch;
	bpf_spin_lock(&own->lock);
	grant_on_bytes(&own->port, p, s->bytes, now_ns);
	index = handle_index(own, s->handle);
	s->is_lost = s->handle && !index;
	if (index)
		grant_on_data(&own->port, p, own->flows, index, &s->packet);
	s->is_due = s->is_let_go ? !!own->port.waiting
				 : grant_is_due(&own->port, p, own->flows, s->queue_bytes, now_ns);
	bpf_spin_unlock(&own->lock);
	return 0;
}

/* The packet in `grant_scratch` passes in the direction of the ACKs; its window goes there. */
__noinline int grant_pass_ack(u64 now_ns)
{
	const struct grant_params *p;
	struct grant_own *own;
	struct grant_ctx ctx;
	struct grant_scratch *s;
	u32 index;

	if (!grant_ctx_open(&ctx))
		return 0;
	own = ctx.own;
	p = &ctx.config->params;
	s = ctx.scratch;
	s->window = s->packet.window;
	bpf_spin_lock(&own->lock);
	index = handle_index(own, s->handle);
	s->is_lost = s->handle && !index;
	s->is_first = index && flow_stamp(own, index, now_ns);
	if (index)
		s->window =
			grant_on_ack(&own->port, p, own->flows, index, &s->packet, s->queue_bytes);
	if (!grant_is_open(own->flows, index))
		s->handle = 0; /* it has ended, and its entry may be another's at once */
	s->is_due = s->is_let_go ? !!own->port.waiting
				 : grant_is_due(&own->port, p, own->flows, s->queue_bytes, now_ns);
	bpf_spin_unlock(&own->lock);
	return 0;
}

/* What is to be sent now goes to `grant_scratch`; returns the flow's number, 0: nothing. */
__noinline u32 grant_take(u64 now_ns)
{
	const struct grant_params *p;
	struct grant_own *own;
	struct grant_ctx ctx;
	struct grant_scratch *s;

	if (!grant_ctx_open(&ctx))
		return 0;
	own = ctx.own;
	p = &ctx.config->params;
	s = ctx.scratch;
	bpf_spin_lock(&own->lock);
	if (s->is_let_go)
		s->action = grant_let_go(&own->port, p, own->flows, now_ns);
	else
		s->action = grant_on_timer(&own->port, p, own->flows, s->queue_bytes, now_ns);
	own->counters.carriers++;
	own->counters.carriers_idle += !s->action.flow;
	bpf_spin_unlock(&own->lock);
	return s->action.flow;
}

/* Whether there is something to send; without the lock, as it is looked at again then. */
__noinline u32 grant_has_more(u64 now_ns)
{
	struct grant_ctx ctx;

	if (!grant_ctx_open(&ctx))
		return 0;
	if (ctx.scratch->is_let_go)
		return !!ctx.own->port.waiting;
	return grant_is_due(&ctx.own->port, &ctx.config->params, ctx.own->flows,
			    ctx.scratch->queue_bytes, now_ns);
}

/* Bytes that a SYN-ACK towards a sender may offer. */
__noinline u32 syn_window(u32 mss, u32 half_open, u32 must_open, u64 now_ns)
{
	struct grant_ctx ctx;

	if (!grant_ctx_open(&ctx))
		return ~0u;
	return grant_syn_window(&ctx.own->port, &ctx.config->params, mss, half_open, must_open & 1,
				ctx.scratch->queue_bytes, now_ns);
}

/*
 * Takes the parameters in `grant_config`. Flows stay as they are, unless another direction is that
 * of the data now: they are opened again as they pass.
 */
__noinline int grant_restart(void)
{
	struct grant_ctx ctx;
	u32 side;

	if (!grant_ctx_open(&ctx))
		return 0;
	grant_hold_params(&ctx.config->params);
	bpf_spin_lock(&ctx.own->lock);
	/* Flows may have handles of an object before, of another layout. */
	if (!ctx.own->serial)
		ctx.own->serial = ctx.config->mark;
	side = grant_side(&ctx.config->params);
	if (!ctx.own->port.used || ctx.own->side != side)
		grant_clear(&ctx.own->port);
	ctx.own->side = side;
	grant_configure(&ctx.own->port, &ctx.config->params, ctx.config->rate_bps,
			ctx.config->never_shrinks & 1);
	bpf_spin_unlock(&ctx.own->lock);
	return 0;
}

/* Orders the levels by the sizes that have passed, when that is due. */
__noinline int grant_follow_sizes(u64 now_ns)
{
	struct grant_lesson lesson = {{0}, {0}};
	struct grant_ctx ctx;
	_Bool learns;

	if (!grant_ctx_open(&ctx) || elapsed_ns(ctx.own->learnt_ns, now_ns) < GRANT_LEARN_NS)
		return 0;
	ctx.own->learnt_ns = now_ns; /* one timer runs at a time */
	learns = grant_study(&ctx.own->port, &ctx.config->params, &lesson);
	bpf_spin_lock(&ctx.own->lock);
	grant_follow(&ctx.own->port, &ctx.config->params, learns ? &lesson : 0);
	bpf_spin_unlock(&ctx.own->lock);
	return 0;
}

#endif
