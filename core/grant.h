/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Grant: receive windows as credit. Only as many flows hold an open window as a target below the
 * buffer allows; the others are shown window 0, and are opened in turn by window updates that Grant
 * itself sends.
 *
 * Credit is what a flow was granted minus what has passed. As it covers what is on the way and
 * queued, it bounds a queue without seeing it: Grant also works behind the port that it protects.
 *
 *	side		data is seen		term of the queue in the budget
 *	port		before the queue	the queue
 *	receiver	behind it		none: outstanding credit contains it
 *	limit		behind it		a virtual queue that drains at `rate`
 *
 * A flow is idle, waiting, or active (it holds credit). It asks for credit by a request that passes
 * in the ACK direction, at the end of its handshake if it opened the connection, by data that uses
 * up its credit or its allowance, or by a zero-window probe. An idle flow may send `allowance`
 * segments, so that short messages do not wait; they count when they pass.
 *
 * Order: waiting flows are in levels by the bytes of their message so far. A flow that goes on in
 * its level is first there, one that enters it is last; in the last level flows take turns. The
 * levels are served by Gittins index over the sizes that have passed (Gittins 1979; optimal for the
 * mean if sizes are not known): equal messages run to completion, in a heavy-tailed mixture the
 * shorter ones go first. Until enough is known they run to completion, and the last level comes
 * last. `long_share` of the bytes goes to the levels above the first that lose by this, in turn.
 *
 * The caller keeps the flows in an array, finds a flow's index, passes what it sees, and calls
 * grant_next after each packet and grant_on_timer every grant_tick_ns, at most GRANT_BURST times,
 * until they return no flow, and grant_learn every GRANT_LEARN_NS. What they return is to be sent
 * to the flow's sender as an ACK.
 *
 * Late flows. A flow without data, for long or while the link idles although others wait, has its
 * grant taken back but for the allowance: its server is late, or its packets are lost.
 *
 * A queue elsewhere, as at a port that several receivers share, also delays data. It shows by data
 * beyond what was taken back: it was sent before. For a while flows then count as late only much
 * later, and their credit is not granted to others.
 *
 * Far senders. At a port whose buffer is smaller than what a round trip holds, the budget is not
 * given at once: what is ahead of a virtual queue of credit, drained at `rate`, fits the buffer.
 *
 * Bounds. Credit outstanding is at most the budget and a target, which is for the allowances of
 * late flows and for what messages leave of their last grants, or one grant if that is more, plus
 * two units of the window scale for each active flow; what idle flows are allowed comes on top of
 * it. A flow that waits at place k of any level but the first is served before
 *
 *	GRANT_LEVELS * grant / long_share * k * (width of the level / grant + 1)
 *
 * bytes of other flows have passed. In the first level flows have sent little, and are served in
 * the order in which they came; where higher levels leave them nothing, one of GRANT_FIRST_TURNS
 * grants of `long_share` is theirs.
 *
 * What it does not do: heal losses elsewhere, or compute a congestion window from what a flow has
 * had acknowledged.
 */
#ifndef PENSTOCK_GRANT_H
#define PENSTOCK_GRANT_H

#include "grant_order.h"

/* `edge` is to move: up to here the flow's sender may have filled its window. */
CORE_INLINE void grant_note_edge(struct grant_flow *f)
{
	f->last = f->edge + grant_beyond(f->last, f->edge);
}

CORE_INLINE void grant_forget_edge(struct grant_flow *f)
{
	f->last = f->seen - (1u << TCP_MAX_SCALE);
}

CORE_INLINE struct grant_action grant_write(struct grant_port *port, struct grant_flow *f,
					    u32 index)
{
	struct grant_action out = {.flow = index,
				   .seq = f->seq,
				   .ack = f->ack,
				   .ts_val = f->ts_val,
				   .ts_ecr = f->ts_ecr};

	grant_take_credit(port, f);
	out.window = grant_window(port, f, f->ack, f->window, f->scale);
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
	f->flags &= GRANT_QUIET | GRANT_CLOSING;
	f->edge = f->seen + grant_allowance_segments(p) * grant_mss(f);
	f->attained = 0;
	f->level = 0;
}

