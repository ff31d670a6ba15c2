/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes and stacks the sampler leaves out, on the running kernel, as root. */
#include "tests/bpf/seen.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

static void burn_under_another_name(void)
{
	prctl(PR_SET_NAME, "other");
	burn();
}

/* A child is born with its parent's name. */
static void wait_for_name(pid_t pid, const char *name)
{
	uint64_t start_ns = clock_monotonic_ns();
	char path[64], line[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	while (strcmp(line, name)) {
		assert_true(io_read_line(AT_FDCWD, path, line, sizeof(line)) >= 0);
		assert_true(clock_monotonic_ns() - start_ns < 60 * SECOND_NS);
		sched_yield();
	}
}

static void comm_filter_keeps_only_that_name(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct burner b = start_burner(burn);
	struct burner other = start_burner(burn_under_another_name);

	s->tgid = (uint32_t)b.pid;
	options.filter.filter_comm = 1;
	memcpy(options.filter.comm, "burner", sizeof("burner"));
	release_child(&other);
	wait_for_name(other.pid, "other");
	open_with(s, &options);
	release_child(&b);
	drain_until_samples(s, 20);
	drain_until_cpu(s, other.pid, SECOND_NS / 4);
	stop_and_drain(s);
	end_burner(&b);
	end_burner(&other);
	assert_int_equal(s->samples_of_others, 0);
	assert_true(collect_counter(s->collect, ABI_COUNT_FILTERED) > 0);
	assert_int_equal(collect_counter(s->collect, ABI_COUNT_SAMPLES), s->samples);
}

/* Makes a cgroup for the test in the unified hierarchy; returns false where there is none. */
static bool make_cgroup(char *path, size_t size, uint32_t *ret_level)
{
	static const char *const mounts[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, size, "%s/cgroup.procs", mounts[i]);
		if (access(path, W_OK))
			continue;
		snprintf(path, size, "%s/fathom-test-%d", mounts[i], (int)getpid());
		if (mkdir(path, 0755))
			return false;
		*ret_level = 1;
		return true;
	}
	return false;
}

static bool enter_cgroup(const char *path, pid_t pid)
{
	char procs[256];
	FILE *file;
	bool done;

	snprintf(procs, sizeof(procs), "%.200s/cgroup.procs", path);
	file = fopen(procs, "we");
	if (!file)
		return false;
	done = fprintf(file, "%d", (int)pid) > 0;
	return fclose(file) == 0 && done;
}

/* A burner in a cgroup below the wanted one is sampled, a burner outside is not. */
static void cgroup_filter_takes_the_cgroups_below(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	char path[128], below[192];
	struct burner inside, outside;
	struct stat wanted;
	uint32_t level;

	if (!make_cgroup(path, sizeof(path), &level))
		skip();
	snprintf(below, sizeof(below), "%s/below", path);
	assert_int_equal(mkdir(below, 0755), 0);
	assert_int_equal(stat(path, &wanted), 0);
	inside = start_burner(burn);
	outside = start_burner(burn);
	assert_true(enter_cgroup(below, inside.pid));
	s->tgid = (uint32_t)inside.pid;
	options.filter.cgroup_level = level + 1;
	options.filter.cgroup_id = wanted.st_ino;
	open_with(s, &options);
	release_child(&inside);
	release_child(&outside);
	drain_until_samples(s, 20);
	drain_until_cpu(s, outside.pid, SECOND_NS / 4);
	stop_and_drain(s);
	end_burner(&inside);
	end_burner(&outside);
	assert_int_equal(rmdir(below), 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(s->samples_of_others, 0);
}

/* Nothing of a control group that is left out arrives, until it is not left out any more. */
static void left_out_cgroups_are_not_sampled(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct burner inside;
	struct stat group;
	uint64_t left_out;
	char path[128];
	uint32_t level;

	if (!make_cgroup(path, sizeof(path), &level))
		skip();
	assert_int_equal(stat(path, &group), 0);
	inside = start_burner(burn);
	assert_true(enter_cgroup(path, inside.pid));
	s->tgid = (uint32_t)inside.pid;
	options.filter.choose_cgroups = 1;
	open_with(s, &options);
	assert_int_equal(collect_leave_out_cgroup(s->collect, group.st_ino, true), 0);
	assert_int_equal(collect_leave_out_cgroup(s->collect, group.st_ino, true), 0);
	release_child(&inside);
	drain_until_cpu(s, inside.pid, SECOND_NS / 2);
	assert_int_equal(s->samples, 0);
	left_out = collect_counter(s->collect, ABI_COUNT_LEFT_OUT);
	assert_true(left_out > HZ / 4);
	collect_count(s->collect);
	assert_true(metrics_get(&s->metrics, METRIC_SAMPLES_LEFT_OUT_IN_KERNEL) >= left_out);
	assert_int_equal(collect_leave_out_cgroup(s->collect, group.st_ino, false), 0);
	assert_int_equal(collect_leave_out_cgroup(s->collect, group.st_ino, false), 0);
	drain_until_samples(s, 20);
	left_out = collect_counter(s->collect, ABI_COUNT_LEFT_OUT);
	drain_until_samples(s, 40);
	assert_int_equal(collect_counter(s->collect, ABI_COUNT_LEFT_OUT), left_out);
	stop_and_drain(s);
	end_burner(&inside);
	assert_int_equal(rmdir(path), 0);
}

static void left_out_cgroups_have_a_limit(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);

	options.filter.choose_cgroups = 1;
	open_with(s, &options);
	for (uint64_t id = 1; id <= ABI_LEFT_OUT_CGROUPS; id++)
		assert_int_equal(collect_leave_out_cgroup(s->collect, id << 32, true), 0);
	assert_int_equal(collect_leave_out_cgroup(s->collect, 1, true), -E2BIG);
	assert_int_equal(collect_leave_out_cgroup(s->collect, UINT64_C(1) << 32, false), 0);
	assert_int_equal(collect_leave_out_cgroup(s->collect, 1, true), 0);
	stop_and_drain(s);
}

