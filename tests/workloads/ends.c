// SPDX-License-Identifier: Apache-2.0
// Calls that end in other ways than by a return. Usage: ends loop MS [COUNT] | threads COUNT DEPTH
// | dies N | exec ARGUMENT...
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRACED __attribute__((noinline))

static volatile int sink;

TRACED void e_step(int n)
{
	sink = n;
}

TRACED void e_loop(int ms, int count)
{
	for (int i = 0; i != count; i++) {
		e_step(i);
		usleep(ms * 1000);
	}
}

TRACED void e_deep(int n)
{
	if (!n)
		pthread_exit(NULL);
	e_deep(n - 1);
	sink++;
}

TRACED void e_dies(int n)
{
	if (!n)
		abort();
	e_dies(n - 1);
	sink++;
}

static void *thread(void *depth)
{
	e_deep(*(int *)depth);
	return NULL;
}

static void threads(int count, int depth)
{
	for (int i = 0; i < count; i++) {
		pthread_t t;

		pthread_create(&t, NULL, thread, &depth);
		pthread_join(t, NULL);
		/* What is left of threads is forgotten once a second. */
		if (i % 100 == 99)
			sleep(2);
	}
}

/* Not only because of its size is it not inlined: it is called by its address. */
static int e_exec(char **argv)
{
	execv("/proc/self/exe", argv);
	return 1;
}

static int (*volatile exec_it)(char **) = e_exec;

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	puts("ready");
	fflush(stdout);
	if (!strcmp(argv[1], "loop"))
		e_loop((int)strtol(argv[2], NULL, 10),
			argc > 3 ? (int)strtol(argv[3], NULL, 10) : -1);
	else if (!strcmp(argv[1], "threads"))
		threads((int)strtol(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10));
	else if (!strcmp(argv[1], "dies"))
		e_dies((int)strtol(argv[2], NULL, 10));
	else
		return exec_it(argv + 1);
	return 0;
}
