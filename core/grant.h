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
 * until they return no flow. What they return is to be sent to the flow's sender as an ACK.
 *
 * Bounds. Credit outstanding is at most the budget, with `overcommit`, or one grant if that is
 *more, plus two units of the window scale for each active flow; what idle flows are allowed is on
 *top of it. A flow that waits at place k of any level but the first is served before (GRANT_LEVELS
 ** grant / long_share) * k * (width of the level / grant + 1) bytes of other flows have passed. In
 *the first level flows have sent nothing, and are served in the order in which they came, after
 *flows that came before them.
 *
 * What it does not do: heal losses elsewhere, or compute a congestion window from what a flow has
 * had acknowledged.
 */
#ifndef PENSTOCK_GRANT_H
#define PENSTOCK_GRANT_H

#include "tcp_rewrite.h"

#ifndef GRANT_FLOWS
#define GRANT_FLOWS 65536u /* a power of two; number 0 is no flow */
#endif

#define GRANT_LEVELS	    16u
#define GRANT_FIRST_BITS    10u /* the second level begins at 1 KiB, each next at twice as much */
#define GRANT_COMMON_LEVELS 9u	/* up to 256 KiB */
#define GRANT_RESENDS	    3u	/* of a grant without effect, before it lapses */
#define GRANT_BURST	    8u	/* calls of grant_next for each packet */
#define GRANT_LEARN_FROM    64u /* messages, before the order follows them */
#define GRANT_FORGET_AT	    65536u     /* messages, after which the older ones count half */
#define GRANT_MAX_BUDGET    (1u << 30) /* bytes */
#define GRANT_MAX_RTT_NS    1000000000u

#define GRANT_TITLE                                                                                \
	"Receive windows as credit: as many flows send at a time as the target holds, the others " \
	"wait at window 0"

#define GRANT_SIDES(E)                                                                             \
	E(GRANT_PORT, "port", "At the port itself, where data is queued")                          \
	E(GRANT_RECEIVER, "receiver",                                                              \
	  "Behind the port, where its link ends; the port stays as it is")                         \
	E(GRANT_LIMIT, "limit", "Likewise, as a limit of `rate` that drops nothing")

enum grant_side {
	GRANT_SIDES(PARAM_ENUM)
};

/* There is no paper: its column repeats the defaults. */
#define GRANT_PARAMS(P, X)                                                                         \
	P(X, ENUM, side, GRANT_SIDES, GRANT_LIMIT, GRANT_PORT, GRANT_PORT,                         \
	  "Where Grant is attached")                                                               \
	P(X, BUFFER_SHARE, target, ABOVE_0, 1, 0.2, 0.2,                                           \
	  "What credit and queue together may take, as a share of the buffer; rate x rtt is "      \
	  "added")                                                                                 \
	P(X, BUFFER_SHARE, long_target, ABOVE_0, 1, 0.1, 0.1,                                      \
	  "The same for flows that a new message would overtake, so that it finds room")           \
	P(X, TIME, rtt, NS(1), GRANT_MAX_RTT_NS, RTTS(1, US(50)), RTTS(1, US(50)),                 \
	  "Round trip of the network without queues")                                              \
	P(X, SEGMENTS, grant, 1, 65535, 10, 10, "Largest grant")                                   \
	P(X, SEGMENTS, allowance, 0, 255, 2, 2, "What an idle flow may send without a grant")      \
	P(X, COUNT, levels, 1, GRANT_LEVELS, 12, 12,                                               \
	  "Levels by bytes of a message: up to 1 KiB, 2 KiB, and so on, the last without an end; " \
	  "12: from 1 MiB on flows take turns")                                                    \
	P(X, FLAG, learns, 0, 1, 1, 1, "The levels are served by the sizes that have passed")      \
	P(X, SHARE, long_share, 0, 1, 0.125, 0.125,                                                \
	  "Share of the bytes that goes to levels which are not first")                            \
	P(X, SHARE, overcommit, 0, 1, 0, 0,                                                        \
	  "Share of the credit of flows that have sent nothing since their grant which is "        \
	  "granted to others, too")                                                                \
	P(X, SHARE, resend_after, ABOVE_0, 256, 1.5, 1.5,                                          \
	  "A grant without effect is sent again after so many times rtt + target / rate")          \
	P(X, TIME, timer, US(1), MS(100), US(250), US(250),                                        \
	  "Period of the timer; at fast ports a quarter of rtt + target / rate")

