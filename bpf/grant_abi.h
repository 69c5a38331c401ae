/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Grant's programs and the agent share: the values of the maps `grant_config` and `grant_own`.
 *
 * A port has one object, loaded for it alone, and so its own maps of these names, which are pinned
 * in its folder. The maps of maps.h are those of all ports.
 */
#ifndef PENSTOCK_GRANT_ABI_H
#define PENSTOCK_GRANT_ABI_H

/* The value of an array map has at most 4 MiB, and what a lock guards is one value. */
#define GRANT_FLOWS 32768u

#include "../core/counters.h"
#include "../core/grant.h"

enum grant_abi {
	GRANT_SILENCED = 0, /* by the agent, for programs that may still run */
	GRANT_ABI = 9,
};

/* Map `grant_config`, one element; the agent writes it whole, then runs `grant_reset` if it
 * changed. */
struct grant_config {
	enum grant_abi abi; /* with anything but GRANT_ABI packets pass untouched */
	u32 mark;	    /* of carriers (grant_carrier.h), skb->mark; random, not 0 */
	u64 rate_bps;	    /* of the port, or the limit */
	u32 never_shrinks;  /* as in grant_init */
	u32 reserved;
	struct grant_params params;
};

/*
 * Since the port was attached; core/counters.h has their meanings. Those of grants are counted in
 * struct grant_port, where the agent reads them.
 */
#define GRANT_COUNTER(name, ...) u64 name;

struct grant_counters {
	CREDIT_COUNTERS(GRANT_COUNTER)
};

/* Map `grant_own`, one element. */
struct grant_own {
	struct bpf_spin_lock lock; /* around all of it */
	u32 serial;		   /* of the last flow that was opened */
	u32 cursor;		   /* the next entry that is looked at for idleness */
	u32 side;		   /* enum grant_side, of the flows */
	u64 learnt_ns;
	struct grant_counters counters;
	struct grant_port port;
	struct grant_flow flows[GRANT_FLOWS];
};

/* Two frames of IPv6 in VXLAN take 124. A power of two (head_bounded). */
#define GRANT_HEAD_BYTES 128u

/*
 * Map `grant_peers`, by the flow's number: the headers of an ACK to its sender (grant_peer.h). The
 * agent only keeps it.
 */
struct grant_peer {
	u8 head[GRANT_HEAD_BYTES + 4]; /* all above TCP's header; 0 behind */
	u32 pseudo;		       /* sum of TCP's pseudo header, not folded */
	u16 outer_pseudo;	       /* of a tunnel's UDP header */
	u16 protocol;		       /* of the frame, as on the wire */
	u16 source, destination;       /* TCP ports, as on the wire */
	u16 vlan_protocol;	       /* of a tag that the kernel keeps; 0: none */
	u16 vlan_tag;
	u8 head_bytes;
	u8 tcp_bytes;	/* 20, or 32 with timestamps */
	u8 udp;		/* offset of a tunnel's UDP header; 0: no tunnel */
	u8 is_reversed; /* from a packet of the data direction */
};

#endif
