/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs of a port and the agent share: the maps' values, field by field.
 *
 * One port has one set of maps, pinned under .../v1/INTERFACE/ by the names given here. A change
 * of layout needs another PENSTOCK_ABI, whose number is that of the folder.
 *
 * Times are CLOCK_MONOTONIC in nanoseconds, sizes bytes, counters since the port was attached.
 */
#ifndef PENSTOCK_ABI_H
#define PENSTOCK_ABI_H

#include "../core/counters.h"
#include "../core/flow_count.h"
#include "../core/schemes.h"

#define PENSTOCK_ABI 1u

/* Who decides what an ACK may say. */
enum port_scheme {
	PORT_OBSERVE = 0, /* nothing is rewritten */
	PORT_FAIRQ = 1,
	PORT_HSCC = 2,
	PORT_SCHEMES = 3,
};

enum port_flag {
	PORT_NEVER_SHRINKS = 1u << 0,  /* the right edge already offered is not taken back */
	PORT_COUNTS_PACKETS = 1u << 1, /* flows as printed: SYN-ACKs minus FINs */
	PORT_TELLS_FLOWS = 1u << 2,    /* flow_events: begin, transfers, end */
	PORT_BARE_IP = 1u << 3,	       /* the interface has no Ethernet header (tun, wireguard) */
};

/* Map `config`, one element; the agent writes it whole. */
struct port_config {
	u32 abi;	   /* PENSTOCK_ABI; anything else: pass untouched */
	u32 generation;	   /* from 1; another: the scheme's state begins anew, flows stay counted */
	u32 flags;	   /* enum port_flag */
	u32 wscale_source; /* enum wscale_source */
	u64 stale_ns;	   /* a heartbeat older than this: pass untouched; at least 1 */
	u64 idle_ns;	   /* a flow silent for so long is not counted; at least 1 */
	u32 buffer_bytes;  /* of the port's queue */
	u32 mark_bytes;	   /* ECN: mark CE from this queue on; 0: never */
	u32 first_acks;	   /* ACKs of a flow that count as its first */
	u32 network_scale; /* WSCALE_UNIFIED: 0 .. 14 */
	struct fairq_params fairq;
	struct hscc_params hscc;
};

/* Map `heartbeat`, one u64 element, mmapable: when the agent last was alive. */

#define PORT_STALL_NS 190000000ull /* just below Linux's least retransmission timeout */

/*
 * Map `counters`, per CPU, one element. Egress is out by the port, ingress in. A super-packet
 * (GSO, GRO) counts as the segments it stands for in egress_packets, as one elsewhere.
 */
struct port_counters {
	u64 egress_packets;
	u64 egress_bytes;
	u64 ingress_packets;
	u64 acks;	     /* TCP packets that came in with a window: ACK or SYN */
	u64 rewritten;	     /* of these, those whose window was lowered */
	u64 floored;	     /* of these, those that would have got less but for the floor */
	u64 first_rewritten; /* of the rewritten, SYN-ACKs and first ACKs */
	u64 kept_edge;	     /* windows left higher, not to shrink what was offered */
	u64 marked;	     /* ECN: packets marked CE */
	u64 syns;	     /* SYNs and SYN-ACKs, both directions, repeated ones included */
	u64 flows_begun;     /* counted: first SYN, or data after idleness */
	u64 flows_ended;     /* uncounted: FIN, RST, idleness */
	u64 zero_windows;    /* ACKs that came in with a window of zero, the receiver's own will */
	u64 clamps;	     /* HSCC: times that clamping began */
	u64 stalls; /* data or a SYN repeated after PORT_STALL_NS without a packet of its flow */
	u64 would_rewrite[PORT_SCHEMES]; /* by scheme: ACKs it would have lowered (observing) */
	u64 passed[PASS_REASONS];
};

/*
 * Map `depth`, per CPU: milliseconds by their longest queue; bucket b holds [2^(b-1), 2^b). Only
 * milliseconds in which something left, and once for each CPU that sent.
 */
#define DEPTH_BUCKETS 33u

/* Map `port`, one element. The agent only reads it. */
struct port_state {
	struct bpf_spin_lock lock; /* around flows .. hscc, and the phase of each flow */
	u32 generation;		   /* of the config that fairq and hscc began with */
	u64 next_tick_ns;	   /* FairQ's next interval */
	u32 flows;		   /* counted now */
	u32 window_bytes;	   /* FairQ's window; TCP_MAX_WINDOW where it does not act */
	u32 sweep;		   /* number of the present or last sweep, from 1 */
	u32 recount;		   /* flows found by it so far */
	u32 scheme;		   /* enum port_scheme of the programs that act */
	struct fairq_state fairq;
	struct hscc_state hscc;
	struct flow_counter counter; /* PORT_COUNTS_PACKETS */
	u64 queue_ns;		     /* when queue_bytes was read */
	u32 queue_bytes;	     /* last told; up to a millisecond old */
	u32 has_queue;		     /* 0: this kernel does not show the queue to the programs */
	u32 tracked;		     /* entries in flows4 and flows6, as the last sweep saw them */
	u32 corrected; /* flows that sweeps had to correct, as their entries were lost */
	u32 reserved;
};

/*
 * Ring buffer `samples`: one record for each CPU and millisecond in which something left by the
 * port, written when the next packet leaves: add up those of equal time_ns. Unread, the ring keeps
 * the oldest.
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
	u32 new_flows;
	u32 acks; /* that came in */
	u32 rewritten;
	u32 window_bytes; /* at its end; TCP_MAX_WINDOW where FairQ does not act */
	u32 would_fairq;  /* ACKs that FairQ would have lowered */
	u32 would_hscc;
	u32 reserved;
};

/* Keys of the maps `flows4` and `flows6` (LRU hashes): source and destination of the data. */
struct flow_key4 {
	u32 source, destination;	   /* as on the wire */
	u16 source_port, destination_port; /* as on the wire */
	u32 network;			   /* VLAN tags or VNI: overlapping addresses of tenants */
};

struct flow_key6 {
	u32 source[4], destination[4];
	u16 source_port, destination_port;
	u32 network;
};

/*
 * Their value. A transfer is what a flow sends until it is asked for more (payload comes back),
 * sends nothing for FLOW_TRANSFER_GAP_NS, or ends. It is followed with PORT_TELLS_FLOWS only.
 */
#define FLOW_TRANSFER_GAP_NS 1000000000ull /* longer than a first retransmission timeout */

struct port_flow {
	struct flow_entry entry;
	struct tcp_edge edge; /* offered to the sender, with PORT_NEVER_SHRINKS */
	u32 burst_us;	      /* when the present transfer began, microseconds, wraps */
	u32 last_us;	      /* when its last new payload passed */
	u32 burst_bytes;      /* its payload, repeated segments left out; 0: no transfer */
	u32 next_seq;	      /* just beyond the payload seen */
	u32 begun_ms;	      /* first packet seen, milliseconds, wraps */
	u16 swept;	      /* number of the last sweep that saw it; 0: none */
	u8 has_seq;	      /* 1: next_seq holds */
	u8 unified;	      /* by the shim: 1 + the scale its SYN was given; 0: its own */
};

_Static_assert(sizeof(struct port_flow) == 64, "a cache line");

/* Ring buffer `events`, with PORT_TELLS_FLOWS. A transfer of more than 2 GiB is told in pieces. */
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