/* The caller's: grant_init takes it. */
#define GRANT_PORT_PARAMS(P, X)                                                                    \
	P(X, RATE, rate, 1000, 1e12, 0, 0, "Rate of the port, or the limit. Default: the link's")

#define GRANT_ORDER(O, X)

PARAMS(grant, GRANT_PARAMS)

enum grant_state {
	GRANT_FREE = 0,	   /* no flow */
	GRANT_IDLE = 1,	   /* may send its allowance */
	GRANT_WAITING = 2, /* in the list of its level */
	GRANT_ACTIVE = 3,  /* holds credit; in the list of active flows, by the last progress */
};

/* Of a flow. */
#define GRANT_HANDSHAKE 1u /* its sender opens the connection, and has not acknowledged it */
#define GRANT_SILENT	2u /* has sent nothing since its grant */
#define GRANT_QUIET	4u /* let a grant lapse: a request is no longer taken for the sign of data */
#define GRANT_CLOSING	8u /* its FIN has passed */

/* Sequence numbers are those of the data, except `seq` and `ts_*`, which are for the ACKs. */
struct grant_flow {
	u64 since_ns; /* last grant, or progress since */
	u32 edge;     /* it may send up to here; waiting: it might, before */
	u32 most;     /* furthest right edge that its sender was shown: data may come up to here */
	u32 seen;     /* behind the last byte that has passed */
	u32 ack;      /* of the last ACK, with the next three: what an ACK to its sender needs */
	u32 seq;
	u32 ts_val; /* timestamps (RFC 7323) */
	u32 ts_ecr;
	u32 credit;   /* its part of the port's outstanding credit */
	u32 attained; /* bytes of its message so far */
	u32 size;     /* of its next grant */
	u32 next;     /* neighbours in its list, or in that of free entries */
	u32 prev;
	u16 window; /* as its receiver offered it last */
	u16 mss;
	u8 scale;
	u8 state; /* enum grant_state */
	u8 level;
	u8 flags; /* GRANT_HANDSHAKE ..., and resends << 4 */
	u32 last; /* `edge` of the grant before */
	u32 reserved;
};

struct grant_list {
	u32 head;
	u32 tail;
};

/* A port. Prepare it with grant_init. */
struct grant_port {
	u64 grant_ns;	/* last grant */
	u64 drained_ns; /* virtual queue: until when it has been drained */
	u64 owed_q16;	/* bytes due to the levels that are not first, Q16 */
	u64 rate_bps;
	u64 grants;
	u64 resends;
	u64 lapses;
	u32 virtual_bytes;
	u32 outstanding; /* credit of all flows */
	u32 silent;	 /* of those that have sent nothing since their grant */
	u32 waiting;	 /* flows */
	u32 active;
	u32 free;	  /* first free entry of those once used */
	u32 used;	  /* entries once used */
	u32 messages;	  /* that have ended; with the next two, halved at times */
	u32 ended[16];	  /* those that ended in each level */
	u32 passed[16];	  /* those that grew beyond it */
	u8 order[16];	  /* levels, the one to be served first in front */
	u8 reach[16];	  /* of each: the level to the end of which it is best served */
	u8 turn;	  /* level that last got from `long_share` */
	u8 never_shrinks; /* 1: what a sender was shown is not taken back */
	u16 overtaken;	  /* bits of the levels that come after the first in `order` */
	u8 reserved[4];
	struct grant_list lists[GRANT_LEVELS + 1]; /* waiting flows by level, active flows */
};

