/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * FairQ: one window per output port, shared evenly by the flows and written into their ACKs.
 *
 * Source: FairQ Algorithm 1, §III-A, §III-B (several paths); FairSwitch, §IV-D and §IV-E.
 *
 * The controller nears a queue of alpha * B: every T, gamma += (1 - Q / (alpha B)) * mss / M; after
 * M of these the window grows by gamma / flows. Slow start lasts until Q first reaches the target.
 * The window moves with the number of flows, so that flows * window stays. In FairSwitch a new
 * number of flows sets it to alpha B / flows, and Q is the mean of 32 samples, 48 us apart.
 *
 * Not as printed, in the variants `paper` and `fairswitch` too:
 * - The test `beta >= 0` at a FIN means `> 0`: at 0 it divides by zero.
 * - Gamma and the tick count restart with each change of the window.
 * - An RST ends a flow as a FIN does (§IV-E). SYN-ACKs are ACKs, whose window is not scaled.
 * - The count of SYN-ACKs minus FINs ends at 0, where §IV-E takes the absolute difference.
 * - The size of segments is that of segment.h, not the largest ever; it is 1460 until one passes.
 * - `fairswitch` has a floor of one segment. Without it alpha B / flows is less than that from
 *   B / (4 MSS) flows on. New connections need no floor: fairq-7 takes 13 ms for a request without
 *   and 15 ms with it (20 requests). Open ones do: 262 and 14 ms in fairq-7 with 20 requests,
 *   `traffic.web.connection=persistent` and `tcp.profile=linux`.
 *
 * Not printed, ours: alpha = 1/4 (printed for ECN marks only, §IV-E; the authors' Open vSwitch code
 * has it too), T = RTT, M = 10 (that code: 1 ms, 8).
 *
 * What the default adds for real TCP:
 * - flows * window <= B + what left in the last `longest_rtt`, thus <= B + rate * longest_rtt, but
 *   for the floor: while the queue is short, gamma grows also where the flows have too little to
 *   send, and the window of old connections winds up without end. Flows that use their windows
 *   send as much within a round trip, so this holds back none that are all active and whose round
 *   trip is no longer.
 * - Slow start adds 2 MSS / flows, as that Open vSwitch code does, not 2 MSS for each flow:
 *   otherwise each new burst overshoots. The target is a tenth of the buffer.
 * - No window is below two segments, as long as the buffer holds two of every flow, nor ever below
 *   one; windows are rounded up to the scale. Linux never sends more than half of the largest
 *   window it was shown, and a receiver delays the ACK of a single segment by 40 ms.
 * - Flows are counted in a table.
 * The controller's own window is not held to the floor.
 *
 * It does not count flows (flow.h) nor read queues. Beyond (buffer + BDP) / MSS flows the
 * floor binds and the buffer overflows, as with any scheme that only writes windows. The window
 * counts in 1/256 byte: of gamma / flows less than that is lost per change.
 */
#ifndef PENSTOCK_FAIRQ_H
#define PENSTOCK_FAIRQ_H

#include "window.h"

#define FAIRQ_SAMPLES	    32u	       /* FairQ §IV-E: avg_32 */
#define FAIRQ_MAX_FLOWS	    (1u << 24) /* the count saturates here */
#define FAIRQ_MAX_WINDOW_Q8 ((u64)TCP_MAX_WINDOW << 8)
#define FAIRQ_MAX_SENT	    (1ull << 38) /* bytes in a round; saturates */

#define FAIRQ_TITLE                                                                                \
	"One fair window per port, written into passing ACKs (FairQ Alg. 1). Variant `paper`: "    \
	"slow start adds 2 MSS to each flow's window, windows are rounded down to the scale and "  \
	"have neither floor nor bound, flows are counted by packets. Variant `fairswitch`: also "  \
	"an equal share of the target at each new number of flows, a mean queue, a floor of one "  \
	"segment"

#define FAIRQ_SLOW_STARTS(E)                                                                       \
	E(FAIRQ_SLOW_START_SHARED, "shared", "By 2 MSS / flows at each change of the window")      \
	E(FAIRQ_SLOW_START_EACH, "each", "By 2 MSS, as printed: by 2 MSS for each flow")           \
	E(FAIRQ_SLOW_START_OFF, "off", "As afterwards")

enum fairq_slow_start {
	FAIRQ_SLOW_STARTS(PARAM_ENUM)
};

