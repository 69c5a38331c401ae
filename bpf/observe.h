/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Observation: a sample of each millisecond, and the histogram of their longest queues.
 *
 * It costs a packet a comparison or two: the sums of a millisecond are the differences of the CPU's
 * counters between its begin and its end.
 */
#ifndef PENSTOCK_OBSERVE_H
#define PENSTOCK_OBSERVE_H

#include "queue.h"

#define MS_SAMPLE_NS 1000000ull

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

static __always_inline void ms_sample_copy(struct port_sample *sample,
					   const struct ms_sample *current,
					   const struct port_counters *counted)
{
	const struct port_counters *before = &current->before;

	sample->time_ns = current->end_ns - MS_SAMPLE_NS;
	sample->packets = (u32)(counted->egress_packets - before->egress_packets);
	sample->bytes = (u32)(counted->egress_bytes - before->egress_bytes);
	sample->queue_max = current->queue_max;
	sample->queue_last = current->queue_last;
	sample->flows_begun = (u32)(counted->flows_begun - before->flows_begun);
	sample->acks = (u32)(counted->acks - before->acks);
	sample->acks_rewritten = (u32)(counted->acks_rewritten - before->acks_rewritten);
	for (u32 scheme = 0; scheme < SCHEMES; scheme++)
		sample->would_rewrite[scheme] =
			(u32)(counted->would_rewrite[scheme] - before->would_rewrite[scheme]);
}

static __always_inline void depth_count(struct port_stats *stats, u32 bytes)
{
	u32 bucket = depth_bucket(bytes);

	asm volatile("" : "+r"(bucket)); /* or clang drops the bound, which the verifier requires */
	if (bucket < DEPTH_BUCKETS)
		stats->depth[bucket]++;
}

/* Writes the sample of a millisecond that is over, and begins the next. */
static __noinline int ms_sample_close(struct __sk_buff *skb, struct port_state *port,
				      struct port_stats *stats, u64 now_ns)
{
	struct port_counters *counted = &stats->counters;
	struct ms_sample *current = &stats->sample;
	struct port_sample *sample = 0;
	void *ring;
	u32 slot;

	if (!port->queues) /* of many there is their sum (queue_of_all) */
		port->queue_bytes = current->queue_last;
	port->queues = queue_count(skb);
	if (current->end_ns) {
		depth_count(stats, current->queue_max);
		slot = port->id & PORT_SLOT_MASK;
		ring = bpf_map_lookup_elem(&samples, &slot);
		if (ring)
			sample = bpf_ringbuf_reserve(ring, sizeof(*sample), 0);
		if (sample) {
			ms_sample_copy(sample, current, counted);
			sample->cpu = bpf_get_smp_processor_id();
			sample->drops = queue_drops(skb);
			sample->flows = port->flows;
			sample->window_bytes = port->window_bytes;
			bpf_ringbuf_submit(sample, 0);
		}
	}
	__sync_fetch_and_add(&port->sent_bytes,
			     counted->egress_bytes - current->before.egress_bytes);
	__builtin_memcpy(&current->before, counted, sizeof(*counted));
	current->end_ns = now_ns - now_ns % MS_SAMPLE_NS + MS_SAMPLE_NS;
	current->queue_max = 0;
	return 0;
}

/* A packet leaves; call it before the packet is counted. */
static __always_inline void ms_sample_follow(struct __sk_buff *skb, struct port_state *port,
					     struct port_stats *stats, u32 queue_bytes, u64 now_ns)
{
	struct ms_sample *current = &stats->sample;

	if (now_ns >= current->end_ns)
		ms_sample_close(skb, port, stats, now_ns);
	if (queue_bytes > current->queue_max)
		current->queue_max = queue_bytes;
	current->queue_last = queue_bytes;
}

#endif
