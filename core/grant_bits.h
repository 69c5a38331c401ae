/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of bits, of 16, in a dozen instructions and without a branch (types.h): a packet has no
 * time for a loop over the levels of Grant.
 */
#ifndef PENSTOCK_GRANT_BITS_H
#define PENSTOCK_GRANT_BITS_H

#include "types.h"

/*
 * The number of the lowest bit that is set, of 16; 0 if none is. Times a power of two a de Bruijn
 * sequence has other four bits in front for each; the second constant has their places, four bits
 * each (Leiserson, Prokop, Randall 1998).
 */
CORE_INLINE u32 bits_first(u32 bits)
{
	u32 lowest = bits & (0u - bits);

	return (u32)(0xcd7ea84fb6935210ull >> ((lowest * 0x09afu >> 12 & 15) * 4)) & 15;
}

/* How many bits a number takes; 15 if it takes more. */
CORE_INLINE u32 bits_taken(u32 value)
{
	value |= value >> 1;
	value |= value >> 2;
	value |= value >> 4;
	value |= value >> 8;
	value |= value >> 16;
	return bits_first((value & 0x7fff) + 1);
}

#endif