/* A packet of a flow. */
struct grant_packet {
	u64 now_ns;
	u32 seq;
	u32 ack;
	u32 payload;
	u32 ts_val;
	u32 ts_ecr;
	u16 window; /* the field, as it came */
	u16 mss;    /* of the data; 0 unknown */
	u8 scale;   /* of the window in the ACK direction, or TCP_SCALE_UNKNOWN */
	u8 flags;   /* TCP_FLAG_... */
	u8 reserved[6];
};

/* An ACK to send to a flow's sender, without payload; none if `flow` is 0. */
struct grant_action {
	u32 flow;
	u32 seq;
	u32 ack;
	u32 ts_val;
	u32 ts_ecr;
	u16 window;
	u16 reserved;
};

/* Sequence numbers (RFC 9293 §3.4). */
CORE_INLINE u32 grant_beyond(u32 seq, u32 than)
{
	return (seq - than) >> 31 ? 0 : seq - than;
}

CORE_INLINE struct grant_flow *grant_flow_at(struct grant_flow *flows, u32 index)
{
	return &flows[index & (GRANT_FLOWS - 1)];
}

/* What does not depend on flows. */

/* Bytes that `rate` carries in a time of at most a second. */
CORE_INLINE u64 grant_bytes_in(u64 rate_bps, u64 time_ns)
{
	return (rate_bps >> 10) * min_u64(time_ns, GRANT_MAX_RTT_NS) / 7812500u;
}

CORE_INLINE u32 grant_budget_bytes(const struct grant_port *port, const struct grant_params *p)
{
	return (u32)min_u64(grant_target_bytes(p) + grant_bytes_in(port->rate_bps, grant_rtt_ns(p)),
			    GRANT_MAX_BUDGET);
}

/* The same for a flow: less, if a new message would overtake it. */
CORE_INLINE u32 grant_budget_of(const struct grant_port *port, const struct grant_params *p,
				const struct grant_flow *f)
{
	u32 budget = grant_budget_bytes(port, p);
	u64 of_long = grant_long_target_bytes(p) + grant_bytes_in(port->rate_bps, grant_rtt_ns(p));

	return port->overtaken >> (f->level & (GRANT_LEVELS - 1)) & 1
		       ? (u32)min_u64(of_long, budget)
		       : budget;
}

/* From a grant until its data has passed, at most. */
CORE_INLINE u64 grant_delay_ns(const struct grant_port *port, const struct grant_params *p)
{
	u64 target = min_u32(grant_target_bytes(p), GRANT_MAX_BUDGET);

	/* At most 2^30 * 2^33. */
	return grant_rtt_ns(p) + target * 8000000000u / port->rate_bps;
}

CORE_INLINE u64 grant_resend_ns(const struct grant_port *port, const struct grant_params *p)
{
	/* At most 2^44 / 2^8 * 2^24. */
	return (min_u64(grant_delay_ns(port, p), 1ull << 44) >> 8) * grant_resend_after_q16(p) >> 8;
}

CORE_INLINE u64 grant_tick_ns(const struct grant_port *port, const struct grant_params *p)
{
	return max_u64(min_u64(grant_timer_ns(p), grant_delay_ns(port, p) / 4), 1000);
}

CORE_INLINE u32 grant_last_level(const struct grant_params *p)
{
	return grant_levels(p) - 1;
}

/* The level of a message of so many bytes, of GRANT_LEVELS. */
CORE_INLINE u32 grant_level(u32 attained)
{
	u32 level = 0;

	for (attained >>= GRANT_FIRST_BITS; attained && level < GRANT_LEVELS - 1; attained >>= 1)
		level++;
	return level;
}

/* Lists. */

