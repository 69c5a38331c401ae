/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of all ports; abi.h has the types of their values.
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

/* So many ports, flows and shared records of half-open flows if the agent sets nothing else before
 * loading. */
#define PORTS	   64
#define FLOWS	   65536
#define FLOWS_HALF 8192

/*
 * Records that ports have for themselves, each the same share of them and at most HALF_PORT. With
 * 1024 ports, which is a default of the agent, 16 remain to each.
 */
#define HALF_OWN  16384u
#define HALF_PORT 4096u

PORT_ARRAY(slots, BPF_MAP_TYPE_ARRAY, u32, PORT_INDEXES, 0);
PORT_ARRAY(config, BPF_MAP_TYPE_ARRAY, struct port_config, PORTS, 0);
PORT_ARRAY(heartbeat, BPF_MAP_TYPE_ARRAY, u64, PORTS, 0);
PORT_ARRAY(port, BPF_MAP_TYPE_ARRAY, struct port_state, PORTS, 0);
PORT_ARRAY(flow_counts, BPF_MAP_TYPE_ARRAY, struct flow_count, PORTS, 0);
PORT_ARRAY(policy, BPF_MAP_TYPE_ARRAY, struct port_policy, 2 * PORTS, 0);

struct stats_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STATS_PORTS);
	__type(key, u32);
	__type(value, struct port_stats);
};

/* The first of them; the agent makes more as ports come. */
struct stats_map stats_first SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PORTS);
	__type(key, u32);
	__array(values, struct stats_map);
} stats SEC(".maps") = {.values = {[0] = &stats_first}};

/* Memory is taken by entries, not by the room for them. */
#define PORT_FLOWS(NAME, KEY)                                                                      \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                              \
		__uint(max_entries, FLOWS);                                                        \
		__type(key, KEY);                                                                  \
		__type(value, struct port_flow);                                                   \
	} NAME SEC(".maps")

PORT_FLOWS(flows4, struct flow_key4);
PORT_FLOWS(flows6, struct flow_key6);

#define HALF_OPEN(NAME, TYPE, ENTRIES, FLAGS)                                                      \
	struct {                                                                                   \
		__uint(type, TYPE);                                                                \
		__uint(map_flags, FLAGS);                                                          \
		__uint(max_entries, ENTRIES);                                                      \
		__type(key, struct flow_key6);                                                     \
		__type(value, struct port_half);                                                   \
	} NAME SEC(".maps")

/* What fits into the shares of ports, and is never evicted. */
HALF_OPEN(half_own, BPF_MAP_TYPE_HASH, HALF_OWN, BPF_F_NO_PREALLOC);
/* The rest, of all ports: the least recently used is evicted first. */
HALF_OPEN(half_open, BPF_MAP_TYPE_LRU_HASH, FLOWS_HALF, 0);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, FLOWS);
	__type(key, struct flow_key6);
	__type(value, struct flow_known);
} known SEC(".maps");

/* Of any size: the agent makes one for each port that is observed. */
struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

#define PORT_RINGS(NAME)                                                                           \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                          \
		__uint(max_entries, PORTS);                                                        \
		__type(key, u32);                                                                  \
		__array(values, struct ring_map);                                                  \
	} NAME SEC(".maps")

PORT_RINGS(samples);
PORT_RINGS(events);

enum record_state {
	RECORD_EMPTY = 0, /* not yet written, or behind the last */
	RECORD_USED = 1,
	RECORD_HOLE = 2,
};

/* The key of each entry of flows4 and flows6, next to each other, for sweeps. */
struct flow_record {
	union {
		struct flow_key4 v4;
		struct flow_key6 v6;
	} key;
	u16 family; /* 4 or 6 */
	u16 reserved;
	u32 state; /* enum record_state */
};

/* As many as there may be flows of all ports. */
PORT_ARRAY(records, BPF_MAP_TYPE_ARRAY, struct flow_record, FLOWS, 0);

/* Map `sweeps`, one element: the sweep of all ports. */
struct sweep_state {
	u32 records;	/* in use, or to be written; for moments beyond the last */
	u32 cursor;	/* the next record of the sweep */
	u32 number;	/* of the present or last sweep, from 1 */
	u32 phase;	/* enum sweep_phase */
	u32 is_running; /* 1: on some CPU */
	u32 has_half;	/* 1: there may be half-open flows */
	/* No bytes: puts these types into BTF, for the agent's skeleton. */
	struct port_sample sample_type[0];
	struct flow_event event_type[0];
	enum flow_event_kind event_kind_type[0];
	enum port_flag flag_type[0];
	enum port_slots slots_type[0];
};

PORT_ARRAY(sweeps, BPF_MAP_TYPE_ARRAY, struct sweep_state, 1, 0);

/* One element: the slots below this number may be in use. The agent writes it. */
PORT_ARRAY(slots_used, BPF_MAP_TYPE_ARRAY, u32, 1, 0);

#endif
