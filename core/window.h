/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every window scheme has, and what is common to all at a port.
 *
 * A window scheme `x` is a header core/x.h with a table of parameters (params.h), a struct x_state
 * and these inline functions; s is its state at one port, p its parameters there. They are total:
 * any argument and any state give a defined result.
 *
 *	void x_init(s, p)		prepares a port without flows
 *	void x_on_flows(s, flows)	the number of flows, when it has changed
 *	u32  x_counting(p)		how these are to be counted: enum counting, COUNTING_NONE
 *	void x_on_mss(s, mss)		the size of the port's segments (segment.h) has changed
 *	void x_on_queue(s, p, queue, now)
 *					the queue has so many bytes
 *	bool x_heeds_queue(s, p, queue, now)
 *					whether x_on_queue would change anything of note
 *	bool x_is_clamping(s, p, now)	whether it holds all flows at their least now
 *	u64  x_tick_ns(p)		how often x_on_tick is due; 0: never
 *	void x_on_tick(s, p, queue, total, now)
 *					`total` bytes have left by the port; wraps
 *	struct tcp_window x_on_ack(s, p, window, scale, mss, kind, now)
 *					the window field for an ACK that enters by the port
 *	u32  x_window_bytes(s, p)	a flow's window, before the floor, or TCP_MAX_WINDOW
 *	u32  x_drops(p, queue, packet, is_control)
 *					what becomes of what arrives at such a queue: enum data_fate
 *
 * `scale` and `mss` are those of the ACK's flow (TCP_SCALE_UNKNOWN, and 0 if not known), `kind` is
 * an enum tcp_ack_kind. Count the flow of a SYN-ACK before x_on_ack. x_heeds_queue reads a
 * few words without a lock, so that x_on_queue needs one rarely.
 *
 * A scheme that has no use for some of them writes WITHOUT_...(x) in their place. One line in
 * schemes.h puts it into the simulator and the kernel.
 */
#ifndef PENSTOCK_WINDOW_H
#define PENSTOCK_WINDOW_H

#include "params.h"
#include "tcp_rewrite.h"

/* How the port learns the window scale of a flow (FairQ §III-B). */
#define WSCALE_SOURCES(E)                                                                          \
	E(WSCALE_TRACKED, "tracked", "The port remembers each flow's SYN and SYN-ACK")             \
	E(WSCALE_RESERVED_BITS, "reserved-bits",                                                   \
	  "The shim writes it into the reserved bits of the header; the other "                    \
	  "host's shim clears them, or the last port (clears_bits)")                               \
	E(WSCALE_WINDOW_BITS, "window-bits",                                                       \
	  "The shim writes it into four bits of the window field; twelve are left, for windows "   \
	  "up to 4095")                                                                            \
	E(WSCALE_UNIFIED, "unified",                                                               \
	  "One scale for all, written into SYN and SYN-ACK by the shims, which then write every "  \
	  "window in it")                                                                          \
	E(WSCALE_STRIPPED, "stripped",                                                             \
	  "The port takes the option out of SYNs: no window is scaled, the largest is 65,535 "     \
	  "bytes; without shims")                                                                  \
	E(WSCALE_LOWERED, "lowered",                                                               \
	  "The port lowers the option of SYNs and SYN-ACKs to network_wscale; a host that "        \
	  "offered "                                                                               \
	  "more is then read as offering smaller windows; without shims")

enum wscale_source {
	WSCALE_SOURCES(PARAM_ENUM)
};

/* How the port counts its flows. */
#define COUNTINGS(E)                                                                               \
	E(COUNTING_EXACT, "exact", "A table of flows")                                             \
	E(COUNTING_PACKETS, "packets",                                                             \
	  "SYN-ACKs minus FINs, as printed; drifts when these are lost or repeated")

enum counting {
	COUNTINGS(PARAM_ENUM)
};

#define COUNTING_NONE 2u /* the scheme does not need the number */

/* What is common to all window schemes; the caller does it. */
#define WINDOW_PARAMS(P, X)                                                                        \
	P(X, COUNT, first_acks, 0, 254, 4, 4,                                                      \
	  "ACKs after a flow's handshake that count as its first; their windows bound its first "  \
	  "flight")                                                                                \
	P(X, ENUM, wscale_source, WSCALE_SOURCES, WSCALE_LOWERED, WSCALE_TRACKED, WSCALE_TRACKED,  \
	  "How the port learns the window scale of a flow (FairQ §III-B)")                         \
	P(X, COUNT, network_wscale, 0, TCP_MAX_SCALE, 7, 7,                                        \
	  "The one scale of all windows with wscale_source = \"unified\", the largest with "       \
	  "\"lowered\"; rounding takes up to 2^scale - 1 bytes from each window")                  \
	P(X, FLAG, clears_bits, 0, 1, 0, 0,                                                        \
	  "With \"reserved-bits\": the port is the last to read them, and clears them, so that "   \
	  "hosts behind it need no shim for what they receive (FairQ §IV-C)")                      \
	P(X, TIME, idle, NS(1), MAX_TIME, SECONDS(1), SECONDS(1),                                  \
	  "A flow silent for this long is not counted (FairQ §IV-E)")                              \
	P(X, FLAG, never_shrink, 0, 1, 0, 0,                                                       \
	  "Never take back the right edge of a window once offered (RFC 9293 §3.8.6.2.1)")

struct window_params {
	WINDOW_PARAMS(PARAM_MEMBER, window)
};

