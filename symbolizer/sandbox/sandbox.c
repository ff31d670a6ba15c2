/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sandbox/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign.h"
#include "base/io.h"
#include "symbolizer/sandbox/child.h"
#include "symbolizer/sandbox/sandbox_wire.h"

enum {
	FIXED_FDS = SANDBOX_FIRST_DEBUG_FD - SANDBOX_ELF_FD,
	ARGUMENT_BYTES = 24,
	/* from the socket's end to the process's; after that it lingers */
	FAREWELL_MS = 200,
	/* for a killed child, most of which are gone within a millisecond or two */
	KILL_MS = 20,
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
	char debug_files[SANDBOX_DEBUG_FILES_BYTES];
};

static void format_debug_files(const struct sandbox_files *files, char *text, size_t size)
{
	const struct debug_files *c = &files->debug_files;
	size_t used = (size_t)snprintf(
		text, size, "%s%s", files->wants_functions ? "f" : "", files->may_ask ? "?" : "");

	for (size_t i = 0; i < c->count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%u.%" PRIu32 ",",
			(unsigned int)c->items[i].role, c->items[i].crc);
}

/* Returns an allocated argument, or NULL. */
static char *format_addresses(const struct sandbox_files *files)
{
	const size_t size = files->address_count * SANDBOX_ADDRESS_BYTES + 1;
	char *text = calloc(1, size);
	size_t used = 0;

	assert(files->address_count <= SANDBOX_ADDRESSES_MAX);
	for (size_t i = 0; i < files->address_count && text; i++)
		used += (size_t)snprintf(
			text + used, size - used, "%" PRIx64 ",", files->addresses[i]);
	return text;
}

static void format_arguments(
	const struct sandbox_limits *limits, const struct sandbox_files *files, struct arguments *a)
{
	snprintf(a->parent, sizeof(a->parent), "%d", (int)getpid());
	snprintf(a->memory, sizeof(a->memory), "%lu", limits->memory_bytes);
	snprintf(a->cpu, sizeof(a->cpu), "%u", limits->cpu_seconds);
	snprintf(a->output, sizeof(a->output), "%lu", limits->output_bytes);
	format_debug_files(files, a->debug_files, sizeof(a->debug_files));
}

static int sandbox_spawn(const struct child_fds *fds, const struct sandbox_files *files,
	const struct sandbox_limits *limits, pid_t *ret_pid)
{
	static const char *const commands[] = {
		[SANDBOX_INDEX] = SANDBOX_INDEX_COMMAND,
		[SANDBOX_KEEP_DEBUG] = SANDBOX_KEEP_DEBUG_COMMAND,
		[SANDBOX_READ_ARGUMENTS] = SANDBOX_ARGUMENTS_COMMAND,
	};
	static char *const no_environment[] = { NULL };
	char program[] = "fathom", command[ARGUMENT_BYTES];
	autofree char *addresses = format_addresses(files);
	struct arguments text;
	char *argv[] = { program, command, text.parent, text.memory, text.cpu, text.output,
		text.debug_files, addresses, NULL };

	if (!addresses)
		return -ENOMEM;
	format_arguments(limits, files, &text);
	snprintf(command, sizeof(command), "%s", commands[limits->task]);
	return child_spawn(argv, no_environment, fds, ret_pid);
}

static int gather_fds(const struct sandbox_files *files, int result_fd, struct child_fds *fds)
{
	int err = child_fds_add(fds, files->elf_fd);

	if (!err)
		err = child_fds_add(fds, files->output_fd);
	if (!err)
		err = child_fds_add(fds, result_fd);
	for (size_t i = 0; i < files->debug_files.count && !err; i++)
		err = child_fds_add(fds, files->debug_files.items[i].fd);
	return err;
}

static uint64_t sandbox_bytes_of(const struct debug_files *debug_files)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < debug_files->count; i++)
		bytes += debug_files->items[i].bytes;
	return bytes;
}

/* The child has been given files of BYTES. */
static void sandbox_grant(struct sandbox *s, uint64_t bytes)
{
	struct sandbox_limits limits;

	s->file_bytes += bytes;
	limits = sandbox_limits_for(&s->limits, s->file_bytes);
	s->memory_limit_bytes = limits.memory_bytes;
	s->cpu_limit_ns = limits.cpu_seconds * UINT64_C(1000000000);
}