/* A flow waits for credit. */
CORE_INLINE void grant_ask(struct grant_port *port, const struct grant_params *p,
			   struct grant_flow *flows, u32 index, u64 now_ns)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	u32 last = grant_last_level(p), level = min_u32(grant_level(f->attained), last);
	_Bool had_grant = f->state == GRANT_ACTIVE;

	grant_take_credit(port, f);
	grant_leave(port, flows, index);
	f->state = GRANT_WAITING;
	f->since_ns = now_ns;
	f->flags &= GRANT_QUIET | GRANT_CLOSING;
	port->waiting++;
	/* It goes on in its level, or enters it: what an idle flow sent is no turn of its own. */
	if (had_grant && f->attained && f->level == level && level < last) {
		grant_push(port, flows, index, 1);
	} else {
		f->level = (u8)level;
		grant_push(port, flows, index, 0);
	}
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

/* Where the round trip holds more than the buffer does, credit leaves as fast as data. */
CORE_INLINE _Bool grant_is_paced(const struct grant_port *port, u32 bytes, u64 now_ns)
{
	return !port->burst || grant_virtual_bytes(port, now_ns) + bytes <= port->burst;
}

CORE_INLINE _Bool grant_fits(const struct grant_port *port, const struct grant_params *p,
			     const struct grant_flow *f, u32 size, u32 queue_bytes, u64 now_ns)
{
	/* Credit without data: of late flows, and what messages leave of their last grants. */
	u64 late = now_ns < port->queued_ns ? 0 : port->late;
	u64 idle = late + fraction_of(port->outstanding, port->unused_q16);
	u64 budget = grant_budget_of(port, f) + min_u64(idle, grant_target_bytes(p));
	/* Its sender may not know yet that it has lost what it did not use. */
	u64 used = (u64)port->outstanding + max_u32(size, grant_beyond(f->most, f->seen)) +
		   grant_queue_bytes(port, p, queue_bytes, now_ns);

	return used <= budget ||
	       (!port->active && elapsed_ns(port->grant_ns, now_ns) >= port->delay_ns);
}

CORE_INLINE _Bool grant_has_room(const struct grant_port *port, const struct grant_params *p,
				 const struct grant_flow *f, u32 queue_bytes, u64 now_ns)
{
	u32 size = grant_size(port, p, f);

	return grant_is_paced(port, size, now_ns) &&
	       grant_fits(port, p, f, size, queue_bytes, now_ns);
}

CORE_INLINE u32 grant_wait_bucket(u64 wait_ns)
{
	return bits_taken((u32)min_u64(wait_ns >> GRANT_WAIT_BITS, ~0u));
}

/* Gives credit to a waiting flow; its window is to be written then. */
CORE_INLINE void grant_activate(struct grant_port *port, const struct grant_params *p,
				struct grant_flow *flows, struct grant_choice choice, u64 now_ns)
{
	struct grant_flow *f = grant_flow_at(flows, choice.flow);
	u32 size = grant_size(port, p, f);

	grant_leave(port, flows, choice.flow);
	if (choice.is_owed) {
		port->owed_grants++;
		port->turn = f->level ? f->level : port->turn;
		port->owed_q16 -= min_u64(port->owed_q16, (u64)size << 16);
	}
	port->waits[grant_wait_bucket(elapsed_ns(f->since_ns, now_ns))]++;
	f->state = GRANT_ACTIVE;
	f->flags = (u8)((f->flags & (GRANT_QUIET | GRANT_CLOSING)) | GRANT_SILENT);
	f->since_ns = now_ns;
	/* A new message has nothing on the way of the grant before. */
	if (f->attained)
		grant_note_edge(f);
	else
		grant_forget_edge(f);
	f->edge = f->seen + size;
	grant_push(port, flows, choice.flow, 0);
	port->active++;
	port->grant_ns = now_ns;
	port->grants++;
	grant_give(port, size, now_ns);
}

