/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HSCC: hysteresis on the queue of a port clamps every flow to one segment per round trip.
 *
 * Source: HSCC §III-A (Fig. 3, Fig. 5b) and §III-B (sigma). Queue >= alpha2: CLAMP; queue <=
 * alpha1: FREE; between: as it was. In CLAMP every ACK that enters by the port gets
 * min(rwnd, clamp).
 *
 * Not as printed, in the variant `paper` too:
 * - CBR+ of Fig. 3 is CLAMP plus a loss and asks nothing of the switch: two states are enough.
 * - Windows are rounded up to the scale, which the paper leaves open: rounded down, one segment of
 *   1448 bytes is 1408 at a scale of 7, too little to send it.
 * - SYN-ACKs are ACKs, whose window is not scaled. An RST is a control packet, as a FIN is.
 * - `paper` is without sigma, as the paper's evaluation is.
 *
 * Not printed, ours: alpha1 = 1/4 and alpha2 = 1/2.
 *
 * What the default adds for real TCP: the first flight is over before a queue shows, so SYN-ACKs
 * and the first ACKs of each flow are held to two segments in FREE too; thresholds are lower; and
 * after CLAMP the window opens step by step, so that the stored congestion windows do not burst out
 * together, nor a next burst on the same connections, if it follows within some milliseconds. The
 * price: a lone short flow takes a few round trips more. A burst on an old connection that was idle
 * for longer is not held before the queue shows it. And the clamp is two segments, as the first
 * flight, as long as the buffer holds two of every flow (window_floor_bytes), which takes a count
 * of the flows; otherwise both are one.
 *
 * A clamp holds only while the queue is reported: `expiry` after the last hscc_on_queue every
 * ACK passes untouched, so a dead monitor cannot throttle forever.
 *
 * Limit: more than (BDP + alpha2) / MSS flows overflow even at one segment each (630 flows in the
 * paper).
 */
#ifndef PENSTOCK_HSCC_H
#define PENSTOCK_HSCC_H

#include "window.h"

#define HSCC_MAX_STEPS (1u << 20) /* intervals after which a release is surely over */
#define HSCC_REPORT_NS MS(1)	  /* a clamp is kept alive by reports this far apart */

enum hscc_mode {
	HSCC_FREE = 0,
	HSCC_CLAMP = 1,
};

#define HSCC_TITLE                                                                                 \
	"Clamps every flow to one or two segments per RTT once the queue reaches alpha2, until "   \
	"it falls to alpha1 (HSCC §III). Variant `paper`: the two thresholds only, one segment"

#define HSCC_PARAMS(P, X)                                                                          \
	P(X, BUFFER_SHARE, alpha1, 0, 1, 0.1, 0.25,                                                \
	  "The clamp ends at this share of the buffer; less than alpha2; the paper prints none")   \
	P(X, BUFFER_SHARE, alpha2, ABOVE_0, 1, 0.25, 0.5,                                          \
	  "The clamp begins at this share of the buffer; the paper prints none")                   \
	P(X, BUFFER_LIMIT, sigma, ABOVE_0, 1, 0.97, 1,                                             \
	  "Data that would fill the buffer beyond this share is dropped, so that SYN, FIN and "    \
	  "ACK still fit; 1 for none (HSCC §III-B)")                                               \
	P(X, FLAG, cuts, 0, 1, 0, 0,                                                               \
	  "What sigma drops loses its payload only, and the ACK that it carries goes on (HSCC "    \
	  "§III-B); in the simulator")                                                             \
	P(X, SEGMENTS, floor, 1, 255, 2, 1,                                                        \
	  "The window in a clamp, as long as the buffer holds that much of every flow; otherwise " \
	  "one segment")                                                                           \
	P(X, SEGMENTS, first_flight, 0, 255, 2, 0,                                                 \
	  "Largest window of SYN-ACKs and first ACKs, as long as the buffer holds that much of "   \
	  "every flow; otherwise one segment; never below the window of floor; 0: unchanged")      \
	P(X, SEGMENT_BYTES, release_step, 0, 255, 1, 0,                                            \
	  "Growth of the window per release_interval after a clamp; 0: no limit after a clamp")    \
	P(X, TIME, release_interval, NS(1), MAX_TIME, MS(1), MS(1),                                \
	  "Time between the steps of the release")                                                 \
	P(X, TIME, expiry, NS(0), MAX_TIME, MS(100), NS(0),                                        \
	  "A clamp ends this long after the last reading of the queue; 0: never")

#define HSCC_ORDER(O, X) O(X, alpha1, alpha2)
#define HSCC_VARIANTS(V, X)

PARAMS(hscc, HSCC_PARAMS)

/* A port. Prepare it with hscc_init. */
struct hscc_state {
	u64 queue_seen_ns; /* last hscc_on_queue */
	u64 released_ns;   /* when CLAMP last ended */
	u8 mode;	   /* enum hscc_mode */
	u8 is_released;	   /* 1: CLAMP has ended before, `released_ns` holds */
	u8 reserved[2];
	u32 flows;
};

