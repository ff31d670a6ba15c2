/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits on the running kernel, as root: a child that naps a known number of times leaves the CPU as
 * often, with a stack each time, and returns each time.
 */
#include "tests/bpf/seen.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { NAPS = 400 };

static const uint64_t NAP_NS = 2000000;

struct waited {
	struct seen *seen;
	uint64_t left_ns; /* of the current wait; 0 = none */
	uint64_t wait_ns;
	size_t began, ended, unknown, without_stack, on_cpu;
};

static void nap(void)
{
	const struct timespec time = { .tv_nsec = (long)NAP_NS };

	for (int i = 0; i < NAPS; i++)
		nanosleep(&time, NULL);
}

static void saw_tick(void *context, uint64_t time_ns, const struct abi_tick *tick)
{
	struct waited *w = context;

	(void)time_ns;
	w->on_cpu += tick->sample.tgid == w->seen->tgid;
}

static void saw_switch_out(void *context, uint64_t time_ns, const struct abi_switch_out *switch_out)
{
	const struct abi_sample *sample = &switch_out->sample;
	struct waited *w = context;

	if (sample->tgid != w->seen->tgid)
		return;
	w->unknown += w->left_ns != 0 || switch_out->left_ns > time_ns;
	w->left_ns = switch_out->left_ns;
	w->began++;
	w->without_stack += !sample->user_stack || !sample->kernel_stack;
}

static void saw_wake(void *context, uint64_t time_ns, const struct abi_wake *wake)
{
	struct waited *w = context;

	if (wake->tgid != w->seen->tgid)
		return;
	w->unknown += wake->tid != w->seen->tgid || wake->left_ns != w->left_ns ||
		      wake->left_ns + wake->wait_ns > time_ns;
	w->wait_ns += wake->wait_ns;
	w->left_ns = 0;
	w->ended++;
}

/* Watches a napping child from its first nap to its end; returns how long that took. */
static uint64_t watch_naps(struct seen *s, double share, struct waited *ret_waited)
{
	struct collect_options options = options_for(s);
	struct burner b = start_burner(nap);
	struct waited w = { .seen = s };
	uint64_t began_ns;

	s->tgid = (uint32_t)b.pid;
	options.off_cpu_share = share;
	options.filter.filter_tgids = 1;
	options.tgids = &s->tgid;
	options.tgid_count = 1;
	options.handlers = (struct collect_handlers){
		.tick = saw_tick, .switch_out = saw_switch_out, .wake = saw_wake, .context = &w
	};
	open_with(s, &options);
	began_ns = clock_monotonic_ns();
	release_child(&b);
	assert_int_equal(waitpid(b.pid, NULL, 0), b.pid);
	stop_and_drain(s);
	*ret_waited = w;
	return clock_monotonic_ns() - began_ns;
}

static void every_nap_begins_and_ends(void **state)
{
	struct seen *s = *state;
	struct waited w;
	uint64_t passed_ns = watch_naps(s, 1, &w);

	print_message("%zu waits of %d naps, %.3f of %.3f s\n", w.ended, NAPS,
		(double)w.wait_ns / 1e9, (double)passed_ns / 1e9);
	/* A nap that starts late may be over before the thread leaves the CPU. */
	assert_true(w.ended >= NAPS * 9 / 10);
	/* The last wait, at exit, has no end. */
	assert_in_range(w.began, w.ended, w.ended + 1);
	assert_int_equal(w.unknown, 0);
	assert_int_equal(w.without_stack, 0);
	assert_in_range(w.wait_ns, NAPS * NAP_NS * 9 / 10, passed_ns);
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_BPF_ERROR), 0);
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_WAITS_FULL), 0);
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_WAITS_UNENDED), 0);
}

/*
 * 400 throws of a fair coin show 120 to 280 heads, except once in 10^15; the child may also be
 * preempted.
 */
static void about_half_of_the_naps_are_sampled_at_a_share_of_a_half(void **state)
{
	struct seen *s = *state;
	struct waited w;

	watch_naps(s, 0.5, &w);
	print_message("%zu waits of %d naps\n", w.ended, NAPS);
	assert_in_range(w.ended, 120, 340);
	assert_int_equal(w.unknown, 0);
	assert_in_range(w.began, w.ended, w.ended + 1);
}

static void nothing_is_sampled_without_a_request(void **state)
{
	struct seen *s = *state;
	struct waited w;

	watch_naps(s, 0, &w);
	assert_int_equal(w.began, 0);
	assert_int_equal(w.ended, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		COLLECT_TEST(every_nap_begins_and_ends),
		COLLECT_TEST(about_half_of_the_naps_are_sampled_at_a_share_of_a_half),
		COLLECT_TEST(nothing_is_sampled_without_a_request),
	};

	if (geteuid() != 0) {
		puts("needs root: perf events of all processes and BPF");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
