/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose threads come, go and execute the program again. It calls work() 1000 times at
 * each step, and waits for a line before the steps that are marked (w): (w) first thread, second
 * thread, executed by the first thread; (w) executed by the second one, (w) calls, (w) after the
 * end of the first thread. Each step is printed when it is over.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 1000 };

static char *program;

__attribute__((noinline)) long work(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static void calls(const char *step)
{
	for (long i = 0; i < CALLS; i++)
		work(i);
	printf("%s\n", step);
	fflush(stdout);
}

/* Not by stdio, which would read ahead what the next program is to read. */
static void line(void)
{
	char byte = 0;

	while (byte != '\n')
		if (read(STDIN_FILENO, &byte, 1) != 1)
			exit(0);
}

static void execute(const char *step)
{
	execl("/proc/self/exe", program, step, (char *)NULL);
	exit(1);
}

static void *second(void *unused)
{
	(void)unused;
	calls("second");
	return NULL;
}

static void *executes(void *unused)
{
	(void)unused;
	execute("by-second");
	return NULL;
}

static void *remains(void *unused)
{
	(void)unused;
	line();
	calls("remains");
	exit(0);
}

static void start(void *(*run)(void *), pthread_t *thread)
{
	if (pthread_create(thread, NULL, run, NULL))
		exit(1);
}

int main(int argc, char **argv)
{
	const char *step = argc > 1 ? argv[1] : "first";
	pthread_t thread;

	program = argv[0];
	if (!strcmp(step, "first")) {
		printf("ready\n");
		fflush(stdout);
		line();
		calls("first");
		start(second, &thread);
		pthread_join(thread, NULL);
		execute("by-first");
	} else if (!strcmp(step, "by-first")) {
		calls("by-first");
		line();
		start(executes, &thread);
		pause();
	}
	printf("by-second\n");
	fflush(stdout);
	line();
	calls("taken");
	start(remains, &thread);
	pthread_exit(NULL);
}