CORE_INLINE struct grant_list *grant_list_of(struct grant_port *port, const struct grant_flow *f)
{
	return &port->lists[f->state == GRANT_ACTIVE ? GRANT_LEVELS
						     : f->level & (GRANT_LEVELS - 1)];
}

CORE_INLINE void grant_push(struct grant_port *port, struct grant_flow *flows, u32 index,
			    _Bool is_first)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	struct grant_list *list = grant_list_of(port, f);
	u32 head = list->head, tail = list->tail;

	f->prev = is_first ? 0 : tail;
	f->next = is_first ? head : 0;
	if (!head) {
		list->head = list->tail = index;
	} else if (is_first) {
		grant_flow_at(flows, head)->prev = index;
		list->head = index;
	} else {
		grant_flow_at(flows, tail)->next = index;
		list->tail = index;
	}
}

CORE_INLINE void grant_unlink(struct grant_port *port, struct grant_flow *flows, u32 index)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	struct grant_list *list = grant_list_of(port, f);

	if (f->prev)
		grant_flow_at(flows, f->prev)->next = f->next;
	else
		list->head = f->next;
	if (f->next)
		grant_flow_at(flows, f->next)->prev = f->prev;
	else
		list->tail = f->prev;
}

/* Takes a flow out of the list that its state has it in. */
CORE_INLINE void grant_leave(struct grant_port *port, struct grant_flow *flows, u32 index)
{
	struct grant_flow *f = grant_flow_at(flows, index);

	if (f->state == GRANT_WAITING)
		port->waiting--;
	else if (f->state == GRANT_ACTIVE)
		port->active--;
	else
		return;
	grant_unlink(port, flows, index);
}

/* Credit. */

/* Takes a flow's credit out of the sums, before anything changes that it follows from. */
CORE_INLINE void grant_take_credit(struct grant_port *port, struct grant_flow *f)
{
	port->outstanding -= f->credit;
	if (f->flags & GRANT_SILENT)
		port->silent -= f->credit;
	f->credit = 0;
}

/* Puts it back as it is now. What was written counts, not what was meant. */
CORE_INLINE void grant_put_credit(struct grant_port *port, struct grant_flow *f)
{
	if (f->state != GRANT_ACTIVE)
		return;
	f->credit = max_u32(grant_beyond(f->edge, f->seen), grant_beyond(f->most, f->seen));
	port->outstanding += f->credit;
	if (f->flags & GRANT_SILENT)
		port->silent += f->credit;
}

/* The window field for an ACK with this number, and the edge that its sender sees by it. */
CORE_INLINE u16 grant_window(const struct grant_port *port, struct grant_flow *f, u32 ack,
			     u16 window, u32 scale)
{
	u32 shift = min_u32(scale, TCP_MAX_SCALE);
	u32 left = grant_beyond(f->state == GRANT_WAITING ? f->seen : f->edge, ack);
	u64 field;

	if (port->never_shrinks)
		left = max_u32(left, grant_beyond(f->most, ack));
	field = ((u64)left + (1u << shift) - 1) >> shift;
	field = min_u64(field, window);
	f->most += grant_beyond(ack + (u32)(field << shift), f->most);
	return (u16)field;
}

/* All up to `seq` has passed; nothing is left so far behind that it would seem to be ahead. */
CORE_INLINE void grant_see(struct grant_flow *f, u32 seq)
{
	u32 fresh = grant_beyond(seq, f->seen);

	if (grant_beyond(f->edge, f->seen) < fresh)
		f->edge = seq;
	if (grant_beyond(f->most, f->seen) < fresh)
		f->most = seq;
	if (!grant_beyond(seq, f->ack))
		f->ack = seq;
	f->seen = seq;
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
	f->edge = f->seen + grant_allowance_segments(p) * mss_in_range(f->mss);
	f->attained = 0;
	f->level = 0;
}

