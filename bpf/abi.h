/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs of ports and the agent share: the values of the maps, field by field.
 *
 * All ports share the programs and the maps, which are pinned below .../vN/ by the names given
 * here. A port has a slot: its number in the maps that have an element for each port. A change of
 * layout needs another PENSTOCK_ABI, which is the N of the folder.
 *
 * A scheme is known by its number in core/schemes.h, SCHEME_NONE being `observe`: nothing is
 * rewritten. Times are CLOCK_MONOTONIC in nanoseconds, sizes bytes, counters since the port was
 * attached.
 */
#ifndef PENSTOCK_ABI_H
#define PENSTOCK_ABI_H

#include "../core/counters.h"
#include "../core/flow_counter.h"
#include "../core/handshake.h"
#include "../core/schemes.h"

enum port_abi {
	PORT_UNCONFIGURED = 0, /* before the agent writes the port's configuration */
	PENSTOCK_ABI = 5,
};

/*
 * Map `slots`: the slot of the interface with index I is at I modulo PORT_INDEXES, or at one of the
 * next PORT_PROBES - 1 elements. An element is valid if the configuration of that slot has the
 * index.
 *
 * A port's number has its slot in PORT_SLOT_MASK, and above it how often the slot was given away,
 * as entries may outlive a port.
 *
 * Map `stats`: maps per CPU, each of STATS_PORTS slots; the agent makes one when a slot of it is
 * used first, as for all slots they would be large on machines of many CPUs.
 */
enum port_slots {
	PORT_INDEXES = 65536,
	PORT_PROBES = 4,
	PORT_SLOT_MASK = 0xffff,
	STATS_PORTS = 16,
};

enum port_flag {
	PORT_FLOW_EVENTS = 1u << 0, /* ring buffer `events`: begin, transfers, end of flows */
	PORT_BARE_IP = 1u << 1,	    /* the interface has no Ethernet header (tun, wireguard) */
	PORT_DROPS = 1u << 2,	    /* the scheme may drop data (HSCC's sigma) */
	PORT_COUNTED = 1u << 3,	    /* a controller counts the flows: map `flow_counts` */
	PORT_IGNORE_VNI = 1u << 4,  /* a tunnel's identifier names a sender, not a network */
};

#define PORT_VXLANS 4u

/* Map `config`, by slot; the agent writes an element whole. */
struct port_config {
	enum port_abi abi; /* anything but PENSTOCK_ABI: pass untouched */
	u32 generation;	   /* from 1; if it changes, schemes are reset, but flows stay counted */
	u64 stale_ns;	   /* a heartbeat older than this: pass untouched; at least 1 */
	u64 pause_ns;	   /* from then on windows open in steps and packets pass untouched ... */
	u64 resume_ns;	   /* ... until then */
	u32 flags;	   /* enum port_flag */
	u32 buffer_bytes;  /* of the port's queue */
	u32 mark_bytes;	   /* ECN: mark CE from this queue on; 0: never */
	u16 vxlan_ports[PORT_VXLANS]; /* UDP, as on the wire; 0: none */
	u32 control_priority;	      /* of SYNs and pure ACKs, skb->priority; 0: theirs */
	u32 ifindex;		      /* of the port's interface; 0: none */
	u32 flows_max;		      /* entries of the port in flows4 and flows6 */
	u32 policy;		      /* 0: none; else 1 to 255, of map `policy` */
	u32 reserved;
	struct window_params window;
	struct scheme_params schemes;
};

/*
 * Map `policy`, two elements for each slot: which flows are controlled. The agent writes the one
 * that is not in use, 2 * slot + (number & 1), then its number, with which entries of flows are
 * stamped, into `config`.
 */
#define POLICY_RULES 32u

enum policy_kind {
	POLICY_IPV4 = 0, /* either end's address & mask == value; in the first word */
	POLICY_TCP = 1,	 /* a TCP port: value[0] to mask[0], of either end */
	POLICY_DSCP = 2, /* of the outer IP header of what leaves: value[0] */
	POLICY_MARK = 3, /* of the packet that leaves: & mask[0] == value[0] */
	POLICY_IPV6 = 4, /* as IPv4, all words */
};

struct policy_rule {
	u32 value[4], mask[4]; /* addresses as on the wire, the rest in host order */
	enum policy_kind kind;
	u32 includes; /* 0: excludes */
};

struct port_policy {
	u32 rules;    /* how many: first those that exclude */
	u32 includes; /* how many of these include; 0: all is included */
	u32 canary;   /* flows whose hash is above are held out; 0: none is */
	u32 number;   /* of this policy */
	u64 seed;     /* of the hash */
	struct policy_rule rule[POLICY_RULES];
};

