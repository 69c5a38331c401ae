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
 * Clients open connections to send requests. Where the first messages of those who open one have
 * been shorter than the allowance, 7 of 8 by a moving average, they have it at once, and the end of
 * a handshake asks for nothing. What passes towards a flow that began so is an answer, not a
 * request, until it has made use of a grant.
 *
 * Order: waiting flows are in levels by the bytes of their message so far. A flow that goes on in
 * its level is first there, one that enters it is last; from GRANT_TURN_LEVEL on, and in the last
 * level, flows take turns. The levels are served by Gittins index over the sizes that have passed
 * (Gittins 1979; optimal for the mean if sizes are not known): equal messages run to completion, in
 * a heavy-tailed mixture the shorter ones go first. Until enough is known common ones run to
 * completion, and the last level comes last. `long_share` of the bytes that pass while flows wait
 * behind others goes to the levels behind: in turn, each until those that waited in it when its
 * turn came have been served, below GRANT_TURN_LEVEL mostly the first of them.
 *
 * The caller keeps the flows in an array, finds a flow's index, passes what it sees, and calls
 * grant_next after each packet and grant_on_timer every grant_tick_ns, at most GRANT_BURST times,
 * until they return no flow, and grant_learn every GRANT_LEARN_NS. What they return is to be sent
 * to the flow's sender as an ACK.
 *
 * Late flows. While the link idles although credit is out, no queue can hold the data: servers take
 * their time. Then one more flow is granted credit every two round trips, up to a target beyond the
 * budget. A flow without data, for long or while the link has idled for four times as long although
 * others wait, has its grant taken back but for the allowance. After a few reminders the grant
 * lapses, and what an idle flow may send is in no account. So not more than half of what the buffer
 * has left lapses in GRANT_LAPSE_NS, and as much at once; other late flows wait again, with a
 * window of 0, for as much as an allowance: once like the others, then behind all that wait, by
 * `long_share` if others do not end.
 *
 * A port or a host that stands still looks the same, though a queue holds the data. So an idle link
 * gives one more flow no more than an allowance, or a segment, and once a grant was taken back any
 * flow, until as much has passed.
 *
 * A queue elsewhere, as at a port that several receivers share, also delays data. It shows by data
 * of a grant that was taken back: it was sent before. For a while flows then count as late
 * only much later, and their credit is not granted to others.
 *
 * Far senders. At a port whose buffer is smaller than what a round trip holds, the budget is not
 * given at once: what is ahead of a virtual queue of credit, drained at `rate`, fits the buffer.
 *
 * Bounds. Credit outstanding is at most the budget and a target, which is for idle links, for the
 * allowances of late flows, and for what messages leave of their last grants, or one grant if that
 * is more, plus two units of the window scale for each active flow; what idle flows are allowed,
 * and what SYN-ACKs have offered, comes on top of it. A flow that waits at place k of any level
 * but the first, as one of n in all of these, is served before about
 *
 *	8/7 * n * grant / long_share * k * (width of the level / grant + 1)
 *
 * bytes of other flows under control have passed, where grant is the largest that is given. In the
 * first level flows have sent little, and are served in the order in which they came; where higher
 * levels leave them nothing, one of GRANT_FIRST_TURNS grants of `long_share` is theirs, or each if
 * no other level waits behind.
 *
 * What it does not do: heal losses elsewhere, or compute a congestion window from what a flow has
 * had acknowledged.
 */
#ifndef PENSTOCK_GRANT_H
#define PENSTOCK_GRANT_H

#include "grant_late.h"

/* The parameters, also for a port that has flows: what they wait for and hold stays theirs. */
CORE_INLINE void grant_configure(struct grant_port *port, const struct grant_params *p,
				 u64 rate_bps, _Bool never_shrinks)
{
	u32 i, common, brief;

	port->rate_bps = in_range(rate_bps, 1000, 1000000000000);
	port->never_shrinks = never_shrinks;
	grant_derive(port, p);
	/*
	 * Until sizes are known, what is common, and does not take a slow link for long, runs to
	 * completion, then the shorter ones go first.
	 */
	brief = grant_level((u32)grant_bytes_in(port->rate_bps, GRANT_COMMON_NS)) + 1;
	common = min_u32(grant_last_level(p), min_u32(brief, GRANT_COMMON_LEVELS));
	for (i = 0; i < GRANT_LEVELS; i++) {
		port->order[i] = (u8)(i < common ? common - 1 - i : i);
		port->reach[i] = GRANT_LEVELS - 1;
	}
	grant_note_order(port);
}