int sandbox_start_files(const struct sandbox_files *files, const struct sandbox_limits *limits,
	struct sandbox *ret_sandbox)
{
	autocall(child_fds_close) struct child_fds fds = {
		.expected = FIXED_FDS + files->debug_files.count,
	};
	autofree struct sandbox_question *question =
		files->may_ask ? malloc(sizeof(*question)) : NULL;
	autoclose int read_end = -1, write_end = -1;
	pid_t pid;
	int err = files->may_ask && !question ? -ENOMEM : child_channel(&read_end, &write_end);

	if (!err)
		err = gather_fds(files, write_end, &fds);
	if (!err)
		err = sandbox_spawn(&fds, files, limits, &pid);
	if (err)
		return err;
	*ret_sandbox = (struct sandbox){
		.pid = pid,
		.result_fd = take_fd(&read_end),
		.question = take(question),
		.limits = *limits,
	};
	sandbox_grant(ret_sandbox, files->elf_bytes + sandbox_bytes_of(&files->debug_files));
	return 0;
}

int sandbox_start(
	int elf_fd, int output_fd, const struct sandbox_limits *limits, struct sandbox *ret_sandbox)
{
	const struct sandbox_files files = {
		.elf_fd = elf_fd,
		.elf_bytes = io_known_bytes(elf_fd),
		.output_fd = output_fd,
	};

	return sandbox_start_files(&files, limits, ret_sandbox);
}

/* ---- what the child reports ----------------------------------------------------------------- */

/* One for the module and one for each debug file that was offered. */
enum { MAX_QUESTIONS = 1 + SANDBOX_OFFER_MAX };

_Static_assert((int)SANDBOX_OFFER_MAX <= (int)FOREIGN_SEND_FILES &&
		       sizeof(struct sandbox_answer) <= FOREIGN_SEND_BYTES,
	"an answer is one message");

_Static_assert(offsetof(struct sandbox_question, names) == sizeof(struct sandbox_message),
	"a question begins where a message would end");

/* Where the next bytes go, and how many are expected. */
struct expected {
	uint8_t *at;
	size_t missing;
};

/* The message begins a question. Returns -EBADMSG if the child may not ask (again). */
static int begin_question(struct sandbox *s)
{
	if (!s->question || s->questions == MAX_QUESTIONS)
		return -EBADMSG;
	memcpy(s->question, &s->message, sizeof(s->message));
	s->question_bytes = sizeof(s->message);
	s->questions++;
	return 0;
}

static struct expected expect_bytes(struct sandbox *s)
{
	if (s->question_bytes)
		return (struct expected){ (uint8_t *)s->question + s->question_bytes,
			sizeof(*s->question) - s->question_bytes };
	return (struct expected){ (uint8_t *)&s->message + s->message_bytes,
		sizeof(s->message) - s->message_bytes };
}

static bool name_ends(const char name[DEBUG_NAME_BYTES])
{
	return memchr(name, 0, DEBUG_NAME_BYTES);
}

/* Names are untrusted: an invalid one counts as absent. */
static void check_names(struct debug_names *names)
{
	if (!name_ends(names->link) || strchr(names->link, '/'))
		names->link[0] = 0;
	if (!name_ends(names->alternate))
		names->alternate[0] = 0;
	if (names->build_id.size > BUILD_ID_MAX_BYTES)
		names->build_id.size = 0;
	if (names->alternate_id.size > BUILD_ID_MAX_BYTES)
		names->alternate_id.size = 0;
	names->has_dwarf = names->has_dwarf != 0;
}

/* Accounts for GOT new bytes. Returns true if the child may not send them. */
static bool sandbox_take_bytes(struct sandbox *s, size_t got)
{
	if (!s->question_bytes) {
		s->message_bytes += got;
		return s->message_bytes == sizeof(s->message) &&
		       s->message.magic == SANDBOX_QUESTION_MAGIC && begin_question(s);
	}
	s->question_bytes += got;
	if (s->question_bytes == sizeof(*s->question))
		check_names(&s->question->names);
	return false;
}

