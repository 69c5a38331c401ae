/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Grant (grant.h): which flow is served next, and with how much; how that is learned from the sizes
 * that have passed.
 */
#ifndef PENSTOCK_GRANT_ORDER_H
#define PENSTOCK_GRANT_ORDER_H

#include "grant_account.h"

CORE_INLINE u32 grant_last_level(const struct grant_params *p)
{
	return grant_levels(p) - 1;
}

/* The level of a message of so many bytes, of GRANT_LEVELS. */
CORE_INLINE u32 grant_level(u32 attained)
{
	return bits_taken(attained >> GRANT_FIRST_BITS);
}

/* That of a flow's message so far, of those in use. */
CORE_INLINE u32 grant_level_of(const struct grant_params *p, const struct grant_flow *f)
{
	return min_u32(grant_level(f->attained), grant_last_level(p));
}

struct grant_choice {
	u32 flow;
	u32 is_owed; /* 1: from `long_share` */
};

/* The flow to be served next, if any waits. */
CORE_INLINE struct grant_choice grant_choose(const struct grant_port *port,
					     struct grant_flow *flows)
{
	struct grant_choice out = {0, 0};
	u32 best, others, turn, after, owed, is_first;
	_Bool stays;

	if (!port->waiting)
		return out;
	best = port->order[bits_first(port->filled_at)] & (GRANT_LEVELS - 1);
	out.flow = port->lists[best].head;
	if (port->owed_q16 < port->turn_q16)
		return out;
	/*
	 * The level of `turn`, until all that waited there have been served, then the next in which
	 * flows wait: not the first level, nor `best` unless new messages overtake it. Of late
	 * flows one at a time: they may have nothing to send.
	 */
	turn = port->turn & (GRANT_LEVELS - 1);
	others = port->filled & ((1u << GRANT_LEVELS) - 2) & ~((1u << best) & ~port->overtaken);
	stays = grant_flow_at(flows, port->lists[turn].head)->since_ns < port->turn_ns &&
		turn != GRANT_LATE_LEVEL;
	after = (turn + !stays) & (GRANT_LEVELS - 1);
	others = (others | others << GRANT_LEVELS) >> after & ((1u << GRANT_LEVELS) - 1);
	owed = choose_u32(is_nonzero(others), (bits_first(others) + after) & (GRANT_LEVELS - 1), 0);
	/* The first level, too, may be behind others that never end, as of senders that push. */
	is_first = is_nonzero(best) & port->filled & 1;
	is_first &= (is_nonzero(owed) & is_nonzero(port->owed_grants % GRANT_FIRST_TURNS)) ^ 1;
	owed = choose_u32(is_first, GRANT_LEVELS, owed);
	if (!owed)
		return out;
	out.flow = port->lists[owed & (GRANT_LEVELS - 1)].head; /* GRANT_LEVELS: the first */
	out.is_owed = 1;
	return out;
}

/*
 * Bytes of a flow have passed. While none waits behind it, nor behind another that waits, none
 * lacks what another has: what long flows send alone would be owed to them when the next short one
 * comes, which would then have to wait.
 */
CORE_INLINE void grant_owe(struct grant_port *port, const struct grant_params *p,
			   const struct grant_flow *f, u32 bytes)
{
	u32 waiting = port->filled_at & ((1u << GRANT_LEVELS) - 1);
	u32 first = min_u32(port->place[f->level & (GRANT_LEVELS - 1)], bits_first(waiting)) & 15;
	s64 share_q16 = (s64)min_u32(bytes, GRANT_MAX_BUDGET) * grant_long_share_q16(p);
	s64 owed_q16 = port->owed_q16 + share_q16;

	/* Two grants gather at most, or short flows would wait long for them. */
	if (waiting >> first >> 1)
		port->owed_q16 = owed_q16 < 2 * port->turn_q16 ? owed_q16 : 2 * port->turn_q16;
}

/*
 * Few flows have more than `grant`, or it would limit them to so much per round trip, but this much
 * at most: those that have just begun are seldom alone. An application that writes message after
 * message begins each with what it had before.
 */
CORE_INLINE u32 grant_lead(const struct grant_flow *f)
{
	return max_u32(f->attained / GRANT_LEAD, f->run / GRANT_RUN_LEAD);
}

/* What of so many bytes is given at once: while one half of a burst leaves, the next is given. */
CORE_INLINE u32 grant_step(const struct grant_port *port, u32 bytes, u32 mss)
{
	u32 half = port->burst / 2;

	if (!half)
		return bytes;
	return min_u32(bytes, max_u32(half - half % mss, mss));
}