/*
 * How large the segments are. Those of a super-packet have the size that it names; of others, it
 * may be that of the SYN, of which options of each segment take up to GRANT_OPTION_BYTES: a full
 * one shows the rest.
 */
CORE_INLINE void grant_note_mss(struct grant_flow *f, const struct grant_packet *packet)
{
	u32 named = packet->mss;

	if (!named)
		return;
	if (packet->payload > named || named - f->mss > GRANT_OPTION_BYTES)
		f->mss = (u16)named;
	if (packet->payload <= named && packet->payload + GRANT_OPTION_BYTES >= named &&
	    !(packet->flags & TCP_FLAG_PSH))
		f->mss = (u16)packet->payload;
}

/* What a flow may be granted next doubles with each grant that it uses up. */
CORE_INLINE void grant_grow(const struct grant_params *p, struct grant_flow *f)
{
	f->size = min_u32(2 * min_u32(f->size, GRANT_MAX_BUDGET),
			  grant_grant_segments(p) * grant_mss(f));
}

/*
 * While no flow waits, credit goes on in a flow's own ACKs before it is used up: else the flow
 * would pause for a round trip after each grant. The caller has taken its credit out of the sums.
 */
CORE_INLINE void grant_renew(struct grant_port *port, const struct grant_params *p,
			     struct grant_flow *f, u32 queue_bytes, u64 now_ns)
{
	u32 left = grant_beyond(f->edge, f->seen), mss = grant_mss(f), share, size;
	u32 grant = grant_grant_segments(p) * mss;

	if (f->state != GRANT_ACTIVE || grant_resent(f) || port->waiting)
		return;
	f->level = (u8)min_u32(grant_level(f->attained), grant_last_level(p));
	/* No turns: together they may have the whole budget. */
	share = grant_budget_of(port, f) / max_u32(port->active, 1);
	share = min_u32(share, max_u32(grant, f->attained / GRANT_LEAD));
	share -= share % mss;
	size = f->size < grant ? min_u32(f->size, share) : share;
	size = max_u32(size, grant_size(port, p, f));
	if (left >= size / 2 || !grant_is_paced(port, size - left, now_ns) ||
	    !grant_fits(port, p, f, size, queue_bytes, now_ns))
		return;
	grant_note_edge(f);
	f->edge = f->seen + size;
	grant_give(port, size - left, now_ns);
	grant_grow(p, f);
}

/* What the caller calls. */

CORE_INLINE void grant_init(struct grant_port *port, const struct grant_params *p, u64 rate_bps,
			    _Bool never_shrinks)
{
	const struct grant_port zero = {0};
	u32 i, common = min_u32(grant_last_level(p), GRANT_COMMON_LEVELS);

	*port = zero;
	port->rate_bps = in_range(rate_bps, 1000, 1000000000000);
	port->never_shrinks = never_shrinks;
	port->used = 1;
	port->place[GRANT_ON_TIME] = GRANT_ON_TIME;
	port->place[GRANT_LATE] = GRANT_LATE;
	grant_derive(port, p);
	/* Until sizes are known, what is common runs to completion, then the shorter ones go first.
	 */
	for (i = 0; i < GRANT_LEVELS; i++) {
		port->order[i] = (u8)(i < common ? common - 1 - i : i);
		port->reach[i] = GRANT_LEVELS - 1;
	}
	grant_note_order(port);
}

/* A new flow whose data begins at `seq`: its number, or 0 if there is no room. */
CORE_INLINE u32 grant_open(struct grant_port *port, const struct grant_params *p,
			   struct grant_flow *flows, u32 seq, u32 mss_bytes)
{
	const struct grant_flow zero = {0};
	u32 index = port->free;
	struct grant_flow *f;