#define FAIRQ_FLOW_RULES(E)                                                                        \
	E(FAIRQ_FLOWS_SCALE, "scale",                                                              \
	  "It goes as the inverse of the number, so that flows x window stays (FairQ Alg. 1)")     \
	E(FAIRQ_FLOWS_DIVIDE, "divide",                                                            \
	  "It starts again at an equal share of the target, alpha B / flows (FairQ §IV-E: "       \
	  "DIV_32)")

enum fairq_flow_rule {
	FAIRQ_FLOW_RULES(PARAM_ENUM)
};

#define FAIRQ_PARAMS(P, X)                                                                         \
	P(X, SHARE, alpha, ABOVE_0, 1, 0.1, 0.25,                                                  \
	  "Target queue, as a share of the buffer; the paper prints no number")                    \
	P(X, TIME, interval, NS(1), MAX_TIME, RTTS(1, US(100)), RTTS(1, US(100)),                  \
	  "T: time between updates")                                                               \
	P(X, COUNT, intervals, 1, 65535, 10, 10, "M: updates per change of the window")            \
	P(X, ENUM, slow_start, FAIRQ_SLOW_STARTS, FAIRQ_SLOW_START_OFF, FAIRQ_SLOW_START_SHARED,   \
	  FAIRQ_SLOW_START_EACH,                                                                   \
	  "How the window grows until the queue first reaches the target (optional: FairQ "        \
	  "§III-A)")                                                                               \
	P(X, ENUM, flow_rule, FAIRQ_FLOW_RULES, FAIRQ_FLOWS_DIVIDE, FAIRQ_FLOWS_SCALE,             \
	  FAIRQ_FLOWS_SCALE, "What a new number of flows does to the window")                      \
	P(X, SEGMENTS, floor, 0, 255, 2, 0,                                                        \
	  "Smallest window written, as long as the buffer holds that much of every flow; "         \
	  "otherwise one segment; 0 for none")                                                     \
	P(X, SEGMENTS, first_floor, 0, 255, 2, 0, "The same for SYN-ACKs and first ACKs")          \
	P(X, FLAG, rounds_down, 0, 1, 0, 1, "Windows are rounded down to the scale; if false, up") \
	P(X, TIME, longest_rtt, NS(0), MAX_TIME, RTTS(100, MS(10)), NS(0),                         \
	  "Flows x window is at most the buffer plus what left in the last such time: 0 for no "   \
	  "bound, as printed")                                                                     \
	P(X, TIME, sample_interval, NS(0), MAX_TIME, NS(0), NS(0),                                 \
	  "The queue is the mean of its last 32 samples, this far apart; 0: it is the length at "  \
	  "each update (FairQ §IV-E: AVG_32). Updates are no more frequent than samples")          \
	P(X, COUNT, paths, 1, 65535, 1, 1,                                                         \
	  "Equal-cost paths that share the window under ECMP (FairQ §III-B)")                      \
	P(X, ENUM, counting, COUNTINGS, COUNTING_PACKETS, COUNTING_EXACT, COUNTING_PACKETS,        \
	  "How flows are counted")

#define FAIRQ_ORDER(O, X)

#define FAIRQ_VARIANTS(V, X)                                                                       \
	V(X, fairswitch, flow_rule, FAIRQ_FLOWS_DIVIDE)                                            \
	V(X, fairswitch, sample_interval, US(48))                                                  \
	V(X, fairswitch, floor, 1)                                                                 \
	V(X, fairswitch, first_floor, 1)

PARAMS(fairq, FAIRQ_PARAMS)

/* A port. Prepare it with fairq_init. */
struct fairq_state {
	u64 window_q8;		    /* window of one flow, 1/256 byte */
	s64 gamma_q8;		    /* increment gathered for all flows, 1/256 byte */
	u64 sample_sum;		    /* of `samples` */
	u64 round_ns;		    /* when the present round of `longest_rtt` began */
	u64 round_total;	    /* bytes that had left then */
	u64 sent_bytes;		    /* that left in it so far */
	u64 sent_before_bytes;	    /* in the round before */
	u64 update_age_ns;	    /* with samples: since an update was due */
	u32 target_bytes;	    /* alpha * B */
	u32 flows;		    /* beta */
	u32 mss_bytes;		    /* size of the port's segments */
	u32 ticks;		    /* Gamma: intervals since the last window change */
	u32 samples[FAIRQ_SAMPLES]; /* the last queue lengths, a ring */
	u8 next_sample;
	u8 in_slow_start;
	u8 flow_rule; /* enum fairq_flow_rule */
	u8 reserved[5];
};

