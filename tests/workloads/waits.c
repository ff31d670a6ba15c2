/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that each wait in one way, in a function of that name, for argv[1] milliseconds in total,
 * argv[2] (20) each time; `spin` never waits. Prints `thread NAME TID` for each, then `ready`, and
 * at the end `waited NAME NS TIMES` for each: the elapsed time in its function less the thread's
 * CPU time there, and how often it waited (voluntary switches). For `spin` NS is the time on the
 * run queue, as the scheduler counts it: time stolen by the host of a virtual machine also
 * separates the two clocks, although the thread was not scheduled away.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct waiter {
	const char *name;
	void (*wait)(struct waiter *w);
	pthread_t id;
	pthread_barrier_t *begin;
	int64_t run_ns, waited_ns;
	struct timespec step;
	int feed_fd; /* of wait_pipe */
	int64_t began_times, times;
	int64_t began_ns, began_cpu_ns, began_delay_ns;
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

/* Time spent waiting on a run queue (Documentation/scheduler/sched-stats.rst). */
static int64_t run_delay_ns(void)
{
	FILE *f = fopen("/proc/thread-self/schedstat", "re");
	long long delay_ns;

	if (!f || fscanf(f, "%*d %lld", &delay_ns) != 1) {
		perror("/proc/thread-self/schedstat");
		exit(1);
	}
	fclose(f);
	return delay_ns;
}

/* begin() and goes_on() are called in the waiting function, so that the time is spent there. */
static inline __attribute__((always_inline)) void begin(struct waiter *w)
{
	w->began_times = switches();
	w->began_ns = clock_ns(CLOCK_MONOTONIC);
	w->began_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline __attribute__((always_inline)) int goes_on(struct waiter *w)
{
	int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - w->began_cpu_ns;
	int64_t passed_ns = clock_ns(CLOCK_MONOTONIC) - w->began_ns;

	w->waited_ns = passed_ns - cpu_ns;
	w->times = switches() - w->began_times;
	return passed_ns < w->run_ns;
}

__attribute__((noinline)) void wait_sleep(struct waiter *w)
{
	begin(w);
	while (goes_on(w))
		nanosleep(&w->step, NULL);
}

__attribute__((noinline)) void wait_futex(struct waiter *w)
{
	uint32_t word = 0;

	begin(w);
	while (goes_on(w))
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &w->step, NULL, 0);
}

__attribute__((noinline)) void wait_poll(struct waiter *w)
{
	begin(w);
	while (goes_on(w))
		poll(NULL, 0, (int)(w->step.tv_sec * 1000 + w->step.tv_nsec / 1000000));
}

static void *feed(void *argument)
{
	const struct waiter *w = argument;
	char byte = 0;

	while (write(w->feed_fd, &byte, 1) == 1)
		nanosleep(&w->step, NULL);
	return NULL;
}

__attribute__((noinline)) void wait_pipe(struct waiter *w)
{
	pthread_t feeder;
	int ends[2];
	char byte;

	if (pipe(ends))
		exit(1);
	w->feed_fd = ends[1];
	if (pthread_create(&feeder, NULL, feed, w))
		exit(1);
	begin(w);
	while (goes_on(w))
		if (read(ends[0], &byte, 1) != 1)
			exit(1);
	pthread_cancel(feeder);
	pthread_join(feeder, NULL);
}

__attribute__((noinline)) void spin(struct waiter *w)
{
	volatile uint64_t sink = 0;

	w->began_delay_ns = run_delay_ns();
	begin(w);
	while (goes_on(w))
		for (int i = 0; i < 1000000; i++)
			sink = sink * 31 + (uint64_t)i;
	w->waited_ns = run_delay_ns() - w->began_delay_ns;
}

static void *run(void *argument)
{
	struct waiter *w = argument;

	prctl(PR_SET_NAME, w->name);
	printf("thread %s %d\n", w->name, gettid());
	pthread_barrier_wait(w->begin);
	w->wait(w);
	return NULL;
}

int main(int argc, char **argv)
{
	struct waiter all[] = {
		{ .name = "wait_sleep", .wait = wait_sleep },
		{ .name = "wait_futex", .wait = wait_futex },
		{ .name = "wait_poll", .wait = wait_poll },
		{ .name = "wait_pipe", .wait = wait_pipe },
		{ .name = "spin", .wait = spin },
	};
	const unsigned int count = sizeof(all) / sizeof(*all);
	pthread_barrier_t begin_all;

	int64_t step_ms = argc > 2 ? strtoll(argv[2], NULL, 10) : 20;

	if (argc < 2)
		return 2;
	pthread_barrier_init(&begin_all, NULL, count + 1);
	for (unsigned int i = 0; i < count; i++) {
		all[i].begin = &begin_all;
		all[i].run_ns = strtoll(argv[1], NULL, 10) * 1000000;
		all[i].step.tv_sec = step_ms / 1000;
		all[i].step.tv_nsec = step_ms % 1000 * 1000000;
		if (pthread_create(&all[i].id, NULL, run, &all[i]))
			return 1;
	}
	pthread_barrier_wait(&begin_all);
	puts("ready");
	fflush(stdout);
	for (unsigned int i = 0; i < count; i++)
		pthread_join(all[i].id, NULL);
	for (unsigned int i = 0; i < count; i++)
		printf("waited %s %lld %lld\n", all[i].name, (long long)all[i].waited_ns,
			(long long)all[i].times);
	return 0;
}