enum policy_side {
	SIDE_CONTROLLED = 0,
	SIDE_HELD_OUT = 1, /* by the canary */
	SIDE_EXCLUDED = 2, /* by a rule */
};

/* Of the flows controlled and of those held out, while there is a policy. */
#define SIDES			  2u
#define CANARY_COUNTER(name, ...) u64 name;

struct side_counters {
	CANARY_COUNTERS(CANARY_COUNTER)
};

/* How the present packet is judged, as the stack of the programs has no room for it. */
struct judgement {
	struct side_counters before; /* the port's counters on this CPU */
	u32 policy;		     /* its number */
	u32 element;		     /* of map `policy` */
	u32 side;		     /* enum policy_side */
	u32 is_counted;		     /* 1: as a packet that is left alone */
};

/*
 * Map `flow_counts`, by slot: how many flows a controller has counted (FairQ §III-B). The port
 * never takes fewer than it has proven itself, and counts alone when the number is old.
 */
struct flow_count {
	u64 until_ns; /* it holds until then */
	u32 flows;
	u32 port; /* its number, port_state.id; of another port it is none */
};

/* Map `heartbeat`, a u64 by slot: when the agent was last alive. */

#define PORT_STALL_NS 190000000ull /* just below Linux's least retransmission timeout */

/*
 * The counters of one CPU: core/counters.h has their meanings. A super-packet (GSO,
 * GRO) counts as the segments it stands for in egress_packets, as one elsewhere.
 */
#define PORT_COUNTER(name, ...) u64 name;

struct port_counters {
	PORT_COUNTERS(PORT_COUNTER)
	u64 would_rewrite[SCHEMES]; /* while observing: ACKs that each scheme would have lowered */
	u64 passed[PASS_REASONS];   /* packets that passed without being looked at further */
};

#define DEPTH_BUCKETS 33u

/* The present millisecond as one CPU sees it. */
struct ms_sample {
	u64 end_ns;
	u32 queue_max, queue_last;
	struct port_counters before; /* at its begin */
};

/* The value of the maps in `stats`. */
struct port_stats {
	struct port_counters counters;
	/*
	 * Milliseconds by their longest queue; bucket b holds [2^(b-1), 2^b). Only milliseconds in
	 * which something left, and once for each CPU that sent.
	 */
	u64 depth[DEPTH_BUCKETS];
	struct ms_sample sample;
	struct side_counters sides[SIDES];
	struct judgement judged;
	struct flow_packet seen; /* the present packet, for the parts of a program that need it */
};

/* Map `port`, by slot. The agent writes it once, when a port gets the slot. */
struct port_state {
	struct bpf_spin_lock lock; /* around flows .. schemes, and the phase of each flow */
	u32 id;			   /* slot, and above it how often it was given away */
	u32 generation;		   /* of the config that the schemes were reset for */
	u32 scheme;		   /* enum window_scheme of the attached programs */
	u32 flows;		   /* counted now */
	u32 window_bytes;	   /* a flow's window; TCP_MAX_WINDOW if the scheme has none */
	u32 sweep;		   /* number of the present or last sweep, from 1 */
	u32 recount;		   /* flows found by it so far */
	u32 tracked;		   /* entries in flows4 and flows6 */
	u32 half_open;		   /* flows whose handshake is under way; set right by each sweep */
	u32 half_open_seen;	   /* of them, by the present sweep */
	u32 corrected; /* flows that sweeps had to correct, as their entries were lost */
	u32 queues;    /* of the device, if its root is only their sum; as of a millisecond ago */
	u32 half_own;  /* entries in the map of that name */
	u32 own_flows; /* as the port itself counts them ... */
	u32 counted;   /* ... and as a controller does; 0: none does */
	u64 next_tick_ns[SCHEMES];
	struct port_segments segments; /* of the data that leaves */
	struct scheme_states schemes;
	struct flow_counter counter; /* COUNTING_PACKETS */
	u64 sent_bytes;		     /* that left, up to a millisecond old */
	u64 queue_ns;		     /* when queue_bytes was read */
	u64 sweep_ns;		     /* when the last sweep began ... */
	u64 sweep_ms;		     /* ... and how long after the one before it */
	u32 queue_bytes;	     /* up to a millisecond old */
};

/*
 * Map `samples`, by slot: a ring buffer while the port is observed. One record for each CPU and
 * millisecond in which something left by the port, written when the next packet leaves: add up
 * those of equal time_ns. Unread, the ring keeps the oldest.
 */
