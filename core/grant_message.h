/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Grant (grant.h): where messages end. What TCP sends does not name it: a message ends with a short
 * segment, unless a window cut that segment, or where a request follows.
 */
#ifndef PENSTOCK_GRANT_MESSAGE_H
#define PENSTOCK_GRANT_MESSAGE_H

#include "grant_account.h"

/* `edge` is to move: up to here the flow's sender may have filled its window. */
CORE_INLINE void grant_note_edge(struct grant_flow *f)
{
	f->last = f->edge + grant_beyond(f->last, f->edge);
	f->shown = (u16)(min_u32(grant_beyond(f->most, f->last), grant_unit(f) - 1) |
			 (f->shown & GRANT_MAY_END));
}

CORE_INLINE void grant_forget_edge(struct grant_flow *f)
{
	f->last = f->seen - (1u << TCP_MAX_SCALE);
}

/*
 * How large the segments are. Those of a super-packet have the size that it names; of others, it
 * may be that of the SYN, of which options of each segment take up to GRANT_OPTION_BYTES: a full
 * one shows the rest.
 */
CORE_INLINE void grant_note_mss(struct grant_flow *f, const struct grant_packet *packet)
{
	u32 named = packet->mss;

	if (!named)
		return;
	if (packet->payload > named || named - f->mss > GRANT_OPTION_BYTES)
		f->mss = (u16)named;
	if (packet->payload <= named && packet->payload + GRANT_OPTION_BYTES >= named &&
	    !(packet->flags & TCP_FLAG_PSH))
		f->mss = (u16)packet->payload;
}

/*
 * Whether a segment that is new, up to `end`, ends a message: a short one, with PSH. It may have
 * been cut by the window of this grant or of the last, which may be larger than the credit, by less
 * than a unit of the scale; or be the rest of such a one. Between them may be many, as a sender
 * puts segments together before it cuts them. Data of a grant that was taken back ends behind the
 * edge. One that only lacks what options take may end it: then a request that follows shows that
 * it did.
 */
CORE_INLINE _Bool grant_ends_message(struct grant_flow *f, const struct grant_packet *packet,
				     u32 end)
{
	u32 mss = grant_mss(f), unit = grant_unit(f);
	u32 tail = packet->payload % mss, rest = (f->cut + tail) % mss;
	u32 shown = f->shown & (GRANT_MAY_END - 1);
	/* At the edge, or, as credit is taken back, at the furthest that its sender was shown. */
	_Bool is_at_edge = end - f->edge < unit || f->most - end < unit, may_end;
	_Bool is_cut = (!grant_beyond(f->edge, end) && is_at_edge) || end - f->last <= shown;

	f->shown = (u16)shown;
	if (!tail)
		return 0;
	f->cut = (u16)(is_cut ? rest : 0);
	may_end = packet->flags & TCP_FLAG_PSH && !is_cut && rest;
	f->shown |= (u16)choose_u32(may_end, GRANT_MAY_END, 0);
	return may_end && tail + GRANT_OPTION_BYTES < mss;
}

#endif