/* A flow's message is over. */
CORE_INLINE void grant_end_message(struct grant_port *port, const struct grant_flow *f)
{
	if (!f->attained)
		return;
	port->messages++;
	port->ended[grant_level(f->attained)]++;
}

/* A flow waits for credit. */
CORE_INLINE void grant_ask(struct grant_port *port, const struct grant_params *p,
			   struct grant_flow *flows, u32 index)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	u32 last = grant_last_level(p), level = min_u32(grant_level(f->attained), last);

	grant_take_credit(port, f);
	grant_leave(port, flows, index);
	f->state = GRANT_WAITING;
	f->flags &= GRANT_QUIET | GRANT_CLOSING;
	port->waiting++;
	/* It goes on in its level, or enters it. */
	if (f->attained && f->level == level && level < last) {
		grant_push(port, flows, index, 1);
	} else {
		f->level = (u8)level;
		grant_push(port, flows, index, 0);
	}
}

/* Order. */

struct grant_choice {
	u32 flow;
	u32 is_owed; /* 1: from `long_share` */
};

/* The flow to be served next, if any waits. */
CORE_INLINE struct grant_choice grant_choose(const struct grant_port *port,
					     const struct grant_params *p)
{
	struct grant_choice out = {0, 0};
	u32 i, level, best = GRANT_LEVELS;

	if (!port->waiting)
		return out;
	for (i = 0; i < GRANT_LEVELS && !out.flow; i++) {
		best = port->order[i] & (GRANT_LEVELS - 1);
		out.flow = port->lists[best].head;
	}
	if (port->owed_q16 < (u64)(grant_grant_segments(p) * mss_in_range(p->mss_bytes)) << 16)
		return out;
	for (i = 1; i <= GRANT_LEVELS; i++) {
		level = (port->turn + i) & (GRANT_LEVELS - 1);
		if (level && level != best && port->lists[level].head) {
			out.flow = port->lists[level].head;
			out.is_owed = 1;
			return out;
		}
	}
	return out;
}

/*
 * Bytes to grant to a flow: as far as it is best served, and no more than half of the budget, so
 * that flows take turns.
 */
CORE_INLINE u32 grant_size(const struct grant_port *port, const struct grant_params *p,
			   const struct grant_flow *f)
{
	u32 mss = mss_in_range(f->mss);
	u32 most =
		(u32)min_u64((u64)grant_grant_segments(p) * mss, grant_budget_of(port, p, f) / 2);
	u32 reach = port->reach[f->level & (GRANT_LEVELS - 1)] & (GRANT_LEVELS - 1);
	u32 left = grant_beyond((1u << (GRANT_FIRST_BITS + reach)) + mss - 1, f->attained);

	most = min_u32(f->size, most);
	/* Whole segments; two, that the receiver acknowledges at once. */
	if (reach < GRANT_LEVELS - 1)
		most = min_u32(most, max_u32(left - left % mss, 2 * mss));
	return max_u32(most, mss);
}

CORE_INLINE _Bool grant_has_room(const struct grant_port *port, const struct grant_params *p,
				 const struct grant_flow *f, u32 queue_bytes, u64 now_ns)
{
	u32 side = grant_side(p);
	u64 budget =
		(u64)grant_budget_of(port, p, f) +
		fraction_of(min_u32(port->silent, grant_target_bytes(p)), grant_overcommit_q16(p));
	/* Its sender may not know yet that it has lost what it did not use. */
	u64 used = (u64)port->outstanding +
		   max_u32(grant_size(port, p, f), grant_beyond(f->most, f->seen));

	if (side == GRANT_PORT)
		used += queue_bytes;
	else if (side == GRANT_LIMIT)
		used += port->virtual_bytes;
	return used <= budget ||
	       (!port->active && elapsed_ns(port->grant_ns, now_ns) >= grant_delay_ns(port, p));
}

