/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SICC: a controller foresees incast at a switch port; shims at the sources clamp the windows.
 *
 * Sources: SICC Algorithm 1 (controller, per switch port) and Algorithm 2 (shim, per pair of
 * source and destination). Corrected: the EWMA is 1/4 old + 3/4 new sample; gamma counts bytes,
 * beta * IW * MSS + Q; incast ends after DM or at q <= alpha1 * B. The printed test wants both,
 * but then a standing queue would clamp forever (`off_needs_both` gives it).
 *
 * Every T, first the end of incast is tested, then its start, which wins. An ON is repeated while
 * new connections keep coming, and DM runs from the last. A shim's flag expires by itself after
 * DM, as the OFF may be lost.
 *
 * It carries no messages, knows no topology and sends to no one: the caller maps ports to pairs.
 * A pair holds one window scale; give sicc_pair_on_ack the flow's own where it is known.
 */
#ifndef PENSTOCK_SICC_H
#define PENSTOCK_SICC_H

#include "params.h"
#include "tcp_rewrite.h"

#define SICC_MAX_BETA (1u << 24) /* new connections per interval; saturates */

/* What a port's controller sends to the sources behind it. */
enum sicc_order {
	SICC_KEEP = 0, /* send nothing */
	SICC_ON = 1,   /* send INCAST_ON */
	SICC_OFF = 2,  /* send INCAST_OFF */
};

#define SICC_TITLE                                                                                 \
	"The controller predicts incast as SYN-ACKs * IW * MSS + queue, and has the shims clamp "  \
	"windows before it arrives (SICC Alg. 1 and 2). Variant `paper`: the clamp ends as "       \
	"printed"

#define SICC_PARAMS(P, X)                                                                          \
	P(X, SHARE, alpha1, 0, 1, 0.2, 0.2,                                                        \
	  "The clamp ends at this share of the buffer; less than alpha2 (SICC §5)")                \
	P(X, SHARE, alpha2, ABOVE_0, 256, 1, 1,                                                    \
	  "The clamp begins when this share of the buffer is expected to fill (SICC §5)")          \
	P(X, TIME, interval, NS(1), MAX_TIME, RTTS(10, MS(1)), RTTS(10, MS(1)),                    \
	  "T: time between readings of a port's queue (SICC §5)")                                  \
	P(X, SEGMENTS, initial_window, 1, 65535, 10, 10,                                           \
	  "IW: what a new flow is expected to send at once (RFC 6928)")                            \
	P(X, TIME, duration, NS(1), MAX_TIME, MS(10), MS(10),                                      \
	  "DM: longest clamp after the last ON; about as long as mice take to finish")             \
	P(X, SEGMENTS, floor, 1, 255, 1, 1, "The window in a clamp")                               \
	P(X, FLAG, off_needs_both, 0, 1, 0, 1,                                                     \
	  "The clamp ends when it is old and the queue is short, as printed; if "                  \
	  "false, when either is the case, as in the text of the paper")

/* How messages travel between the controller and switches or shims: the caller's. */
#define SICC_CHANNEL_PARAMS(P, X)                                                                  \
	P(X, TIME, latency, NS(0), MAX_TIME, US(100), US(100),                                     \
	  "One-way delay between controller and switch or shim")                                   \
	P(X, SHARE, loss, 0, 1, 0, 0, "Share of the controller's messages that are lost")

#define SICC_ORDER(O, X) O(X, alpha1, alpha2)

PARAMS(sicc, SICC_PARAMS)

/* The controller's view of a switch port. All zero to begin with. */
struct sicc_port {
	u64 on_since_ns; /* kappa: last ON */
	u64 queue_q8;	 /* Q: smoothed queue, 1/256 byte */
	u32 beta;	 /* SYN-ACKs minus FINs in this interval, never below 0 */
	u8 is_on;
	u8 reserved[3];
};

/* The shim's entry for a pair. All zero to begin with. */
struct sicc_pair {
	u64 until_ns; /* the flag's end */
	u16 mss_bytes;
	u8 scale;
	u8 is_on;
	u8 reserved[4];
};