CORE_INLINE void hscc_init(struct hscc_state *s, const struct hscc_params *p)
{
	const struct hscc_state zero = {0};

	(void)p;
	*s = zero;
}

CORE_INLINE void hscc_on_flows(struct hscc_state *s, u32 flows)
{
	s->flows = flows;
}

/* Windows of one segment, as printed, need no number of flows. */
CORE_INLINE u32 hscc_counting(const struct hscc_params *p)
{
	u32 segments = max_u32(hscc_floor_segments(p), hscc_first_flight_segments(p));

	return segments > 1 ? COUNTING_EXACT : COUNTING_NONE;
}

/* The queue's length, on every packet or as often as it can be read. */
CORE_INLINE void hscc_on_queue(struct hscc_state *s, const struct hscc_params *p, u32 queue_bytes,
			       u64 now_ns)
{
	s->queue_seen_ns = now_ns;
	if (queue_bytes >= hscc_alpha2_bytes(p)) {
		s->mode = HSCC_CLAMP;
	} else if (queue_bytes <= p->alpha1_bytes && s->mode == HSCC_CLAMP) {
		s->mode = HSCC_FREE;
		s->released_ns = now_ns;
		s->is_released = 1;
	}
}

/*
 * A report that changes nothing but its own time is of no note if the last is younger than 1 ms, or
 * half of `expiry`, so that CPUs do not fight for the line: a clamp ends that much earlier.
 */
CORE_INLINE _Bool hscc_heeds_queue(const struct hscc_state *s, const struct hscc_params *p,
				   u32 queue_bytes, u64 now_ns)
{
	_Bool turns = s->mode == HSCC_CLAMP ? queue_bytes <= p->alpha1_bytes
					    : queue_bytes >= hscc_alpha2_bytes(p);

	u64 report_ns = p->expiry_ns ? min_u64(p->expiry_ns / 2, HSCC_REPORT_NS) : HSCC_REPORT_NS;

	return turns || elapsed_ns(s->queue_seen_ns, now_ns) >= report_ns;
}

CORE_INLINE _Bool hscc_is_clamping(const struct hscc_state *s, const struct hscc_params *p,
				   u64 now_ns)
{
	return s->mode == HSCC_CLAMP &&
	       (!p->expiry_ns || elapsed_ns(s->queue_seen_ns, now_ns) < p->expiry_ns);
}

/* The bound on windows while a release goes on; TCP_MAX_WINDOW if none. */
CORE_INLINE u32 hscc_release_bytes(const struct hscc_state *s, const struct hscc_params *p,
				   u32 clamp_bytes, u64 now_ns)
{
	u64 steps;

	if (s->mode != HSCC_FREE || !s->is_released || !p->release_step_bytes)
		return TCP_MAX_WINDOW;
	steps = elapsed_ns(s->released_ns, now_ns) / hscc_release_interval_ns(p);
	if (steps >= HSCC_MAX_STEPS)
		return TCP_MAX_WINDOW;
	/* At most 2^24 + 2^20 * 2^32. */
	return (u32)min_u64(clamp_bytes + steps * p->release_step_bytes, TCP_MAX_WINDOW);
}

CORE_INLINE struct tcp_window hscc_on_ack(const struct hscc_state *s, const struct hscc_params *p,
					  u16 window, u32 scale, u32 mss_bytes, u32 kind,
					  u64 now_ns)
{
	u32 mss = mss_in_range(mss_bytes ? mss_bytes : p->mss_bytes);
	u32 shift = kind == TCP_ACK_SYN ? 0 : scale;
	u32 clamp =
		window_floor_bytes(hscc_floor_segments(p), mss, shift, s->flows, p->buffer_bytes);
	u32 floor = clamp;
	u32 limit = TCP_MAX_WINDOW;

	if (kind != TCP_ACK_LATER && p->first_flight_segments) {
		limit = window_floor_bytes(hscc_first_flight_segments(p), mss, shift, s->flows,
					   p->buffer_bytes);
		/* A first window of one segment makes Linux halve its MSS. */
		floor = max_u32(clamp, limit);
	}
	if (hscc_is_clamping(s, p, now_ns))
		limit = min_u32(limit, clamp);
	else
		limit = min_u32(limit, hscc_release_bytes(s, p, clamp, now_ns));
	return tcp_lower_window(window, shift, limit, floor);
}

/* Keeps room for SYN, FIN, RST and pure ACKs (§III-B). */
CORE_INLINE u32 hscc_drops(const struct hscc_params *p, u32 queue_bytes, u32 packet_bytes,
			   _Bool is_control)
{
	if (!p->sigma_bytes || is_control || (u64)queue_bytes + packet_bytes <= p->sigma_bytes)
		return DATA_PASSES;
	return p->cuts ? DATA_CUT : DATA_DROPPED;
}

WITHOUT_MSS(hscc)
WITHOUT_TICK(hscc)
WITHOUT_WINDOW(hscc)

#endif