CORE_INLINE void fairq_restart(struct fairq_state *s)
{
	s->window_q8 = min_u64((u64)s->target_bytes << 8, FAIRQ_MAX_WINDOW_Q8);
	s->in_slow_start = 1;
}

/* Prepares a port without flows. Parameters outside their ranges count as the nearest in range. */
CORE_INLINE void fairq_init(struct fairq_state *s, const struct fairq_params *p)
{
	const struct fairq_state zero = {0};

	*s = zero;
	s->target_bytes = max_u32(fraction_of(p->buffer_bytes, fairq_alpha_q16(p)), 1);
	s->mss_bytes = mss_in_range(p->mss_bytes);
	s->flow_rule = (u8)fairq_flow_rule(p);
	fairq_restart(s);
}

/*
 * Takes a new number of flows. The window goes as the inverse of it, or starts again at the share
 * of one of so many; from or to no flow at all it starts again at the target with slow start. A
 * step of n equals n steps of one.
 */
CORE_INLINE void fairq_on_flows(struct fairq_state *s, u32 flows)
{
	u32 now = min_u32(flows, FAIRQ_MAX_FLOWS);

	if (now == s->flows)
		return;
	if (s->flows == 0 || now == 0)
		fairq_restart(s);
	/* At most 2^38 * 2^24. One division per flow that comes or goes. */
	if (now && s->flow_rule == FAIRQ_FLOWS_DIVIDE)
		s->window_q8 = min_u64(((u64)s->target_bytes << 8) / now, FAIRQ_MAX_WINDOW_Q8);
	else if (now)
		s->window_q8 =
			min_u64(s->window_q8 * max_u32(s->flows, 1) / now, FAIRQ_MAX_WINDOW_Q8);
	s->flows = now;
}

CORE_INLINE void fairq_on_mss(struct fairq_state *s, u32 mss_bytes)
{
	s->mss_bytes = mss_in_range(mss_bytes);
}

/* The timer: that of the samples, if there are any. */
CORE_INLINE u64 fairq_tick_ns(const struct fairq_params *p)
{
	return p->sample_interval_ns ? fairq_sample_interval_ns(p) : fairq_interval_ns(p);
}

/* One sample of the queue for the mean. */
CORE_INLINE void fairq_on_sample(struct fairq_state *s, u32 queue_bytes)
{
	u32 slot = s->next_sample & (FAIRQ_SAMPLES - 1);

	s->sample_sum += queue_bytes;
	s->sample_sum -= s->samples[slot];
	s->samples[slot] = queue_bytes;
	s->next_sample = (u8)((slot + 1) & (FAIRQ_SAMPLES - 1));
}

/* Adds up to `step` or takes away, staying in 0 .. FAIRQ_MAX_WINDOW_Q8. */
CORE_INLINE void fairq_move_window(struct fairq_state *s, u64 step, _Bool is_up)
{
	if (is_up)
		s->window_q8 = min_u64(s->window_q8 + step, FAIRQ_MAX_WINDOW_Q8);
	else
		s->window_q8 -= min_u64(s->window_q8, step);
}

/* So many bytes have left by now (wraps); rounds of `longest_rtt` follow one another. */
CORE_INLINE void fairq_on_sent(struct fairq_state *s, const struct fairq_params *p, u64 total_bytes,
			       u64 now_ns)
{
	u64 length_ns = max_u64(p->longest_rtt_ns, max_u64(fairq_interval_ns(p), fairq_tick_ns(p)));
	u64 elapsed = elapsed_ns(s->round_ns, now_ns);

	s->sent_bytes = min_u64(total_bytes - s->round_total, FAIRQ_MAX_SENT);
	if (elapsed < length_ns)
		return;
	/* If the call is a round late, nothing left meanwhile. */
	s->sent_before_bytes = elapsed / 2 < length_ns ? s->sent_bytes : 0;
	s->sent_bytes = 0;
	s->round_total = total_bytes;
	s->round_ns = now_ns;
}

/* Holds flows * window to the buffer and what left within a round. */
CORE_INLINE void fairq_bound_window(struct fairq_state *s, const struct fairq_params *p)
{
	u64 sent = min_u64(max_u64(s->sent_bytes, s->sent_before_bytes), FAIRQ_MAX_SENT);

	/* At most 2^39 * 2^16 * 2^8. */
	if (p->longest_rtt_ns && s->flows)
		s->window_q8 = min_u64(s->window_q8,
				       ((p->buffer_bytes + sent) * fairq_paths(p) << 8) / s->flows);
}