/* A port without flows, to be configured. */
CORE_INLINE void grant_clear(struct grant_port *port)
{
	const struct grant_port zero = {0};

	*port = zero;
	port->used = 1;
	port->place[GRANT_ON_TIME] = GRANT_ON_TIME;
	port->place[GRANT_LATE] = GRANT_LATE;
}

CORE_INLINE void grant_init(struct grant_port *port, const struct grant_params *p, u64 rate_bps,
			    _Bool never_shrinks)
{
	grant_clear(port);
	grant_configure(port, p, rate_bps, never_shrinks);
}

/*
 * Follows a flow, from its first packet that proves it, which is then passed to grant_on_data or
 * grant_on_ack: one of the ACK direction, or one of the other, `by_sender`. Its number, or 0 if
 * there is no room.
 */
CORE_INLINE u32 grant_begin(struct grant_port *port, const struct grant_params *p,
			    struct grant_flow *flows, const struct grant_packet *packet,
			    const struct grant_opening *opening)
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
	f->mss = (u16)mss_in_range(packet->mss ? packet->mss : p->mss_bytes);
	f->size = grant_grant_segments(p) * f->mss;
	f->scale = (u8)min_u32(packet->scale, TCP_MAX_SCALE);
	f->seen = f->ack = opening->by_sender ? opening->seq : packet->ack;
	f->seq = opening->by_sender ? packet->ack : packet->seq;
	f->edge = f->seen + grant_allowance(p, f);
	f->most = f->seen;
	grant_forget_edge(f);
	if (!opening->by_sender)
		return index;
	f->flags = GRANT_HANDSHAKE | GRANT_OPENER;
	f->window = (u16)(opening->window >> f->scale);
	f->ts_val = packet->ts_ecr;
	f->ts_ecr = packet->ts_val;
	f->most = f->seen + opening->shown;
	if (!opening->shown)
		f->edge = f->seen;
	if (opening->shown > grant_allowance(p, f)) {
		grant_start(port, flows, index, opening->shown, 0, packet->now_ns);
		grant_put_credit(port, f);
	}
	return index;
}

/*
 * Bytes that the SYN-ACK towards a sender of data may offer, while so many other connections are
 * half open: a grant, if all of them could have one, or an allowance, if that fits, or nothing.
 * There is no flow yet, as SYNs are forged easily, so this is in no account. Senders that begin
 * with little have an allowance, and so has one that `must_open`, as nothing but an ACK of its
 * receiver will open the window later.
 */
CORE_INLINE u32 grant_syn_window(const struct grant_port *port, const struct grant_params *p,
				 u32 mss_bytes, u32 half_open, _Bool must_open, u32 queue_bytes,
				 u64 now_ns)
{
	u32 mss = mss_in_range(mss_bytes ? mss_bytes : p->mss_bytes);
	const struct grant_flow new = {.mss = (u16)mss, .size = grant_grant_segments(p) * mss};
	u32 grant = min_u32(grant_size(port, p, &new), 65535), allowance = grant_allowance(p, &new);
	u64 used = (u64)port->outstanding + grant_queue_bytes(port, p, queue_bytes, now_ns);
	u64 all = (half_open + 1ull) * grant;
	_Bool is_full = !port->free && port->used >= GRANT_FLOWS;

	if (must_open || is_full || grant_openers_are_brief(port))
		return allowance;
	if (port->waiting)
		return 0;
	if (grant > allowance && used + all <= port->budget &&
	    grant_is_paced(port, (u32)all, now_ns))
		return grant;
	return used + (half_open + 1ull) * allowance <= port->budget ? allowance : 0;
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
	port->doubt -= min_u32(port->doubt, bytes);
	if (grant_side(p) != GRANT_LIMIT)
		return;
	grant_fill_virtual(port, bytes, now_ns);
	/* No queue is longer than its buffer: the rest, as of a flood of datagrams, is lost. */
	port->virtual_bytes = min_u32(port->virtual_bytes, max_u32(p->buffer_bytes, port->budget));
}