/* The port forwarded a copy of a SYN-ACK or FIN to the controller. */
CORE_INLINE void sicc_on_packet(struct sicc_port *port, u32 flags)
{
	if (flags & TCP_FLAG_SYN && port->beta < SICC_MAX_BETA)
		port->beta++;
	if (flags & TCP_FLAG_FIN && port->beta > 0)
		port->beta--;
}

/* The bytes expected: gamma = beta * IW * MSS + Q; at most 2^24 * 2^16 * 2^16 + 2^32. */
CORE_INLINE u64 sicc_expected_bytes(const struct sicc_port *port, const struct sicc_params *p)
{
	u64 first_flight =
		(u64)sicc_initial_window_segments(p) * min_u32(p->mss_bytes, MAX_MSS_BYTES);

	return min_u32(port->beta, SICC_MAX_BETA) * first_flight + (port->queue_q8 >> 8);
}

/* Every T, with the length of the port's queue: what to send to the sources. */
CORE_INLINE u32 sicc_on_interval(struct sicc_port *port, const struct sicc_params *p,
				 u32 queue_bytes, u64 now_ns)
{
	u64 start_bytes = ((u64)p->buffer_bytes * sicc_alpha2_q16(p)) >> 16;
	_Bool is_old = elapsed_ns(port->on_since_ns, now_ns) >= p->duration_ns;
	_Bool is_short = queue_bytes <= fraction_of(p->buffer_bytes, p->alpha1_q16);
	_Bool ends = p->off_needs_both ? is_old && is_short : is_old || is_short;
	u32 order = SICC_KEEP;

	/* The cap keeps the sum of any state below 2^64; the mean of 32-bit samples is below it. */
	port->queue_q8 = (min_u64(port->queue_q8, 1ull << 40) + 3 * ((u64)queue_bytes << 8)) / 4;
	if (port->is_on && ends) {
		port->is_on = 0;
		order = SICC_OFF;
	}
	if (port->beta > 0 && sicc_expected_bytes(port, p) >= start_bytes) {
		port->is_on = 1;
		port->on_since_ns = now_ns;
		order = SICC_ON;
	}
	port->beta = 0;
	return order;
}

/* INCAST_ON arrived for the pair; a message with MSS 0 is malformed and ignored. */
CORE_INLINE void sicc_pair_on(struct sicc_pair *pair, const struct sicc_params *p, u16 mss_bytes,
			      u32 scale, u64 now_ns)
{
	u64 room = ~0ull - now_ns;

	if (!mss_bytes)
		return;
	pair->mss_bytes = mss_bytes;
	pair->scale = scale == TCP_SCALE_UNKNOWN ? (u8)TCP_SCALE_UNKNOWN
						 : (u8)min_u32(scale, TCP_MAX_SCALE);
	pair->until_ns = now_ns + min_u64(p->duration_ns, room);
	pair->is_on = 1;
}

/* INCAST_OFF arrived for the pair. */
CORE_INLINE void sicc_pair_off(struct sicc_pair *pair)
{
	pair->is_on = 0;
}

/*
 * The window field for an ACK that reaches the source. `scale` is its flow's; if unknown the
 * pair's is taken. `kind` is an enum tcp_ack_kind.
 */
CORE_INLINE struct tcp_window sicc_pair_on_ack(const struct sicc_pair *pair,
					       const struct sicc_params *p, u16 window, u32 scale,
					       u32 kind, u64 now_ns)
{
	u32 shift = scale == TCP_SCALE_UNKNOWN ? pair->scale : scale;
	u32 clamp = max_u32(pair->mss_bytes, 1) * sicc_floor_segments(p);

	if (!pair->is_on || now_ns >= pair->until_ns)
		return tcp_window_as_is(window);
	return tcp_lower_window(window, kind == TCP_ACK_SYN ? 0 : shift, clamp, clamp);
}

#endif