/*
 * Bytes to grant to a flow: as far as it is best served, and no more than half of the budget, so
 * that flows take turns; a third where that is small, or the link would idle between two grants.
 */
CORE_INLINE u32 grant_size(const struct grant_port *port, const struct grant_params *p,
			   const struct grant_flow *f)
{
	u32 mss = grant_mss(f), is_long = grant_is_overtaken(port, f);
	u32 budget = grant_budget_of(port, f), part = budget / (2 + is_long);
	u32 whole = max_u32(part - part % mss, 2 * mss);
	u32 grant = (u32)min_u64((u64)grant_grant_segments(p) * mss, GRANT_MAX_BUDGET);
	u32 others = max_u32(port->waiting + port->active, 1) - 1;
	u32 most = min_u32(f->size, min_u32(grant, is_long ? whole : part));
	u32 reach = port->reach[f->level & (GRANT_LEVELS - 1)] & (GRANT_LEVELS - 1);
	u32 left = grant_beyond((1u << (GRANT_FIRST_BITS + reach)) + mss - 1, f->attained);

	if (grant < part && f->size >= grant) {
		part = min_u32(budget / (2 + is_long + others), grant_lead(f));
		most = max_u32(grant, part - part % mss);
	}
	/* Whole segments; two, that the receiver acknowledges at once. */
	if (reach < GRANT_LEVELS - 1)
		most = min_u32(most, max_u32(left - left % mss, 2 * mss));
	return grant_step(port, max_u32(most, mss), mss);
}

/* How many levels a message of so many bytes has grown beyond; the last ends at 32 MiB. */
CORE_INLINE u32 grant_levels_passed(u32 attained)
{
	return grant_level(attained) +
	       is_nonzero(attained >> (GRANT_FIRST_BITS + GRANT_LEVELS - 1));
}

/* Counts the levels that a message grows beyond: most packets one, or none. */
CORE_INLINE void grant_count_passed(struct grant_port *port, u32 before, u32 after)
{
	u32 from = grant_levels_passed(before), to = grant_levels_passed(after), level;

	port->passed[from & (GRANT_LEVELS - 1)] += is_below(from, to);
	if (to <= from + 1)
		return;
	for (level = 0; level < GRANT_LEVELS; level++)
		port->passed[level] += is_below(from, level) & is_below(level, to);
}

/*
 * The first message of one who opened its connection was short, or not: a moving average over the
 * last of them, in 16ths.
 */
CORE_INLINE void grant_note_opener(struct grant_port *port, struct grant_flow *f, u32 is_short)
{
	u32 brief = port->brief;

	if (!(f->flags & GRANT_OPENER))
		return;
	f->flags ^= (u8)(GRANT_OPENER | choose_u32(is_short, GRANT_CLIENT, 0));
	port->brief = (u8)choose_u32(is_short, brief + (255 - brief + 15) / 16,
				     brief - (brief + 15) / 16);
}

/*
 * Where those who open connections begin with short messages, as requests are, they need no grant
 * for these: they may have what an idle flow has.
 */
CORE_INLINE _Bool grant_openers_are_brief(const struct grant_port *port)
{
	return port->brief >= GRANT_BRIEF;
}

/* A flow's message is over. */
CORE_INLINE void grant_end_message(struct grant_port *port, struct grant_flow *f)
{
	if (!f->attained)
		return;
	grant_note_opener(port, f, 1);
	port->messages++;
	port->ended[grant_level(f->attained)]++;
}

/* What follows from the order: levels behind the first, which is that of new messages; places. */
CORE_INLINE void grant_note_order(struct grant_port *port)
{
	u32 i, is_behind = 0, behind = 0, filled_at = port->filled & 3u << GRANT_LEVELS;

	for (i = 0; i < GRANT_LEVELS; i++) {
		u32 level = port->order[i] & (GRANT_LEVELS - 1);

		behind |= is_behind << level;
		is_behind |= !level;
		port->place[level] = (u8)i;
		filled_at |= (port->filled >> level & 1) << i;
	}
	port->overtaken = (u16)behind;
	port->filled_at = filled_at;
}

/*
 * Gittins index of a level: up to the end of which later level do most messages end per KiB that
 * they send until then? Q20. Those that are still in a level count for none (Kaplan, Meier 1958).
 * From level `known` on, beyond the largest that has ended, half of them end in each level, as if
 * GRANT_PRIOR messages had shown it: one that many have grown beyond comes after those that are not
 * known.
 */
