/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Grant (grant.h): its parameters, flows and ports.
 */
#ifndef PENSTOCK_GRANT_STATE_H
#define PENSTOCK_GRANT_STATE_H

#include "grant_bits.h"
#include "tcp_rewrite.h"

#ifndef GRANT_FLOWS
#define GRANT_FLOWS 65536u /* a power of two; number 0 is no flow */
#endif

#define GRANT_LEVELS	    16u
#define GRANT_FIRST_BITS    10u /* the second level begins at 1 KiB, each next at twice as much */
#define GRANT_ON_TIME	    GRANT_LEVELS       /* list of active flows */
#define GRANT_LATE	    (GRANT_LEVELS + 1) /* of those whose grant had to be sent again */
#define GRANT_LATE_LEVEL    (GRANT_LEVELS - 1) /* of late flows that wait again */
#define GRANT_TURN_LEVEL    11u	      /* from here on, 1 MiB, flows of a level take turns */
#define GRANT_COMMON_LEVELS 9u	      /* up to 256 KiB */
#define GRANT_COMMON_NS	    10000000u /* what is common takes the link no longer */
#define GRANT_RESENDS	    3u	      /* of a grant without effect, before it lapses */
#define GRANT_FIRST_TURNS   8u	/* one of so many grants of `long_share` is for the first level */
#define GRANT_BURST	    8u	/* calls of grant_next for each packet */
#define GRANT_LEARN_FROM    32u /* messages that ended or are longer than 256 KiB */
#define GRANT_PRIOR	    8u	/* messages' worth of belief in a level of which nothing is known */
#define GRANT_LEAD	    8u /* beyond `grant`, at most such a part of what a message has sent, */
#define GRANT_RUN_LEAD	    64u	       /* or of all that was sent without a rest */
#define GRANT_LEARN_NS	    1000000u   /* from one call of grant_learn to the next */
#define GRANT_FORGET_AT	    65536u     /* messages, after which the older ones count half */
#define GRANT_FORGET_BYTES  (1u << 20) /* likewise for what is granted and not used */
#define GRANT_MAX_BUDGET    (1u << 30) /* bytes */
#define GRANT_MAX_RTT_NS    1000000000u
#define GRANT_QUEUED_NS	    20000000u  /* while a sign of a queue elsewhere counts */
#define GRANT_LAPSE_NS	    100000000u /* in which half of the buffer's rest may lapse, at most */
#define GRANT_IDLE_BITS	    2u	       /* an idle link takes grants back after 4 times `idle_ns` */
#define GRANT_QUEUED_BITS   3u	       /* grants are then taken back after 8 times as long */
#define GRANT_OPTION_BYTES  40u	       /* of a segment, at most (RFC 9293 §3.1) */
#define GRANT_BRIEF	    224u       /* of 255: openers' first messages are short as a rule */
#define GRANT_SEQ_SLACK	    65535u /* so far behind is no older ACK: a window that has no scale */
#define GRANT_WAITS	    16u	   /* buckets of the times that flows wait for a grant */
#define GRANT_WAIT_BITS	    15u /* the first holds those below 2^15 ns, each next twice as much */

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
	P(X, BUFFER_SHARE, long_target, ABOVE_0, 1, 0.05, 0.05,                                    \
	  "The same for flows that a new message would overtake, so that it finds room; grants "   \
	  "from `long_share` may use all of `target`")                                             \
	P(X, TIME, rtt, NS(1), GRANT_MAX_RTT_NS, RTTS(1, US(50)), RTTS(1, US(50)),                 \
	  "Round trip of the network without queues")                                              \
	P(X, SEGMENTS, grant, 1, 65535, 10, 10,                                                    \
	  "Largest grant; few flows have more, the more they have sent")                           \
	P(X, SEGMENTS, allowance, 0, 255, 2, 2, "What an idle flow may send without a grant")      \
	P(X, COUNT, levels, 1, GRANT_LATE_LEVEL, 14, 14,                                           \
	  "Levels by bytes of a message: the first up to 1 KiB, each next up to twice as much, "   \
	  "the last without an end (the 14th begins at 4 MiB). From 1 MiB on, and in the last, "   \
	  "flows take turns")                                                                      \
	P(X, FLAG, learns, 0, 1, 1, 1, "The levels are served by the sizes that have passed")      \
	P(X, SHARE, long_share, 0, 1, 0.125, 0.125,                                                \
	  "Share of the bytes that goes to flows that wait behind others")                         \
	P(X, SHARE, resend_after, ABOVE_0, 256, 1.5, 1.5,                                          \
	  "A grant without effect is taken back after so many times rtt + target / rate")          \
	P(X, TIME, timer, US(1), MS(100), US(250), US(250),                                        \
	  "Period of the timer; at fast ports a quarter of rtt + target / rate. penstockd's is "   \
	  "0.5 ms")

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
#define GRANT_HANDSHAKE 1u    /* its sender opens the connection, and has not acknowledged it */
#define GRANT_SILENT	2u    /* has sent nothing since its grant */
#define GRANT_QUIET	4u    /* made no use of a grant: a request no longer is the sign of data */
#define GRANT_CLOSING	8u    /* its FIN has passed */
#define GRANT_RESENT	0x30u /* how often its grant was sent again, in steps of */
#define GRANT_RESENT_1	0x10u
#define GRANT_OPENER	0x40u /* its sender opened the connection, and is in its first message */
#define GRANT_CLIENT	0x80u /* its first message was short: what the other end sends are answers */
#define GRANT_LASTING	(GRANT_QUIET | GRANT_CLOSING | GRANT_OPENER | GRANT_CLIENT)
/* Of a flow's `shown`: what passed last may be a message's last segment. */
#define GRANT_MAY_END (1u << 15)

