/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real thing on the running kernel, as root: a child burns CPU, forks and executes; what the
 * rings tell of it is compared with what it did.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/collect/collect.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"

enum { HZ = 199, MAX_STEPS = 64 };

static const uint64_t SECOND_NS = 1000000000;

struct seen {
	struct collect *collect;
	struct metrics metrics;
	uint32_t tgid; /* the child whose events are kept */
	uint64_t last_ns;
	unsigned int backwards;
	struct map stacks; /* id mixed with window: 1 */
	size_t samples, samples_of_others, user_stacks, kernel_stacks;
	size_t missing_stacks, stack_records, repeated_stacks;
	uint64_t weight_ns, own_samples;
	char steps[MAX_STEPS + 1]; /* one letter an event of the child, in order */
	size_t step_count;
	bool exec_path_seen, build_id_seen;
	uint64_t lost;
	unsigned int ksymbols; /* of the sampler's program, gone ones included */
	char comm[ABI_COMM_BYTES + 1];
	uint64_t frames_max;
};

static uint64_t stack_key(uint64_t id, uint32_t window)
{
	return id + window;
}

static void in_order(struct seen *s, uint64_t time_ns)
{
	s->backwards += time_ns < s->last_ns;
	s->last_ns = time_ns;
}

static void step(struct seen *s, char letter)
{
	if (s->step_count < MAX_STEPS)
		s->steps[s->step_count++] = letter;
}

static void need_stack(struct seen *s, uint64_t id, uint32_t window, size_t *counter)
{
	uint64_t there;

	if (!id)
		return;
	(*counter)++;
	s->missing_stacks += !map_get(&s->stacks, stack_key(id, window), &there);
}

static void saw_sample(void *context, uint64_t time_ns, const struct abi_sample *sample)
{
	struct seen *s = context;

	in_order(s, time_ns);
	s->own_samples += sample->tgid == (uint32_t)getpid();
	if (sample->tgid != s->tgid) {
		s->samples_of_others++;
		return;
	}
	s->samples++;
	s->weight_ns += sample->period;
	memcpy(s->comm, sample->comm, ABI_COMM_BYTES);
	need_stack(s, sample->user_stack, sample->window, &s->user_stacks);
	need_stack(s, sample->kernel_stack, sample->window, &s->kernel_stacks);
}

static void saw_stack(void *context, const struct abi_stack *stack)
{
	struct seen *s = context;
	uint64_t there;

	s->stack_records++;
	s->repeated_stacks += map_get(&s->stacks, stack_key(stack->id, stack->window), &there);
	if (stack->frame_count > s->frames_max)
		s->frames_max = stack->frame_count;
	assert_int_equal(map_set(&s->stacks, stack_key(stack->id, stack->window), 1), 0);
}

static void saw_mmap(void *context, const struct collect_mmap *mmap)
{
	struct seen *s = context;

	in_order(s, mmap->time_ns);
	if (mmap->tgid != s->tgid)
		return;
	step(s, 'm');
	s->exec_path_seen |= strstr(mmap->path, "/true") != NULL;
	s->build_id_seen |= mmap->build_id.size > 0;
}

static void saw_comm(
	void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid, const char *comm, bool exec)
{
	struct seen *s = context;

	(void)tid;
	in_order(s, time_ns);
	if (tgid != s->tgid)
		return;
	step(s, exec ? 'x' : 'c');
	if (exec)
		assert_string_equal(comm, "true");
}

static void saw_fork(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid,
	uint32_t parent_tgid, uint32_t parent_tid)
{
	struct seen *s = context;

	in_order(s, time_ns);
	if (tgid != s->tgid)
		return;
	assert_int_equal(tid, tgid);
	assert_int_equal(parent_tgid, getpid());
	assert_int_equal(parent_tid, getpid());
	step(s, 'f');
}