/* A packet of the ACK direction passes: the window field that it is to have. */
CORE_INLINE u16 grant_on_ack(struct grant_port *port, const struct grant_params *p,
			     struct grant_flow *flows, u32 index, const struct grant_packet *packet,
			     u32 queue_bytes)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	u32 fin = packet->flags & TCP_FLAG_FIN ? 1 : 0;
	u32 end = packet->seq + packet->payload + fin;
	struct grant_choice choice;
	_Bool answers, asks;
	u16 window;
	u32 size;

	if (packet->flags & TCP_FLAG_RST) {
		grant_close(port, flows, index);
		return packet->window;
	}
	if (f->state == GRANT_FREE ||
	    (packet->flags & (TCP_FLAG_ACK | TCP_FLAG_SYN)) != TCP_FLAG_ACK)
		return packet->window;
	/*
	 * An older ACK that was overtaken teaches nothing. Least of all a sequence number before
	 * the request that overtook it: the flow's sender would refuse each grant that has it. One
	 * far behind shows that the number was forged.
	 */
	if (grant_beyond(packet->ack, f->ack) ||
	    (packet->ack == f->ack && !grant_beyond(f->seq, end))) {
		f->ack = packet->ack;
		if (grant_beyond(end, f->seq) || grant_beyond(f->seq, end) > GRANT_SEQ_SLACK)
			f->seq = end;
		f->ts_val = packet->ts_val;
		f->ts_ecr = packet->ts_ecr;
		f->window = packet->window;
	}
	/* Data that passed elsewhere has arrived all the same. */
	if (grant_beyond(packet->ack, f->seen)) {
		grant_take_credit(port, f);
		grant_see(f, packet->ack);
		if (f->state == GRANT_IDLE)
			f->edge = f->seen + grant_allowance(p, f);
		grant_put_credit(port, f);
	}
	if ((f->flags & GRANT_CLOSING) && !grant_beyond(f->seen, packet->ack)) {
		grant_close(port, flows, index);
		return packet->window;
	}
	/*
	 * A request behind all data: the end of the last message was not seen as such. Its sender
	 * may still use the credit that is left, which stays its own. A full segment is no request:
	 * both ends may send at once. Nor is what comes while the sender may not send, or has just
	 * been let, unless its last segment may have ended a message: a receiver that reports what
	 * it has read.
	 */
	if (packet->payload && packet->payload < grant_mss(f) && f->attained &&
	    packet->ack == f->seen &&
	    (f->shown & GRANT_MAY_END ||
	     (f->state == GRANT_ACTIVE &&
	      elapsed_ns(f->since_ns, packet->now_ns) >= port->idle_ns))) {
		grant_end_message(port, f);
		f->attained = 0;
		if (f->state == GRANT_WAITING && !(f->flags & GRANT_QUIET))
			grant_ask(port, p, flows, index, packet->now_ns);
	}
	answers = f->flags & GRANT_CLIENT ||
		  (f->flags & GRANT_OPENER && grant_openers_are_brief(port));
	asks = packet->payload && f->state == GRANT_IDLE && !(f->flags & GRANT_QUIET) && !answers;
	if (asks)
		grant_ask(port, p, flows, index, packet->now_ns);
	if (f->state == GRANT_WAITING) {
		choice = grant_choose(port, flows);
		size = choice.flow == index && !grant_is_shut(f)
			       ? grant_room_of(port, p, f, choice.is_owed, queue_bytes,
					       packet->now_ns)
			       : 0;
		if (size)
			grant_activate(port, flows, choice, size, packet->now_ns);
	}
	grant_take_credit(port, f);
	grant_renew(port, p, f, queue_bytes, packet->now_ns);
	grant_heed_receiver(port, f);
	window = grant_window(port, f, packet->ack, packet->window);
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
	u32 fresh = grant_beyond(end, f->seen);
	u32 mss, attained;
	_Bool ends = fin, probes, was_late, is_behind, opens;

	if (packet->flags & TCP_FLAG_RST)
		grant_close(port, flows, index);
	if (f->state == GRANT_FREE || packet->flags & TCP_FLAG_SYN)
		return;
	/* A receiver takes nothing beyond what it has offered, nor does it count here. */
	if (grant_beyond(end, f->most) && grant_beyond(end, grant_offered(f) + grant_unit(f)))
		return;
	grant_note_mss(f, packet);
	mss = grant_mss(f);
	ends |= fresh && grant_ends_message(f, packet, end);
	is_behind = f->state == GRANT_WAITING && f->level == GRANT_LATE_LEVEL;
	/* A keepalive looks the same, but its sender has a window. */
	probes = packet->payload <= 1 && f->ack - packet->seq == 1 && f->edge == f->seen;
	/* It may have been shown its allowance already. */
	opens = f->flags & GRANT_HANDSHAKE &&
		(f->edge == f->seen || !grant_openers_are_brief(port));
	f->flags &= 0xff & ~GRANT_HANDSHAKE;
	grant_take_credit(port, f);
	/* It was sent before its grant was taken back: not its server was late, a queue held it. */
	if (grant_beyond(end, f->edge) && grant_beyond(end, f->most) &&
	    !grant_beyond(end, f->last + grant_unit(f)))
		port->queued_ns = packet->now_ns + GRANT_QUEUED_NS;
	if (packet->payload) {
		was_late = f->state == GRANT_ACTIVE && grant_resent(f);
		if (was_late)
			grant_unlink(port, flows, index);
		if (f->flags & GRANT_SILENT)
			f->flags &= 0xff & ~(GRANT_SILENT | GRANT_QUIET | GRANT_CLIENT);
		f->flags &= 0xff & ~GRANT_RESENT;
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
		attained = grant_plus(f->attained, fresh - fin);
		grant_count_passed(port, f->attained, attained);
		f->attained = attained;
		if (attained >= grant_allowance(p, f))
			grant_note_opener(port, f, 0);
		f->run = grant_plus(f->run, fresh);
		grant_see(f, end);
		grant_owe(port, p, f, fresh);
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
	} else if ((f->state == GRANT_IDLE || is_behind) && (fresh || probes || opens)) {
		/* A request follows a handshake, which is short as a rule. */
		if (!fresh && opens)
			f->size = min_u32(f->size, max_u32(grant_allowance_segments(p), 2) * mss);
		grant_ask(port, p, flows, index, packet->now_ns);
	}
	grant_put_credit(port, f);
}