/* Gives credit to a waiting flow; its window is to be written then. */
CORE_INLINE void grant_activate(struct grant_port *port, const struct grant_params *p,
				struct grant_flow *flows, struct grant_choice choice, u64 now_ns)
{
	struct grant_flow *f = grant_flow_at(flows, choice.flow);
	u32 size = grant_size(port, p, f);

	grant_leave(port, flows, choice.flow);
	if (choice.is_owed) {
		port->turn = f->level;
		port->owed_q16 -= min_u64(port->owed_q16, (u64)size << 16);
	}
	f->state = GRANT_ACTIVE;
	f->flags = (u8)((f->flags & (GRANT_QUIET | GRANT_CLOSING)) | GRANT_SILENT);
	f->since_ns = now_ns;
	/* A new message has nothing on the way of the grant before. */
	f->last = f->attained ? f->edge : f->seen - (1u << TCP_MAX_SCALE);
	f->edge = f->seen + size;
	grant_push(port, flows, choice.flow, 0);
	port->active++;
	port->grant_ns = now_ns;
	port->grants++;
}

/* Levels behind the first in the order, which is that of new messages. */
CORE_INLINE void grant_note_order(struct grant_port *port)
{
	u32 i, is_behind = 0, behind = 0;

	for (i = 0; i < GRANT_LEVELS; i++) {
		u32 level = port->order[i] & (GRANT_LEVELS - 1);

		behind |= is_behind << level;
		is_behind |= !level;
	}
	port->overtaken = (u16)behind;
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
	u64 drained = grant_bytes_in(port->rate_bps, elapsed_ns(port->drained_ns, now_ns));

	if (grant_side(p) != GRANT_LIMIT)
		return;
	port->drained_ns = max_u64(port->drained_ns, now_ns);
	port->virtual_bytes -= (u32)min_u64(port->virtual_bytes, drained);
	port->virtual_bytes =
		min_u32(port->virtual_bytes + min_u32(bytes, GRANT_MAX_BUDGET), GRANT_MAX_BUDGET);
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
	_Bool is_syn = packet->flags & TCP_FLAG_SYN, asks;
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
	f->scale = (u8)scale;
	/* An older ACK that was overtaken teaches nothing. */
	if (is_syn || !grant_beyond(f->ack, packet->ack)) {
		f->ack = packet->ack;
		f->seq = packet->seq + packet->payload + is_syn;
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
			f->edge = f->seen + grant_allowance_segments(p) * mss_in_range(f->mss);
		grant_put_credit(port, f);
	}
	if ((f->flags & GRANT_CLOSING) && !grant_beyond(f->seen, packet->ack)) {
		grant_close(port, flows, index);
		return packet->window;
	}
	if (is_syn && !(f->flags & GRANT_HANDSHAKE)) {
		grant_make_idle(port, p, flows, index);
		f->seen = f->edge = f->most = packet->ack;
		f->flags = GRANT_HANDSHAKE;
	}
	/* A request behind all data: the end of the last message was not seen as such. */
	if (packet->payload && f->attained && packet->ack == f->seen) {
		grant_end_message(port, f);
		grant_make_idle(port, p, flows, index);
	}
	asks = packet->payload && f->state == GRANT_IDLE && !(f->flags & GRANT_QUIET);
	/* A SYN-ACK is granted at once or not at all: its window has another unit. */
	if (asks || (is_syn && !port->waiting && f->state == GRANT_IDLE &&
		     grant_has_room(port, p, f, queue_bytes, packet->now_ns)))
		grant_ask(port, p, flows, index);
	if (f->state == GRANT_WAITING) {
		choice = grant_choose(port, p);
		if (choice.flow == index && grant_has_room(port, p, f, queue_bytes, packet->now_ns))
			grant_activate(port, p, flows, choice, packet->now_ns);
	}
	grant_take_credit(port, f);
	window = grant_window(port, f, packet->ack, packet->window, is_syn ? 0 : scale);
	grant_put_credit(port, f);
	return window;
}

