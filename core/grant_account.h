/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Grant (grant.h): the account of credit, what a flow's sender is shown of it, and a virtual queue.
 */
#ifndef PENSTOCK_GRANT_ACCOUNT_H
#define PENSTOCK_GRANT_ACCOUNT_H

#include "grant_lists.h"

/* The virtual queue: it drains while nothing passes, too. */
CORE_INLINE u32 grant_virtual_bytes(const struct grant_port *port, u64 now_ns)
{
	u64 drained = grant_bytes_in(port->rate_bps, elapsed_ns(port->drained_ns, now_ns));

	return port->virtual_bytes - (u32)min_u64(port->virtual_bytes, drained);
}

CORE_INLINE void grant_fill_virtual(struct grant_port *port, u32 bytes, u64 now_ns)
{
	port->virtual_bytes = grant_plus(grant_virtual_bytes(port, now_ns), bytes);
	port->drained_ns = max_u64(port->drained_ns, now_ns);
}

/* Credit leaves. */
CORE_INLINE void grant_give(struct grant_port *port, u32 bytes, u64 now_ns)
{
	port->granted += bytes;
	if (port->burst)
		grant_fill_virtual(port, bytes, now_ns);
}

/* What is taken from a flow's grant is not on the way. */
CORE_INLINE void grant_give_back(struct grant_port *port, u32 bytes)
{
	if (port->burst)
		port->virtual_bytes -= min_u32(port->virtual_bytes, bytes);
}

/* Takes a flow out of the list that its state has it in. */
CORE_INLINE void grant_leave(struct grant_port *port, struct grant_flow *flows, u32 index)
{
	struct grant_flow *f = grant_flow_at(flows, index);

	if (f->state == GRANT_WAITING) {
		port->waiting--;
	} else if (f->state == GRANT_ACTIVE) {
		port->active--;
		grant_give_back(port, grant_beyond(f->edge, f->seen));
	} else {
		return;
	}
	grant_unlink(port, flows, index);
}

/* Takes a flow's credit out of the sums, before anything changes that it follows from. */
CORE_INLINE void grant_take_credit(struct grant_port *port, struct grant_flow *f)
{
	port->outstanding -= f->credit;
	if (grant_resent(f))
		port->late -= f->credit;
	f->credit = 0;
}

/* Puts it back as it is now. What was written counts, not what was meant. */
CORE_INLINE void grant_put_credit(struct grant_port *port, struct grant_flow *f)
{
	if (f->state != GRANT_ACTIVE)
		return;
	f->credit = max_u32(grant_beyond(f->edge, f->seen), grant_beyond(f->most, f->seen));
	port->outstanding += f->credit;
	if (grant_resent(f))
		port->late += f->credit;
}

/*
 * The window field for an ACK with this number, and the edge that its sender sees by it. Rounded
 * up, but where a unit would be more than a waiting flow was shown: ACK by ACK it would go on.
 */
CORE_INLINE u16 grant_window(const struct grant_port *port, struct grant_flow *f, u32 ack,
			     u16 window)
{
	u32 shift = min_u32(f->scale, TCP_MAX_SCALE);
	_Bool waits = f->state == GRANT_WAITING;
	u32 left = grant_beyond(waits ? f->seen : f->edge, ack);
	u64 field;

	if (port->never_shrinks)
		left = max_u32(left, grant_beyond(f->most, ack));
	field = ((u64)left + (1u << shift) - 1) >> shift;
	if (waits && !port->never_shrinks && grant_beyond(ack + (u32)(field << shift), f->most))
		field = left >> shift;
	field = min_u64(field, window);
	f->most += grant_beyond(ack + (u32)(field << shift), f->most);
	return (u16)field;
}

/* The right edge that its receiver offers. */
CORE_INLINE u32 grant_offered(const struct grant_flow *f)
{
	return f->ack + tcp_window_bytes(f->window, f->scale);
}

/* The receiver itself has no room. */
CORE_INLINE _Bool grant_is_shut(const struct grant_flow *f)
{
	return !grant_beyond(grant_offered(f), f->seen);
}

/* What its receiver does not offer is no credit, until the flow asks again. */
CORE_INLINE void grant_heed_receiver(struct grant_port *port, struct grant_flow *f)
{
	u32 refused =
		min_u32(grant_beyond(f->edge, grant_offered(f)), grant_beyond(f->edge, f->seen));

	if (f->state != GRANT_ACTIVE || grant_resent(f) || !refused)
		return;
	f->edge -= refused;
	port->granted -= min_u64(port->granted, refused);
	grant_give_back(port, refused);
}

/* All up to `seq` has passed; nothing is left so far behind that it would seem to be ahead. */
CORE_INLINE void grant_see(struct grant_flow *f, u32 seq)
{
	u32 fresh = grant_beyond(seq, f->seen);

	if (grant_beyond(f->edge, f->seen) < fresh)
		f->edge = seq;
	if (grant_beyond(f->most, f->seen) < fresh)
		f->most = seq;
	if (!grant_beyond(seq, f->ack))
		f->ack = seq;
	f->seen = seq;
}

#endif
