/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SICC: a controller foresees incast at a switch port; shims at the sources clamp the windows.
 *
 * Sources: SICC Algorithm 1 (controller, per switch port) and Algorithm 2 (shim, per pair of
 * source and destination).
 *
 * Every T, first the end of incast is tested, then its start, which wins. An ON is repeated while
 * new connections keep coming, and DM runs from the last. A shim's flag expires by itself after
 * DM, as the OFF may be lost.
 *
 * The paper waits for the end of T. With at_once, which is ours, the start is also tested at each
 * new connection, with the queue as it was reported last.
 *
 * Made precise, in the variant `paper` too:
 * - The EWMA is 1/4 old + 3/4 new sample; line 11 of Algorithm 1 repeats Q.
 * - Gamma counts bytes, beta * IW * MSS + Q, with one MSS for all flows.
 * - Kappa is the time of the last ON (Table 1: a Boolean; never set); a port without any is old.
 * - An ON with an MSS of 0 is ignored; one below 536 counts as 536 (RFC 9293 §3.7.1).
 *
 * Not as printed, each a parameter, which variant `paper` sets back:
 * - off_needs_both: a clamp ends after DM or at q <= alpha1 * B, as the prose has it. The printed
 *   test wants both, but then a standing queue clamps until it drains.
 * - off_always: an OFF is sent once, to end a clamp; as printed, to all sources at each T in which
 *   the test holds.
 * - on_when_old: incast may begin at each T, and beta restarts there. As Algorithm 1 is indented,
 *   both are inside the first test: not before DM has passed since the last ON.
 * - counts: a SYN in the direction of the data, as Algorithm 1; §3 counts SYN-ACKs.
 * - options_of: the message has the receiver's MSS and window scale, in whose scale the windows
 *   are. Algorithm 1 stores and sends those of the SYN's source.
 * - expires: a clamp ends DM after the last ON, as §3 has it; Algorithm 2 waits for the OFF.
 * - pair_scale: the flow's own scale where it is known, and none in a SYN-ACK; Algorithm 2 has one
 *   scale for all ACKs of a pair.
 * - rounds_down: MSS >> scale is rounded up. Rounded down it is below one segment, which a sender
 *   may not send before its persist timer expires, and 0 from scale 11 on.
 *
 * It carries no messages, knows no topology and sends to no one: the caller maps ports to pairs,
 * knows which pairs other ports clamp, and finds the options that options_of names.
 */
#ifndef PENSTOCK_SICC_H
#define PENSTOCK_SICC_H

#include "params.h"
#include "tcp_rewrite.h"

#define SICC_MAX_BETA (1u << 24) /* new connections per interval; saturates */

/* What a port's controller sends to the sources behind it. */
enum sicc_order {
	SICC_KEEP = 0,	 /* send nothing */
	SICC_ON = 1,	 /* send INCAST_ON */
	SICC_OFF = 2,	 /* send INCAST_OFF */
	SICC_OFF_ON = 3, /* send INCAST_OFF, then INCAST_ON: only with off_always */
	SICC_ON_ONE =
		4, /* send INCAST_ON to the source of the new connection, the others have it */
};

#define SICC_TITLE                                                                                 \
	"The controller predicts incast as new connections * IW * MSS + queue, and has the shims " \
	"clamp windows before it arrives (SICC Alg. 1 and 2). Variant `paper`: both algorithms "   \
	"line by line"

#define SICC_NEW_CONNECTIONS(E)                                                                    \
	E(SICC_COUNTS_SYN, "syn",                                                                  \
	  "Segments with the SYN bit that leave by the port (SICC Alg. 1)")                        \
	E(SICC_COUNTS_SYN_ACK, "syn-ack",                                                          \
	  "SYN-ACKs that pass the port, in either direction (SICC §3)")

enum sicc_new_connections {
	SICC_NEW_CONNECTIONS(PARAM_ENUM)
};