/* Sequence numbers are those of the data, except `seq` and `ts_*`, which are for the ACKs. */
struct grant_flow {
	u64 since_ns; /* last grant, or progress since; waiting: since when */
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
	u8 flags;  /* GRANT_HANDSHAKE ... */
	u32 last;  /* `edge` before it moved */
	u32 owner; /* the caller's; grant_begin zeroes it */
	u16 cut;   /* bytes of a segment that windows cut, of which the rest has not passed */
	u16 shown; /* bytes beyond `last` that its sender was shown; and GRANT_MAY_END */
	u32 run;   /* bytes sent without a rest, in one message or many */
};

struct grant_list {
	u32 head;
	u32 tail;
};

/* A port. Prepare it with grant_init. What each packet needs is in its first cache lines. */
struct grant_port {
	u64 busy_ns;	 /* until when the link was busy, or no credit out */
	u64 idle_ns;	 /* derived: if nothing passes for longer, nothing is under way */
	u64 queued_ns;	 /* until when grants without effect do not show that servers are late */
	u64 resend_ns;	 /* derived: a grant without effect is sent again after */
	u64 grant_ns;	 /* last grant */
	u64 delay_ns;	 /* derived: from a grant until its data has passed, at most */
	u32 outstanding; /* credit of all flows */
	u32 late;	 /* of those whose grant had to be sent again */
	u32 waiting;	 /* flows */
	u32 active;

	s64 owed_q16;  /* bytes due to flows behind others, Q16; below 0: had before */
	s64 turn_q16;  /* derived: what is owed before a grant of it is given, Q16 */
	u32 filled;    /* bits of the lists that are not empty, by level; of active flows: 16, 17 */
	u32 filled_at; /* the same by place */
	u32 budget;    /* derived, as the next two */
	u32 long_budget;
	u32 burst;		/* credit that may be given at once; 0: the whole budget */
	u32 unused_q16;		/* `unused` of `granted` */
	u32 doubt;		/* bytes taken back, less what has passed since */
	u16 overtaken;		/* bits of the levels that come after the first in `order` */
	u8 turn;		/* level that last got from `long_share` */
	u8 never_shrinks;	/* 1: what a sender was shown is not taken back */
	u8 owed_grants;		/* from `long_share`; wraps */
	u8 brief;		/* of 255: openers whose first message was below the allowance */
	u8 order[GRANT_LEVELS]; /* levels, the one to be served first in front */
	u8 reach[GRANT_LEVELS]; /* of each: the level to the end of which it is best served */
	/* Places of levels in `order`; then those of the lists of active flows. */
	u8 place[GRANT_LEVELS + 2];

	u32 virtual_bytes; /* in a virtual queue, or on the way to it */
	u32 free;	   /* first free entry of those once used */
	u32 used;	   /* entries once used */
	u64 drained_ns;	   /* when these were in the virtual queue */
	u64 rate_bps;
	u64 granted;	  /* bytes; with the next one, halved at times */
	u64 unused;	  /* of them, what was left where a message ended */
	u64 turn_ns;	  /* when the turn came to `turn` */
	u64 lapse_ns;	  /* until when what has lapsed would, at an even pace */
	u64 lapse_gap_ns; /* derived: from one grant that lapses to the next */
	u64 grants;
	u64 resends;
	u64 lapses;
	u32 messages;		  /* that have ended; with the next two, halved at times */
	u32 ended[GRANT_LEVELS];  /* those that ended in each level */
	u32 passed[GRANT_LEVELS]; /* those that grew beyond it */
	u64 waits[GRANT_WAITS];	  /* grants, by how long their flows waited */
	struct grant_list lists[GRANT_LEVELS + 2]; /* waiting flows by level, active, late ones */
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
	u8 scale;   /* of the windows in the ACK direction, for grant_begin */
	u8 flags;   /* TCP_FLAG_... */
	u8 reserved[6];
};

