/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `fathom record` that need no sampler: the command, the targets, the plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/commands/held_command.h"
#include "agent/commands/record.h"
#include "base/cleanup.h"
#include "tests/unit/refused_call.h"

#define ARGV(...) ((char *[]){ __VA_ARGS__, NULL })

/* ---- the command ----------------------------------------------------------------------------- */

/* Waits until the command has ended, as SIGCHLD would signal; returns its status. */
static int ended_with(struct held_command *command)
{
	while (!held_command_reap(command))
		waitid(P_PID, (id_t)command->pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	assert_true(command->ended);
	return command->status;
}

static void a_command_waits_for_the_start(void **state)
{
	char path[] = "/tmp/fathom-test-XXXXXX", script[64];
	struct held_command command;
	struct stat info;

	(void)state;
	close(mkstemp(path));
	snprintf(script, sizeof(script), "rm %s; exit 3", path);
	assert_int_equal(held_command_spawn(ARGV((char *)"sh", (char *)"-c", script), &command), 0);
	assert_string_equal(command.name, "sh");
	assert_false(held_command_reap(&command));
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(held_command_go(&command), 0);
	assert_int_equal(command.go_fd, -1);
	assert_int_equal(command.exec_fd, -1);
	assert_int_equal(WEXITSTATUS(ended_with(&command)), 3);
	assert_int_equal(stat(path, &info), -1);
	assert_true(held_command_reap(&command));
	held_command_deinit(&command);
	assert_int_equal(command.pid, -1);
	assert_false(held_command_reap(&command));
}

/* SIGPIPE would end `fathom record` without a message. */
static void a_command_that_is_dead_before_the_start(void **state)
{
	struct held_command command;

	(void)state;
	assert_int_equal(held_command_spawn(ARGV((char *)"true"), &command), 0);
	assert_int_equal(kill(command.pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)command.pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_int_equal(held_command_go(&command), -EPIPE);
	assert_int_equal(WTERMSIG(ended_with(&command)), SIGKILL);
	held_command_deinit(&command);
}

static void a_command_that_cannot_be_executed_says_why(void **state)
{
	struct held_command command;

	(void)state;
	assert_int_equal(held_command_spawn(ARGV((char *)"/no/such/program"), &command), 0);
	assert_int_equal(held_command_go(&command), -ENOENT);
	assert_int_equal(WEXITSTATUS(ended_with(&command)), 127);
	held_command_deinit(&command);
	assert_int_equal(held_command_spawn(ARGV((char *)"/etc"), &command), 0);
	assert_int_equal(held_command_go(&command), -EACCES);
	ended_with(&command);
	held_command_deinit(&command);
}

static void a_command_that_was_not_started_leaves_nothing(void **state)
{
	char path[] = "/tmp/fathom-test-XXXXXX";
	struct held_command command;
	struct stat info;
	pid_t pid;

	(void)state;
	close(mkstemp(path));
	assert_int_equal(held_command_spawn(ARGV((char *)"rm", path), &command), 0);
	pid = command.pid;
	held_command_deinit(&command);
	assert_int_equal(command.go_fd, -1);
	assert_int_equal(command.exec_fd, -1);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	unlink(path);
}

static void a_command_that_runs_is_left_alone(void **state)
{
	struct held_command command;
	pid_t pid;
	int status;

	(void)state;
	assert_int_equal(held_command_spawn(ARGV((char *)"sleep", (char *)"1000"), &command), 0);
	pid = command.pid;
	assert_int_equal(held_command_go(&command), 0);
	held_command_deinit(&command); /* does not wait */
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* The command does not inherit the signals that the loop blocks. */
static void a_command_has_no_signal_blocked(void **state)
{
	struct held_command command;
	sigset_t all, before;

	(void)state;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	assert_int_equal(held_command_spawn(
				 ARGV((char *)"sh", (char *)"-c", (char *)"kill -TERM $$; exit 9"),
				 &command),
		0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(held_command_go(&command), 0);
	assert_true(WIFSIGNALED(ended_with(&command)));
	assert_int_equal(WTERMSIG(command.status), SIGTERM);
	held_command_deinit(&command);
}

/* The command inherits no descriptor: an inherited pipe would never report its end. */
static void a_command_inherits_nothing(void **state)
{
	struct held_command command, second;

	(void)state;
	for (int fd = 3; fd < 10; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC); /* inherited by the test */
	assert_int_equal(held_command_spawn(ARGV((char *)"true"), &second), 0);
	assert_int_equal(
		held_command_spawn(ARGV((char *)"sh", (char *)"-c",
					   (char *)"for fd in 4 5 6 7 8 9; do "
						   "test ! -e /proc/self/fd/$fd || exit 1; done"),
			&command),
		0);
	assert_int_equal(held_command_go(&command), 0);
	assert_int_equal(ended_with(&command), 0);
	held_command_deinit(&command);
	held_command_deinit(&second);
}

static size_t open_descriptors(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static int spawn_true(void *context)
{
	return held_command_spawn(ARGV((char *)"true"), context);
}

static void failures_leave_no_descriptor(void **state)
{
	static const struct refused_call fork_fails = { SYS_clone, EAGAIN, 0 };
	static const struct refused_call pipe_fails = { SYS_pipe2, EMFILE, 0 };
	struct held_command command = { .pid = -1 };
	size_t before = open_descriptors();

	(void)state;
	assert_int_equal(with_refused_call(&fork_fails, spawn_true, &command), -EAGAIN);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(with_refused_call(&pipe_fails, spawn_true, &command), -EMFILE);
	assert_int_equal(open_descriptors(), before);
}

/* ---- targets --------------------------------------------------------------------------------- */

struct watched {
	struct loop *loop;
	struct watched_targets targets;
	struct collect_options who;
	int ends; /* calls of ended() */
	int ready[2]; /* the target's pipe: it ends when this is closed */
};

static void on_all_ended(void *context)
{
	struct watched *w = context;

	w->ends++;
	loop_stop(w->loop);
}

static int watch_targets(void *context)
{
	struct watched *w = context;

	return watched_targets_watch(&w->targets, &w->who, w->loop, on_all_ended, w);
}

static uint32_t start_target(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	return (uint32_t)pid;
}

static void kill_target(uint32_t pid)
{
	kill((pid_t)pid, SIGKILL);
	waitpid((pid_t)pid, NULL, 0);
}

static void the_end_of_all_targets_is_reported_once(void **state)
{
	uint32_t pids[] = { start_target(), start_target() };
	struct watched w = { .who = { .tgids = pids, .tgid_count = 2 } };

	(void)state;
	assert_int_equal(loop_create(&w.loop), 0);
	assert_int_equal(watch_targets(&w), 0);
	assert_false(watched_targets_ended(&w.targets));
	kill_target(pids[0]);
	assert_false(watched_targets_ended(&w.targets));
	kill_target(pids[1]);
	assert_int_equal(loop_run(w.loop), 0);
	assert_int_equal(w.ends, 1);
	assert_true(watched_targets_ended(&w.targets));
	watched_targets_deinit(&w.targets);
	assert_false(watched_targets_ended(&w.targets));
	loop_destroy(w.loop);
}

static void a_target_that_is_gone_counts_as_ended(void **state)
{
	uint32_t pids[] = { start_target(), start_target() };
	struct watched w = { .who = { .tgids = pids, .tgid_count = 2 } };
	size_t before;

	(void)state;
	assert_int_equal(loop_create(&w.loop), 0);
	before = open_descriptors();
	kill_target(pids[0]);
	assert_int_equal(watch_targets(&w), 0);
	assert_false(watched_targets_ended(&w.targets));
	assert_int_equal(open_descriptors(), before + 1);
	kill_target(pids[1]);
	assert_int_equal(loop_run(w.loop), 0);
	assert_int_equal(w.ends, 1);
	watched_targets_deinit(&w.targets);
	/* All targets have ended: there is nothing to wait for. */
	assert_int_equal(watch_targets(&w), 0);
	assert_true(watched_targets_ended(&w.targets));
	watched_targets_deinit(&w.targets);
	assert_int_equal(open_descriptors(), before);
	loop_destroy(w.loop);
}

static void targets_are_released(void **state)
{
	uint32_t pid = start_target();
	struct watched w = { .who = { .tgids = &pid, .tgid_count = 1 } };
	size_t before;

	(void)state;
	assert_int_equal(loop_create(&w.loop), 0);
	before = open_descriptors();
	assert_int_equal(watch_targets(&w), 0);
	watched_targets_deinit(&w.targets);
	assert_int_equal(open_descriptors(), before);
	kill_target(pid);
	loop_destroy(w.loop);
}

static void without_targets_nothing_is_watched(void **state)
{
	struct watched w = { 0 };

	(void)state;
	assert_int_equal(loop_create(&w.loop), 0);
	assert_int_equal(watch_targets(&w), 0);
	assert_false(watched_targets_ended(&w.targets));
	watched_targets_deinit(&w.targets);
	loop_destroy(w.loop);
}

/* A thread is watched instead of its process. */
static void threads_are_watched_alone(void **state)
{
	uint32_t pid = start_target(), self = (uint32_t)getpid();
	struct watched w = {
		.who = { .tids = &pid, .tid_count = 1, .tgids = &self, .tgid_count = 1 },
	};

	(void)state;
	assert_int_equal(loop_create(&w.loop), 0);
	assert_int_equal(watch_targets(&w), 0);
	assert_int_equal(w.targets.count, 1);
	kill_target(pid);
	assert_int_equal(loop_run(w.loop), 0);
	assert_int_equal(w.ends, 1);
	watched_targets_deinit(&w.targets);
	loop_destroy(w.loop);
}

static void targets_that_cannot_be_watched_are_skipped(void **state)
{
	static const struct refused_call cases[] = {
		{ SYS_pidfd_open, ENOSYS, 0 },
		{ SYS_epoll_ctl, ENOSPC, 0 },
	};
	uint32_t pid = start_target();
	struct watched w = { .who = { .tgids = &pid, .tgid_count = 1 } };
	size_t before;

	(void)state;
	assert_int_equal(loop_create(&w.loop), 0);
	before = open_descriptors();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(with_refused_call(&cases[i], watch_targets, &w), 0);
		assert_int_equal(w.targets.count, 0);
		assert_false(watched_targets_ended(&w.targets));
		assert_int_equal(open_descriptors(), before);
	}
	kill_target(pid);
	loop_destroy(w.loop);
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int plan_of(char **argv, struct config *config, struct record_plan *plan)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	assert_int_equal(config_parse(config, IN_RECORD, argc, argv), 0);
	return record_plan(config, plan);
}

#define PLAN(config, plan, ...) plan_of(ARGV((char *)"record", __VA_ARGS__), config, plan)

static void the_plan_without_options(void **state)
{
	struct record_plan plan;
	struct config config;

	(void)state;
	assert_int_equal(PLAN(&config, &plan, (char *)"--cache-directory=/x"), 0);
	assert_int_equal(plan.duration_ns, 0);
	assert_string_equal(plan.output, "fathom.pb.gz");
	assert_false(plan.folded);
	assert_false(plan.others);
	assert_int_equal(plan.sampler.collect.event, COLLECT_CPU_CLOCK);
	assert_int_equal(plan.sampler.collect.frequency_hz, 99);
	assert_int_equal(plan.sampler.collect.period, 0);
	assert_int_equal(plan.sampler.collect.off_cpu_share, 0);
	assert_string_equal(plan.sampler.cache_directory, "/x");
	assert_string_equal(plan.sampler.debug_directories, "/usr/lib/debug");
	assert_null(plan.sampler.debuginfod_urls);
	assert_int_equal(plan.sampler.cache_limit_bytes, UINT64_C(2) << 30);
	assert_int_equal(plan.sampler.profile_limit_bytes, 256 << 20);
	assert_int_equal(plan.sampler.memory_limit_bytes, 256 << 20);
	record_plan_deinit(&plan);
	assert_null(plan.cache_directory);
	config_deinit(&config);
}

static void options_make_the_plan(void **state)
{
	char pid[16];
	struct record_plan plan;
	struct config config;

	(void)state;
	snprintf(pid, sizeof(pid), "-p%d", getpid());
	assert_int_equal(PLAN(&config, &plan, (char *)"-d1.5", (char *)"--folded", pid,
				 (char *)"--off-cpu", (char *)"-e", (char *)"cycles",
				 (char *)"-c100000", (char *)"--debuginfod-urls=http://x",
				 (char *)"--debuginfo-directories=/a,/b",
				 (char *)"--memory-limit=1M", (char *)"--cache-max-bytes=3M"),
		0);
	assert_int_equal(plan.duration_ns, 1500000000);
	assert_string_equal(plan.output, "-");
	assert_true(plan.folded);
	assert_true(plan.others);
	assert_int_equal(plan.sampler.collect.event, COLLECT_CYCLES);
	assert_int_equal(plan.sampler.collect.frequency_hz, 0);
	assert_int_equal(plan.sampler.collect.period, 100000);
	assert_true(plan.sampler.collect.off_cpu_share == 1);
	assert_string_equal(plan.sampler.debug_directories, "/a,/b");
	assert_string_equal(plan.sampler.debuginfod_urls, "http://x");
	assert_int_equal(plan.sampler.cache_limit_bytes, 3 << 20);
	assert_int_equal(plan.sampler.profile_limit_bytes, 1 << 20);
	assert_int_equal(plan.sampler.memory_limit_bytes, 1 << 20);
	record_plan_deinit(&plan);
	config_deinit(&config);
	assert_int_equal(PLAN(&config, &plan, (char *)"-a", (char *)"-o", (char *)"f"), 0);
	assert_true(plan.others);
	assert_string_equal(plan.output, "f");
	record_plan_deinit(&plan);
	config_deinit(&config);
	assert_int_equal(PLAN(&config, &plan, (char *)"-F", (char *)"123"), 0);
	assert_int_equal(plan.sampler.collect.frequency_hz, 123);
	record_plan_deinit(&plan);
	config_deinit(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_waits_for_the_start),
		cmocka_unit_test(a_command_that_is_dead_before_the_start),
		cmocka_unit_test(a_command_that_cannot_be_executed_says_why),
		cmocka_unit_test(a_command_that_was_not_started_leaves_nothing),
		cmocka_unit_test(a_command_that_runs_is_left_alone),
		cmocka_unit_test(a_command_has_no_signal_blocked),
		cmocka_unit_test(a_command_inherits_nothing),
		cmocka_unit_test(failures_leave_no_descriptor),
		cmocka_unit_test(the_end_of_all_targets_is_reported_once),
		cmocka_unit_test(a_target_that_is_gone_counts_as_ended),
		cmocka_unit_test(targets_are_released),
		cmocka_unit_test(without_targets_nothing_is_watched),
		cmocka_unit_test(threads_are_watched_alone),
		cmocka_unit_test(targets_that_cannot_be_watched_are_skipped),
		cmocka_unit_test(the_plan_without_options),
		cmocka_unit_test(options_make_the_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
