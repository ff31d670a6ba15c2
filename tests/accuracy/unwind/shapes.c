/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions with many forms of call frame information: realigned stacks, arrays of variable size,
 * large frames, arguments on the stack, calls that do not return, cold parts, a signal handler.
 * Compiled, never run.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct aligned {
	double values[8];
} __attribute__((aligned(64)));

static volatile int sink;

__attribute__((noinline)) static int many(int a, int b, int c, int d, int e, int f, int g)
{
	return a + b * c - d + e * f - g + sink;
}

__attribute__((noinline)) static double realigned(struct aligned *in, size_t count)
{
	struct aligned copy[2];
	char room[count + 1];

	memset(room, (int)count, count + 1);
	memcpy(copy, in, sizeof(copy));
	sink = room[count / 2];
	return copy[1].values[count % 8];
}

__attribute__((noinline)) static int large(int n)
{
	char room[100000];

	memset(room, n, sizeof(room));
	return room[n] + many(n, 1, 2, 3, 4, 5, 6);
}

__attribute__((noinline, noreturn, cold)) static void give_up(int n)
{
	fprintf(stderr, "%d\n", n);
	exit(n);
}

__attribute__((noinline)) static int deep(int n)
{
	if (n < 0)
		give_up(n);
	return n ? deep(n - 1) + sink : large(n & 7);
}

static void on_signal(int number)
{
	sink = number;
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int main(int argc, char **argv)
{
	struct aligned in[2] = { 0 };
	int numbers[64];

	(void)argv;
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 64; i++)
		numbers[i] = many(i, argc, 3, 4, 5, 6, i);
	qsort(numbers, 64, sizeof(*numbers), by_value);
	return deep(argc) + (int)realigned(in, (size_t)argc) + numbers[argc];
}
