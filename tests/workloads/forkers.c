/* SPDX-License-Identifier: Apache-2.0 */
/* Forks as many children, one after another, as the argument says; each calls work() CALLS times at
 * once, and so does a child of its own. Prints how many calls that were. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 7 };

__attribute__((noinline)) uint64_t work(uint64_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static void work_often(void)
{
	volatile uint64_t sum = 0;

	for (int i = 0; i < CALLS; i++)
		sum = work(sum);
}

static void forked(int generations)
{
	pid_t child = fork();

	if (child < 0)
		exit(1);
	if (child) {
		waitpid(child, NULL, 0);
		return;
	}
	work_often();
	if (generations > 1)
		forked(generations - 1);
	_exit(0);
}

int main(int argc, char **argv)
{
	long children = argc > 1 ? strtol(argv[1], NULL, 10) : 1;

	for (long i = 0; i < children; i++)
		forked(2);
	printf("%ld\n", children * 2 * CALLS);
	return 0;
}