	if (index)
		port->free = grant_flow_at(flows, index)->next;
	else if (port->used < GRANT_FLOWS)
		index = port->used++;
	else
		return 0;
	f = grant_flow_at(flows, index);
	*f = zero;
	f->state = GRANT_IDLE;
	f->mss = (u16)mss_in_range(mss_bytes ? mss_bytes : p->mss_bytes);
	f->size = grant_grant_segments(p) * f->mss;
	f->edge = f->most = f->seen = f->ack = seq;
	grant_forget_edge(f);
	f->scale = TCP_SCALE_UNKNOWN;
	return index;
}

CORE_INLINE void grant_close(struct grant_port *port, struct grant_flow *flows, u32 index)
{
	struct grant_flow *f = grant_flow_at(flows, index);

	if (f->state == GRANT_FREE)
		return;
	grant_take_credit(port, f);
	grant_leave(port, flows, index);
	f->state = GRANT_FREE;
	f->next = port->free;
	port->free = index;
}

CORE_INLINE _Bool grant_is_open(const struct grant_flow *flows, u32 index)
{
	return flows[index & (GRANT_FLOWS - 1)].state != GRANT_FREE;
}

/* Bytes of any kind have passed, of flows under control or not. */
CORE_INLINE void grant_on_bytes(struct grant_port *port, const struct grant_params *p, u32 bytes,
				u64 now_ns)
{
	u64 idle_ns = port->idle_ns;

	/* A small packet now and then does not keep a link busy. */
	port->busy_ns = now_ns - min_u64(elapsed_ns(port->busy_ns, now_ns), idle_ns);
	port->busy_ns += min_u64(elapsed_ns(port->busy_ns, now_ns),
				 idle_ns * min_u32(bytes, 1u << 10) >> 10);
	if (grant_side(p) == GRANT_LIMIT)
		grant_fill_virtual(port, bytes, now_ns);
}

/*
 * A packet of the ACK direction passes: the window field that it is to have. One of a flow that is
 * not followed, or whose scale is not known, passes as it is.
 */