struct port_sample {
	u64 time_ns; /* when the millisecond began */
	u32 cpu;
	u32 packets; /* that left */
	u32 bytes;
	u32 queue_max;	/* bytes, as packets found it */
	u32 queue_last; /* bytes */
	u32 drops;	/* of the port's qdisc so far, wraps */
	u32 flows;	/* counted at its end */
	u32 flows_begun;
	u32 acks; /* that came in */
	u32 acks_rewritten;
	u32 window_bytes;	    /* at its end, as in port_state */
	u32 would_rewrite[SCHEMES]; /* as in port_counters */
};

/* Keys of the maps `flows4` and `flows6`: source and destination of the data. */
struct flow_key4 {
	u32 source, destination;	   /* as on the wire */
	u16 source_port, destination_port; /* as on the wire */
	u32 network;			   /* VLAN tags or VNI: overlapping addresses of tenants */
	u32 port;			   /* its number, port_state.id */
};

struct flow_key6 {
	u32 source[4], destination[4];
	u16 source_port, destination_port;
	u32 network;
	u32 port;
};

/*
 * Their value. A transfer is what a flow sends until it gets a request (payload comes back), sends
 * nothing for FLOW_TRANSFER_GAP_NS, or ends. It is followed with PORT_FLOW_EVENTS only.
 */
#define FLOW_TRANSFER_GAP_NS 1000000000ull /* longer than a first retransmission timeout */

struct port_flow {
	struct flow_entry entry;
	union {
		struct tcp_edge edge; /* offered to the sender, with never_shrink */
		u32 credit;	      /* where programs keep an account of each flow: its number */
	};
	u32 burst_us;	 /* when the present transfer began, microseconds, wraps */
	u32 last_us;	 /* when its last new payload passed */
	u32 burst_bytes; /* its payload, repeated segments left out; 0: no transfer */
	u32 begun_ms;	 /* when it was proven, milliseconds, wraps */
	u16 swept;	 /* number of the last sweep that saw it; 0: none */
	u8 unified;	 /* by the shim: 1 + the scale its SYN was given; 0: its own */
	u8 side;	 /* enum policy_side, by what left last ... */
	u8 policy;	 /* ... under this policy of the configuration */
	u8 reserved[3];
};

_Static_assert(sizeof(struct port_flow) == 64, "a cache line");

/*
 * Maps `half_own` and, for what is beyond a port's share of that, `half_open` (LRU hash): flows
 * that are not proven yet, by flow_key6, IPv4 mapped to IPv6 (RFC 4291 §2.5.5.2). They are small,
 * as they hold what anybody may forge.
 */
struct port_half {
	struct handshake handshake;
	struct tcp_edge edge; /* offered by the SYN-ACK, with never_shrink */
	u8 unified;	      /* as in port_flow */
	u8 is_repeated;	      /* 1: its last SYN had passed before */
	u8 side, policy;      /* as in port_flow */
	u8 reserved[4];
};

/*
 * Map `known`, by flow_key6 (IPv4 mapped to IPv6): flows whose SYNs the programs have not seen.
 * Those of this host's sockets, with network and port 0, those that another version followed, and
 * those of a controller, with network 0.
 */
#define KNOWN_LIFE_NS 900000000000ull /* as long as idle flows stay: SWEEP_FORGET_NS */

struct flow_known {
	u64 seen_ns; /* when the socket was read, or the flow's last packet passed */
	u16 mss;     /* as in flow_entry */
	u8 scale[2]; /* as in flow_entry */
	u8 unified;  /* as in port_flow; such an entry stays as long as its port */
	u8 reserved[3];
};

/* Map `events`, by slot: a ring buffer while the port is observed with PORT_FLOW_EVENTS. A transfer
 * of more than 2 GiB takes several. */
enum flow_event_kind {
	FLOW_EVENT_BEGIN = 0,
	FLOW_EVENT_TRANSFER = 1, /* a transfer is over */
	FLOW_EVENT_END = 2,	 /* FIN of the data, RST, or the flow idled */
};

struct flow_event {
	u64 time_ns;  /* of a transfer's last new payload; else now */
	u64 begun_ns; /* of the transfer's first, or the flow's (to the millisecond) */
	u64 bytes;    /* payload of the transfer, else 0 */
	u32 source[4], destination[4]; /* IPv4 in the first word */
	u16 source_port, destination_port;
	u32 network;
	u8 family; /* 4 or 6 */
	u8 kind;   /* enum flow_event_kind */
	u8 reserved[6];
};

#endif
