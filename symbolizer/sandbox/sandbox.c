/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sandbox/sandbox.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/sandbox/child.h"
#include "symbolizer/sandbox/sandbox_wire.h"

enum {
	ARGUMENT_BYTES = 24,
	/* Between the end of the pipe and the end of the process; more is lingering. */
	FAREWELL_MS = 200,
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || \
	__has_feature(thread_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

bool sandbox_is_closed(void)
{
	return !SANITIZED;
}

struct arguments {
	char parent[ARGUMENT_BYTES];
	char memory[ARGUMENT_BYTES];
	char cpu[ARGUMENT_BYTES];
	char output[ARGUMENT_BYTES];
	char companions[SANDBOX_COMPANIONS_BYTES];
};

static void format_companions(const struct companions *c, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < c->count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%u.%" PRIu32 ",",
			(unsigned int)c->items[i].role, c->items[i].crc);
}

static void format_arguments(const struct sandbox_limits *limits,
	const struct companions *companions, struct arguments *a)
{
	snprintf(a->parent, sizeof(a->parent), "%d", (int)getpid());
	snprintf(a->memory, sizeof(a->memory), "%lu", limits->memory_bytes);
	snprintf(a->cpu, sizeof(a->cpu), "%u", limits->cpu_seconds);
	snprintf(a->output, sizeof(a->output), "%lu", limits->output_bytes);
	format_companions(companions, a->companions, sizeof(a->companions));
}

static int spawn(const struct child_fds *fds, const struct companions *companions,
	const struct sandbox_limits *limits, pid_t *ret_pid)
{
	static char *const no_environment[] = { NULL };
	char program[] = "fathom", command[ARGUMENT_BYTES];
	struct arguments text;
	char *argv[] = { program, command, text.parent, text.memory, text.cpu, text.output,
		text.companions, NULL };

	format_arguments(limits, companions, &text);
	snprintf(command, sizeof(command), "%s",
		limits->task == SANDBOX_KEEP_DEBUG ? SANDBOX_KEEP_DEBUG_COMMAND
						   : SANDBOX_INDEX_COMMAND);
	return child_spawn(argv, no_environment, fds, ret_pid);
}

static int gather_fds(const struct sandbox_files *files, int result_fd, struct child_fds *fds)
{
	int err = child_fds_add(fds, files->elf_fd);

	if (!err)
		err = child_fds_add(fds, files->output_fd);
	if (!err)
		err = child_fds_add(fds, result_fd);
	for (size_t i = 0; i < files->companions.count && !err; i++)
		err = child_fds_add(fds, files->companions.items[i].fd);
	return err;
}

int sandbox_start_files(const struct sandbox_files *files, const struct sandbox_limits *limits,
	struct sandbox *ret_sandbox)
{
	autocall(child_fds_close) struct child_fds fds = { .count = 0 };
	autoclose int read_end = -1, write_end = -1;
	pid_t pid;
	int err = child_pipe(&read_end, &write_end);

	if (!err)
		err = gather_fds(files, write_end, &fds);
	if (!err)
		err = spawn(&fds, &files->companions, limits, &pid);
	if (err)
		return err;
	*ret_sandbox = (struct sandbox){
		.pid = pid,
		.result_fd = take_fd(&read_end),
		.memory_limit_bytes = limits->memory_bytes,
		.cpu_limit_ns = limits->cpu_seconds * UINT64_C(1000000000),
	};
	return 0;
}

int sandbox_start(
	int elf_fd, int output_fd, const struct sandbox_limits *limits, struct sandbox *ret_sandbox)
{
	const struct sandbox_files files = { .elf_fd = elf_fd, .output_fd = output_fd };

	return sandbox_start_files(&files, limits, ret_sandbox);
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

/* Until the process is a zombie: then its status is its own and not that of our SIGKILL. */
static void wait_briefly(pid_t pid)
{
	autoclose int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd waited = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		(void)poll(&waited, 1, FAREWELL_MS);
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

/*
 * An allocation is refused by the limit on address space, or (strict overcommit, a control group's
 * limit on kernel memory) long before it. What the child touched tells the two apart well enough.
 */
static bool was_near_its_memory_limit(const struct sandbox *s)
{
	return s->memory_limit_bytes && s->peak_bytes >= s->memory_limit_bytes / 2;
}

static enum sandbox_outcome judge_error(const struct sandbox *s, int error)
{
	switch (error) {
	case 0:
		return SANDBOX_OK;
	case -E2BIG:
	case -EFBIG:
		return SANDBOX_LIMIT;
	case -ENOMEM:
		return was_near_its_memory_limit(s) ? SANDBOX_LIMIT : SANDBOX_INTERRUPTED;
	default:
		return SANDBOX_BAD_INPUT;
	}
}

static enum sandbox_outcome judge_signal(const struct sandbox *s, int number)
{
	switch (number) {
	case SIGXCPU:
	case SIGXFSZ:
		return SANDBOX_LIMIT;
	case SIGKILL: /* the hard CPU limit, or somebody: we ourselves, where it lingered */
		return s->cpu_limit_ns && s->cpu_ns >= s->cpu_limit_ns ? SANDBOX_LIMIT
								       : SANDBOX_INTERRUPTED;
	case SIGTERM:
	case SIGINT:
	case SIGHUP:
	case SIGQUIT:
	case SIGPWR:
	case SIGBUS: /* the file was cut while it was mapped, or its disk failed */
		return SANDBOX_INTERRUPTED;
	default:
		return SANDBOX_CRASH;
	}
}

/* It left no message. The hidden command returns EXIT_FAILURE where it could not begin. */
static enum sandbox_outcome judge_death(const struct sandbox *s, int status)
{
	if (s->message_bytes)
		return SANDBOX_CRASH;
	if (WIFSIGNALED(status))
		return judge_signal(s, WTERMSIG(status));
	return WEXITSTATUS(status) == EXIT_FAILURE ? SANDBOX_INTERRUPTED : SANDBOX_CRASH;
}

enum sandbox_outcome sandbox_finish(struct sandbox *s, struct sandbox_result *ret_result)
{
	enum sandbox_outcome outcome;

	sandbox_receive(s);
	if (has_spoken(s)) {
		kill_and_reap(s);
		*ret_result = (struct sandbox_result){
			.error = s->message.error,
			.broken_units = s->message.broken_units,
		};
		outcome = judge_error(s, s->message.error);
	} else {
		wait_briefly(s->pid);
		outcome = judge_death(s, kill_and_reap(s));
		*ret_result = (struct sandbox_result){ .error = -EIO };
	}
	if (outcome == SANDBOX_INTERRUPTED)
		ret_result->error = -EAGAIN;
	return outcome;
}

void sandbox_kill(struct sandbox *s)
{
	if (s->pid > 0)
		kill_and_reap(s);
}