CORE_INLINE u16 grant_on_ack(struct grant_port *port, const struct grant_params *p,
			     struct grant_flow *flows, u32 index, const struct grant_packet *packet,
			     u32 queue_bytes)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	_Bool is_syn = packet->flags & TCP_FLAG_SYN, is_first, asks;
	u32 end = packet->seq + packet->payload + is_syn;
	struct grant_choice choice;
	u32 scale;
	u16 window;

	if (packet->flags & TCP_FLAG_RST) {
		grant_close(port, flows, index);
		return packet->window;
	}
	if (f->state == GRANT_FREE || !(packet->flags & TCP_FLAG_ACK))
		return packet->window;
	if (packet->scale == TCP_SCALE_UNKNOWN)
		return packet->window;
	scale = min_u32(packet->scale, TCP_MAX_SCALE);
	is_first = is_syn || f->scale == TCP_SCALE_UNKNOWN;
	f->scale = (u8)scale;
	/*
	 * An older ACK that was overtaken teaches nothing. Least of all a sequence number before
	 * the request that overtook it: the flow's sender would refuse each grant that has it.
	 */
	if (is_first || grant_beyond(packet->ack, f->ack) ||
	    (packet->ack == f->ack && !grant_beyond(f->seq, end))) {
		f->ack = packet->ack;
		if (is_first || grant_beyond(end, f->seq))
			f->seq = end;
		f->ts_val = packet->ts_val;
		f->ts_ecr = packet->ts_ecr;
		/* That of a SYN-ACK is not scaled (RFC 7323 §2.2). */
		f->window = is_syn ? packet->window >> scale : packet->window;
	}
	/* Data that passed elsewhere has arrived all the same. */
	if (grant_beyond(packet->ack, f->seen)) {
		grant_take_credit(port, f);
		grant_see(f, packet->ack);
		if (f->state == GRANT_IDLE)
			f->edge = f->seen + grant_allowance_segments(p) * grant_mss(f);
		grant_put_credit(port, f);
	}
	if ((f->flags & GRANT_CLOSING) && !grant_beyond(f->seen, packet->ack)) {
		grant_close(port, flows, index);
		return packet->window;
	}
	if (is_syn && !(f->flags & GRANT_HANDSHAKE)) {
		grant_make_idle(port, p, flows, index);
		f->seen = f->edge = f->most = packet->ack;
		grant_forget_edge(f);
		f->flags = GRANT_HANDSHAKE;
	}
	/*
	 * A request behind all data: the end of the last message was not seen as such. Its sender
	 * may still use the credit that is left, which stays its own. A full segment is no request:
	 * both ends may send at once.
	 */
	if (packet->payload && packet->payload < grant_mss(f) && f->attained &&
	    packet->ack == f->seen) {
		grant_end_message(port, f);
		f->attained = 0;
		if (f->state == GRANT_WAITING)
			grant_ask(port, p, flows, index, packet->now_ns);
	}
	asks = packet->payload && f->state == GRANT_IDLE && !(f->flags & GRANT_QUIET);
	/* A SYN-ACK is granted at once or not at all: its window has another unit. */
	if (asks || (is_syn && !port->waiting && f->state == GRANT_IDLE &&
		     grant_has_room(port, p, f, queue_bytes, packet->now_ns)))
		grant_ask(port, p, flows, index, packet->now_ns);
	if (f->state == GRANT_WAITING) {
		choice = grant_choose(port);
		if (choice.flow == index && grant_has_room(port, p, f, queue_bytes, packet->now_ns))
			grant_activate(port, p, flows, choice, packet->now_ns);
	}
	grant_take_credit(port, f);
	grant_renew(port, p, f, queue_bytes, packet->now_ns);
	window = grant_window(port, f, packet->ack, packet->window, is_syn ? 0 : scale);
	grant_put_credit(port, f);
	return window;
}