/* If the budget has room for the next waiting flow: what to send to its sender. */
CORE_INLINE struct grant_action grant_next(struct grant_port *port, const struct grant_params *p,
					   struct grant_flow *flows, u32 queue_bytes, u64 now_ns)
{
	struct grant_choice choice = grant_choose(port, flows);
	struct grant_flow *f = grant_flow_at(flows, choice.flow);
	const struct grant_action none = {0};
	u32 size = choice.flow ? grant_room_of(port, p, f, choice.is_owed, queue_bytes, now_ns) : 0;

	if (!size)
		return none;
	/* The receiver's next ACK opens the window, by a segment at least. */
	if (grant_is_shut(f)) {
		grant_make_idle(port, p, flows, choice.flow);
		f->edge = f->seen + max_u32(grant_allowance(p, f), grant_mss(f));
		return none;
	}
	grant_activate(port, flows, choice, size, now_ns);
	return grant_write(port, f, choice.flow);
}

/* Whether grant_on_timer has something to do. Without a lock the answer may be a little late. */
CORE_INLINE _Bool grant_is_due(const struct grant_port *port, const struct grant_params *p,
			       struct grant_flow *flows, u32 queue_bytes, u64 now_ns)
{
	struct grant_choice next;

	if (grant_without_effect(port, p, flows, queue_bytes, now_ns))
		return 1;
	next = grant_choose(port, flows);
	return next.flow && grant_room_of(port, p, grant_flow_at(flows, next.flow), next.is_owed,
					  queue_bytes, now_ns);
}

/* The port no longer acts: a waiting flow is granted whatever the budget, until none waits. */
CORE_INLINE struct grant_action grant_let_go(struct grant_port *port, const struct grant_params *p,
					     struct grant_flow *flows, u64 now_ns)
{
	struct grant_choice choice = grant_choose(port, flows);
	struct grant_flow *f = grant_flow_at(flows, choice.flow);
	const struct grant_action none = {0};

	if (!choice.flow)
		return none;
	grant_activate(port, flows, choice, grant_size(port, p, f), now_ns);
	return grant_write(port, f, choice.flow);
}

/* Every grant_tick_ns: sends a grant without effect again, takes it back, or gives the next. */
CORE_INLINE struct grant_action grant_on_timer(struct grant_port *port,
					       const struct grant_params *p,
					       struct grant_flow *flows, u32 queue_bytes,
					       u64 now_ns)
{
	u32 late = grant_without_effect(port, p, flows, queue_bytes, now_ns);

	return late ? grant_remind(port, p, flows, late, now_ns)
		    : grant_next(port, p, flows, queue_bytes, now_ns);
}

#endif