static void saw_exit(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid)
{
	struct seen *s = context;

	(void)tid;
	in_order(s, time_ns);
	if (tgid == s->tgid)
		step(s, 'e');
}

static void saw_lost(void *context, uint64_t time_ns, uint64_t count)
{
	struct seen *s = context;

	in_order(s, time_ns);
	s->lost += count;
}

static void saw_ksymbol(
	void *context, uint64_t kaddr, uint32_t size, const char *name, bool bpf, bool gone)
{
	struct seen *s = context;

	(void)kaddr;
	(void)size;
	(void)gone;
	s->ksymbols += bpf && strstr(name, "_take_sample") != NULL;
}

static struct collect_options options_for(struct seen *s)
{
	return (struct collect_options){
		.frequency_hz = HZ,
		.user = true,
		.kernel = true,
		.metrics = &s->metrics,
		.handlers = { saw_sample, saw_stack, saw_mmap, saw_comm, saw_fork, saw_exit,
			saw_ksymbol, saw_lost, s },
	};
}

static void open_with(struct seen *s, const struct collect_options *options)
{
	const char *what = "";
	int err = collect_create(options, &s->collect, &what);

	if (err)
		fail_msg("collect_create: %s: %s", what, strerror(-err));
	assert_int_equal(collect_next_window(s->collect), 1);
	assert_int_equal(collect_start(s->collect), 0);
}

static int setup(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));

	if (!s)
		return -1;
	map_init(&s->stacks, 1 << 20);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct seen *s = *state;

	collect_destroy(s->collect);
	map_deinit(&s->stacks);
	free(s);
	return 0;
}

/* A child that waits for GO and then burns CPU for as long as it lives. */
struct burner {
	pid_t pid;
	int go;
};

static void burn(void)
{
	volatile uint64_t x = 1;

	for (;;)
		x = x * 3 + 1;
}

static struct burner start_burner(void (*work)(void))
{
	int pipe_fds[2];
	struct burner b;
	char byte;

	assert_int_equal(pipe(pipe_fds), 0);
	b.pid = fork();
	assert_true(b.pid >= 0);
	if (!b.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "burner");
		if (read(pipe_fds[0], &byte, 1) == 1)
			work();
		_exit(0);
	}
	close(pipe_fds[0]);
	b.go = pipe_fds[1];
	return b;
}

static void let_go(struct burner *b)
{
	assert_int_equal(write(b->go, "g", 1), 1);
	close(b->go);
}

static void pin(pid_t pid, int cpu)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	assert_int_equal(sched_setaffinity(pid, sizeof(only), &only), 0);
}

static void end_burner(struct burner *b)
{
	kill(b->pid, SIGKILL);
	assert_int_equal(waitpid(b->pid, NULL, 0), b->pid);
}

