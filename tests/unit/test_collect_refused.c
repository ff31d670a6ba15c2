/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/sampler/collect on a kernel that refuses one of its calls: the error is reported with its
 * step, and nothing leaks. Needs root, as BPF does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/sampler/collect/attach_probe.h"
#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/mapping_probe.h"
#include "agent/sampler/collect/perf_event.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"
#include "tests/unit/refused_call.h"

/* The sanitizer's own allocator maps memory, and ends the program when it cannot. */
#ifdef __SANITIZE_ADDRESS__
enum { MMAP_IS_NEEDED = true };
#else
enum { MMAP_IS_NEEDED = false };
#endif

struct world {
	struct metrics metrics;
	struct collect_options options;
	struct collect *collect;
	const char *step;
	size_t descriptors; /* that were open before */
	uint32_t tgid, tid;
};

static size_t open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	w->tgid = (uint32_t)getpid();
	w->tid = (uint32_t)getpid();
	w->options = (struct collect_options){ .probes = probes_all,
		.event = COLLECT_CPU_CLOCK,
		.frequency_hz = 99,
		.user = true,
		.kernel = true,
		.metrics = &w->metrics };
	w->step = "";
	w->descriptors = open_descriptors();
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	collect_destroy(w->collect);
	free(w);
	return 0;
}

static int create(void *context)
{
	struct world *w = context;

	return collect_create(&w->options, &w->collect, &w->step);
}

/* The kernel can do all of it, or the cases are skipped. */
static void create_or_skip(struct world *w)
{
	if (geteuid() != 0 || create(w))
		skip();
}

static void all_resources_are_released(void **state)
{
	struct world *w = *state;

	create_or_skip(w);
	assert_true(open_descriptors() > w->descriptors);
	assert_true(collect_cpu_count(w->collect) > 0);
	assert_true(collect_fd(w->collect) >= 0);
	assert_true(collect_map_bytes(w->collect) > 0);
	assert_int_equal(collect_start(w->collect), 0);
	assert_true(collect_drain(w->collect, 0) >= 0);
	assert_int_equal(collect_stop(w->collect), 0);
	assert_true(collect_drain(w->collect, 0) >= 0);
	collect_destroy(w->collect);
	w->collect = NULL;
	assert_int_equal(open_descriptors(), w->descriptors);
}

/* Calls that the sampler cannot do without. */
static void a_required_call_that_is_refused(void **state)
{
	static const struct {
		struct refused_call call;
		int err;
	} cases[] = {
		{ { SYS_perf_event_open, EACCES, 0 }, -EACCES },
		{ { SYS_perf_event_open, EMFILE, 0 }, -EMFILE },
		{ { SYS_bpf, EPERM, 0 }, -EPERM },
		{ { SYS_bpf, EPERM, BPF_PROG_LOAD }, -EPERM },
		{ { SYS_epoll_create1, EMFILE, 0 }, -EMFILE },
		{ { SYS_epoll_ctl, ENOSPC, 0 }, -ENOSPC },
		{ { SYS_mmap, ENOMEM, 0 }, -ENOMEM },
		{ { SYS_ioctl, EIO, 0 }, -EIO },
	};
	struct world *w = *state;

	create_or_skip(w);
	collect_destroy(w->collect);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int err;

		if (MMAP_IS_NEEDED && cases[i].call.number == SYS_mmap)
			continue;
		w->collect = NULL;
		w->step = "";
		err = with_refused_call(&cases[i].call, create, w);
		print_message("call %d, errno %d: %d, cannot %s\n", cases[i].call.number,
			cases[i].call.error, err, w->step);
		assert_int_equal(err, cases[i].err);
		assert_null(w->collect);
		assert_string_not_equal(w->step, "");
		assert_int_equal(open_descriptors(), w->descriptors);
	}
}

static int start(void *context)
{
	return collect_start(((struct world *)context)->collect);
}

static int stop(void *context)
{
	return collect_stop(((struct world *)context)->collect);
}

static int pause_all(void *context)
{
	return collect_pause(((struct world *)context)->collect, true);
}

