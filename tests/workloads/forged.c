/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of two programs (-DTWIN=1 or 2) that differ only in the middle: other names and other frame
 * sizes, which take as many bytes. The frames are small enough for the piece of stack that is kept
 * while there are no tables. Built without frame pointers, so that only unwind tables lead to
 * main(). Prints `chain NAME...`, innermost first, and `ready`, and spins.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define JOIN_OF(a, b) a##b
#define JOIN(a, b) JOIN_OF(a, b)
#define NAME(function) JOIN(function##_, TWIN)

static volatile uint64_t sink;

__attribute__((noinline)) uint64_t NAME(spin)(uint64_t x)
{
	volatile char room[288 * TWIN];

	memset((void *)(uintptr_t)room, (int)x, sizeof(room));
	for (int i = 0; i < 5000000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x + (uint64_t)room[x % 160];
}

__attribute__((noinline)) uint64_t NAME(outer)(uint64_t x)
{
	volatile char room[576 / TWIN];

	room[x % 160] = 1;
	return NAME(spin)(x + 1) + (uint64_t)room[0];
}

int main(void)
{
	puts("chain spin_" TEXT(TWIN) " outer_" TEXT(TWIN) " main\nready");
	fflush(stdout);
	for (;;)
		sink = NAME(outer)(sink + 1);
}