/* A packet of the data direction passes. */
CORE_INLINE void grant_on_data(struct grant_port *port, const struct grant_params *p,
			       struct grant_flow *flows, u32 index,
			       const struct grant_packet *packet)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	u32 fin = packet->flags & TCP_FLAG_FIN ? 1 : 0;
	u32 end = packet->seq + packet->payload + fin;
	u32 fresh = grant_beyond(end, f->seen), most = GRANT_MAX_BUDGET;
	u32 unit = 1u << min_u32(f->scale, TCP_MAX_SCALE), mss, tail, rest, attained;
	_Bool ends = fin, is_cut, probes, was_late;

	if (packet->flags & TCP_FLAG_RST)
		grant_close(port, flows, index);
	if (f->state == GRANT_FREE)
		return;
	grant_note_mss(f, packet);
	if (packet->flags & TCP_FLAG_SYN) {
		grant_make_idle(port, p, flows, index);
		f->most = f->ack = f->seen = packet->seq + 1;
		f->edge = f->seen + grant_allowance_segments(p) * grant_mss(f);
		grant_forget_edge(f);
		return;
	}
	mss = grant_mss(f);
	/*
	 * A message ends with a short segment, unless that fills the window of this grant or of
	 * the last, which is larger than the credit by less than a unit of the scale, or is the
	 * rest of a segment that such a window cut. It may follow many others, which the sender
	 * had put together with it.
	 */
	tail = packet->payload % mss;
	if (tail && fresh) {
		is_cut = !grant_beyond(f->edge, end) || end - f->last < unit;
		rest = (f->cut + tail) % mss;
		ends |= !is_cut && rest && tail + GRANT_OPTION_BYTES < mss &&
			packet->flags & TCP_FLAG_PSH;
		f->cut = is_cut ? rest : 0;
	}
	probes = f->state == GRANT_IDLE && packet->payload <= 1 && f->ack - packet->seq == 1;
	grant_take_credit(port, f);
	/* It was sent before its grant was taken back: not its server was late, a queue held it. */
	if (f->scale != TCP_SCALE_UNKNOWN && grant_beyond(end, f->edge) &&
	    grant_beyond(end, f->most))
		port->queued_ns = packet->now_ns + GRANT_QUEUED_NS;
	if (packet->payload) {
		was_late = f->state == GRANT_ACTIVE && grant_resent(f);
		if (was_late)
			grant_unlink(port, flows, index);
		if (f->flags & GRANT_SILENT)
			f->flags &= 0xf & ~(GRANT_SILENT | GRANT_QUIET);
		f->flags &= 0xf;
		if (f->state == GRANT_ACTIVE) {
			f->since_ns = packet->now_ns;
			if (was_late)
				grant_push(port, flows, index, 0);
			else
				grant_to_end(port, flows, index);
		}
	}
	if (fresh) {
		/* A FIN alone is no message. */
		attained = min_u32(f->attained + min_u32(fresh - fin, most), most);
		grant_count_passed(port, f->attained, attained);
		f->attained = attained;
		grant_see(f, end);
		port->owed_q16 = min_u64(port->owed_q16 + (u64)min_u32(fresh, most) *
								  grant_long_share_q16(p),
					 (u64)port->budget << 16);
	}
	if (fin)
		f->flags |= GRANT_CLOSING;
	if (ends && end == f->seen) {
		grant_end_message(port, f);
		if (f->state == GRANT_ACTIVE)
			port->unused += grant_beyond(f->edge, f->seen);
		grant_make_idle(port, p, flows, index);
	} else if (f->state == GRANT_ACTIVE && grant_beyond(f->edge, f->seen) < mss) {
		grant_grow(p, f);
		grant_ask(port, p, flows, index, packet->now_ns);
	} else if (f->state == GRANT_IDLE && (fresh || probes || (f->flags & GRANT_HANDSHAKE))) {
		/* A request follows a handshake, which is short as a rule. */
		if (!fresh && f->flags & GRANT_HANDSHAKE)
			f->size = min_u32(f->size, max_u32(grant_allowance_segments(p), 2) * mss);
		grant_ask(port, p, flows, index, packet->now_ns);
	}
	grant_put_credit(port, f);
}

/* If the budget has room for the next waiting flow: what to send to its sender. */
CORE_INLINE struct grant_action grant_next(struct grant_port *port, const struct grant_params *p,
					   struct grant_flow *flows, u32 queue_bytes, u64 now_ns)
{
	struct grant_choice choice = grant_choose(port);
	struct grant_flow *f = grant_flow_at(flows, choice.flow);
	const struct grant_action none = {0};

	if (!choice.flow || !grant_has_room(port, p, f, queue_bytes, now_ns))
		return none;
	/* The receiver itself has no room: its next ACK opens the window. */
	if (grant_beyond(f->ack + tcp_window_bytes(f->window, f->scale), f->seen) == 0) {
		grant_make_idle(port, p, flows, choice.flow);
		return none;
	}
	grant_activate(port, p, flows, choice, now_ns);
	return grant_write(port, f, choice.flow);
}

/*
 * A flow whose grant has no effect, for too long or while the link idles although others wait: then
 * no queue holds its data, its sender has none.
 */
CORE_INLINE u32 grant_without_effect(const struct grant_port *port, const struct grant_params *p,
				     struct grant_flow *flows, u32 queue_bytes, u64 now_ns)
{
	u32 late = port->lists[GRANT_LATE].head, active = port->lists[GRANT_ON_TIME].head;
	const struct grant_flow *f = grant_flow_at(flows, late);
	_Bool is_queued = now_ns < port->queued_ns;
	u64 resend_ns = port->resend_ns << (is_queued ? GRANT_QUEUED_BITS : 0);

