/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * FairQ: one window per output port, shared evenly by the flows and written into their ACKs.
 *
 * Source: FairQ Algorithm 1, §III-A, §III-B (several paths), §IV-E (avg_32). Corrected: the test
 * `beta >= 0` at a FIN means `> 0`; gamma and the tick count restart with each window change.
 *
 * The controller nears a queue of alpha * B: every T, gamma += (1 - Q / (alpha B)) * mss / M; after
 * M of these the window grows by gamma / flows. Slow start lasts until Q first reaches the target.
 * The window moves with the number of flows, so that flows * window stays.
 *
 * Two parameter sets. fq_paper_params: as printed, slow start adds 2 MSS to every flow's window.
 * fq_default_params: it adds 2 MSS / flows, as otherwise each new burst overshoots; the first ACKs
 * keep two segments, as Linux never sends more than half of the largest window it was shown, as
 * long as the buffer holds as much of every flow. In both, SYN-ACKs are rewritten too (they are
 * ACKs, unscaled), the controller's own window is not held to the floor, and what is written never
 * falls below one segment.
 *
 * It does not count flows (flow_count.h) nor read queues. Beyond (buffer + BDP) / MSS flows the
 * floor binds and the buffer overflows, as with any scheme that only writes windows. The window
 * counts in 1/256 byte: of gamma / flows less than that is lost per change.
 */
#ifndef PENSTOCK_FAIRQ_H
#define PENSTOCK_FAIRQ_H

#include "tcp_rewrite.h"

#define FQ_SAMPLES	     32u	/* FairQ §IV-E: avg_32 */
#define FQ_MAX_FLOWS	     (1u << 24) /* the count saturates here */
#define FQ_MAX_INTERVALS     65535u
#define FQ_MAX_PATHS	     65535u
#define FQ_MAX_WINDOW_Q8     ((u64)TCP_MAX_WINDOW << 8)
#define FQ_MAX_SEGMENT_BYTES 65535u

struct fq_params {
	u64 interval_ns;	 /* T: the caller's timer; at least 1 */
	u32 buffer_bytes;	 /* B: at least 1 */
	u32 alpha_q16;		 /* target queue / B: 1 .. 65536, and alpha * B at least 1 byte */
	u32 intervals;		 /* M, intervals per window change: 1 .. 65535 */
	u32 mss_bytes;		 /* segment size until data was seen: 1 .. 65535 */
	u32 paths;		 /* equal-cost paths that share the window: 1 .. 65535 */
	u8 shares_slow_start;	 /* 1: slow start adds 2 MSS / flows; 0: 2 MSS, as printed */
	u8 floor_segments;	 /* least window written: 1 .. 255 MSS */
	u8 first_floor_segments; /* the same for SYN-ACKs and first ACKs: 1 .. 255 MSS */
	u8 is_averaged;		 /* 1: Q is the mean of 32 fq_on_sample; 0: what fq_on_tick tells */
};

/* A port. Prepare it with fq_init. */
struct fq_state {
	u64 window_q8;		 /* window of one flow, 1/256 byte */
	s64 gamma_q8;		 /* increment gathered for all flows, 1/256 byte */
	u64 sample_sum;		 /* of `samples` */
	u32 target_bytes;	 /* alpha * B */
	u32 flows;		 /* beta */
	u32 mss_bytes;		 /* largest payload seen */
	u32 ticks;		 /* Gamma: intervals since the last window change */
	u32 samples[FQ_SAMPLES]; /* the last queue lengths, a ring */
	u8 next_sample;
	u8 in_slow_start;
	u8 has_data; /* 1: mss_bytes was seen, not assumed */
	u8 reserved[5];
};

CORE_INLINE struct fq_params fq_default_params(u32 buffer_bytes)
{
	struct fq_params params = {
		.interval_ns = 100000,
		.buffer_bytes = buffer_bytes,
		.alpha_q16 = Q16_ONE / 4,
		.intervals = 10,
		.mss_bytes = 1460,
		.paths = 1,
		.shares_slow_start = 1,
		.floor_segments = 1,
		.first_floor_segments = 2,
	};
	return params;
}