CORE_INLINE u64 grant_index(const struct grant_port *port, u32 level, u32 known, u32 last,
			    u8 *reach)
{
	u64 left_q16 = Q16_ONE, ended_q16 = 0, work_q16 = 0, best = 0;
	u32 i;

	for (i = 0; i < GRANT_LEVELS; i++) {
		u32 prior = choose_u32(is_below(i, known), 0, GRANT_PRIOR / 2);
		u32 ended = port->ended[i] + prior, all = ended + port->passed[i] + prior;
		u32 is_part = is_below(level, i + 1) & is_below(i, last), is_better;
		u64 ends_q16, index;

		ends_q16 = choose_u64(is_part, left_q16 * ended / max_u32(all, 1), 0);
		ended_q16 += ends_q16;
		/* Those that end in a level send half of it on average. */
		work_q16 += choose_u64(is_part, left_q16 - ends_q16 / 2, 0)
			    << (GRANT_FIRST_BITS - 10 + (i ? i - 1 : 0));
		left_q16 -= ends_q16;
		index = (ended_q16 << 20) / max_u64(work_q16, 1);
		is_better = is_part & is_below(best, index);
		best = choose_u64(is_better, index, best);
		*reach = (u8)choose_u32(is_better, i, *reach);
	}
	return best;
}

/* Which part of what is granted is not used, as messages end before. */
CORE_INLINE void grant_learn_unused(struct grant_port *port)
{
	port->unused_q16 = (u32)min_u64((port->unused << 16) / max_u64(port->granted, 1), Q16_ONE);
	if (port->granted < GRANT_FORGET_BYTES)
		return;
	port->granted /= 2;
	port->unused /= 2;
}

/* An order of the levels, as struct grant_port has it. */
struct grant_lesson {
	u8 order[GRANT_LEVELS];
	u8 reach[GRANT_LEVELS];
};

/*
 * Orders the levels by the sizes that have passed; some thousand instructions, which change
 * nothing: the caller may look at a port that goes on. 0: there is nothing to learn.
 */
CORE_INLINE _Bool grant_study(const struct grant_port *port, const struct grant_params *p,
			      struct grant_lesson *out)
{
	u64 index[GRANT_LEVELS] = {0};
	u32 i, j, rank, known = 0, last = grant_last_level(p);

	if (!grant_learns(p) ||
	    port->messages + port->passed[GRANT_COMMON_LEVELS - 1] < GRANT_LEARN_FROM)
		return 0;
	for (i = 0; i < GRANT_LEVELS; i++)
		known = choose_u32(is_nonzero(port->ended[i]), i + 1, known);
	for (i = 0; i < GRANT_LEVELS; i++) {
		u8 reach = GRANT_LEVELS - 1;

		index[i] = grant_index(port, i, known, last, &reach);
		out->reach[i] = (u8)choose_u32(is_below(i, last), reach, port->reach[i]);
	}
	/* Of equal ones the higher level is first. */
	for (i = 0; i < GRANT_LEVELS; i++) {
		for (rank = 0, j = 0; j < GRANT_LEVELS; j++) {
			u32 is_before = choose_u32(is_below(i, j), is_below(index[j], index[i]) ^ 1,
						   is_below(index[i], index[j]));

			rank += is_below(j, last) & is_before;
		}
		rank = choose_u32(is_below(i, last), rank, i);
		out->order[rank & (GRANT_LEVELS - 1)] = (u8)i;
	}
	return 1;
}

/* The port follows a lesson, if there is one, and forgets a part of what it has seen. */
CORE_INLINE void grant_follow(struct grant_port *port, const struct grant_params *p,
			      const struct grant_lesson *lesson)
{
	u32 i;

	if (grant_learns(p))
		grant_learn_unused(port);
	if (!lesson)
		return;
	__builtin_memcpy(port->order, lesson->order, sizeof(port->order));
	__builtin_memcpy(port->reach, lesson->reach, sizeof(port->reach));
	grant_note_order(port);
	if (port->messages < GRANT_FORGET_AT)
		return;
	port->messages /= 2;
	for (i = 0; i < GRANT_LEVELS; i++) {
		port->ended[i] /= 2;
		port->passed[i] /= 2;
	}
}

CORE_INLINE void grant_learn(struct grant_port *port, const struct grant_params *p)
{
	struct grant_lesson lesson = {{0}, {0}};

	grant_follow(port, p, grant_study(port, p, &lesson) ? &lesson : 0);
}

#endif
