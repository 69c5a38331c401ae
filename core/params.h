/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables in which a scheme defines its parameters, one row each:
 *
 *	#define X_PARAMS(P, X) \
 *		P(X, UNIT, key, min, max, default, paper, "What it means") \
 *		...
 *	PARAMS(x, X_PARAMS)
 *
 * PARAMS makes `struct x_params`, `x_default_params`, `x_paper_params`, and for each row a function
 * that reads the field, held to its range. crates/core/c/definitions.c makes the same rows into
 * data, from which come keys of scenarios, ranges, JSON Schema, options and tables of the docs; so
 * does it with X_TITLE, one line about the scheme, with X_ORDER, the pairs of parameters of which
 * the first must be below the second, and with X_VARIANTS: what a paper prints elsewhere, as
 * V(X, variant, key, value) for each parameter in which that differs from the column `paper`.
 *
 * The unit gives the type of the value in the table and in scenarios, and the field in C:
 *
 *	unit		value in the table	field		in C
 *	TIME		NS() .. SECONDS()	key_ns		nanoseconds
 *	SHARE		0.25			key_q16		1/65536
 *	RATE		100e6			key_bps		bits per second
 *	BUFFER_SHARE	0.25			key_bytes	that share of the buffer
 *	BUFFER_LIMIT	0.97			key_bytes	the same; 0 for all of it: no limit
 *	SEGMENTS	2			key_segments
 *	SEGMENT_BYTES	2 (segments)		key_bytes	times mss_bytes
 *	COUNT		10			key
 *	AMOUNT		1 (packets)		key, key_in_bytes: 0 if packets
 *	FLAG		0, 1			key
 *	ENUM		one of a list		key; `min` is the list (PARAM_ENUM)
 *
 * A parameter whose default is below its minimum may be absent. The values are constants, decimal
 * shares too: nothing here computes with floating point when it runs.
 */
#ifndef PENSTOCK_PARAMS_H
#define PENSTOCK_PARAMS_H

#include "types.h"

#define NS(n)	   ((u64)(n))
#define US(n)	   ((u64)(n)*1000u)
#define MS(n)	   ((u64)(n)*1000000u)
#define SECONDS(n) ((u64)(n)*1000000000u)

/* A default time of `n` round trips of the network, or `otherwise` where these are not known. */
#define RTTS(n, otherwise) ((u64)(n) << 56 | (otherwise))
#define PARAM_RTTS(time)   ((time) >> 56)
#define PARAM_NS(time)	   ((time) & ~(0xffull << 56))

#define MAX_TIME SECONDS(1000000) /* 11 days */
#define ABOVE_0	 0x1p-17	  /* the least share; it rounds up to 1/65536 */

/* Segment size until a flow's is known, and the largest. */
#define DEFAULT_MSS_BYTES 1460u
#define MIN_MSS_BYTES	  536u /* RFC 9293 §3.7.1: without the option; less is not believed */
#define MAX_MSS_BYTES	  65535u

/* The value of an ENUM's list, `#define X_LIST(E) E(X_VALUE, "word", "What it means") ...`. */
#define PARAM_ENUM(value, word, meaning) value,

/* By unit: the name of the field. */
#define PARAM_FIELD_TIME(key)	       key##_ns
#define PARAM_FIELD_SHARE(key)	       key##_q16
#define PARAM_FIELD_RATE(key)	       key##_bps
#define PARAM_FIELD_BUFFER_SHARE(key)  key##_bytes
#define PARAM_FIELD_BUFFER_LIMIT(key)  key##_bytes
#define PARAM_FIELD_SEGMENTS(key)      key##_segments
#define PARAM_FIELD_SEGMENT_BYTES(key) key##_bytes
#define PARAM_FIELD_COUNT(key)	       key
#define PARAM_FIELD_AMOUNT(key)	       key
#define PARAM_FIELD_FLAG(key)	       key
#define PARAM_FIELD_ENUM(key)	       key

