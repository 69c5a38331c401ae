/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Grant (grant.h): how a flow comes to credit, and for what there is room.
 */
#ifndef PENSTOCK_GRANT_CREDIT_H
#define PENSTOCK_GRANT_CREDIT_H

#include "grant_message.h"
#include "grant_order.h"

CORE_INLINE struct grant_action grant_write(struct grant_port *port, struct grant_flow *f,
					    u32 index)
{
	struct grant_action out = {.flow = index,
				   .seq = f->seq,
				   .ack = f->ack,
				   .ts_val = f->ts_val,
				   .ts_ecr = f->ts_ecr};

	grant_take_credit(port, f);
	out.window = grant_window(port, f, f->ack, f->window);
	grant_put_credit(port, f);
	return out;
}

CORE_INLINE void grant_make_idle(struct grant_port *port, const struct grant_params *p,
				 struct grant_flow *flows, u32 index)
{
	struct grant_flow *f = grant_flow_at(flows, index);

	grant_take_credit(port, f);
	grant_leave(port, flows, index);
	f->state = GRANT_IDLE;
	f->flags &= GRANT_LASTING;
	f->edge = f->seen + grant_allowance(p, f);
	f->attained = 0;
	f->level = 0;
}

/* A flow waits for credit, in a level. The caller has taken its credit out of the sums. */
CORE_INLINE void grant_wait(struct grant_port *port, struct grant_flow *flows, u32 index,
			    u64 now_ns, u32 level, _Bool is_first)
{
	struct grant_flow *f = grant_flow_at(flows, index);

	grant_leave(port, flows, index);
	f->state = GRANT_WAITING;
	f->since_ns = now_ns;
	f->flags &= GRANT_LASTING;
	f->level = (u8)level;
	port->waiting++;
	grant_push(port, flows, index, is_first);
}

/* A flow asks for credit. */
CORE_INLINE void grant_ask(struct grant_port *port, const struct grant_params *p,
			   struct grant_flow *flows, u32 index, u64 now_ns)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	u32 last = grant_last_level(p), level = grant_level_of(p, f);
	/* It goes on in its level, or enters it: what an idle flow sent is no turn of its own. */
	_Bool goes_on = f->state == GRANT_ACTIVE && f->attained && f->level == level &&
			level < min_u32(last, GRANT_TURN_LEVEL);

	if (f->state == GRANT_IDLE && elapsed_ns(f->since_ns, now_ns) >= port->idle_ns)
		f->run = 0;
	grant_take_credit(port, f);
	grant_wait(port, flows, index, now_ns, level, goes_on);
}

/* The queue, as far as it is known. */
CORE_INLINE u32 grant_queue_bytes(const struct grant_port *port, const struct grant_params *p,
				  u32 queue_bytes, u64 now_ns)
{
	u32 side = grant_side(p);

	if (side == GRANT_LIMIT)
		return grant_virtual_bytes(port, now_ns);
	return side == GRANT_PORT ? queue_bytes : 0;
}

/*
 * Where the round trip holds more than the buffer does, credit leaves as fast as data. What is more
 * than may leave at once, as a segment where the buffer is tiny, follows all that left before.
 */
CORE_INLINE _Bool grant_is_paced(const struct grant_port *port, u32 bytes, u64 now_ns)
{
	u32 left = grant_virtual_bytes(port, now_ns);

	return !port->burst || !left || left + bytes <= port->burst;
}

/* Nothing has passed since the last grant: no queue holds what was granted, servers take their
 * time. */
CORE_INLINE _Bool grant_link_idles(const struct grant_port *port, u32 queued_bytes, u64 now_ns)
{
	u64 since_ns = max_u64(port->busy_ns, port->grant_ns);

	return !queued_bytes && now_ns >= port->queued_ns &&
	       elapsed_ns(since_ns, now_ns) >= port->idle_ns;
}

/*
 * For how many bytes there is room: `size`, or `least` on an idle link if that is beyond the budget
 * or grants were taken back, or 0.
 */
CORE_INLINE u32 grant_room(const struct grant_port *port, const struct grant_params *p,
			   const struct grant_flow *f, u32 size, u32 least, u32 budget,
			   u32 queue_bytes, u64 now_ns)
{
	/* Credit without data: of late flows, and what messages leave of their last grants. */
	u64 late = now_ns < port->queued_ns ? 0 : port->late;
	u64 unused = late + fraction_of(port->outstanding, port->unused_q16);
	u32 queued = grant_queue_bytes(port, p, queue_bytes, now_ns);
	u64 target = grant_target_bytes(p), used = (u64)port->outstanding + queued;
	/* Its sender may not know yet that it has lost what it did not use. */
	u32 shown = grant_beyond(f->most, f->seen);
	_Bool is_still = !queued && elapsed_ns(port->busy_ns, now_ns) >= port->idle_ns;
	u32 part = port->active && port->doubt && is_still ? least : size;

	if (used + max_u32(part, shown) <= budget + min_u64(unused, target) ||
	    (!port->active && elapsed_ns(port->grant_ns, now_ns) >= port->delay_ns))
		return part;
	return port->active && grant_link_idles(port, queued, now_ns) &&
			       used + max_u32(least, shown) <= budget + target
		       ? least
		       : 0;
}

