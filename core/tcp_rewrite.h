/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Penstock may change in a TCP header: the receive window, the bits that carry its scale, and
 * the checksum that follows from them.
 *
 * Sources: RFC 7323 §2 (window scale), RFC 1624 eqn. 3 (checksum), RFC 9293 §3.8.6.2.1 (a window
 * should not shrink), FairQ §III-B (three ways for a switch to learn the scale).
 *
 * Invariants: a window is never raised, and never written below the floor, at least one segment
 * where the scheme has one, unless it was below already. Windows are rounded up to the scale,
 * because at a scale of 10 a segment of 1448 bytes rounded down is 1024: the sender would wait for
 * its persist timer. Schemes can round down first, as FairQ prints it.
 *
 * It does not parse packets and knows no flows. Header words are in host byte order, unless stated
 * otherwise.
 */
#ifndef PENSTOCK_TCP_REWRITE_H
#define PENSTOCK_TCP_REWRITE_H

#include "params.h"

/* Flags of the 14th header byte (RFC 9293 §3.1). */
#define TCP_FLAG_FIN 0x01u
#define TCP_FLAG_SYN 0x02u
#define TCP_FLAG_RST 0x04u
#define TCP_FLAG_PSH 0x08u
#define TCP_FLAG_ACK 0x10u

#define TCP_MAX_SCALE	  14u	/* RFC 7323 §2.3: larger shifts count as 14 */
#define TCP_SCALE_UNKNOWN 0xffu /* the SYN was not seen: leave the window alone */
#define TCP_MAX_WINDOW	  (65535u << TCP_MAX_SCALE) /* bytes */

/* Where in the life of a flow an ACK stands; the first ones decide the first flight. */
enum tcp_ack_kind {
	TCP_ACK_LATER = 0, /* any other ACK */
	TCP_ACK_FIRST = 1, /* among the first ACKs after the handshake */
	TCP_ACK_SYN = 2,   /* a SYN or SYN-ACK: its window is never scaled (RFC 7323 §2.2) */
};

/* A window field as it leaves. */
struct tcp_window {
	u16 window; /* the field's value, as on the wire */
	u8 changed; /* 1: lower than it came, the checksum must follow */
	u8 floored; /* 1: changed, and less would have been written but for the floor */
};

/* Bytes that a window field stands for. */
CORE_INLINE u32 tcp_window_bytes(u16 window, u32 scale)
{
	return (u32)window << min_u32(scale, TCP_MAX_SCALE);
}

CORE_INLINE struct tcp_window tcp_window_as_is(u16 window)
{
	struct tcp_window same = {window, 0, 0};
	return same;
}

/*
 * Lowers a window field to max(limit, floor) bytes, rounded up to the scale; leaves it if it is
 * not above that, or if the scale is unknown.
 */
CORE_INLINE struct tcp_window tcp_lower_window(u16 window, u32 scale, u32 limit_bytes,
					       u32 floor_bytes)
{
	struct tcp_window out = tcp_window_as_is(window);
	u32 shift = min_u32(scale, TCP_MAX_SCALE);
	u64 bytes = max_u32(limit_bytes, floor_bytes);
	u64 field = (bytes + (1u << shift) - 1) >> shift;

	if (scale == TCP_SCALE_UNKNOWN || field >= window)
		return out;
	out.window = (u16)field;
	out.changed = 1;
	out.floored = limit_bytes < floor_bytes;
	return out;
}

/* For schemes that write `limit >> scale`, as FairQ prints it; the rest of a unit is lost. */
CORE_INLINE u32 tcp_round_down(u32 bytes, u32 scale)
{
	u32 shift = min_u32(scale, TCP_MAX_SCALE);

	return bytes >> shift << shift;
}

#define TCP_RELEASE_STEPS   8u
#define TCP_RELEASE_STEP_NS 5000000ull

/*
 * The window `since_ns` after its scheme ended, which `wanted` to hold it: doubled every 5 ms from
 * two segments on, for 40 ms, then as offered; of DEFAULT_MSS_BYTES if their size is not known.
 * Senders held for long have large congestion windows and would all burst into the queue at once.
 */
CORE_INLINE struct tcp_window tcp_release_window(struct tcp_window wanted, u16 window, u32 scale,
						 u32 mss_bytes, u64 since_ns)
{
	u64 step = since_ns / TCP_RELEASE_STEP_NS;
	u32 mss = mss_in_range(mss_bytes ? mss_bytes : DEFAULT_MSS_BYTES);
	struct tcp_window out = tcp_window_as_is(window);

	if (step < TCP_RELEASE_STEPS)
		out = tcp_lower_window(window, scale, mss << (step + 1), 0);
	return out.window > wanted.window ? out : wanted;
}

