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

/*
 * Arithmetic in place of branches. After each branch on a number that becomes an index, the
 * kernel's verifier would follow each of its values to the end. BRANCHLESS keeps clang from making
 * branches of it again; without `volatile` clang duplicates code, and the verifier follows a
 * quarter more.
 */
#ifdef __bpf__
#define BRANCHLESS(value) __asm__ volatile("" : "+r"(value))
#else
#define BRANCHLESS(value) ((void)0)
#endif

/* 1 unless the value is 0. */
CORE_INLINE u32 is_nonzero(u32 value)
{
	u64 wide = value;

	BRANCHLESS(wide);
	return (u32)((wide + 0xffffffffu) >> 32);
}

/* 1 if a < b: the borrow of a - b. */
CORE_INLINE u32 is_below(u64 a, u64 b)
{
	u64 borrow = (~a & b) | ((~a | b) & (a - b));

	BRANCHLESS(borrow);
	return (u32)(borrow >> 63);
}

/* `a` if `choice` is 1, `b` if it is 0. */
CORE_INLINE u64 choose_u64(u32 choice, u64 a, u64 b)
{
	u64 mask = 0ull - choice;

	BRANCHLESS(mask);
	return b ^ ((a ^ b) & mask);
}

CORE_INLINE u32 choose_u32(u32 choice, u32 a, u32 b)
{
	return (u32)choose_u64(choice, a, b);
}

/* A program may have these without branches, too. */
#ifdef CORE_BRANCHLESS

CORE_INLINE u64 min_u64(u64 a, u64 b)
{
	return choose_u64(is_below(a, b), a, b);
}

CORE_INLINE u64 max_u64(u64 a, u64 b)
{
	return a ^ b ^ min_u64(a, b);
}

/* All ones if a < b: the borrow of numbers of 32 bits fills the upper half. */
CORE_INLINE u64 mask_below(u32 a, u32 b)
{
	u64 difference = (u64)a - b;

	BRANCHLESS(difference);
	return (u64)((s64)difference >> 63);
}

CORE_INLINE u32 min_u32(u32 a, u32 b)
{
	return (u32)(b ^ ((a ^ b) & mask_below(a, b)));
}

CORE_INLINE u32 max_u32(u32 a, u32 b)
{
	return (u32)(a ^ ((a ^ b) & mask_below(a, b)));
}

#else

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

#endif

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