static int resume_all(void *context)
{
	return collect_pause(((struct world *)context)->collect, false);
}

static int set_frequency(void *context)
{
	return collect_set_frequency(((struct world *)context)->collect, 49);
}

/* A sampler that cannot be switched says so, and can be switched the next time. */
static void a_switch_that_is_refused(void **state)
{
	static const struct refused_call refused = { SYS_ioctl, EIO, 0 };
	static int (*const switches[])(
		void *context) = { start, pause_all, resume_all, set_frequency, stop };
	struct world *w = *state;

	create_or_skip(w);
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
		assert_int_equal(with_refused_call(&refused, switches[i], w), -EIO);
		assert_int_equal(switches[i](w), 0);
	}
}

static void targets_are_given_to_the_kernel(void **state)
{
	static const struct refused_call refused = { SYS_bpf, E2BIG, BPF_MAP_UPDATE_ELEM };
	struct world *w = *state;

	create_or_skip(w);
	collect_destroy(w->collect);
	w->options.filter.filter_tgids = w->options.filter.filter_tids = 1;
	w->options.tgids = &w->tgid;
	w->options.tids = &w->tid;
	w->options.tgid_count = 1;
	w->collect = NULL;
	assert_true(with_refused_call(&refused, create, w) < 0);
	assert_null(w->collect);
	w->options.tgid_count = 0;
	w->options.tid_count = 1;
	assert_true(with_refused_call(&refused, create, w) < 0);
	assert_null(w->collect);
	assert_int_equal(open_descriptors(), w->descriptors);
	w->options.tgid_count = 1;
	assert_int_equal(create(w), 0);
}

static void a_cpu_that_does_not_exist(void **state)
{
	static const int cpus[] = { 0, 4000 };
	struct world *w = *state;

	create_or_skip(w);
	collect_destroy(w->collect);
	w->collect = NULL;
	w->options.cpus = cpus;
	w->options.cpu_count = 2;
	assert_int_equal(create(w), -ENODEV);
	assert_null(w->collect);
	assert_int_equal(open_descriptors(), w->descriptors);
	w->options.cpu_count = 1;
	assert_int_equal(create(w), 0);
	assert_int_equal(collect_cpu_count(w->collect), 1);
	assert_int_equal(collect_check_cpus(w->collect), 0);
	assert_int_equal(collect_cpu_count(w->collect), 1);
}

/* ---- probes of the kernel ---------------------------------------------------------------------
 */

static int probe_mapping(void *context)
{
	(void)context;
	return mapping_probe(NULL);
}

static int probe_uprobe_multi(void *context)
{
	(void)context;
	return attach_probe_uprobe_multi();
}

static int probe_fentry(void *context)
{
	(void)context;
	return attach_probe_fentry();
}

static void a_refusal_is_the_answer_of_a_probe(void **state)
{
	static int (*const probes[])(
		void *context) = { probe_mapping, probe_uprobe_multi, probe_fentry };
	static const struct refused_call refused[] = {
		{ SYS_bpf, EPERM, 0 },
		{ SYS_bpf, EACCES, BPF_PROG_LOAD },
		{ SYS_bpf, EPERM, BPF_LINK_CREATE },
	};
	struct world *w = *state;

	create_or_skip(w);
	collect_destroy(w->collect);
	w->collect = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
		int answer = probes[i](NULL);

		for (size_t k = 0; k < ARRAY_SIZE(refused); k++) {
			bool needed = k < 2 || probes[i] != probe_mapping;

			if (needed || answer)
				assert_true(with_refused_call(&refused[k], probes[i], NULL) < 0);
		}
		assert_int_equal(open_descriptors(), w->descriptors);
		assert_int_equal(probes[i](NULL), answer);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(all_resources_are_released),
		CASE(a_required_call_that_is_refused),
		CASE(a_switch_that_is_refused),
		CASE(targets_are_given_to_the_kernel),
		CASE(a_cpu_that_does_not_exist),
		CASE(a_refusal_is_the_answer_of_a_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