/* The right edge of the window as a sender was shown it. All zero before the first. */
struct tcp_edge {
	u32 seq;      /* sequence number just beyond the window */
	u32 is_known; /* 1: `seq` holds */
};

/*
 * Never-shrink: the `wanted` window, as a scheme lowered `window`, but no less than what `edge`
 * has offered beyond `ack` (RFC 9293 §3.8.6.2.1), rounded up to the scale, since rounded down it
 * would be taken back (RFC 7323 §2.4); and the edge moves on. A receiver's own shrinking passes.
 * Zero the edge at a SYN, then ask for a SYN-ACK with a scale of 0.
 */
CORE_INLINE struct tcp_window tcp_keep_edge(struct tcp_edge *edge, u32 ack, u16 window, u32 scale,
					    struct tcp_window wanted)
{
	struct tcp_window out = wanted;
	u32 shift = min_u32(scale, TCP_MAX_SCALE);
	u32 owed = edge->is_known ? edge->seq - ack : 0;
	u32 field;

	if (scale == TCP_SCALE_UNKNOWN)
		return out;
	/* The edge is before `ack` (RFC 9293 §3.4), or from before it went round. */
	if (owed > 2 * tcp_window_bytes(0xffff, shift))
		owed = 0;
	field = min_u32((owed + (1u << shift) - 1) >> shift, window);
	if (field > wanted.window) {
		out.window = (u16)field;
		out.changed = field < window;
		out.floored = 0;
	}
	if (tcp_window_bytes(out.window, shift) >= owed) {
		edge->seq = ack + tcp_window_bytes(out.window, shift);
		edge->is_known = 1;
	}
	return out;
}

/*
 * Checksum after one 16-bit word of the segment changed (RFC 1624 eqn. 3): ~(~HC + ~m + m'). Any
 * word will do: the window, or the word of data offset, reserved bits and flags. The three values
 * may be in network order if all are.
 */
CORE_INLINE u16 tcp_checksum_update(u16 checksum, u16 old_word, u16 new_word)
{
	u32 sum = (u16)~checksum + (u32)(u16)~old_word + new_word;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u16)~sum;
}

/*
 * The same for one byte, such as the value of the scale option, which may stand at any offset.
 * `offset` counts from the start of the TCP header; the checksum is in host order.
 */
CORE_INLINE u16 tcp_checksum_update_byte(u16 checksum, u32 offset, u8 old_byte, u8 new_byte)
{
	u32 shift = offset & 1 ? 0 : 8;

	return tcp_checksum_update(checksum, (u16)(old_byte << shift), (u16)(new_byte << shift));
}

/*
 * Window scale 1: the four reserved bits of the word at byte 12 (data offset, reserved, flags).
 * The shim puts the scale into outgoing ACKs, ports read it, and the shim at the other end clears
 * it, or the last port (FairQ §IV-C); the checksum is right again once cleared, so none touches it.
 * Not for networks with Accurate ECN, which owns the lowest of these bits. Bits of 0 read as scale
 * 0.
 */
CORE_INLINE u16 tcp_reserved_put_scale(u16 offset_flags, u32 scale)
{
	return (u16)((offset_flags & 0xf0ffu) | min_u32(scale, TCP_MAX_SCALE) << 8);
}

CORE_INLINE u32 tcp_reserved_scale(u16 offset_flags)
{
	return (offset_flags >> 8) & 0xfu;
}

CORE_INLINE u16 tcp_reserved_clear(u16 offset_flags)
{
	return (u16)(offset_flags & 0xf0ffu);
}

/*
 * Window scale 2: the upper four bits of the window field; the window keeps twelve. Windows
 * above 4095 are lowered to 4095, which is 4 kB at scale 0: for receivers with a scale of 5 or
 * more. The switch restores a plain field with tcp_window12_window before it rewrites.
 */
CORE_INLINE u16 tcp_window12_put(u16 window, u32 scale)
{
	return (u16)(min_u32(scale, TCP_MAX_SCALE) << 12 | min_u32(window, 0xfffu));
}

CORE_INLINE u32 tcp_window12_scale(u16 field)
{
	return field >> 12;
}

CORE_INLINE u16 tcp_window12_window(u16 field)
{
	return field & 0xfffu;
}

/*
 * Window scale 3: one scale for the whole network. The shim writes it as the value of the scale
 * option of every SYN and SYN-ACK that has one, and then writes each later window in that scale.
 * Here it rounds down, as a receiver's offer must not grow: up to 2^network_scale - 1 bytes are
 * lost, so choose a network scale of at most 7.
 */
CORE_INLINE u16 tcp_unify_window(u16 window, u32 own_scale, u32 network_scale)
{
	u32 bytes = tcp_window_bytes(window, own_scale);

	return (u16)min_u32(bytes >> min_u32(network_scale, TCP_MAX_SCALE), 0xffffu);
}

#endif