#define SICC_ENDS(E)                                                                               \
	E(SICC_RECEIVER, "receiver", "The receiver, who writes the windows")                       \
	E(SICC_SENDER, "sender", "The sender, as printed")

enum sicc_end {
	SICC_ENDS(PARAM_ENUM)
};

#define SICC_PARAMS(P, X)                                                                          \
	P(X, SHARE, alpha1, 0, 1, 0.2, 0.2,                                                        \
	  "The clamp ends at this share of the buffer; less than alpha2 (SICC §5)")                \
	P(X, SHARE, alpha2, ABOVE_0, 256, 1, 1,                                                    \
	  "The clamp begins when this share of the buffer is expected to fill (SICC §5)")          \
	P(X, TIME, interval, NS(1), MAX_TIME, RTTS(10, US(500)), RTTS(10, US(500)),                \
	  "T: time between readings of a port's queue (SICC §5)")                                  \
	P(X, SEGMENTS, initial_window, 1, 65535, 10, 10,                                           \
	  "IW: what a new flow is expected to send at once (RFC 6928)")                            \
	P(X, TIME, duration, NS(1), MAX_TIME, MS(10), MS(10),                                      \
	  "DM: longest clamp after the last ON; about as long as mice take to finish")             \
	P(X, SEGMENTS, floor, 1, 255, 1, 1, "The window in a clamp")                               \
	P(X, FLAG, off_needs_both, 0, 1, 0, 1,                                                     \
	  "The clamp ends when it is old and the queue is short, as printed; if "                  \
	  "false, when either is the case, as in the text of the paper")                           \
	P(X, FLAG, off_always, 0, 1, 0, 1,                                                         \
	  "OFF is sent at each T in which its test holds, as printed; if false, only to end a "    \
	  "clamp")                                                                                 \
	P(X, FLAG, on_when_old, 0, 1, 0, 1,                                                        \
	  "No ON, and no new count of connections, before `duration` has passed since the last "   \
	  "ON, as Algorithm 1 is indented; if false, at each T")                                   \
	P(X, FLAG, at_once, 0, 1, 0, 0,                                                            \
	  "Incast may also begin at each new connection, with the queue as it was reported last; " \
	  "if false, at each T only")                                                              \
	P(X, ENUM, counts, SICC_NEW_CONNECTIONS, SICC_COUNTS_SYN_ACK, SICC_COUNTS_SYN,             \
	  SICC_COUNTS_SYN, "What counts as a new connection")                                      \
	P(X, ENUM, options_of, SICC_ENDS, SICC_SENDER, SICC_RECEIVER, SICC_SENDER,                 \
	  "Whose MSS and window scale an ON has")                                                  \
	P(X, FLAG, expires, 0, 1, 1, 0,                                                            \
	  "A shim ends a clamp by itself after `duration` (SICC §3); if false, only an OFF "      \
	  "does, as in Algorithm 2")                                                               \
	P(X, FLAG, pair_scale, 0, 1, 0, 1,                                                         \
	  "Windows are written in the scale of the pair's ON, in SYN-ACKs too, as printed; if "    \
	  "false, in the flow's, and unscaled in SYN-ACKs")                                        \
	P(X, FLAG, rounds_down, 0, 1, 0, 1,                                                        \
	  "The clamp is rounded down to the scale, as printed; if false, up")

#define SICC_QUEUE_REPORTS(E)                                                                      \
	E(SICC_INSTANT, "instant",                                                                 \
	  "It reads them at each T, without delay or loss, as in a simulation of the paper; "      \
	  "reports are counted, but take no time")                                                 \
	E(SICC_SENT, "sent", "At each T each switch sends a report")                               \
	E(SICC_POLLED, "polled", "At each T it asks each switch for a report")

enum sicc_queue_reports {
	SICC_QUEUE_REPORTS(PARAM_ENUM)
};

