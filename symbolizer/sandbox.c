/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/sandbox_wire.h"

enum {
	ARGUMENT_BYTES = 24,
	/* Between the end of the pipe and the end of the process; more is lingering. */
	FAREWELL_MS = 200,
};

struct arguments {
	char parent[ARGUMENT_BYTES];
	char memory[ARGUMENT_BYTES];
	char cpu[ARGUMENT_BYTES];
	char output[ARGUMENT_BYTES];
};

static void format_arguments(const struct sandbox_limits *limits, struct arguments *a)
{
	snprintf(a->parent, sizeof(a->parent), "%d", (int)getpid());
	snprintf(a->memory, sizeof(a->memory), "%lu", limits->memory_bytes);
	snprintf(a->cpu, sizeof(a->cpu), "%u", limits->cpu_seconds);
	snprintf(a->output, sizeof(a->output), "%lu", limits->output_bytes);
}

/* A duplicate above the child's numbers, so that placing one does not overwrite another. */
static int duplicate_high(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, SANDBOX_FD_COUNT);

	return high < 0 ? -errno : high;
}

static int add_fds(posix_spawn_file_actions_t *actions, const int *fds)
{
	autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int err = 0;

	/* A sanitizer's report is worth reading; nothing else in the child may speak. */
	for (int fd = 0; fd < (sandbox_is_closed() ? 3 : 2) && !err; fd++)
		err = null >= 0 ? posix_spawn_file_actions_addopen(
					  actions, fd, "/dev/null", O_RDWR, 0)
				: posix_spawn_file_actions_addclose(actions, fd);
	for (int i = 0; i < 3 && !err; i++)
		err = posix_spawn_file_actions_adddup2(actions, fds[i], SANDBOX_ELF_FD + i);
	return -err;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	err = posix_spawnattr_setflags(
		attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (!err)
		err = posix_spawnattr_setpgroup(attributes, 0);
	if (!err)
		err = posix_spawnattr_setsigmask(attributes, &none);
	if (!err)
		err = posix_spawnattr_setsigdefault(attributes, &all);
	return -err;
}

/* posix_spawn shares the memory until exec: no page table is copied, whatever our size is. */
static int spawn(const int *fds, const struct sandbox_limits *limits, pid_t *ret_pid)
{
	static char *const no_environment[] = { NULL };
	char program[] = "fathom", command[ARGUMENT_BYTES];
	struct arguments text;
	char *argv[] = { program, command, text.parent, text.memory, text.cpu, text.output, NULL };
	autocall(posix_spawn_file_actions_destroy) posix_spawn_file_actions_t actions;
	autocall(posix_spawnattr_destroy) posix_spawnattr_t attributes;
	int err;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	format_arguments(limits, &text);
	snprintf(command, sizeof(command), "%s",
		limits->task == SANDBOX_KEEP_DEBUG ? SANDBOX_KEEP_DEBUG_COMMAND
						   : SANDBOX_INDEX_COMMAND);
	err = add_fds(&actions, fds);
	if (!err)
		err = set_attributes(&attributes);
	if (err)
		return err;
	return -posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, argv, no_environment);
}

int sandbox_start(
	int elf_fd, int output_fd, const struct sandbox_limits *limits, struct sandbox *ret_sandbox)
{
	int ends[2];
	autoclose int read_end = -1, write_end = -1, elf = -1, output = -1, result = -1;
	pid_t pid;
	int err;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	read_end = ends[0];
	write_end = ends[1];
	if (fcntl(read_end, F_SETFL, O_NONBLOCK))
		return -errno;
	elf = duplicate_high(elf_fd);
	output = duplicate_high(output_fd);
	result = duplicate_high(write_end);
	if (elf < 0 || output < 0 || result < 0)
		return MIN(elf, MIN(output, result));
	err = spawn((int[]){ elf, output, result }, limits, &pid);
	if (err)
		return err;
	*ret_sandbox = (struct sandbox){ .pid = pid, .result_fd = take_fd(&read_end) };
	return 0;
}

bool sandbox_receive(struct sandbox *s)
{
	for (;;) {
		uint8_t surplus[64];
		bool full = s->message_bytes >= sizeof(s->message);
		void *to = full ? surplus : (uint8_t *)&s->message + s->message_bytes;
		size_t room = full ? sizeof(surplus) : sizeof(s->message) - s->message_bytes;
		ssize_t got = read(s->result_fd, to, room);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno != EAGAIN;
		if (got == 0)
			return true;
		s->message_bytes += (size_t)got;
		if (full)
			return true; /* it babbles: enough */
	}
}

/* True when the process became a zombie in time. */
static bool wait_briefly(pid_t pid)
{
	autoclose int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd waited = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&waited, 1, FAREWELL_MS) == 1;
}

static int reap(struct sandbox *s)
{
	struct rusage usage = { 0 };
	int status = 0;

	while (wait4(s->pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	s->pid = -1;
	s->cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
		    (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
	s->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
	return status;
}

static int kill_and_reap(struct sandbox *s)
{
	if (s->result_fd >= 0)
		close(take_fd(&s->result_fd));
	/* The group may be gone with the child: then the child itself is all there is to kill. */
	if (kill(-s->pid, SIGKILL))
		kill(s->pid, SIGKILL);
	return reap(s);
}

static bool has_spoken(const struct sandbox *s)
{
	return s->message_bytes == sizeof(s->message) && s->message.magic == SANDBOX_MAGIC &&
	       s->message.check == sandbox_check(&s->message) && s->message.error <= 0;
}

static enum sandbox_outcome judge_error(int error)
{
	if (error == 0)
		return SANDBOX_OK;
	if (error == -E2BIG || error == -ENOMEM || error == -EFBIG)
		return SANDBOX_LIMIT;
	return SANDBOX_BAD_INPUT;
}

/* SIGKILL that did not come from us is the hard CPU limit or the kernel short of memory. */
static bool is_limit(int status)
{
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	return number == SIGXCPU || number == SIGXFSZ || number == SIGKILL;
}

enum sandbox_outcome sandbox_finish(struct sandbox *s, struct builder_result *ret_result)
{
	bool gone;
	int status;

	sandbox_receive(s);
	if (has_spoken(s)) {
		kill_and_reap(s);
		*ret_result = (struct builder_result){
			.error = s->message.error,
			.broken_units = s->message.broken_units,
		};
		return judge_error(s->message.error);
	}
	gone = wait_briefly(s->pid);
	status = kill_and_reap(s);
	*ret_result = (struct builder_result){ .error = -EIO };
	return gone && is_limit(status) ? SANDBOX_LIMIT : SANDBOX_CRASH;
}

void sandbox_kill(struct sandbox *s)
{
	if (s->pid > 0)
		kill_and_reap(s);
}