/* By unit: its type. */
#define PARAM_TYPE_TIME		 u64
#define PARAM_TYPE_SHARE	 u32
#define PARAM_TYPE_RATE		 u64
#define PARAM_TYPE_BUFFER_SHARE	 u32
#define PARAM_TYPE_BUFFER_LIMIT	 u32
#define PARAM_TYPE_SEGMENTS	 u32
#define PARAM_TYPE_SEGMENT_BYTES u32
#define PARAM_TYPE_COUNT	 u32
#define PARAM_TYPE_AMOUNT	 u32
#define PARAM_TYPE_FLAG		 u32
#define PARAM_TYPE_ENUM		 u32

/* By unit: a value of the table as the field holds it, at a port of this buffer and segment. */
#define PARAM_RAW_TIME(value, buffer, mss)  PARAM_NS(value)
#define PARAM_RAW_SHARE(value, buffer, mss) ((u32)((value)*65536 + 0.5))
#define PARAM_RAW_RATE(value, buffer, mss)  ((u64)(value))
#define PARAM_RAW_BUFFER_SHARE(value, buffer, mss)                                                 \
	((u32)((u64)(buffer) * (u32)((value)*1000000 + 0.5) / 1000000u))
#define PARAM_RAW_BUFFER_LIMIT(value, buffer, mss)                                                 \
	((value) < 1 ? PARAM_RAW_BUFFER_SHARE(value, buffer, mss) : 0)
#define PARAM_RAW_SEGMENTS(value, buffer, mss)	    ((u32)(value))
#define PARAM_RAW_SEGMENT_BYTES(value, buffer, mss) ((u32)(value) * (mss))
#define PARAM_RAW_COUNT(value, buffer, mss)	    ((u32)(value))
#define PARAM_RAW_AMOUNT(value, buffer, mss)	    ((u32)(value))
#define PARAM_RAW_FLAG(value, buffer, mss)	    ((u32)(value))
#define PARAM_RAW_ENUM(value, buffer, mss)	    ((u32)(value))

/* By unit: the range of the field. */
#define PARAM_RANGE_TIME(min, max)	    PARAM_NS(min), PARAM_NS(max)
#define PARAM_RANGE_SHARE(min, max)	    PARAM_RAW_SHARE(min, 0, 0), PARAM_RAW_SHARE(max, 0, 0)
#define PARAM_RANGE_RATE(min, max)	    PARAM_RAW_RATE(min, 0, 0), PARAM_RAW_RATE(max, 0, 0)
#define PARAM_RANGE_BUFFER_SHARE(min, max)  (min) > 0, 0xffffffffu
#define PARAM_RANGE_BUFFER_LIMIT(min, max)  0, 0xffffffffu
#define PARAM_RANGE_SEGMENTS(min, max)	    min, max
#define PARAM_RANGE_SEGMENT_BYTES(min, max) 0, 0xffffffffu
#define PARAM_RANGE_COUNT(min, max)	    min, max
#define PARAM_RANGE_AMOUNT(min, max)	    min, max
#define PARAM_RANGE_FLAG(min, max)	    0, 1
#define PARAM_RANGE_ENUM(list, max)	    0, max

#define PARAM_PASTE_(a, b) a##_##b
#define PARAM_PASTE(a, b)  PARAM_PASTE_(a, b)

/* A row as a member of the struct. */
#define PARAM_MEMBER(scheme, unit, key, ...)                                                       \
	PARAM_TYPE_##unit PARAM_FIELD_##unit(key);                                                 \
	PARAM_MEMBER_MORE_##unit(key)
#define PARAM_MEMBER_MORE_TIME(key)
#define PARAM_MEMBER_MORE_SHARE(key)
#define PARAM_MEMBER_MORE_RATE(key)
#define PARAM_MEMBER_MORE_BUFFER_SHARE(key)
#define PARAM_MEMBER_MORE_BUFFER_LIMIT(key)
#define PARAM_MEMBER_MORE_SEGMENTS(key)
#define PARAM_MEMBER_MORE_SEGMENT_BYTES(key)
#define PARAM_MEMBER_MORE_COUNT(key)
#define PARAM_MEMBER_MORE_AMOUNT(key) u32 key##_in_bytes;
#define PARAM_MEMBER_MORE_FLAG(key)
#define PARAM_MEMBER_MORE_ENUM(key)