#define SICC_MESSAGES(E)                                                                           \
	E(SICC_BY_DATAGRAM, "datagrams", "UDP to the hypervisor, for fabrics with routers")        \
	E(SICC_BY_FRAME, "frames", "Ethernet frames to the guest, which its shim takes (SICC §4.2)")

enum sicc_messages {
	SICC_MESSAGES(PARAM_ENUM)
};

/* How messages travel between the controller and switches or shims: the caller's. */
#define SICC_CHANNEL_PARAMS(P, X)                                                                  \
	P(X, TIME, latency, NS(0), MAX_TIME, US(100), US(100),                                     \
	  "One-way delay between controller and switch or shim")                                   \
	P(X, SHARE, loss, 0, 1, 0, 0, "Share of the controller's messages that are lost")          \
	P(X, RATE, rate, 1, 1e12, 0, 0,                                                            \
	  "Rate of the controller's link, each way; without one messages take no time on it. The " \
	  "testbed had 100 Mb/s (SICC §6.2)")                                                      \
	P(X, ENUM, queue_reports, SICC_QUEUE_REPORTS, SICC_POLLED, SICC_INSTANT, SICC_INSTANT,     \
	  "How the controller learns queues; a report has 54 bytes and 2 for each port (SICC "     \
	  "§5.4)")                                                                                 \
	P(X, ENUM, messages, SICC_MESSAGES, SICC_BY_FRAME, SICC_BY_DATAGRAM, SICC_BY_FRAME,        \
	  "What an ON or OFF travels in; in the simulator both take 60 bytes")

#define SICC_ORDER(O, X) O(X, alpha1, alpha2)

PARAMS(sicc, SICC_PARAMS)

