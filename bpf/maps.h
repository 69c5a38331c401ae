/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of a port; abi.h has the types of their values.
 */
#ifndef PENSTOCK_MAPS_H
#define PENSTOCK_MAPS_H

#include "abi.h"

#define PORT_ARRAY(NAME, TYPE, VALUE, ENTRIES, FLAGS)                                              \
	struct {                                                                                   \
		__uint(type, TYPE);                                                                \
		__uint(max_entries, ENTRIES);                                                      \
		__uint(map_flags, FLAGS);                                                          \
		__type(key, u32);                                                                  \
		__type(value, VALUE);                                                              \
	} NAME SEC(".maps")

PORT_ARRAY(config, BPF_MAP_TYPE_ARRAY, struct port_config, 1, 0);
PORT_ARRAY(heartbeat, BPF_MAP_TYPE_ARRAY, u64, 1, BPF_F_MMAPABLE);
PORT_ARRAY(port, BPF_MAP_TYPE_ARRAY, struct port_state, 1, 0);
PORT_ARRAY(counters, BPF_MAP_TYPE_PERCPU_ARRAY, struct port_counters, 1, 0);
PORT_ARRAY(depth, BPF_MAP_TYPE_PERCPU_ARRAY, u64, DEPTH_BUCKETS, 0);

/* The present millisecond as one CPU sees it. */
struct ms_sample {
	u64 end_ns;
	u32 queue_max, queue_last;
	struct port_counters before; /* at its begin */
	/* No bytes: puts the types of the rings' records into BTF, for the agent's skeleton. */
	struct port_sample sample_type[0];
	struct flow_event event_type[0];
};

PORT_ARRAY(ms_samples, BPF_MAP_TYPE_PERCPU_ARRAY, struct ms_sample, 1, 0);

/* The agent may set other sizes before loading; the least recently used is evicted first. */
#define PORT_FLOWS(NAME, KEY)                                                                      \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_LRU_HASH);                                               \
		__uint(max_entries, 65536);                                                        \
		__type(key, KEY);                                                                  \
		__type(value, struct port_flow);                                                   \
	} NAME SEC(".maps")

PORT_FLOWS(flows4, struct flow_key4);
PORT_FLOWS(flows6, struct flow_key6);

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow_key6);
	__type(value, struct port_half);
} half_open SEC(".maps");

#define PORT_RING(NAME, BYTES)                                                                     \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_RINGBUF);                                                \
		__uint(max_entries, BYTES);                                                        \
	} NAME SEC(".maps")

PORT_RING(samples, 1 << 20);
PORT_RING(events, 1 << 22);

#endif
