/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Grant (grant.h): flows whose grants have no effect, as their servers are late or packets are
 * lost.
 */
#ifndef PENSTOCK_GRANT_LATE_H
#define PENSTOCK_GRANT_LATE_H

#include "grant_credit.h"

/*
 * A flow whose grant has no effect, for too long or though the link has idled for a while and
 * others wait: then no queue holds its data, its sender has none.
 */
CORE_INLINE u32 grant_without_effect(const struct grant_port *port, const struct grant_params *p,
				     struct grant_flow *flows, u32 queue_bytes, u64 now_ns)
{
	u32 late = port->lists[GRANT_LATE].head, active = port->lists[GRANT_ON_TIME].head;
	const struct grant_flow *f = grant_flow_at(flows, late);
	_Bool is_queued = now_ns < port->queued_ns;
	u64 resend_ns = port->resend_ns << (is_queued ? GRANT_QUEUED_BITS : 0);

	/* What was taken back is to be followed by the allowance. */
	if (late && (f->edge == f->seen || elapsed_ns(f->since_ns, now_ns) >= resend_ns))
		return late;
	f = grant_flow_at(flows, active);
	if (elapsed_ns(f->since_ns, now_ns) >= resend_ns)
		return active;
	if (is_queued || !port->waiting || grant_queue_bytes(port, p, queue_bytes, now_ns))
		return 0;
	if (elapsed_ns(port->busy_ns, now_ns) >> GRANT_IDLE_BITS < port->idle_ns ||
	    elapsed_ns(f->since_ns, now_ns) < port->idle_ns)
		return 0;
	return active;
}

/*
 * Whether a late flow may keep its allowance, which is in no account from then on: what lapses in a
 * while is to fit the rest of the buffer.
 */
CORE_INLINE _Bool grant_may_lapse(struct grant_port *port, u64 now_ns)
{
	if (port->never_shrinks)
		return 1;
	if (port->lapse_ns > now_ns + GRANT_LAPSE_NS)
		return 0;
	port->lapse_ns = max_u64(port->lapse_ns, now_ns) + port->lapse_gap_ns;
	return 1;
}

/*
 * It waits again for as much as it might keep: once at the end of its level, then behind all that
 * are not late. What comes of its sender in the meantime puts it among the others.
 */
CORE_INLINE void grant_ask_again(struct grant_port *port, const struct grant_params *p,
				 struct grant_flow *flows, u32 index, u32 allowance, u64 now_ns)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	u32 level = f->flags & GRANT_QUIET ? GRANT_LATE_LEVEL : grant_level_of(p, f);

	grant_note_edge(f);
	grant_take_credit(port, f);
	f->size = allowance;
	f->flags |= GRANT_QUIET;
	grant_wait(port, flows, index, now_ns, level, 0);
	f->edge = f->most = f->seen;
}

/* Such a flow's grant is sent again, taken back, or lapses; or it waits again. */
CORE_INLINE struct grant_action grant_remind(struct grant_port *port, const struct grant_params *p,
					     struct grant_flow *flows, u32 index, u64 now_ns)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	u32 mss = grant_mss(f), unit = grant_unit(f);
	u32 left = grant_beyond(f->edge, f->seen), allowance = grant_allowance(p, f);
	u32 least = max_u32(allowance, mss);
	_Bool takes_back;

	if (grant_resent(f) == GRANT_RESENDS) {
		if (grant_may_lapse(port, now_ns)) {
			if (f->flags & GRANT_SILENT)
				f->flags |= GRANT_QUIET;
			port->lapses++;
			grant_make_idle(port, p, flows, index);
		} else {
			port->resends++;
			grant_ask_again(port, p, flows, index, least, now_ns);
		}
		return grant_write(port, f, index);
	}
	grant_take_credit(port, f);
	grant_unlink(port, flows, index);
	/*
	 * Linux takes a smaller window for the same data only if it is 0, so that one comes before
	 * the allowance. Otherwise another window than before, but once: of three that are alike
	 * the last may count as the third duplicate ACK (RFC 5681 §2), and what a late flow has
	 * been shown it may send at any time.
	 */
	takes_back = !grant_resent(f) && left > least + unit && !port->never_shrinks;
	if (!grant_resent(f))
		grant_note_edge(f);
	if (takes_back) {
		grant_give_back(port, left);
		port->doubt = grant_plus(port->doubt, left);
		f->edge = f->most = f->seen;
	} else if (!left) {
		f->edge += least;
	} else if (!grant_resent(f)) {
		f->edge += unit;
	}
	/* What it has used of its grant, doubled, is what it may use of the next. */
	if (!grant_resent(f) && !(f->flags & GRANT_SILENT))
		f->size = max_u32(f->size - min_u32(f->size, left), mss) * 2;
	f->flags += GRANT_RESENT_1;
	f->since_ns = now_ns;
	grant_push(port, flows, index, takes_back);
	grant_put_credit(port, f);
	port->resends++;
	return grant_write(port, f, index);
}

#endif