/* The controller's view of a switch port. All zero to begin with. */
struct sicc_port {
	u64 on_since_ns; /* kappa: last ON; 0: none yet */
	u64 queue_q8;	 /* Q: smoothed queue, 1/256 byte */
	u32 beta;	 /* new connections minus FINs, never below 0 */
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

/* Whether a packet with these flags is a new connection. */
CORE_INLINE _Bool sicc_is_new(const struct sicc_params *p, u32 flags)
{
	u32 wanted = p->counts == SICC_COUNTS_SYN_ACK ? TCP_FLAG_SYN | TCP_FLAG_ACK : TCP_FLAG_SYN;

	return (flags & wanted) == wanted;
}

/* The bytes expected: gamma = beta * IW * MSS + Q; at most 2^24 * 2^16 * 2^16 + 2^32. */
CORE_INLINE u64 sicc_expected_bytes(const struct sicc_port *port, const struct sicc_params *p)
{
	u64 first_flight =
		(u64)sicc_initial_window_segments(p) * min_u32(p->mss_bytes, MAX_MSS_BYTES);

	return min_u32(port->beta, SICC_MAX_BETA) * first_flight + (port->queue_q8 >> 8);
}

/* Whether the last ON is older than DM. */
CORE_INLINE _Bool sicc_is_old(const struct sicc_port *port, const struct sicc_params *p, u64 now_ns)
{
	return !port->on_since_ns || elapsed_ns(port->on_since_ns, now_ns) >= p->duration_ns;
}

/* Whether incast is ahead. */
CORE_INLINE _Bool sicc_starts(const struct sicc_port *port, const struct sicc_params *p)
{
	u64 start_bytes = ((u64)p->buffer_bytes * sicc_alpha2_q16(p)) >> 16;

	return port->beta > 0 && sicc_expected_bytes(port, p) >= start_bytes;
}

/*
 * The port forwarded a copy of a SYN or FIN to the controller: of those that leave by it, and with
 * SICC_COUNTS_SYN_ACK also of the SYN-ACKs that enter. What to send now: with at_once SICC_ON or
 * SICC_ON_ONE, else nothing.
 */
CORE_INLINE u32 sicc_on_packet(struct sicc_port *port, const struct sicc_params *p, u32 flags,
			       u64 now_ns)
{
	_Bool is_new = sicc_is_new(p, flags), was_on = port->is_on;

	if (is_new && port->beta < SICC_MAX_BETA)
		port->beta++;
	if (flags & TCP_FLAG_FIN && port->beta > 0)
		port->beta--;
	if (!is_new || !p->at_once || !sicc_starts(port, p) ||
	    (p->on_when_old && !sicc_is_old(port, p, now_ns)))
		return SICC_KEEP;
	port->is_on = 1;
	port->on_since_ns = now_ns;
	return was_on ? SICC_ON_ONE : SICC_ON;
}

/* Every T, with the length of the port's queue: what to send to the sources. */
CORE_INLINE u32 sicc_on_interval(struct sicc_port *port, const struct sicc_params *p,
				 u32 queue_bytes, u64 now_ns)
{
	_Bool is_old = sicc_is_old(port, p, now_ns);
	_Bool is_short = queue_bytes <= fraction_of(p->buffer_bytes, p->alpha1_q16);
	_Bool ends = p->off_needs_both ? is_old && is_short : is_old || is_short;
	_Bool may_start = is_old || !p->on_when_old;
	u32 order = SICC_KEEP;

	/* The cap keeps the sum of any state below 2^64; the mean of 32-bit samples is below it. */
	port->queue_q8 = (min_u64(port->queue_q8, 1ull << 40) + 3 * ((u64)queue_bytes << 8)) / 4;
	if ((port->is_on || p->off_always) && ends) {
		port->is_on = 0;
		order = SICC_OFF;
	}
	if (may_start && sicc_starts(port, p)) {
		port->is_on = 1;
		port->on_since_ns = now_ns;
		order = p->off_always ? order | SICC_ON : SICC_ON;
	}
	if (may_start)
		port->beta = 0;
	return order;
}

/*
 * INCAST_ON arrived for the pair; a message with MSS 0 is malformed and ignored. One host's option
 * is not to hold the other's flows below a segment.
 */
CORE_INLINE void sicc_pair_on(struct sicc_pair *pair, const struct sicc_params *p, u16 mss_bytes,
			      u32 scale, u64 now_ns)
{
	u64 room = ~0ull - now_ns;

	if (!mss_bytes)
		return;
	pair->mss_bytes = (u16)max_u32(mss_bytes, MIN_MSS_BYTES);
	pair->scale = scale == TCP_SCALE_UNKNOWN ? (u8)TCP_SCALE_UNKNOWN
						 : (u8)min_u32(scale, TCP_MAX_SCALE);
	pair->until_ns = now_ns + (p->expires ? min_u64(p->duration_ns, room) : room);
	pair->is_on = 1;
}

/* INCAST_OFF arrived for the pair. */
CORE_INLINE void sicc_pair_off(struct sicc_pair *pair)
{
	pair->is_on = 0;
}

/* Whether the pair's ACKs are clamped now. */
CORE_INLINE _Bool sicc_pair_is_on(const struct sicc_pair *pair, u64 now_ns)
{
	return pair->is_on && now_ns < pair->until_ns;
}

/*
 * The window field for an ACK that reaches the source. `scale` is its flow's; if unknown the
 * pair's is taken. `kind` is an enum tcp_ack_kind.
 */
CORE_INLINE struct tcp_window sicc_pair_on_ack(const struct sicc_pair *pair,
					       const struct sicc_params *p, u16 window, u32 scale,
					       u32 kind, u64 now_ns)
{
	u32 shift = p->pair_scale || scale == TCP_SCALE_UNKNOWN ? pair->scale : scale;
	u32 clamp = max_u32(pair->mss_bytes, 1) * sicc_floor_segments(p);

	if (!sicc_pair_is_on(pair, now_ns))
		return tcp_window_as_is(window);
	if (kind == TCP_ACK_SYN && !p->pair_scale)
		shift = 0;
	if (p->rounds_down)
		clamp = tcp_round_down(clamp, shift);
	return tcp_lower_window(window, shift, clamp, clamp);
}

#endif
