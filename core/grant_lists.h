/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Grant (grant.h): the lists that flows are in, linked by their numbers.
 */
#ifndef PENSTOCK_GRANT_LISTS_H
#define PENSTOCK_GRANT_LISTS_H

#include "grant_state.h"

/* How often a flow's grant was sent again. */
CORE_INLINE u32 grant_resent(const struct grant_flow *f)
{
	return (f->flags & GRANT_RESENT) / GRANT_RESENT_1;
}

CORE_INLINE u32 grant_list_number(const struct grant_flow *f)
{
	if (f->state == GRANT_ACTIVE)
		return grant_resent(f) ? GRANT_LATE : GRANT_ON_TIME;
	return f->level & (GRANT_LEVELS - 1);
}

CORE_INLINE void grant_push(struct grant_port *port, struct grant_flow *flows, u32 index,
			    _Bool is_first)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	u32 number = grant_list_number(f);
	struct grant_list *list = &port->lists[number];
	u32 head = list->head, tail = list->tail;

	f->prev = is_first ? 0 : tail;
	f->next = is_first ? head : 0;
	if (!head) {
		list->head = list->tail = index;
		port->filled |= 1u << number;
		port->filled_at |= 1u << (port->place[number] & 31);
	} else if (is_first) {
		grant_flow_at(flows, head)->prev = index;
		list->head = index;
	} else {
		grant_flow_at(flows, tail)->next = index;
		list->tail = index;
	}
}

CORE_INLINE void grant_unlink(struct grant_port *port, struct grant_flow *flows, u32 index)
{
	struct grant_flow *f = grant_flow_at(flows, index);
	u32 number = grant_list_number(f);
	struct grant_list *list = &port->lists[number];

	if (f->prev)
		grant_flow_at(flows, f->prev)->next = f->next;
	else
		list->head = f->next;
	if (f->next)
		grant_flow_at(flows, f->next)->prev = f->prev;
	else
		list->tail = f->prev;
	if (list->head)
		return;
	port->filled &= ~(1u << number);
	port->filled_at &= ~(1u << (port->place[number] & 31));
}

/* A flow goes to the end of the list that it is in. */
CORE_INLINE void grant_to_end(struct grant_port *port, struct grant_flow *flows, u32 index)
{
	if (port->lists[grant_list_number(grant_flow_at(flows, index))].tail == index)
		return;
	grant_unlink(port, flows, index);
	grant_push(port, flows, index, 0);
}

#endif
