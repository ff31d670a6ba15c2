/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that count and time their own calls. At the end each is a line `NAME CALLS INNER_NS
 * OUTER_NS ABANDONED`: a call takes at least what the function itself saw (INNER), at most what its
 * caller saw (OUTER); ABANDONED calls never returned. The argument is how often.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, DEPTH = 10000 };

struct truth {
	const char *name;
	uint64_t calls, inner_ns, outer_ns, abandoned;
};

static struct truth quick_truth = { "quick" }, nap_truth = { "nap" }, recurse_truth = { "recurse" },
		    jump_truth = { "jump" }, forks_truth = { "forks" }, ends_truth = { "ends" },
		    parts_truth = { "parts" };
static jmp_buf back;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void add(uint64_t *to, uint64_t value)
{
	__atomic_add_fetch(to, value, __ATOMIC_RELAXED);
}

__attribute__((noinline)) void quick(struct truth *truth)
{
	uint64_t began = now_ns();

	add(&truth->inner_ns, now_ns() - began);
}

__attribute__((noinline)) void nap(struct truth *truth)
{
	uint64_t began = now_ns();

	usleep(1000);
	add(&truth->inner_ns, now_ns() - began);
}

/* Returns at several places. */
__attribute__((noinline)) int parts(struct truth *truth, int part)
{
	uint64_t began = now_ns();

	if (part % 4 == 0) {
		add(&truth->inner_ns, now_ns() - began);
		return 1;
	}
	if (part % 4 == 1)
		usleep(10);
	if (part % 4 == 2)
		add(&truth->calls, 0);
	add(&truth->inner_ns, now_ns() - began);
	return part;
}

/* Each level's inner time includes the levels below. */
__attribute__((noinline)) int recurse(struct truth *truth, int depth)
{
	uint64_t began = now_ns();
	int result = depth ? recurse(truth, depth - 1) + 1 : 0;

	add(&truth->inner_ns, now_ns() - began);
	return result;
}

/* Leaves by longjmp when LEAVE is odd. */
__attribute__((noinline)) void jump(struct truth *truth, int leave)
{
	uint64_t began = now_ns();

	if (leave & 1)
		_longjmp(back, 1);
	add(&truth->inner_ns, now_ns() - began);
}

/* Returns in the parent and in the child. */
__attribute__((noinline)) pid_t forks(struct truth *truth)
{
	uint64_t began = now_ns();
	pid_t child = fork();

	add(&truth->inner_ns, now_ns() - began);
	return child;
}

__attribute__((noinline)) void ends(void)
{
	pthread_exit(NULL);
}

/* What follows runs a function and keeps its truth. */

#define TIMED(truth_, call_)                                 \
	do {                                                 \
		uint64_t began_ = now_ns();                  \
		call_;                                       \
		add(&(truth_)->outer_ns, now_ns() - began_); \
		add(&(truth_)->calls, 1);                    \
	} while (0)

static int times;

static void *run_thread(void *argument)
{
	(void)argument;
	for (int i = 0; i < times; i++) {
		TIMED(&quick_truth, quick(&quick_truth));
		TIMED(&parts_truth, parts(&parts_truth, i));
	}
	for (int i = 0; i < times / 100; i++)
		TIMED(&nap_truth, nap(&nap_truth));
	return NULL;
}

static void *end_thread(void *argument)
{
	(void)argument;
	add(&ends_truth.abandoned, 1);
	ends();
	return NULL;
}

static void run_jumps(void)
{
	for (volatile int i = 0; i < times; i++) {
		volatile uint64_t began = now_ns();

		if (_setjmp(back)) {
			add(&jump_truth.abandoned, 1);
			continue;
		}
		jump(&jump_truth, i);
		add(&jump_truth.outer_ns, now_ns() - began);
		add(&jump_truth.calls, 1);
	}
}

static void run_forks(void)
{
	for (int i = 0; i < 20; i++) {
		pid_t child;

		TIMED(&forks_truth, child = forks(&forks_truth));
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}

static void run_recursion(void)
{
	uint64_t began = now_ns();

	for (int i = 0; i < 3; i++)
		recurse(&recurse_truth, DEPTH);
	recurse_truth.calls = 3 * (DEPTH + 1);
	/* No level takes longer than all of them. */
	recurse_truth.outer_ns = (now_ns() - began) * (DEPTH + 1);
}

static void run_threads(void *(*work)(void *), int count)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			exit(1);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void print(const struct truth *t)
{
	printf("%s %llu %llu %llu %llu\n", t->name, (unsigned long long)t->calls,
		(unsigned long long)t->inner_ns, (unsigned long long)t->outer_ns,
		(unsigned long long)t->abandoned);
}

int main(int argc, char **argv)
{
	times = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1000;
	run_threads(run_thread, THREADS);
	run_recursion();
	run_jumps();
	run_forks();
	for (int i = 0; i < 10; i++)
		run_threads(end_thread, THREADS);
	print(&quick_truth);
	print(&nap_truth);
	print(&parts_truth);
	print(&recurse_truth);
	print(&jump_truth);
	print(&forks_truth);
	print(&ends_truth);
	return 0;
}
