/* SPDX-License-Identifier: Apache-2.0 */
/*
 * argv[2] threads take turns working in turn_work(), for argv[1] seconds from the start of the last
 * one, however late that is; with argv[3] = `gone` the main thread exits first. Prints `threads N`,
 * then `ready`, and at its end `cpu_ms N`.
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 2, STACK_BYTES = 64 * 1024 };

static atomic_llong end = LLONG_MAX;
static atomic_int left;
static atomic_bool told;
static pthread_mutex_t lock[WORKERS] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };

__attribute__((noinline)) void turn_work(void)
{
	volatile uint64_t sink = 0;

	for (int i = 0; i < 400000; i++)
		sink = sink * 31 + (uint64_t)i;
}

static void tell_cpu_time(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	printf("cpu_ms %ld\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
				       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000);
	fflush(stdout);
}

static void *run(void *argument)
{
	pthread_mutex_t *mine = &lock[(uintptr_t)argument % WORKERS];

	while (time(NULL) < atomic_load(&end)) {
		pthread_mutex_lock(mine);
		if (time(NULL) < atomic_load(&end))
			turn_work();
		pthread_mutex_unlock(mine);
		usleep(1000);
	}
	if (atomic_fetch_sub(&left, 1) == 1) {
		tell_cpu_time();
		atomic_store(&told, true);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
	pthread_attr_t attributes;
	pthread_t thread;

	atomic_store(&left, count);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < count; i++) {
		if (pthread_create(&thread, &attributes, run, (void *)(uintptr_t)i)) {
			perror("pthread_create");
			return 1;
		}
	}
	printf("threads %d\nready\n", count);
	fflush(stdout);
	atomic_store(&end, time(NULL) + strtol(argv[1], NULL, 10));
	if (argc > 3 && !strcmp(argv[3], "gone"))
		pthread_exit(NULL);
	while (!atomic_load(&told))
		usleep(10000);
	return 0;
}