	/* What was taken back is to be followed by the allowance. */
	if (late && (f->edge == f->seen || elapsed_ns(f->since_ns, now_ns) >= resend_ns))
		return late;
	f = grant_flow_at(flows, active);
	if (elapsed_ns(f->since_ns, now_ns) >= resend_ns)
		return active;
	if (is_queued || !port->waiting || grant_queue_bytes(port, p, queue_bytes, now_ns))
		return 0;
	if (elapsed_ns(max_u64(f->since_ns, port->busy_ns), now_ns) < port->idle_ns)
		return 0;
	return active;
}

/* Whether grant_on_timer has something to do. Without a lock the answer may be a little late. */
CORE_INLINE _Bool grant_is_due(const struct grant_port *port, const struct grant_params *p,
			       struct grant_flow *flows, u32 queue_bytes, u64 now_ns)
{
	u32 next;

	if (grant_without_effect(port, p, flows, queue_bytes, now_ns))
		return 1;
	next = grant_choose(port).flow;
	return next && grant_has_room(port, p, grant_flow_at(flows, next), queue_bytes, now_ns);
}

/* The port no longer acts: a waiting flow is granted whatever the budget, until none waits. */
CORE_INLINE struct grant_action grant_let_go(struct grant_port *port, const struct grant_params *p,
					     struct grant_flow *flows, u64 now_ns)
{
	struct grant_choice choice = grant_choose(port);
	const struct grant_action none = {0};

	if (!choice.flow)
		return none;
	grant_activate(port, p, flows, choice, now_ns);
	return grant_write(port, grant_flow_at(flows, choice.flow), choice.flow);
}

/* Every grant_tick_ns: sends a grant without effect again, takes it back, or gives the next. */
CORE_INLINE struct grant_action grant_on_timer(struct grant_port *port,
					       const struct grant_params *p,
					       struct grant_flow *flows, u32 queue_bytes,
					       u64 now_ns)
{
	u32 index = grant_without_effect(port, p, flows, queue_bytes, now_ns);
	struct grant_flow *f = grant_flow_at(flows, index);
	u32 mss = grant_mss(f), unit = 1u << min_u32(f->scale, TCP_MAX_SCALE);
	u32 left = grant_beyond(f->edge, f->seen), allowance = grant_allowance_segments(p) * mss;
	_Bool takes_back;

	if (!index)
		return grant_next(port, p, flows, queue_bytes, now_ns);
	if (grant_resent(f) == GRANT_RESENDS) {
		if (f->flags & GRANT_SILENT)
			f->flags |= GRANT_QUIET;
		port->lapses++;
		grant_make_idle(port, p, flows, index);
		return grant_write(port, f, index);
	}
	grant_take_credit(port, f);
	grant_unlink(port, flows, index);
	/*
	 * Linux takes a smaller window for the same data only if it is 0, so that one comes before
	 * the allowance. Otherwise another window than before, but once: of three that are alike
	 * the last may count as the third duplicate ACK (RFC 5681 §2), and what a late flow has
	 * been shown it may send at any time.
	 */
	takes_back =
		!grant_resent(f) && left > max_u32(allowance, mss) + unit && !port->never_shrinks;
	if (!grant_resent(f))
		grant_note_edge(f);
	if (takes_back) {
		grant_give_back(port, f);
		f->edge = f->most = f->seen;
	} else if (!left) {
		f->edge += max_u32(allowance, mss);
	} else if (!grant_resent(f)) {
		f->edge += unit;
	}
	/* What it has used of its grant, doubled, is what it may use of the next. */
	if (!grant_resent(f) && !(f->flags & GRANT_SILENT))
		f->size = max_u32(f->size - min_u32(f->size, left), mss) * 2;
	f->flags += 1u << 4;
	f->since_ns = now_ns;
	grant_push(port, flows, index, takes_back);
	grant_put_credit(port, f);
	port->resends++;
	return grant_write(port, f, index);
}

#endif
