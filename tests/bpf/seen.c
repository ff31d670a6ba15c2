/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/probes.h"
#include "tests/bpf/seen.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

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

static void saw_sample(struct seen *s, uint64_t time_ns, const struct abi_sample *sample)
{
	in_order(s, time_ns);
	s->own_samples += sample->tgid == (uint32_t)getpid();
	if (sample->tgid != s->tgid) {
		s->samples_of_others++;
		return;
	}
	s->samples++;
	s->exec_id = sample->exec_id;
	s->fiber_generation = sample->fiber_generation;
	s->window = sample->window;
	memcpy(s->comm, sample->comm, ABI_COMM_BYTES);
	if (!strncmp(s->comm, "iou-wrk", strlen("iou-wrk"))) {
		s->worker_samples++;
		s->worker_stacks += sample->user_stack != 0;
	}
	need_stack(s, sample->user_stack, sample->window, &s->user_stacks);
	need_stack(s, sample->kernel_stack, sample->window, &s->kernel_stacks);
}

static void saw_tick(void *context, uint64_t time_ns, const struct abi_tick *tick)
{
	struct seen *s = context;

	s->weight_ns += tick->sample.tgid == s->tgid ? tick->period : 0;
	saw_sample(s, time_ns, &tick->sample);
}

static void saw_unfinished(void *context, uint64_t time_ns, const struct abi_unfinished *unfinished)
{
	struct seen *s = context;

	s->unfinished += unfinished->sample.tgid == s->tgid && unfinished->rest.stack_bytes;
	saw_tick(context, time_ns, &unfinished->tick);
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
	s->file_lost |= mmap->build_id.size > 0 && mmap->inode == 0;
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
	if (tgid != s->tgid || tgid == parent_tgid)
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

static void saw_lost(void *context, uint64_t time_ns, uint64_t until_ns)
{
	struct seen *s = context;

	in_order(s, time_ns);
	assert_true(until_ns >= time_ns);
	s->gaps++;
}

static void saw_ksymbol(
	void *context, uint64_t kaddr, uint32_t size, const char *name, bool bpf, bool gone)
{
	struct seen *s = context;

	(void)kaddr;
	(void)size;
	(void)gone;
	s->ksymbols += bpf && strstr(name, "take_sample") != NULL;
}

struct collect_options options_for(struct seen *s)
{
	return (struct collect_options){
		.probes = probes_all,
		.frequency_hz = HZ,
		.user = true,
		.kernel = true,
		.metrics = &s->metrics,
		.handlers = { .tick = saw_tick,
			.unfinished = saw_unfinished,
			.stack = saw_stack,
			.mmap = saw_mmap,
			.comm = saw_comm,
			.fork = saw_fork,
			.exit = saw_exit,
			.ksymbol = saw_ksymbol,
			.lost = saw_lost,
			.context = s },
	};
}

void open_with(struct seen *s, const struct collect_options *options)
{
	const char *what = "";
	int err = collect_create(options, &s->collect, &what);

	if (err)
		fail_msg("collect_create: %s: %s", what, strerror(-err));
	assert_int_equal(collect_next_window(s->collect), 1);
	assert_int_equal(collect_start(s->collect), 0);
}

int setup(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));

	if (!s)
		return -1;
	map_init(&s->stacks, 1 << 20);
	*state = s;
	return 0;
}

int teardown(void **state)
{
	struct seen *s = *state;

	collect_destroy(s->collect);
	map_deinit(&s->stacks);
	free(s);
	return 0;
}

void burn(void)
{
	volatile uint64_t x = 1;

	for (;;)
		x = x * 3 + 1;
}

struct burner start_burner(void (*work)(void))
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

void release_child(struct burner *b)
{
	assert_int_equal(write(b->go, "g", 1), 1);
	close(b->go);
}

void pin(pid_t pid, int cpu)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	assert_int_equal(sched_setaffinity(pid, sizeof(only), &only), 0);
}

void end_burner(struct burner *b)
{
	kill(b->pid, SIGKILL);
	assert_int_equal(waitpid(b->pid, NULL, 0), b->pid);
}

uint64_t cpu_ns_of(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

void drain_until_cpu(struct seen *s, pid_t pid, uint64_t cpu_ns)
{
	uint64_t start_ns = clock_monotonic_ns();
	struct pollfd rings = { .fd = collect_fd(s->collect), .events = POLLIN };

	while (cpu_ns_of(pid) < cpu_ns) {
		assert_true(clock_monotonic_ns() - start_ns < 60 * SECOND_NS);
		poll(&rings, 1, 50);
		assert_true(collect_drain(s->collect, 0) >= 0);
	}
}

void drain_until_samples(struct seen *s, size_t count)
{
	uint64_t start_ns = clock_monotonic_ns();
	struct pollfd rings = { .fd = collect_fd(s->collect), .events = POLLIN };

	while (s->samples < count) {
		assert_true(clock_monotonic_ns() - start_ns < 60 * SECOND_NS);
		poll(&rings, 1, 50);
		assert_true(collect_drain(s->collect, 0) >= 0);
	}
}

void stop_and_drain(struct seen *s)
{
	assert_int_equal(collect_stop(s->collect), 0);
	assert_true(collect_drain(s->collect, 0) >= 0);
	assert_int_equal(collect_drain(s->collect, 0) < 0, 0);
	collect_count(s->collect);
}

void exec_true(void)
{
	execl("/bin/true", "true", (char *)NULL);
}