/* A row as initializers; `buffer_bytes` and `mss_bytes` are in scope. */
#define PARAM_DEFAULT(scheme, unit, key, min, max, standard, paper, meaning)                       \
	.PARAM_FIELD_##unit(key) = PARAM_RAW_##unit(standard, buffer_bytes, mss_bytes),
#define PARAM_PAPER(scheme, unit, key, min, max, standard, paper, meaning)                         \
	.PARAM_FIELD_##unit(key) = PARAM_RAW_##unit(paper, buffer_bytes, mss_bytes),

/* A row as a condition: the field of `p` is in its range. */
#define PARAM_OK(scheme, unit, key, ...)                                                           \
	&&p->PARAM_FIELD_##unit(key) == PARAM_PASTE(scheme, PARAM_FIELD_##unit(key))(p)

/* A row as a function SCHEME_FIELD(params): the field, or the nearest value in its range. */
#define PARAM_READER(scheme, unit, key, min, max, ...)                                             \
	CORE_INLINE PARAM_TYPE_##unit PARAM_PASTE(scheme, PARAM_FIELD_##unit(key))(                \
		const struct scheme##_params *p)                                                   \
	{                                                                                          \
		return PARAM_HELD(p->PARAM_FIELD_##unit(key), PARAM_TYPE_##unit,                   \
				  PARAM_RANGE_##unit(min, max));                                   \
	}
#define PARAM_IN_RANGE(value, type, ...) ((type)in_range(value, __VA_ARGS__))
/* A program may hold them to their ranges once, as below, and read them without looking again. */
#ifdef CORE_PARAMS_HELD
#define PARAM_HELD(value, type, ...) (value)
#else
#define PARAM_HELD PARAM_IN_RANGE
#endif

/* A row as an assignment: the field becomes the nearest value in its range. */
#define PARAM_HOLD(scheme, unit, key, min, max, ...)                                               \
	, p->PARAM_FIELD_##unit(key) = PARAM_IN_RANGE(                                             \
		  p->PARAM_FIELD_##unit(key), PARAM_TYPE_##unit, PARAM_RANGE_##unit(min, max))

/* The parameters of a scheme at a port: its table, and what it has to know of the port. */
#define PARAMS(scheme, TABLE)                                                                      \
	struct scheme##_params {                                                                   \
		u32 buffer_bytes;                                                                  \
		u32 mss_bytes; /* until a flow's segments are known */                             \
		TABLE(PARAM_MEMBER, scheme)                                                        \
	};                                                                                         \
	TABLE(PARAM_READER, scheme)                                                                \
	CORE_INLINE void scheme##_hold_params(struct scheme##_params *p)                           \
	{                                                                                          \
		((void)0 TABLE(PARAM_HOLD, scheme));                                               \
	}                                                                                          \
	CORE_INLINE struct scheme##_params scheme##_default_params(u32 buffer_bytes)               \
	{                                                                                          \
		const u32 mss_bytes = DEFAULT_MSS_BYTES;                                           \
		struct scheme##_params params = {.buffer_bytes = buffer_bytes,                     \
						 .mss_bytes = mss_bytes,                           \
						 TABLE(PARAM_DEFAULT, scheme)};                    \
		return params;                                                                     \
	}                                                                                          \
	CORE_INLINE struct scheme##_params scheme##_paper_params(u32 buffer_bytes)                 \
	{                                                                                          \
		const u32 mss_bytes = DEFAULT_MSS_BYTES;                                           \
		struct scheme##_params params = {.buffer_bytes = buffer_bytes,                     \
						 .mss_bytes = mss_bytes,                           \
						 TABLE(PARAM_PAPER, scheme)};                      \
		return params;                                                                     \
	}

CORE_INLINE u64 in_range(u64 value, u64 min, u64 max)
{
	return max_u64(min_u64(value, max), min);
}

/* A segment size between 1 and MAX_MSS_BYTES. */
CORE_INLINE u32 mss_in_range(u32 mss_bytes)
{
	return (u32)in_range(mss_bytes, 1, MAX_MSS_BYTES);
}

#endif
