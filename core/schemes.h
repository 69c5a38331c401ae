/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The list of window schemes, and each function of window.h for a scheme given by its number.
 *
 * This is the only place that names them all: simulator, datapath, agent and tests are written over
 * the list. Where `scheme` is a constant, as in the datapath, nothing of the choice is left in the
 * compiled code. State and parameters are pointers to those of that scheme.
 */
#ifndef PENSTOCK_SCHEMES_H
#define PENSTOCK_SCHEMES_H

#include "fairq.h"
#include "hscc.h"

/* S(name, NAME, ...) for each; what follows S is handed on. */
#define WINDOW_SCHEMES(S, ...)                                                                     \
	S(fairq, FAIRQ, __VA_ARGS__)                                                               \
	S(hscc, HSCC, __VA_ARGS__)

#define SCHEME_NUMBER(name, NAME, ...) SCHEME_##NAME,
#define SCHEME_STATE(name, NAME, ...)  struct name##_state name;
#define SCHEME_PARAMS(name, NAME, ...) struct name##_params name;

/* In the order of the list, from 1. */
enum window_scheme {
	SCHEME_NONE = 0, /* every window passes as it is */
	WINDOW_SCHEMES(SCHEME_NUMBER) SCHEMES,
};

/* For callers that hold the state or the parameters of all. */
struct scheme_states {
	WINDOW_SCHEMES(SCHEME_STATE)
};

struct scheme_params {
	WINDOW_SCHEMES(SCHEME_PARAMS)
};

#define SCHEME_FIELD(name, NAME, all)                                                              \
	if (scheme == SCHEME_##NAME)                                                               \
		return &(all)->name;

CORE_INLINE void *scheme_state_of(struct scheme_states *all, u32 scheme)
{
	WINDOW_SCHEMES(SCHEME_FIELD, all);
	return 0;
}

CORE_INLINE const void *scheme_params_of(const struct scheme_params *all, u32 scheme)
{
	WINDOW_SCHEMES(SCHEME_FIELD, all);
	return 0;
}

/* NAME_FUNCTION(...) of the scheme with the number `scheme`. */
#define SCHEME_CALL(name, NAME, function, ...)                                                     \
	if (scheme == SCHEME_##NAME)                                                               \
		name##_##function(__VA_ARGS__);

#define SCHEME_RETURN(name, NAME, function, ...)                                                   \
	if (scheme == SCHEME_##NAME)                                                               \
		return name##_##function(__VA_ARGS__);

CORE_INLINE void scheme_init(u32 scheme, void *s, const void *p)
{
	WINDOW_SCHEMES(SCHEME_CALL, init, s, p);
}

CORE_INLINE void scheme_on_flows(u32 scheme, void *s, u32 flows)
{
	WINDOW_SCHEMES(SCHEME_CALL, on_flows, s, flows);
}

CORE_INLINE u32 scheme_counting(u32 scheme, const void *p)
{
	WINDOW_SCHEMES(SCHEME_RETURN, counting, p);
	return COUNTING_NONE;
}

CORE_INLINE void scheme_on_mss(u32 scheme, void *s, u32 mss_bytes)
{
	WINDOW_SCHEMES(SCHEME_CALL, on_mss, s, mss_bytes);
}

CORE_INLINE void scheme_on_queue(u32 scheme, void *s, const void *p, u32 queue_bytes, u64 now_ns)
{
	WINDOW_SCHEMES(SCHEME_CALL, on_queue, s, p, queue_bytes, now_ns);
}

CORE_INLINE _Bool scheme_heeds_queue(u32 scheme, const void *s, const void *p, u32 queue_bytes,
				     u64 now_ns)
{
	WINDOW_SCHEMES(SCHEME_RETURN, heeds_queue, s, p, queue_bytes, now_ns);
	return 0;
}

CORE_INLINE _Bool scheme_is_clamping(u32 scheme, const void *s, const void *p, u64 now_ns)
{
	WINDOW_SCHEMES(SCHEME_RETURN, is_clamping, s, p, now_ns);
	return 0;
}

CORE_INLINE u64 scheme_tick_ns(u32 scheme, const void *p)
{
	WINDOW_SCHEMES(SCHEME_RETURN, tick_ns, p);
	return 0;
}

CORE_INLINE void scheme_on_tick(u32 scheme, void *s, const void *p, u32 queue_bytes,
				u64 total_bytes, u64 now_ns)
{
	WINDOW_SCHEMES(SCHEME_CALL, on_tick, s, p, queue_bytes, total_bytes, now_ns);
}

CORE_INLINE struct tcp_window scheme_on_ack(u32 scheme, const void *s, const void *p, u16 window,
					    u32 scale, u32 mss_bytes, u32 kind, u64 now_ns)
{
	WINDOW_SCHEMES(SCHEME_RETURN, on_ack, s, p, window, scale, mss_bytes, kind, now_ns);
	return tcp_window_as_is(window);
}

#define SCHEME_ON_FIRST_ACK(name, NAME, ...)                                                       \
	if (scheme == SCHEME_##NAME) {                                                             \
		struct name##_state first = *(const struct name##_state *)s;                       \
                                                                                                   \
		name##_on_flows(&first, flows);                                                    \
		return name##_on_ack(&first, p, window, scale, mss_bytes, kind, now_ns);           \
	}

/*
 * The same for a SYN-ACK or one of the first ACKs while handshakes are under way: `flows` is the
 * number if these counted, too. Flows that begin at once then share the window from the start, and
 * forged SYNs take nothing from the flows that are established.
 */
CORE_INLINE struct tcp_window scheme_on_first_ack(u32 scheme, const void *s, const void *p,
						  u32 flows, u16 window, u32 scale, u32 mss_bytes,
						  u32 kind, u64 now_ns)
{
	WINDOW_SCHEMES(SCHEME_ON_FIRST_ACK)
	return tcp_window_as_is(window);
}

CORE_INLINE u32 scheme_window_bytes(u32 scheme, const void *s, const void *p)
{
	WINDOW_SCHEMES(SCHEME_RETURN, window_bytes, s, p);
	return TCP_MAX_WINDOW;
}

CORE_INLINE u32 scheme_drops(u32 scheme, const void *p, u32 queue_bytes, u32 packet_bytes,
			     _Bool is_control)
{
	WINDOW_SCHEMES(SCHEME_RETURN, drops, p, queue_bytes, packet_bytes, is_control);
	return DATA_PASSES;
}

#endif
