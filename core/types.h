/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Integer types and arithmetic that cannot overflow, for every header of core/.
 *
 * The headers compile freestanding (an eBPF program) and hosted (the simulator, tests). They use
 * no libc, no floating point, no allocation and no signed or 128-bit division. All functions are
 * total: any argument gives a defined result.
 */
#ifndef PENSTOCK_TYPES_H
#define PENSTOCK_TYPES_H

#ifdef __bpf__
/* The same types as in vmlinux.h, so that both may be included (C11 §6.7p3). */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
#else
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#endif

#define CORE_INLINE static inline __attribute__((always_inline, unused))

/* Fractions are Q16: 65536 is one. */
#define Q16_ONE 65536u

CORE_INLINE u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

CORE_INLINE u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

CORE_INLINE u32 min_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

CORE_INLINE u32 max_u32(u32 a, u32 b)
{
	return a > b ? a : b;
}

/* Time from `since` to `now`; 0 if the clock seems to run backwards (another CPU's clock). */
CORE_INLINE u64 elapsed_ns(u64 since, u64 now)
{
	return now > since ? now - since : 0;
}

/* The Q16 fraction of a number of bytes, rounded down; fractions above one count as one. */
CORE_INLINE u32 fraction_of(u32 bytes, u32 fraction_q16)
{
	return (u32)(((u64)bytes * min_u32(fraction_q16, Q16_ONE)) >> 16);
}

#endif