/* Counts the levels that a message grows beyond. */
CORE_INLINE void grant_count_passed(struct grant_port *port, u32 before, u32 after)
{
	u32 level;

	for (level = 0; level < GRANT_LEVELS; level++) {
		u32 end = 1u << (GRANT_FIRST_BITS + level);

		port->passed[level] += before < end && after >= end;
	}
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
	u32 mss, attained;
	_Bool ends, probes;

	if (packet->flags & TCP_FLAG_RST)
		grant_close(port, flows, index);
	if (f->state == GRANT_FREE)
		return;
	if (packet->mss)
		f->mss = packet->mss;
	if (packet->flags & TCP_FLAG_SYN) {
		grant_make_idle(port, p, flows, index);
		f->most = f->ack = f->seen = packet->seq + 1;
		f->edge = f->seen + grant_allowance_segments(p) * mss_in_range(f->mss);
		return;
	}
	mss = mss_in_range(f->mss);
	/*
	 * A message ends with a short segment, unless that fills the window of this grant or of
	 * the last, which is larger than the credit by less than a unit of the scale. `mss` may be
	 * that of the SYN, of which options of each segment take up to 40 bytes.
	 */
	ends = fin || ((packet->flags & TCP_FLAG_PSH) && packet->payload % mss &&
		       packet->payload % mss + 40 < mss && grant_beyond(f->edge, end) &&
		       end - f->last >= 1u << min_u32(f->scale, TCP_MAX_SCALE));
	probes = f->state == GRANT_IDLE && packet->payload <= 1 && f->ack - packet->seq == 1;
	grant_take_credit(port, f);
	if (packet->payload) {
		if (f->flags & GRANT_SILENT)
			f->flags &= 0xf & ~(GRANT_SILENT | GRANT_QUIET);
		f->flags &= 0xf;
		if (f->state == GRANT_ACTIVE) {
			f->since_ns = packet->now_ns;
			grant_unlink(port, flows, index);
			grant_push(port, flows, index, 0);
		}
	}
	if (fresh) {
		attained = min_u32(f->attained + min_u32(fresh, most), most);
		grant_count_passed(port, f->attained, attained);
		f->attained = attained;
		grant_see(f, end);
		port->owed_q16 = min_u64(port->owed_q16 + (u64)min_u32(fresh, most) *
								  grant_long_share_q16(p),
					 (u64)grant_budget_bytes(port, p) << 16);
	}
	if (fin)
		f->flags |= GRANT_CLOSING;
	if (ends && end == f->seen) {
		grant_end_message(port, f);
		grant_make_idle(port, p, flows, index);
	} else if (f->state == GRANT_ACTIVE && grant_beyond(f->edge, f->seen) < mss) {
		f->size = min_u32(2 * min_u32(f->size, most), grant_grant_segments(p) * mss);
		grant_ask(port, p, flows, index);
	} else if (f->state == GRANT_IDLE && (fresh || probes || (f->flags & GRANT_HANDSHAKE))) {
		grant_ask(port, p, flows, index);
	}
	grant_put_credit(port, f);
}

