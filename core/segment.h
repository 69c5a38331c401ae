/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How large the segments of a flow or of a port are, by those that pass.
 *
 * The MSS option of a SYN is no more than an upper bound: segments are smaller where the path has a
 * smaller MTU, and anybody may offer 65495. Full segments show the size: those of a super-packet
 * (GSO, GRO), and those without PSH, which more data follows. Segments with PSH may be short
 * because the application wrote little; such a one counts only if it is larger than all known.
 *
 * A larger segment counts at once, as a window below one segment would stop its sender. After a
 * change to a smaller MTU, the size of a flow follows the eighth full segment in a row that is
 * shorter, and that of a port the largest full one of a second.
 */
#ifndef PENSTOCK_SEGMENT_H
#define PENSTOCK_SEGMENT_H

#include "params.h"

#define SEGMENT_PERIOD_NS 1000000000ull
#define SEGMENT_RUN	  7u /* shorter segments in a row that a flow's size outlives */

/* The segments of a port. All zero: none has passed. */
struct port_segments {
	u64 since_ns; /* when the present period began */
	u32 bytes;    /* the largest of this period and the one before it */
	u32 latest;   /* the largest of this period */
};

CORE_INLINE _Bool segment_heeds(const struct port_segments *port, u32 bytes, _Bool is_full,
				u64 now_ns)
{
	u32 size = min_u32(bytes, MAX_MSS_BYTES);

	return size > port->bytes ||
	       (size && is_full &&
		(size > port->latest || elapsed_ns(port->since_ns, now_ns) >= SEGMENT_PERIOD_NS));
}

/* A segment leaves by the port; periods begin with segments that are heeded. */
CORE_INLINE void segment_on_data(struct port_segments *port, u32 bytes, _Bool is_full, u64 now_ns)
{
	u32 size = min_u32(bytes, MAX_MSS_BYTES);

	if (!segment_heeds(port, bytes, is_full, now_ns))
		return;
	if (elapsed_ns(port->since_ns, now_ns) >= SEGMENT_PERIOD_NS) {
		port->since_ns = now_ns;
		port->bytes = port->latest;
		port->latest = 0;
	}
	port->bytes = max_u32(port->bytes, size);
	port->latest = max_u32(port->latest, size);
}

/*
 * A flow's size, in a word: the size in steps of eight bytes, rounded up, and in the bits below how
 * many shorter full segments have passed in a row. 0: no full one has passed.
 */
CORE_INLINE u16 segment_follow(u16 word, u32 bytes, _Bool is_full)
{
	u32 size = (min_u32(bytes, MAX_MSS_BYTES - SEGMENT_RUN) + SEGMENT_RUN) & ~SEGMENT_RUN;
	u32 known = word & ~SEGMENT_RUN;

	if (!is_full && (!known || size <= known))
		return word;
	if (size < known && (word & SEGMENT_RUN) < SEGMENT_RUN)
		return (u16)(word + 1);
	return (u16)size;
}

/*
 * The largest segment to expect of a flow; 0 unknown. `option_bytes` is the lesser of its SYNs'
 * options, 0 if they were not seen; `word` is that of segment_follow; the segments of its port
 * stand for its own until it has shown one.
 */
CORE_INLINE u32 segment_expected(u32 option_bytes, u16 word, u32 port_bytes)
{
	u32 seen = word & ~SEGMENT_RUN;
	u32 shown = max_u32(seen ? seen : port_bytes, DEFAULT_MSS_BYTES);

	if (!option_bytes)
		return seen ? shown : 0;
	return min_u32(option_bytes, shown);
}

#endif