/* How a flow's connection began. */
struct grant_opening {
	u32 seq;       /* of the first byte of data; with the next two, if `by_sender` */
	u16 window;    /* of the SYN-ACK, as the receiver offered it: bytes (RFC 7323 §2.2) */
	u16 shown;     /* likewise, as the sender was shown it: see grant_syn_window */
	u32 by_sender; /* 1: the sender of the data opened it, and ends its handshake */
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

CORE_INLINE u32 grant_mss(const struct grant_flow *f)
{
	return f->mss + (is_nonzero(f->mss) ^ 1);
}

/* Bytes of a unit of its window. */
CORE_INLINE u32 grant_unit(const struct grant_flow *f)
{
	return 1u << min_u32(f->scale, TCP_MAX_SCALE);
}

/* Bytes that an idle flow may send without a grant. */
CORE_INLINE u32 grant_allowance(const struct grant_params *p, const struct grant_flow *f)
{
	return grant_allowance_segments(p) * grant_mss(f);
}

/* A sum of bytes that stays within bounds. */
CORE_INLINE u32 grant_plus(u32 sum, u32 bytes)
{
	return min_u32(sum + min_u32(bytes, GRANT_MAX_BUDGET), GRANT_MAX_BUDGET);
}

/* What does not depend on flows. */

/* Bytes that `rate` carries in a time of at most a second. */
CORE_INLINE u64 grant_bytes_in(u64 rate_bps, u64 time_ns)
{
	return (rate_bps >> 10) * min_u64(time_ns, GRANT_MAX_RTT_NS) / 7812500u;
}

CORE_INLINE u32 grant_is_overtaken(const struct grant_port *port, const struct grant_flow *f)
{
	return port->overtaken >> (f->level & (GRANT_LEVELS - 1)) & 1;
}

/* What credit and queue may take for a flow: less, if a new message would overtake it. */
CORE_INLINE u32 grant_budget_of(const struct grant_port *port, const struct grant_flow *f)
{
	return choose_u32(grant_is_overtaken(port, f), port->long_budget, port->budget);
}

/* What follows from the parameters: divisions, of which a packet would need many. */
CORE_INLINE void grant_derive(struct grant_port *port, const struct grant_params *p)
{
	u64 in_flight = grant_bytes_in(port->rate_bps, grant_rtt_ns(p));
	u64 target = min_u32(grant_target_bytes(p), GRANT_MAX_BUDGET);
	u64 budget = target + in_flight;
	/* It may arrive at once, as may a target more (grant_room). */
	u64 burst = max_u64(p->buffer_bytes, 2 * target) - target;
	u64 rest = max_u64(p->buffer_bytes, 3 * target) - 2 * target;
	u64 allowance = (u64)grant_allowance_segments(p) * mss_in_range(p->mss_bytes);
	u64 grant = (u64)grant_grant_segments(p) * mss_in_range(p->mss_bytes);

	port->budget = (u32)min_u64(budget, GRANT_MAX_BUDGET);
	port->burst = grant_side(p) == GRANT_PORT && burst < port->budget ? (u32)burst : 0;
	port->long_budget = (u32)min_u64(grant_long_target_bytes(p) + in_flight, port->budget);
	/* From a grant until its data has passed, at most. At most 2^30 * 2^33. */
	port->delay_ns = grant_rtt_ns(p) + target * 8000000000u / port->rate_bps;
	/* At most 2^44 / 2^8 * 2^24. */
	port->resend_ns =
		(min_u64(port->delay_ns, 1ull << 44) >> 8) * grant_resend_after_q16(p) >> 8;
	/* A segment's time more than twice the round trip. At most 2^16 * 2^33. */
	port->idle_ns =
		2 * grant_rtt_ns(p) + mss_in_range(p->mss_bytes) * 8000000000u / port->rate_bps;
	/* At most 2^24 * 2^28. */
	port->lapse_gap_ns = allowance * 2 * GRANT_LAPSE_NS / max_u64(rest, 1);
	port->turn_q16 = (s64)(max_u64(min_u64(grant, port->budget / 2), 1) << 16);
}

CORE_INLINE u64 grant_tick_ns(const struct grant_port *port, const struct grant_params *p)
{
	return max_u64(min_u64(grant_timer_ns(p), port->delay_ns / 4), 1000);
}

#endif
