/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of two programs (-DTWIN=1 or 2) with the same build ID: the same code at other addresses, in
 * other frames, under other names. Built without frame pointers, so that only unwind tables lead to
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

#if TWIN == 2
/* Moves the following code, so that addresses mean other functions in the other program. */
__attribute__((noinline, used)) void filler(volatile char *bytes)
{
	for (int i = 0; i < 64; i++)
		bytes[i] = (char)(bytes[i] * 3 + i);
}
#endif

__attribute__((noinline)) uint64_t NAME(spin)(uint64_t x)
{
	volatile char room[16 + 96 * TWIN];

	memset((void *)(uintptr_t)room, (int)x, sizeof(room));
	for (int i = 0; i < 5000000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x + (uint64_t)room[x % sizeof(room)];
}

__attribute__((noinline)) uint64_t NAME(middle)(uint64_t x)
{
	volatile char room[208 - 64 * TWIN];

	room[x % sizeof(room)] = 1;
	return NAME(spin)(x + 1) + (uint64_t)room[0];
}

__attribute__((noinline)) uint64_t NAME(outer)(uint64_t x)
{
	volatile char room[40 * TWIN];

	room[x % sizeof(room)] = 1;
	return NAME(middle)(x + 1) + (uint64_t)room[0];
}

int main(void)
{
	puts("chain spin_" TEXT(TWIN) " middle_" TEXT(TWIN) " outer_" TEXT(TWIN) " main\nready");
	fflush(stdout);
	for (;;)
		sink = NAME(outer)(sink + 1);
}