/*
 * Nothing may follow a complete message. Returns true at the end of the socket, or if something
 * does follow.
 */
static bool receive_surplus(struct sandbox *s)
{
	uint8_t surplus[64];
	ssize_t got;

	do
		got = read(s->result_fd, surplus, sizeof(surplus));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno != EAGAIN;
	s->message_bytes += (size_t)got;
	return true; /* closed, or a surplus byte: done either way */
}

bool sandbox_receive(struct sandbox *s)
{
	if (s->ends)
		return true;
	while (!sandbox_question(s)) {
		struct expected next = expect_bytes(s);
		ssize_t got;

		if (!next.missing)
			return receive_surplus(s);
		got = read(s->result_fd, next.at, next.missing);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno != EAGAIN;
		if (got == 0 || sandbox_take_bytes(s, (size_t)got))
			return true;
	}
	return false;
}

const struct sandbox_question *sandbox_question(const struct sandbox *s)
{
	return s->question_bytes == sizeof(*s->question) ? s->question : NULL;
}

static void forget_question(struct sandbox *s)
{
	s->question_bytes = 0;
	s->message_bytes = 0;
}

void sandbox_answer(struct sandbox *s, const struct debug_files *offered)
{
	struct sandbox_answer answer = { .magic = SANDBOX_ANSWER_MAGIC };
	int fds[SANDBOX_OFFER_MAX];

	assert(sandbox_question(s) && offered->count <= SANDBOX_OFFER_MAX);
	for (size_t i = 0; i < offered->count; i++) {
		answer.items[i].role = offered->items[i].role;
		answer.items[i].crc = offered->items[i].crc;
		fds[i] = offered->items[i].fd;
	}
	answer.count = (uint32_t)offered->count;
	sandbox_grant(s, sandbox_bytes_of(offered));
	forget_question(s);
	/* Without an answer the child would wait forever; after a shutdown it goes on without. */
	if (foreign_send(s->result_fd, &answer, sizeof(answer), fds, offered->count))
		(void)shutdown(s->result_fd, SHUT_WR);
}

/* ---- its end -------------------------------------------------------------------------------- */

/* Waits for the child's zombie, but not for long. */
static void wait_briefly(pid_t pid, int milliseconds)
{
	autoclose int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd waited = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		(void)poll(&waited, 1, milliseconds);
}

