/* SPDX-License-Identifier: Apache-2.0 */
/* Calls inlined across two files, cold paths, and a function that the linker may discard. */
#include <stdio.h>
#include <stdlib.h>

#include "shared.h"

static int middle(int x)
{
	int sum = other(x);

	for (int i = 0; i < x; i++)
		sum += leaf(i) + leaf(sum);
	return sum;
}

int discarded(int x)
{
	return middle(x) + leaf(x);
}

static void give_up(const char *why)
{
	fprintf(stderr, "%s\n", why);
	abort();
}

__attribute__((noinline)) static int parse(const char *text)
{
	int value = (int)strtol(text, NULL, 10);

	if (__builtin_expect(value < 0, 0))
		give_up("negative");
	return middle(value);
}

int main(int argc, char **argv)
{
	int sum = 0;

	for (int i = 1; i < argc; i++)
		sum += parse(argv[i]) + middle(i);
	printf("%d\n", sum);
	return 0;
}