CORE_INLINE struct fq_params fq_paper_params(u32 buffer_bytes)
{
	struct fq_params params = fq_default_params(buffer_bytes);

	params.shares_slow_start = 0;
	params.first_floor_segments = 1;
	return params;
}

CORE_INLINE _Bool fq_params_ok(const struct fq_params *p)
{
	return p->interval_ns && p->alpha_q16 && p->alpha_q16 <= Q16_ONE &&
	       fraction_of(p->buffer_bytes, p->alpha_q16) && p->intervals &&
	       p->intervals <= FQ_MAX_INTERVALS && p->mss_bytes &&
	       p->mss_bytes <= FQ_MAX_SEGMENT_BYTES && p->paths && p->paths <= FQ_MAX_PATHS &&
	       p->shares_slow_start <= 1 && p->floor_segments && p->first_floor_segments &&
	       p->is_averaged <= 1;
}

CORE_INLINE void fq_restart(struct fq_state *s)
{
	s->window_q8 = min_u64((u64)s->target_bytes << 8, FQ_MAX_WINDOW_Q8);
	s->in_slow_start = 1;
}

/* Prepares a port without flows. Parameters outside their ranges count as the nearest in range. */
CORE_INLINE void fq_init(struct fq_state *s, const struct fq_params *p)
{
	const struct fq_state zero = {0};

	*s = zero;
	s->target_bytes = max_u32(fraction_of(p->buffer_bytes, p->alpha_q16), 1);
	s->mss_bytes = min_u32(max_u32(p->mss_bytes, 1), FQ_MAX_SEGMENT_BYTES);
	fq_restart(s);
}

/*
 * Takes a new number of flows. The window goes as the inverse of it; from or to no flow at all it
 * starts again at the target with slow start. A step of n equals n steps of one.
 */
CORE_INLINE void fq_set_flows(struct fq_state *s, u32 flows)
{
	u32 now = min_u32(flows, FQ_MAX_FLOWS);

	if (now == s->flows)
		return;
	if (s->flows == 0 || now == 0)
		fq_restart(s);
	/* At most 2^38 * 2^24. One division per flow that comes or goes. */
	if (now)
		s->window_q8 = min_u64(s->window_q8 * max_u32(s->flows, 1) / now, FQ_MAX_WINDOW_Q8);
	s->flows = now;
}

/* A flow came (delta > 0) or went (delta < 0), as flow_on_packet and flow_expire tell. */
CORE_INLINE void fq_on_flow(struct fq_state *s, s32 delta)
{
	if (delta > 0)
		fq_set_flows(s, s->flows + 1);
	else if (delta < 0 && s->flows > 0)
		fq_set_flows(s, s->flows - 1);
}

/* A data packet leaves by the port: the largest payload is taken for the MSS. */
CORE_INLINE void fq_on_data(struct fq_state *s, u32 payload_bytes)
{
	u32 payload = min_u32(payload_bytes, FQ_MAX_SEGMENT_BYTES);

	if (payload && (!s->has_data || payload > s->mss_bytes)) {
		s->mss_bytes = payload;
		s->has_data = 1;
	}
}

/* One sample of the queue for the mean; the FPGA takes one every 48 us. */
CORE_INLINE void fq_on_sample(struct fq_state *s, u32 queue_bytes)
{
	u32 slot = s->next_sample & (FQ_SAMPLES - 1);

	s->sample_sum += queue_bytes;
	s->sample_sum -= s->samples[slot];
	s->samples[slot] = queue_bytes;
	s->next_sample = (u8)((slot + 1) & (FQ_SAMPLES - 1));
}

/* Adds up to `step` or takes away, staying in 0 .. FQ_MAX_WINDOW_Q8. */
CORE_INLINE void fq_move_window(struct fq_state *s, u64 step, _Bool is_up)
{
	if (is_up)
		s->window_q8 = min_u64(s->window_q8 + step, FQ_MAX_WINDOW_Q8);
	else
		s->window_q8 -= min_u64(s->window_q8, step);
}