/* If the budget has room for the next waiting flow: what to send to its sender. */
CORE_INLINE struct grant_action grant_next(struct grant_port *port, const struct grant_params *p,
					   struct grant_flow *flows, u32 queue_bytes, u64 now_ns)
{
	struct grant_choice choice = grant_choose(port, p);
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

/* Every grant_tick_ns: sends a grant without effect again, takes it back, or gives the next. */
CORE_INLINE struct grant_action grant_on_timer(struct grant_port *port,
					       const struct grant_params *p,
					       struct grant_flow *flows, u32 queue_bytes,
					       u64 now_ns)
{
	u32 index = port->lists[GRANT_LEVELS].head;
	struct grant_flow *f = grant_flow_at(flows, index);
	u32 mss = mss_in_range(f->mss), used;

	grant_on_bytes(port, p, 0, now_ns);
	if (!index || elapsed_ns(f->since_ns, now_ns) < grant_resend_ns(port, p))
		return grant_next(port, p, flows, queue_bytes, now_ns);
	if (f->flags >> 4 < GRANT_RESENDS) {
		grant_take_credit(port, f);
		f->flags += 1u << 4;
		f->since_ns = now_ns;
		grant_unlink(port, flows, index);
		grant_push(port, flows, index, 0);
		/* Another window than before: else it may count as a duplicate ACK (RFC 5681 §2).
		 */
		f->edge += 1u << min_u32(f->scale, TCP_MAX_SCALE);
		grant_put_credit(port, f);
		port->resends++;
		return grant_write(port, f, index);
	}
	if (f->flags & GRANT_SILENT)
		f->flags |= GRANT_QUIET;
	used = f->size - min_u32(f->size, f->credit);
	f->size = max_u32(2 * min_u32(used, GRANT_MAX_BUDGET), 2 * mss);
	port->lapses++;
	grant_make_idle(port, p, flows, index);
	return grant_write(port, f, index);
}

/*
 * Gittins index of a level: up to the end of which later level do most messages end per KiB that
 * they send until then? Q20. Those that are still in a level count for none (Kaplan, Meier 1958).
 */
CORE_INLINE u64 grant_index(const struct grant_port *port, u32 level, u32 last, u8 *reach)
{
	u64 left_q16 = Q16_ONE, ended_q16 = 0, work_q16 = 0, best = 0;
	u32 i;

	for (i = 0; i < GRANT_LEVELS; i++) {
		u32 ended = port->ended[i], all = ended + port->passed[i];
		u64 ends_q16, index;

		if (i < level || i >= last)
			continue;
		if (!all)
			break;
		ends_q16 = left_q16 * ended / all;
		ended_q16 += ends_q16;
		/* Those that end in a level send half of it on average. */
		work_q16 += (left_q16 - ends_q16 / 2) << (GRANT_FIRST_BITS - 10 + (i ? i - 1 : 0));
		left_q16 -= ends_q16;
		index = (ended_q16 << 20) / max_u64(work_q16, 1);
		if (index > best) {
			best = index;
			*reach = (u8)i;
		}
	}
	return best;
}

/* Orders the levels by the sizes that have passed; some thousand instructions, for the timer. */
CORE_INLINE void grant_learn(struct grant_port *port, const struct grant_params *p)
{
	u64 index[GRANT_LEVELS] = {0};
	u32 i, j, last = grant_last_level(p);

	if (!grant_learns(p) || port->messages < GRANT_LEARN_FROM)
		return;
	for (i = 0; i < last; i++) {
		port->reach[i & (GRANT_LEVELS - 1)] = GRANT_LEVELS - 1;
		index[i & (GRANT_LEVELS - 1)] =
			grant_index(port, i, last, &port->reach[i & (GRANT_LEVELS - 1)]);
	}
	/* By insertion. Of equal ones the higher level is first, but of those where none ends. */
	for (i = 0; i < last; i++) {
		u64 moving = index[i & (GRANT_LEVELS - 1)];

		for (j = i; j > 0; j--) {
			u8 other = port->order[(j - 1) & (GRANT_LEVELS - 1)] & (GRANT_LEVELS - 1);

			if (index[other] > moving || !moving)
				break;
			port->order[j & (GRANT_LEVELS - 1)] = other;
		}
		port->order[j & (GRANT_LEVELS - 1)] = (u8)i;
	}
	grant_note_order(port);
	if (port->messages < GRANT_FORGET_AT)
		return;
	port->messages /= 2;
	for (i = 0; i < GRANT_LEVELS; i++) {
		port->ended[i] /= 2;
		port->passed[i] /= 2;
	}
}

#endif