/*
 * An agent in a pid namespace of its own: samples and side-band records have the pids of that
 * namespace. Runs in a child, whose exit status is the verdict.
 */
static void as_init_of_a_namespace(struct seen *s)
{
	struct collect_options options = options_for(s);
	struct burner b;

	open_with(s, &options);
	b = start_burner(burn);
	s->tgid = (uint32_t)b.pid;
	release_child(&b);
	drain_until_samples(s, 20);
	stop_and_drain(s);
	end_burner(&b);
	collect_destroy(take(s->collect));
	_exit(b.pid < 100 && !strncmp(s->steps, "fc", 2) ? 0 : 1);
}

static void pids_are_those_of_the_agents_namespace(void **state)
{
	pid_t outer = fork();
	int status;

	assert_true(outer >= 0);
	if (!outer) {
		pid_t inner = unshare(CLONE_NEWPID) ? -1 : fork();

		if (!inner)
			as_init_of_a_namespace(*state);
		_exit(inner > 0 && waitpid(inner, &status, 0) == inner && WIFEXITED(status)
				? WEXITSTATUS(status)
				: 2);
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void tid_filter_without_a_match_gives_nothing(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct burner b = start_burner(burn);
	uint32_t nobody = INT32_MAX;

	s->tgid = (uint32_t)b.pid;
	options.filter.filter_tids = 1;
	options.tids = &nobody;
	options.tid_count = 1;
	open_with(s, &options);
	release_child(&b);
	drain_until_cpu(s, b.pid, SECOND_NS / 8);
	stop_and_drain(s);
	end_burner(&b);
	assert_int_equal(s->samples + s->samples_of_others, 0);
	assert_true(collect_counter(s->collect, ABI_COUNT_FILTERED) > 0);
}

static void burn_system_calls(void)
{
	char bytes[4096];
	FILE *zero = fopen("/dev/zero", "r");

	while (zero && fread(bytes, sizeof(bytes), 1, zero) == 1)
		;
}

static void stacks_of_one_kind(struct seen *s, bool user)
{
	struct collect_options options = options_for(s);
	struct burner b = start_burner(burn_system_calls);

	s->tgid = (uint32_t)b.pid;
	options.user = user;
	options.kernel = !user;
	options.filter.filter_tgids = 1;
	options.tgids = &s->tgid;
	options.tgid_count = 1;
	open_with(s, &options);
	release_child(&b);
	drain_until_samples(s, 100);
	stop_and_drain(s);
	end_burner(&b);
	assert_int_equal(s->missing_stacks, 0);
}

static void user_only_leaves_kernel_stacks_out(void **state)
{
	struct seen *s = *state;

	stacks_of_one_kind(s, true);
	assert_true(s->user_stacks > 0);
	assert_int_equal(s->kernel_stacks, 0);
}

static void kernel_only_leaves_user_stacks_out(void **state)
{
	struct seen *s = *state;

	stacks_of_one_kind(s, false);
	assert_true(s->kernel_stacks > 0);
	assert_int_equal(s->user_stacks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		COLLECT_TEST(comm_filter_keeps_only_that_name),
		COLLECT_TEST(cgroup_filter_takes_the_cgroups_below),
		COLLECT_TEST(left_out_cgroups_are_not_sampled),
		COLLECT_TEST(left_out_cgroups_have_a_limit),
		COLLECT_TEST(pids_are_those_of_the_agents_namespace),
		COLLECT_TEST(tid_filter_without_a_match_gives_nothing),
		COLLECT_TEST(user_only_leaves_kernel_stacks_out),
		COLLECT_TEST(kernel_only_leaves_user_stacks_out),
	};

	if (geteuid() != 0) {
		puts("needs root: perf events of all processes and BPF");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