CORE_INLINE void fq_change_window(struct fq_state *s, const struct fq_params *p)
{
	u64 flows = max_u32(s->flows, 1);
	u64 two_segments_q8 = (u64)s->mss_bytes << 9;

	if (s->in_slow_start)
		fq_move_window(s, p->shares_slow_start ? two_segments_q8 / flows : two_segments_q8,
			       1);
	else if (s->flows == 0)
		return; /* gamma / flows is not defined; the first flow restarts the window */
	else if (s->gamma_q8 >= 0)
		fq_move_window(s, (u64)s->gamma_q8 / flows, 1);
	else
		fq_move_window(s, (u64)-s->gamma_q8 / flows, 0);
}

/* Every T, with the length of the output queue. */
CORE_INLINE void fq_on_tick(struct fq_state *s, const struct fq_params *p, u32 queue_bytes)
{
	u32 mean = (u32)(s->sample_sum / FQ_SAMPLES);
	/* A queue longer than the buffer is a misreading; it also bounds gamma: |kappa| < 2^16. */
	u32 queue = min_u32(p->is_averaged ? mean : queue_bytes, p->buffer_bytes);
	u32 target = max_u32(s->target_bytes, 1);
	u32 intervals = min_u32(max_u32(p->intervals, 1), FQ_MAX_INTERVALS);
	u32 drift = queue < target ? target - queue : queue - target;
	/* kappa * mss / M: at most 2^24 * 2^32 before the division. */
	s64 step_q8 = (s64)(((u64)s->mss_bytes << 8) * drift / ((u64)target * intervals));

	s->gamma_q8 += queue < target ? step_q8 : -step_q8;
	if (++s->ticks >= intervals) {
		fq_change_window(s, p);
		s->gamma_q8 = 0;
		s->ticks = 0;
	}
	if (queue >= target)
		s->in_slow_start = 0;
}

/* The window a flow may have now, bytes; the floor is not applied. */
CORE_INLINE u32 fq_window_bytes(const struct fq_state *s, const struct fq_params *p)
{
	u64 window_q8 = p->paths > 1 ? s->window_q8 / p->paths : s->window_q8;

	return (u32)min_u64(window_q8 >> 8, TCP_MAX_WINDOW);
}

/* Whether the buffer holds such a window of every flow, rounded up to the scale as written. */
CORE_INLINE _Bool fq_all_fit(const struct fq_state *s, const struct fq_params *p, u32 window_bytes,
			     u32 scale)
{
	u32 unit = 1u << min_u32(scale, TCP_MAX_SCALE);
	u64 written = ((u64)window_bytes + unit - 1) & ~(u64)(unit - 1);

	return written * s->flows <= p->buffer_bytes;
}

/*
 * The window field for a passing ACK. `scale` and `mss_bytes` are those of its flow, the MSS 0 if
 * not known; `kind` is an enum tcp_ack_kind. Count a SYN-ACK's flow before asking. Where the first
 * ACKs' floor would fill the buffer, theirs is that of the others.
 */
CORE_INLINE struct tcp_window fq_on_ack(const struct fq_state *s, const struct fq_params *p,
					u16 window, u32 scale, u32 mss_bytes, u32 kind)
{
	u32 mss = mss_bytes ? min_u32(mss_bytes, FQ_MAX_SEGMENT_BYTES) : s->mss_bytes;
	u32 shift = kind == TCP_ACK_SYN ? 0 : scale;
	u32 floor = mss * max_u32(p->floor_segments, 1);
	u32 first = mss * max_u32(p->first_floor_segments, 1);

	if (kind != TCP_ACK_LATER && fq_all_fit(s, p, first, shift))
		floor = first;
	return tcp_lower_window(window, shift, fq_window_bytes(s, p), floor);
}

#endif
