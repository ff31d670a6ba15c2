/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread per name in argv[2...], each spinning in thread_work() for argv[1] seconds. Prints
 * `thread TID NAME` for each, then `ready`. Names have up to 15 bytes of any value.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 16 };

struct thread {
	pthread_t id;
	const char *name;
	time_t end;
	pthread_barrier_t *named;
};

__attribute__((noinline)) void thread_work(time_t end)
{
	volatile uint64_t sink = 0;

	while (time(NULL) < end) {
		for (int i = 0; i < 5000000; i++)
			sink = sink * 31 + (uint64_t)i;
	}
}

static void *run(void *argument)
{
	struct thread *thread = argument;

	prctl(PR_SET_NAME, thread->name);
	printf("thread %d %s\n", gettid(), thread->name);
	pthread_barrier_wait(thread->named);
	thread_work(thread->end);
	return NULL;
}

int main(int argc, char **argv)
{
	struct thread threads[MAX_THREADS];
	pthread_barrier_t named;
	int count = argc - 2;
	time_t end;

	if (count < 1 || count > MAX_THREADS)
		return 2;
	end = time(NULL) + strtol(argv[1], NULL, 10);
	pthread_barrier_init(&named, NULL, (unsigned int)count + 1);
	for (int i = 0; i < count; i++) {
		threads[i] = (struct thread){ .name = argv[i + 2], .end = end, .named = &named };
		if (pthread_create(&threads[i].id, NULL, run, &threads[i]))
			return 1;
	}
	pthread_barrier_wait(&named);
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i].id, NULL);
	return 0;
}