/* Returns false if the child is not gone yet; without WNOHANG in FLAGS waits for that. */
static bool reap(struct sandbox *s, int flags, int *ret_status)
{
	struct rusage usage = { 0 };
	pid_t pid;

	do
		pid = wait4(s->pid, ret_status, flags, &usage);
	while (pid < 0 && errno == EINTR);
	if (!pid)
		return false;
	s->pid = -1;
	s->cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
		    (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
	s->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
	return true;
}

/* The group may be gone already; then only the child itself is left to kill. */
static void kill_group(const struct sandbox *s)
{
	if (kill(-s->pid, SIGKILL))
		kill(s->pid, SIGKILL);
}

static void sandbox_hang_up(struct sandbox *s)
{
	if (s->result_fd >= 0)
		close(take_fd(&s->result_fd));
	free(s->question);
	s->question = NULL;
}

static int kill_and_reap(struct sandbox *s)
{
	int status = 0;

	sandbox_hang_up(s);
	kill_group(s);
	(void)reap(s, 0, &status);
	return status;
}

static bool has_spoken(const struct sandbox *s)
{
	return s->message_bytes == sizeof(s->message) && s->message.magic == SANDBOX_MAGIC &&
	       s->message.check == sandbox_check(&s->message) && s->message.error <= 0;
}

/*
 * An allocation fails at the limit on address space, or long before it (strict overcommit, a
 * control group's limit on kernel memory). The peak RSS tells the two apart well enough.
 */
static bool was_near_its_memory_limit(const struct sandbox *s)
{
	return s->memory_limit_bytes && s->peak_bytes >= s->memory_limit_bytes / 2;
}

/* The child has the lower of its own limit and ours. */
static enum sandbox_outcome judge_output_limit(const struct sandbox *s)
{
	struct rlimit ours;

	if (getrlimit(RLIMIT_FSIZE, &ours) || ours.rlim_max >= s->limits.output_bytes)
		return SANDBOX_LIMIT;
	return SANDBOX_NO_SPACE;
}

static enum sandbox_outcome judge_error(const struct sandbox *s, int error)
{
	switch (error) {
	case 0:
		return SANDBOX_OK;
	case -E2BIG:
		return SANDBOX_LIMIT;
	case -EFBIG:
		return judge_output_limit(s);
	case -ENOSPC:
	case -EDQUOT:
		return SANDBOX_NO_SPACE;
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
		return SANDBOX_LIMIT;
	case SIGXFSZ:
		return judge_output_limit(s);
	case SIGKILL: /* the hard CPU limit, or a kill: ours if it lingered */
		return s->cpu_limit_ns && s->cpu_ns >= s->cpu_limit_ns ? SANDBOX_LIMIT
								       : SANDBOX_INTERRUPTED;
	case SIGTERM:
	case SIGINT:
	case SIGHUP:
	case SIGQUIT:
	case SIGPWR:
	case SIGBUS: /* the mapped file was truncated, or its disk failed */
		return SANDBOX_INTERRUPTED;
	default:
		return SANDBOX_CRASH;
	}
}

/*
 * For a child that left no message. The hidden command exits with EXIT_FAILURE if it could not
 * begin.
 */
static enum sandbox_outcome judge_death(const struct sandbox *s, int status)
{
	if (s->message_bytes)
		return SANDBOX_CRASH;
	if (WIFSIGNALED(status))
		return judge_signal(s, WTERMSIG(status));
	return WEXITSTATUS(status) == EXIT_FAILURE ? SANDBOX_INTERRUPTED : SANDBOX_CRASH;
}

bool sandbox_is_gone(struct sandbox *s)
{
	siginfo_t info = { 0 };
	int end_fd;

	/* Once more: an error of ours, and not the child's end, may have been the reason. */
	if (!s->ends)
		(void)sandbox_receive(s);
	if (waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid)
		return true;
	if (s->ends) {
		kill_group(s);
		return false;
	}
	end_fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	if (end_fd < 0)
		return true; /* before Linux 5.3 sandbox_finish() waits */
	if (has_spoken(s))
		kill_group(s);
	close(s->result_fd);
	s->result_fd = end_fd;
	s->ends = true;
	return false;
}

enum sandbox_outcome sandbox_finish(struct sandbox *s, struct sandbox_result *ret_result)
{
	enum sandbox_outcome outcome;

	(void)sandbox_receive(s);
	if (has_spoken(s)) {
		kill_and_reap(s);
		*ret_result = (struct sandbox_result){
			.error = s->message.error,
			.broken_units = s->message.broken_units,
		};
		outcome = judge_error(s, s->message.error);
	} else {
		/* The status is then the child's own, and not our SIGKILL's. */
		wait_briefly(s->pid, FAREWELL_MS);
		outcome = judge_death(s, kill_and_reap(s));
		*ret_result = (struct sandbox_result){ .error = -EIO };
	}
	if (outcome == SANDBOX_INTERRUPTED)
		ret_result->error = -EAGAIN;
	if (outcome == SANDBOX_NO_SPACE && ret_result->error == -EIO)
		ret_result->error = -EFBIG;
	return outcome;
}

bool sandbox_kill(struct sandbox *s)
{
	if (s->pid <= 0)
		return true;
	sandbox_hang_up(s);
	kill_group(s);
	wait_briefly(s->pid, KILL_MS);
	return sandbox_reap(s);
}

bool sandbox_reap(struct sandbox *s)
{
	int status;

	return s->pid <= 0 || reap(s, WNOHANG, &status);
}

unsigned int sandbox_idle_looks(struct sandbox *s)
{
	struct timespec t = { 0 };
	clockid_t clock;
	uint64_t cpu_ns;
	char state = child_state(s->pid);

	if (clock_getcpuclockid(s->pid, &clock) || clock_gettime(clock, &t))
		return 0;
	cpu_ns = (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
	s->idle_looks =
		cpu_ns == s->seen_cpu_ns && (state == 'S' || state == 'D') ? s->idle_looks + 1 : 0;
	s->seen_cpu_ns = cpu_ns;
	return s->idle_looks;
}
