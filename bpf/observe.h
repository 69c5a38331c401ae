/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What operators see: each millisecond as a sample, and the histogram of their longest queues.
 *
 * A packet pays for a comparison or two: the sums of a millisecond are the differences of the
 * CPU's counters between its begin and its end.
 */
#ifndef PENSTOCK_OBSERVE_H
#define PENSTOCK_OBSERVE_H

#include "queue.h"

#define MOMENT_NS 1000000ull

static __always_inline u32 depth_bucket(u32 bytes)
{
	u32 bucket = 0;

	if (!bytes)
		return 0;
	for (u32 step = 16; step; step >>= 1) {
		if (bytes >> step) {
			bytes >>= step;
			bucket += step;
		}
	}
	return bucket + 1;
}

static __always_inline void moment_copy(struct port_sample *sample, const struct moment *moment,
					const struct port_counters *counted)
{
	const struct port_counters *before = &moment->before;

	sample->time_ns = moment->end_ns - MOMENT_NS;
	sample->packets = (u32)(counted->egress_packets - before->egress_packets);
	sample->bytes = (u32)(counted->egress_bytes - before->egress_bytes);
	sample->queue_max = moment->queue_max;
	sample->queue_last = moment->queue_last;
	sample->new_flows = (u32)(counted->flows_begun - before->flows_begun);
	sample->acks = (u32)(counted->acks - before->acks);
	sample->rewritten = (u32)(counted->rewritten - before->rewritten);
	sample->would_fairq =
		(u32)(counted->would_rewrite[PORT_FAIRQ] - before->would_rewrite[PORT_FAIRQ]);
	sample->would_hscc =
		(u32)(counted->would_rewrite[PORT_HSCC] - before->would_rewrite[PORT_HSCC]);
	sample->reserved = 0;
}

/* A millisecond is over: told, and the next begins. */
static __noinline int moment_close(struct __sk_buff *skb, struct port_state *port,
				   struct moment *moment, struct port_counters *counted, u64 now_ns)
{
	struct port_sample *sample;
	u64 *milliseconds;
	u32 bucket;

	if (!port || !moment || !counted)
		return 0;
	port->queue_bytes = moment->queue_last;
	port->has_queue = has_kernel_view();
	if (moment->end_ns) {
		bucket = depth_bucket(moment->queue_max);
		milliseconds = bpf_map_lookup_elem(&depth, &bucket);
		if (milliseconds)
			++*milliseconds;
		sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);
		if (sample) {
			moment_copy(sample, moment, counted);
			sample->cpu = bpf_get_smp_processor_id();
			sample->drops = queue_drops(skb);
			sample->flows = port->flows;
			sample->window_bytes = port->window_bytes;
			bpf_ringbuf_submit(sample, 0);
		}
	}
	__builtin_memcpy(&moment->before, counted, sizeof(*counted));
	moment->end_ns = now_ns - now_ns % MOMENT_NS + MOMENT_NS;
	moment->queue_max = 0;
	return 0;
}

/* A packet leaves; call it before the packet is counted. */
static __always_inline void moment_follow(struct __sk_buff *skb, struct port_state *port,
					  struct port_counters *counted, u32 queue_bytes,
					  u64 now_ns)
{
	u32 first = 0;
	struct moment *moment = bpf_map_lookup_elem(&moments, &first);

	if (!moment)
		return;
	if (now_ns >= moment->end_ns)
		moment_close(skb, port, moment, counted, now_ns);
	if (queue_bytes > moment->queue_max)
		moment->queue_max = queue_bytes;
	moment->queue_last = queue_bytes;
}

#endif