/* CPU time of a process from /proc, in ns. */
static uint64_t cpu_ns_of(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* Drains until the child has had so much CPU time; gives up after a minute. */
static void drain_until_cpu(struct seen *s, pid_t pid, uint64_t cpu_ns)
{
	uint64_t start_ns = clock_monotonic_ns();
	struct pollfd rings = { .fd = collect_fd(s->collect), .events = POLLIN };

	while (cpu_ns_of(pid) < cpu_ns) {
		assert_true(clock_monotonic_ns() - start_ns < 60 * SECOND_NS);
		poll(&rings, 1, 50);
		assert_true(collect_drain(s->collect, 0) >= 0);
	}
}

static void stop_and_drain(struct seen *s)
{
	assert_int_equal(collect_stop(s->collect), 0);
	assert_true(collect_drain(s->collect, 0) >= 0);
	assert_int_equal(collect_drain(s->collect, 0) < 0, 0);
	collect_count(s->collect);
}

static void busy_child_is_sampled_at_the_asked_rate(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct burner b = start_burner(burn);
	uint64_t cpu_ns;

	s->tgid = (uint32_t)b.pid;
	options.filter.self_tgid = (uint32_t)getpid();
	open_with(s, &options);
	let_go(&b);
	drain_until_cpu(s, b.pid, SECOND_NS);
	cpu_ns = cpu_ns_of(b.pid);
	stop_and_drain(s);
	end_burner(&b);
	print_message("%zu samples in %.2f s of CPU, %zu stack records (%zu repeated), up to %u "
		      "frames, %zu samples of others\n",
		s->samples, (double)cpu_ns / 1e9, s->stack_records, s->repeated_stacks,
		(unsigned int)s->frames_max, s->samples_of_others);
	/* A virtual machine's host takes time that the child is not charged for, hence the room. */
	assert_in_range(s->samples, HZ * 8 / 10, HZ * 12 / 10 * cpu_ns / SECOND_NS + 2);
	assert_in_range(
		s->weight_ns, s->samples * (SECOND_NS / HZ), s->samples * (SECOND_NS / HZ + 1));
	assert_string_equal(s->comm, "burner");
	assert_int_equal(s->own_samples, 0);
	assert_true(s->user_stacks >= s->samples * 9 / 10);
	assert_int_equal(s->missing_stacks, 0);
	assert_int_equal(s->backwards, 0);
	assert_int_equal(s->lost, 0);
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_RING_FULL), 0);
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_BPF_ERROR), 0);
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_BAD_RECORD), 0);
}

static void frames_are_shipped_once_a_window(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct burner b = start_burner(burn);

	s->tgid = (uint32_t)b.pid;
	options.filter.filter_tgids = 1;
	options.tgids = &s->tgid;
	options.tgid_count = 1;
	options.frequency_hz = 999;
	open_with(s, &options);
	let_go(&b);
	for (uint64_t window = 2; window <= 4; window++) {
		drain_until_cpu(s, b.pid, window * SECOND_NS / 8);
		assert_int_equal(collect_next_window(s->collect), window);
	}
	drain_until_cpu(s, b.pid, 5 * SECOND_NS / 8);
	stop_and_drain(s);
	end_burner(&b);
	assert_int_equal(s->samples_of_others, 0);
	assert_true(s->samples > 100);
	assert_int_equal(s->missing_stacks, 0);
	/* A loop of a few instructions has few stacks; only slots shared by chance repeat one. */
	assert_true(s->stack_records >= 4);
	assert_true(s->stack_records < s->samples);
	assert_true(s->repeated_stacks * 10 <= s->stack_records);
}

static void exec_true(void)
{
	execl("/bin/true", "true", (char *)NULL);
}

static void life_of_a_child_comes_in_order(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct burner b;
	const char *exec_at;

	open_with(s, &options);
	b = start_burner(exec_true);
	s->tgid = (uint32_t)b.pid;
	let_go(&b);
	assert_int_equal(waitpid(b.pid, NULL, 0), b.pid);
	stop_and_drain(s);
	/* fork, the child's own name, exec, the mappings of program and libraries, exit */
	print_message("steps: %s\n", s->steps);
	assert_true(!strncmp(s->steps, "fcx", 3));
	exec_at = strchr(s->steps, 'x');
	assert_true(strspn(exec_at + 1, "m") >= 3);
	assert_string_equal(exec_at + 1 + strspn(exec_at + 1, "m"), "e");
	assert_true(s->exec_path_seen);
	assert_int_equal(s->backwards, 0);
	assert_int_equal(s->lost, 0);
}

static void drain_leaves_what_is_later_than_asked(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	uint64_t before_ns;
	struct burner b;

	open_with(s, &options);
	before_ns = clock_monotonic_ns();
	b = start_burner(exec_true);
	s->tgid = (uint32_t)b.pid;
	let_go(&b);
	assert_int_equal(waitpid(b.pid, NULL, 0), b.pid);
	assert_int_equal(collect_stop(s->collect), 0);
	assert_true(collect_drain(s->collect, before_ns) >= 0);
	assert_int_equal(s->step_count, 0);
	assert_true(s->last_ns <= before_ns);
	assert_true(collect_drain(s->collect, 0) > 0);
	assert_true(s->step_count > 0);
}

