/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What SICC's shim and the agent share: the pairs of source and destination under ON, and the
 * messages that begin and end it.
 *
 * Map `sicc`, by slot: struct sicc_params of core/sicc.h. Map `sicc_pairs`: struct sicc_pair of
 * core/sicc.h by the keys below; of more than SICC_PAIRS the least recently used is forgotten, and
 * its flows are clamped no more.
 */
#ifndef PENSTOCK_SICC_ABI_H
#define PENSTOCK_SICC_ABI_H

#include "../core/sicc.h"

#define SICC_PAIRS 16384u

/* Of the controller's frames: a local experiment of IEEE 802, as penstock_sdn::message has it. */
#define SICC_ETHERTYPE 0x88b5

/* Ends of the data, IPv4 mapped to IPv6 (RFC 4291 §2.5.5.2), as on the wire. */
struct sicc_key {
	u32 source[4], destination[4];
	u32 port; /* its number, port_state.id */
};

/* INCAST_ON or INCAST_OFF for a pair. */
struct sicc_message {
	struct sicc_key pair;
	u32 order; /* enum sicc_order */
	u16 mss_bytes;
	u8 scale; /* TCP_SCALE_UNKNOWN: the flows' own alone */
	u8 reserved;
};

#define SICC_FRAME_BYTES 1500u

/* Map `sicc_frames`, by slot: the ring buffer of the agent, if it takes frames. */
struct sicc_frame {
	u32 bytes;		   /* of data */
	u8 data[SICC_FRAME_BYTES]; /* what follows the header of Ethernet */
};

#endif
