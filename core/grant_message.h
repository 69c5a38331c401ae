/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Grant (grant.h): where messages end. What TCP sends does not name it: a message ends with a short
 * segment, unless a window cut that segment.
 */
#ifndef PENSTOCK_GRANT_MESSAGE_H
#define PENSTOCK_GRANT_MESSAGE_H

#include "grant_account.h"

/* `edge` is to move: up to here the flow's sender may have filled its window. */
CORE_INLINE void grant_note_edge(struct grant_flow *f)
{
	f->last = f->edge + grant_beyond(f->last, f->edge);
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
 * been cut by the window of this grant or of the last, which is larger than the credit by less than
 * a unit of the scale; or be the rest of such a one. Between them may be many, as a sender puts
 * segments together before it cuts them.
 */
CORE_INLINE _Bool grant_ends_message(struct grant_flow *f, const struct grant_packet *packet,
				     u32 end)
{
	u32 mss = grant_mss(f), unit = grant_unit(f);
	u32 tail = packet->payload % mss, rest = (f->cut + tail) % mss;
	_Bool is_cut = !grant_beyond(f->edge, end) || end - f->last < unit;

	if (!tail)
		return 0;
	f->cut = is_cut ? rest : 0;
	return packet->flags & TCP_FLAG_PSH && !is_cut && rest && tail + GRANT_OPTION_BYTES < mss;
}

#endif