CORE_INLINE void fairq_change_window(struct fairq_state *s, const struct fairq_params *p)
{
	u64 flows = max_u32(s->flows, 1);
	u64 two_segments_q8 = (u64)s->mss_bytes << 9;
	u32 slow_start = s->in_slow_start ? fairq_slow_start(p) : FAIRQ_SLOW_START_OFF;

	if (slow_start == FAIRQ_SLOW_START_SHARED)
		fairq_move_window(s, two_segments_q8 / flows, 1);
	else if (slow_start == FAIRQ_SLOW_START_EACH)
		fairq_move_window(s, two_segments_q8, 1);
	else if (s->flows == 0)
		return; /* gamma / flows is not defined; the first flow restarts the window */
	else if (s->gamma_q8 >= 0)
		fairq_move_window(s, (u64)s->gamma_q8 / flows, 1);
	else
		fairq_move_window(s, (u64)-s->gamma_q8 / flows, 0);
}

/* An interval is over. The length of the output queue is not used where it is sampled. */
CORE_INLINE void fairq_on_interval(struct fairq_state *s, const struct fairq_params *p,
				   u32 queue_bytes)
{
	u32 mean = (u32)(s->sample_sum / FAIRQ_SAMPLES);
	/* A queue longer than the buffer is a misreading; it also bounds gamma: |kappa| < 2^16. */
	u32 queue = min_u32(p->sample_interval_ns ? mean : queue_bytes, p->buffer_bytes);
	u32 target = max_u32(s->target_bytes, 1);
	u32 intervals = fairq_intervals(p);
	u32 drift = queue < target ? target - queue : queue - target;
	/* kappa * mss / M: at most 2^24 * 2^32 before the division. */
	s64 step_q8 = (s64)(((u64)s->mss_bytes << 8) * drift / ((u64)target * intervals));

	s->gamma_q8 += queue < target ? step_q8 : -step_q8;
	if (++s->ticks >= intervals) {
		fairq_change_window(s, p);
		fairq_bound_window(s, p);
		s->gamma_q8 = 0;
		s->ticks = 0;
	}
	if (queue >= target)
		s->in_slow_start = 0;
}

/* With the length of the output queue and the bytes that have left so far. */
CORE_INLINE void fairq_on_tick(struct fairq_state *s, const struct fairq_params *p, u32 queue_bytes,
			       u64 total_bytes, u64 now_ns)
{
	u64 interval_ns = fairq_interval_ns(p);

	fairq_on_sent(s, p, total_bytes, now_ns);
	if (p->sample_interval_ns) {
		fairq_on_sample(s, queue_bytes);
		s->update_age_ns += fairq_sample_interval_ns(p);
		if (s->update_age_ns < interval_ns)
			return;
		/* T may be no multiple of the samples' time: on average updates are T apart. */
		s->update_age_ns = min_u64(s->update_age_ns - interval_ns, interval_ns);
	}
	fairq_on_interval(s, p, queue_bytes);
}

CORE_INLINE u32 fairq_window_bytes(const struct fairq_state *s, const struct fairq_params *p)
{
	u64 window_q8 = p->paths > 1 ? s->window_q8 / fairq_paths(p) : s->window_q8;

	return (u32)min_u64(window_q8 >> 8, TCP_MAX_WINDOW);
}

CORE_INLINE struct tcp_window fairq_on_ack(const struct fairq_state *s,
					   const struct fairq_params *p, u16 window, u32 scale,
					   u32 mss_bytes, u32 kind, u64 now_ns)
{
	u32 mss = mss_bytes ? min_u32(mss_bytes, MAX_MSS_BYTES) : s->mss_bytes;
	u32 shift = kind == TCP_ACK_SYN ? 0 : scale;
	u32 segments =
		kind == TCP_ACK_LATER ? fairq_floor_segments(p) : fairq_first_floor_segments(p);
	u32 floor = window_floor_bytes(segments, mss, shift, s->flows, p->buffer_bytes);
	u32 limit = fairq_window_bytes(s, p);

	(void)now_ns;
	if (p->rounds_down)
		limit = tcp_round_down(limit, shift);
	return tcp_lower_window(window, shift, limit, floor);
}

WITHOUT_QUEUE(fairq)
WITHOUT_DROPS(fairq)

#endif