static void burn_under_another_name(void)
{
	prctl(PR_SET_NAME, "other");
	burn();
}

static void comm_filter_keeps_only_that_name(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct burner b = start_burner(burn);
	struct burner other = start_burner(burn_under_another_name);

	s->tgid = (uint32_t)b.pid;
	options.filter.filter_comm = 1;
	strcpy(options.filter.comm, "burner");
	open_with(s, &options);
	let_go(&b);
	let_go(&other);
	drain_until_cpu(s, b.pid, SECOND_NS / 4);
	drain_until_cpu(s, other.pid, SECOND_NS / 4);
	stop_and_drain(s);
	end_burner(&b);
	end_burner(&other);
	assert_true(s->samples > HZ / 8);
	assert_int_equal(s->samples_of_others, 0);
	assert_true(collect_counter(s->collect, ABI_COUNT_FILTERED) > 0);
	assert_int_equal(collect_counter(s->collect, ABI_COUNT_SAMPLES), s->samples);
}

/* A cgroup of the unified hierarchy for the test, and the way there; false where there is none. */
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

/* Samples of a burner in a cgroup below the wanted one, none of a burner outside. */
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
	let_go(&inside);
	let_go(&outside);
	drain_until_cpu(s, inside.pid, SECOND_NS / 4);
	drain_until_cpu(s, outside.pid, SECOND_NS / 4);
	stop_and_drain(s);
	end_burner(&inside);
	end_burner(&outside);
	assert_int_equal(rmdir(below), 0);
	assert_int_equal(rmdir(path), 0);
	assert_true(s->samples > HZ / 8);
	assert_int_equal(s->samples_of_others, 0);
}

/*
 * An agent in a pid namespace of its own: the samples name its processes as it sees them, and so do
 * the side-band records. Runs in a child, whose exit status is the verdict.
 */
static void as_init_of_a_namespace(struct seen *s)
{
	struct collect_options options = options_for(s);
	struct burner b;

	open_with(s, &options);
	b = start_burner(burn);
	s->tgid = (uint32_t)b.pid;
	let_go(&b);
	drain_until_cpu(s, b.pid, SECOND_NS / 4);
	stop_and_drain(s);
	end_burner(&b);
	collect_destroy(take(s->collect));
	_exit(b.pid < 100 && s->samples > HZ / 8 && s->samples_of_others < s->samples &&
				!strncmp(s->steps, "fc", 2)
			? 0
			: 1);
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

static void tid_filter_of_nobody_gives_nothing(void **state)
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
	let_go(&b);
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
	let_go(&b);
	drain_until_cpu(s, b.pid, SECOND_NS / 2);
	stop_and_drain(s);
	end_burner(&b);
	assert_true(s->samples > HZ / 4);
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

/* Children that pin themselves to each CPU in turn, so that every ring gets their records. */
static void run_children_on_all_cpus(int cpus)
{
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct burner b = start_burner(exec_true);

		pin(b.pid, cpu);
		let_go(&b);
		assert_int_equal(waitpid(b.pid, NULL, 0), b.pid);
	}
}

/*
 * The kernel's record of a new BPF program is too long on all CPUs but the first, and ends with
 * what the ring held before; taken for a time, that may stop the CPU's stream for ever.
 */
