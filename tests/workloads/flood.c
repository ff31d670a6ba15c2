// SPDX-License-Identifier: Apache-2.0
// Many short trees of calls. Usage: flood ROUNDS FILE. At the end the number of its trees is in
// FILE.
#include <stdio.h>
#include <stdlib.h>

#define TRACED __attribute__((noinline))
enum { LEAVES = 10 };

static volatile int sink;

TRACED void f_leaf(int n)
{
	sink = n;
}

TRACED void f_root(int n)
{
	for (int i = 0; i < LEAVES; i++)
		f_leaf(n + i);
	sink++;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;
	FILE *file;

	for (int i = 0; i < rounds; i++)
		f_root(i);
	file = argc > 2 ? fopen(argv[2], "w") : NULL;
	if (!file)
		return 2;
	fprintf(file, "%d\n", rounds);
	return fclose(file) ? 1 : 5;
}
