/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HSCC: hysteresis on the queue of a port clamps every flow to one segment per round trip.
 *
 * Source: HSCC §III-A (Fig. 3, Fig. 5b) and §III-B (sigma). Queue >= alpha2: CLAMP; queue <=
 * alpha1: FREE; between: as it was. In CLAMP every ACK that enters by the port gets
 * min(rwnd, clamp). CBR+ of Fig. 3 is CLAMP plus a loss and asks nothing of the switch.
 *
 * Two parameter sets. hscc_paper_params: as printed; thresholds at 1/4 and 1/2 of the buffer.
 * hscc_default_params adds what real TCP needs: the first flight is over before a queue shows, so
 * SYN-ACKs and the first ACKs of each flow are held to two segments in FREE too; thresholds are
 * 1/10 and 1/4; and after CLAMP the window opens step by step, so that the stored congestion
 * windows do not burst out together. The price: a lone short flow takes a few round trips more. A
 * burst on an old connection is not held before the queue shows it.
 *
 * A clamp holds only while the queue is reported: `expiry_ns` after the last hscc_on_queue every
 * ACK passes untouched, so a dead monitor cannot throttle for ever.
 *
 * Limit: more than (BDP + alpha2) / MSS flows overflow even at one segment each (630 flows in the
 * paper).
 */
#ifndef PENSTOCK_HSCC_H
#define PENSTOCK_HSCC_H

#include "tcp_rewrite.h"

#define HSCC_MAX_STEPS (1u << 20) /* intervals after which a release is surely over */

enum hscc_mode {
	HSCC_FREE = 0,
	HSCC_CLAMP = 1,
};

struct hscc_params {
	u64 expiry_ns;		 /* a clamp ends so long after the last queue report; 0: never */
	u64 release_interval_ns; /* time between steps of the release; at least 1 */
	u32 release_step_bytes;	 /* growth per interval after CLAMP; 0: the clamp just ends */
	u32 alpha1_bytes;	 /* FREE at or below; less than alpha2 */
	u32 alpha2_bytes;	 /* CLAMP at or above; at least 1 */
	u32 sigma_bytes;   /* data that would fill the queue beyond this is dropped; 0: none */
	u32 mss_bytes;	   /* segment size where a flow's is not known: 1 .. 65535 */
	u8 clamp_segments; /* window in CLAMP: 1 .. 255 MSS */
	u8 first_segments; /* window of SYN-ACKs and first ACKs at most; 0: not held */
};

/* A port. Prepare it with hscc_init. */
struct hscc_state {
	u64 queue_seen_ns; /* last hscc_on_queue */
	u64 released_ns;   /* when CLAMP last ended */
	u8 mode;	   /* enum hscc_mode */
	u8 is_released;	   /* 1: CLAMP has ended before, `released_ns` holds */
	u8 reserved[6];
};

CORE_INLINE struct hscc_params hscc_paper_params(u32 buffer_bytes)
{
	struct hscc_params params = {
		.release_interval_ns = 1000000,
		.alpha1_bytes = buffer_bytes / 4,
		.alpha2_bytes = max_u32(buffer_bytes / 2, 1),
		.mss_bytes = 1460,
		.clamp_segments = 1,
	};
	return params;
}

CORE_INLINE struct hscc_params hscc_default_params(u32 buffer_bytes)
{
	struct hscc_params params = hscc_paper_params(buffer_bytes);

	params.alpha1_bytes = buffer_bytes / 10;
	params.alpha2_bytes = max_u32(buffer_bytes / 4, 1);
	params.sigma_bytes = buffer_bytes - buffer_bytes / 32; /* HSCC §III-B: about 3 % reserved */
	params.expiry_ns = 100000000;
	params.release_interval_ns = 100000; /* a segment per round trip, as TCP itself grows */
	params.release_step_bytes = 1460;
	params.first_segments = 2;
	return params;
}

CORE_INLINE _Bool hscc_params_ok(const struct hscc_params *p)
{
	return p->release_interval_ns && p->alpha1_bytes < p->alpha2_bytes && p->mss_bytes &&
	       p->mss_bytes <= 65535 && p->clamp_segments;
}

CORE_INLINE void hscc_init(struct hscc_state *s)
{
	const struct hscc_state zero = {0};

	*s = zero;
}

/* The queue's length, on every packet or as often as it can be read. */
CORE_INLINE void hscc_on_queue(struct hscc_state *s, const struct hscc_params *p, u32 queue_bytes,
			       u64 now_ns)
{
	s->queue_seen_ns = now_ns;
	if (queue_bytes >= p->alpha2_bytes) {
		s->mode = HSCC_CLAMP;
	} else if (queue_bytes <= p->alpha1_bytes && s->mode == HSCC_CLAMP) {
		s->mode = HSCC_FREE;
		s->released_ns = now_ns;
		s->is_released = 1;
	}
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
	steps = elapsed_ns(s->released_ns, now_ns) / max_u64(p->release_interval_ns, 1);
	if (steps >= HSCC_MAX_STEPS)
		return TCP_MAX_WINDOW;
	/* At most 2^24 + 2^20 * 2^32. */
	return (u32)min_u64(clamp_bytes + steps * p->release_step_bytes, TCP_MAX_WINDOW);
}

/*
 * The window field for a passing ACK. `scale` and `mss_bytes` are those of its flow, the MSS 0 if
 * not known; `kind` is an enum tcp_ack_kind.
 */
CORE_INLINE struct tcp_window hscc_on_ack(const struct hscc_state *s, const struct hscc_params *p,
					  u16 window, u32 scale, u32 mss_bytes, u32 kind,
					  u64 now_ns)
{
	u32 mss = min_u32(max_u32(mss_bytes ? mss_bytes : p->mss_bytes, 1), 65535);
	u32 clamp = mss * max_u32(p->clamp_segments, 1);
	u32 floor = clamp;
	u32 limit = TCP_MAX_WINDOW;

	if (kind != TCP_ACK_LATER && p->first_segments) {
		limit = mss * p->first_segments;
		/* A first window of one segment would make Linux halve its MSS. */
		floor = max_u32(clamp, limit);
	}
	if (hscc_is_clamping(s, p, now_ns))
		limit = min_u32(limit, clamp);
	else
		limit = min_u32(limit, hscc_release_bytes(s, p, clamp, now_ns));
	return tcp_lower_window(window, kind == TCP_ACK_SYN ? 0 : scale, limit, floor);
}

/* Whether to drop an arriving packet to keep room for SYN, FIN, RST and pure ACKs (§III-B). */
CORE_INLINE _Bool hscc_drops(const struct hscc_params *p, u32 queue_bytes, u32 packet_bytes,
			     _Bool is_control)
{
	return p->sigma_bytes && !is_control && (u64)queue_bytes + packet_bytes > p->sigma_bytes;
}

#endif