static void programs_loaded_meanwhile_do_not_stop_the_stream(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct collect *another = NULL;
	const char *what = "";
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);

	options.ring_pages = 1;
	open_with(s, &options);
	for (int i = 0; i < 8; i++) {
		for (int j = 0; j < 4; j++) {
			run_children_on_all_cpus(cpus);
			assert_true(collect_drain(s->collect, 0) >= 0);
		}
		assert_int_equal(collect_create(&options, &another, &what), 0);
		collect_destroy(another);
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct burner b = start_burner(burn);

		pin(b.pid, cpu);
		s->tgid = (uint32_t)b.pid;
		s->samples = 0;
		let_go(&b);
		drain_until_cpu(s, b.pid, SECOND_NS / 8);
		end_burner(&b);
		assert_true(s->samples > HZ / 16);
	}
	stop_and_drain(s);
	assert_true(s->ksymbols > 0);
	assert_int_equal(s->backwards, 0);
}

/* Side-band fills a ring that nobody drains: the loss is told, and the stream goes on. */
static void full_ring_is_told(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	uint64_t told;

	options.ring_pages = 1;
	open_with(s, &options);
	for (int i = 0; i < 200; i++) {
		struct burner b = start_burner(exec_true);

		let_go(&b);
		assert_int_equal(waitpid(b.pid, NULL, 0), b.pid);
	}
	assert_true(collect_drain(s->collect, 0) > 0);
	for (int i = 0; i < 8; i++) {
		struct burner b = start_burner(exec_true);

		let_go(&b);
		assert_int_equal(waitpid(b.pid, NULL, 0), b.pid);
	}
	stop_and_drain(s);
	told = metrics_get(&s->metrics, METRIC_LOST_SIDEBAND);
	assert_true(s->lost > 0);
	assert_int_equal(told, s->lost);
	assert_int_equal(s->backwards, 0);
}

static void cycles_need_a_pmu(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	const char *what = NULL;
	int err;

	options.event = COLLECT_CYCLES;
	err = collect_create(&options, &s->collect, &what);
	if (access("/sys/bus/event_source/devices/cpu", F_OK) == 0 && !err)
		return;
	assert_int_equal(err, -ENOENT);
	assert_string_equal(what, "open the sampling event");
}

static void cpu_that_is_not_online_is_refused(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	const char *what = NULL;
	int cpu = 8000;

	options.cpus = &cpu;
	options.cpu_count = 1;
	assert_int_equal(collect_create(&options, &s->collect, &what), -ENODEV);
	assert_non_null(what);
}

static void chosen_cpu_is_the_only_one_sampled(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	int cpu = 0;

	options.cpus = &cpu;
	options.cpu_count = 1;
	open_with(s, &options);
	assert_int_equal(collect_cpu_count(s->collect), 1);
}

static void maps_are_small(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);

	options.filter.read_goids = 1;
	open_with(s, &options);
	print_message("%zu bytes of maps\n", (size_t)collect_map_bytes(s->collect));
	assert_in_range(collect_map_bytes(s->collect), 1, 2 << 20);
}

#define COLLECT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		COLLECT_TEST(busy_child_is_sampled_at_the_asked_rate),
		COLLECT_TEST(frames_are_shipped_once_a_window),
		COLLECT_TEST(life_of_a_child_comes_in_order),
		COLLECT_TEST(drain_leaves_what_is_later_than_asked),
		COLLECT_TEST(comm_filter_keeps_only_that_name),
		COLLECT_TEST(cgroup_filter_takes_the_cgroups_below),
		COLLECT_TEST(pids_are_those_of_the_agents_namespace),
		COLLECT_TEST(tid_filter_of_nobody_gives_nothing),
		COLLECT_TEST(user_only_leaves_kernel_stacks_out),
		COLLECT_TEST(kernel_only_leaves_user_stacks_out),
		COLLECT_TEST(programs_loaded_meanwhile_do_not_stop_the_stream),
		COLLECT_TEST(full_ring_is_told),
		COLLECT_TEST(cycles_need_a_pmu),
		COLLECT_TEST(cpu_that_is_not_online_is_refused),
		COLLECT_TEST(chosen_cpu_is_the_only_one_sampled),
		COLLECT_TEST(maps_are_small),
	};

	if (geteuid() != 0) {
		puts("needs root: perf events of all processes and BPF");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