/*
 * The same for a waiting flow's next grant. An idle link may only stand still, and the data be on
 * the way all the same, so it gives no more than an allowance.
 */
CORE_INLINE u32 grant_room_of(const struct grant_port *port, const struct grant_params *p,
			      const struct grant_flow *f, u32 is_owed, u32 queue_bytes, u64 now_ns)
{
	/* Where new messages keep more than `long_target` in use, what is owed would never fit. */
	u32 budget = choose_u32(is_owed, port->budget, grant_budget_of(port, f));
	u32 size = grant_size(port, p, f);
	u32 least = min_u32(size, max_u32(grant_allowance(p, f), grant_mss(f)));

	size = grant_room(port, p, f, size, least, budget, queue_bytes, now_ns);
	return grant_is_paced(port, size, now_ns) ? size : 0;
}

CORE_INLINE u32 grant_wait_bucket(u64 wait_ns)
{
	return bits_taken((u32)min_u64(wait_ns >> GRANT_WAIT_BITS, ~0u));
}

/* A flow that is in no list gets credit, after this wait. */
CORE_INLINE void grant_start(struct grant_port *port, struct grant_flow *flows, u32 index, u32 size,
			     u64 waited_ns, u64 now_ns)
{
	struct grant_flow *f = grant_flow_at(flows, index);

	port->waits[grant_wait_bucket(waited_ns)]++;
	f->state = GRANT_ACTIVE;
	f->flags = (u8)((f->flags & GRANT_LASTING) | GRANT_SILENT);
	f->since_ns = now_ns;
	/* A new message has nothing on the way of the grant before. */
	if (f->attained)
		grant_note_edge(f);
	else
		grant_forget_edge(f);
	f->edge = f->seen + size;
	grant_push(port, flows, index, 0);
	/* Before, there was nothing to wait for. */
	if (!port->active)
		port->busy_ns = max_u64(port->busy_ns, now_ns);
	port->active++;
	port->grant_ns = now_ns;
	port->grants++;
	grant_give(port, size, now_ns);
}

/* Gives so much credit to a waiting flow; its window is to be written then. */
CORE_INLINE void grant_activate(struct grant_port *port, struct grant_flow *flows,
				struct grant_choice choice, u32 size, u64 now_ns)
{
	struct grant_flow *f = grant_flow_at(flows, choice.flow);

	grant_leave(port, flows, choice.flow);
	if (choice.is_owed) {
		port->owed_grants++;
		if (f->level && f->level != port->turn) {
			port->turn = f->level;
			port->turn_ns = now_ns;
		}
		port->owed_q16 -= (s64)size << 16;
	}
	grant_start(port, flows, choice.flow, size, elapsed_ns(f->since_ns, now_ns), now_ns);
}

/* What a flow may be granted next doubles with each grant that it uses up. */
CORE_INLINE void grant_grow(const struct grant_params *p, struct grant_flow *f)
{
	f->size = min_u32(2 * min_u32(f->size, GRANT_MAX_BUDGET),
			  grant_grant_segments(p) * grant_mss(f));
}

/*
 * While no flow waits, credit goes on in a flow's own ACKs before it is used up: else the flow
 * would pause for a round trip after each grant. The first of a burst would have what the next
 * could use, so data of the grant has to come first. The caller has taken its credit out of the
 * sums.
 */
CORE_INLINE void grant_renew(struct grant_port *port, const struct grant_params *p,
			     struct grant_flow *f, u32 queue_bytes, u64 now_ns)
{
	u32 left = grant_beyond(f->edge, f->seen), mss = grant_mss(f), budget, share, size;
	u32 grant = grant_grant_segments(p) * mss;

	if (f->state != GRANT_ACTIVE || f->flags & GRANT_SILENT || grant_resent(f) || port->waiting)
		return;
	f->level = (u8)grant_level_of(p, f);
	/* No turns: together they may have the whole budget. */
	budget = grant_budget_of(port, f);
	share = budget / max_u32(port->active, 1);
	share = min_u32(share, max_u32(grant, grant_lead(f)));
	share -= share % mss;
	size = f->size < grant ? min_u32(f->size, share) : share;
	size = max_u32(size, grant_size(port, p, f));
	if (left >= size / 2)
		return;
	size = left + grant_step(port, size - left, mss);
	if (!grant_is_paced(port, size - left, now_ns) ||
	    !grant_room(port, p, f, size, size, budget, queue_bytes, now_ns))
		return;
	grant_note_edge(f);
	f->edge = f->seen + size;
	grant_give(port, size - left, now_ns);
	grant_grow(p, f);
}

#endif