WINDOW_PARAMS(PARAM_READER, window)

CORE_INLINE struct window_params window_default_params(void)
{
	struct window_params params = {WINDOW_PARAMS(PARAM_DEFAULT, window)};
	return params;
}

/*
 * The scale that a port leaves in a SYN, or in the answer to one, which offers `scale`, if it
 * offers any: TCP_SCALE_UNKNOWN for none. It must not grow, or senders would be shown more than
 * receivers have room for. An answer has the option only if its SYN had (RFC 7323 §2.2): such a
 * SYN took another path, and what is stripped of the answer alone only the client would know.
 */
CORE_INLINE u32 window_syn_scale(const struct window_params *p, u32 scale, _Bool is_answer)
{
	if (p->wscale_source == WSCALE_STRIPPED && !is_answer)
		return TCP_SCALE_UNKNOWN;
	if (p->wscale_source == WSCALE_LOWERED)
		return min_u32(scale, window_network_wscale(p));
	return scale;
}

/*
 * The smallest window that keeps a flow going: `segments`, as long as the buffer holds as much of
 * every flow, rounded up to the scale as written; otherwise one segment. A receiver acknowledges
 * every second segment at once, but a single one only after 40 ms (Linux, RFC 1122 §4.2.3.2), once
 * a connection has received a few: with windows of one segment the port then runs empty. Where two
 * of every flow do not fit, they would be lost, and a timeout is longer.
 */
CORE_INLINE u32 window_floor_bytes(u32 segments, u32 mss_bytes, u32 scale, u32 flows,
				   u32 buffer_bytes)
{
	u32 floor = mss_bytes * segments;
	u32 unit = 1u << min_u32(scale, TCP_MAX_SCALE);
	u64 written = ((u64)floor + unit - 1) & ~(u64)(unit - 1);

	return floor && written * flows > buffer_bytes ? mss_bytes : floor;
}

/* clang-format off */
/* For schemes that do not need the number of flows. */
#define WITHOUT_FLOWS(x)                                                                           \
	CORE_INLINE void x##_on_flows(struct x##_state *s, u32 flows)                              \
	{                                                                                          \
		(void)s, (void)flows;                                                              \
	}                                                                                          \
	CORE_INLINE u32 x##_counting(const struct x##_params *p)                                   \
	{                                                                                          \
		(void)p;                                                                           \
		return COUNTING_NONE;                                                              \
	}

/* For schemes that need no size of segments but that of an ACK's flow. */
#define WITHOUT_MSS(x)                                                                             \
	CORE_INLINE void x##_on_mss(struct x##_state *s, u32 mss_bytes)                            \
	{                                                                                          \
		(void)s, (void)mss_bytes;                                                          \
	}

/* For schemes that look at the queue at their ticks, or never. */
#define WITHOUT_QUEUE(x)                                                                           \
	CORE_INLINE void x##_on_queue(struct x##_state *s, const struct x##_params *p,             \
				      u32 queue_bytes, u64 now_ns)                                 \
	{                                                                                          \
		(void)s, (void)p, (void)queue_bytes, (void)now_ns;                                 \
	}                                                                                          \
	CORE_INLINE _Bool x##_heeds_queue(const struct x##_state *s, const struct x##_params *p,   \
					  u32 queue_bytes, u64 now_ns)                             \
	{                                                                                          \
		(void)s, (void)p, (void)queue_bytes, (void)now_ns;                                 \
		return 0;                                                                          \
	}                                                                                          \
	CORE_INLINE _Bool x##_is_clamping(const struct x##_state *s, const struct x##_params *p,   \
					  u64 now_ns)                                              \
	{                                                                                          \
		(void)s, (void)p, (void)now_ns;                                                    \
		return 0;                                                                          \
	}

/* For schemes that do nothing at intervals. */
#define WITHOUT_TICK(x)                                                                            \
	CORE_INLINE u64 x##_tick_ns(const struct x##_params *p)                                    \
	{                                                                                          \
		(void)p;                                                                           \
		return 0;                                                                          \
	}                                                                                          \
	CORE_INLINE void x##_on_tick(struct x##_state *s, const struct x##_params *p,              \
				     u32 queue_bytes, u64 total_bytes, u64 now_ns)                 \
	{                                                                                          \
		(void)s, (void)p, (void)queue_bytes, (void)total_bytes, (void)now_ns;              \
	}

/* For schemes without one window for all flows. */
#define WITHOUT_WINDOW(x)                                                                          \
	CORE_INLINE u32 x##_window_bytes(const struct x##_state *s, const struct x##_params *p)    \
	{                                                                                          \
		(void)s, (void)p;                                                                  \
		return TCP_MAX_WINDOW;                                                             \
	}

/* What becomes of an arriving packet. */
enum data_fate {
	DATA_PASSES = 0,
	DATA_DROPPED = 1,
	DATA_CUT = 2, /* it loses its payload, and the ACK that it carries goes on */
};

/* For schemes that leave drops to the queue. */
#define WITHOUT_DROPS(x)                                                                           \
	CORE_INLINE u32 x##_drops(const struct x##_params *p, u32 queue_bytes, u32 packet_bytes,   \
				  _Bool is_control)                                                \
	{                                                                                          \
		(void)p, (void)queue_bytes, (void)packet_bytes, (void)is_control;                  \
		return DATA_PASSES;                                                                \
	}
/* clang-format on */

#endif
