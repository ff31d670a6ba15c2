/* SPDX-License-Identifier: Apache-2.0 */
/* Forks as many children, one after another, as the argument says; each calls work() CALLS times at
 * once, and so does a child of its own. With another argument, a child ends when it has forked
 * without calling anything, and its own child begins after that. Prints how many calls that were.
 */
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

static void orphaned(void)
{
	pid_t child = fork(), parent;

	if (child < 0)
		exit(1);
	if (child) {
		waitpid(child, NULL, 0);
		return;
	}
	parent = getpid();
	child = fork();
	if (child)
		_exit(child < 0);
	while (getppid() == parent)
		usleep(1000);
	work_often();
	_exit(0);
}

static void wait_for_orphans(const int ended[2])
{
	char byte;

	close(ended[1]);
	while (read(ended[0], &byte, 1) > 0)
		;
}

int main(int argc, char **argv)
{
	long children = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	int orphans = argc > 2, ended[2];

	if (pipe(ended))
		return 1;
	for (long i = 0; i < children; i++) {
		if (orphans)
			orphaned();
		else
			forked(2);
	}
	wait_for_orphans(ended);
	printf("%ld\n", children * (orphans ? 1 : 2) * CALLS);
	return 0;
}
