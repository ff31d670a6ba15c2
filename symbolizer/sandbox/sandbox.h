/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The child that parses foreign files: `fathom` itself, executed anew (/proc/self/exe) with the
 * hidden command `index-module` or `keep-debug`, so that nothing of the agent's memory is in it.
 * Before it reads a byte it gives up: all capabilities and the way to get any (no_new_privs), every
 * system call but a dozen (seccomp allow-list), memory (RLIMIT_AS), CPU time, file size, other
 * descriptors, and its priority. It reads fd 3 (the ELF file) and from fd 6 on what may belong to
 * it, writes fd 4 (the index), and says what came of it by a struct on fd 5, a socket. By that it
 * may also ask for the files that its own one names. Whatever else happens to it, it dies alone.
 *
 * The child dies with the thread that started it, so that thread has to outlive its builds.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolizer/sandbox/job.h"

enum sandbox_task {
	SANDBOX_INDEX, /* builder_run() */
	SANDBOX_KEEP_DEBUG, /* keep_debug_run() */
};

/* What the child is for, and what it may use for that. */
struct sandbox_limits {
	enum sandbox_task task;
	unsigned long memory_bytes; /* RLIMIT_AS; 0 = none */
	unsigned int cpu_seconds; /* 0 = none */
	unsigned long output_bytes; /* RLIMIT_FSIZE; 0 = none */
};

/* The child's last words, as they come through the pipe. */
struct sandbox_message {
	uint32_t magic;
	int32_t error;
	uint32_t broken_units;
	uint32_t check; /* the three above, folded: random bytes are not a message */
};

struct sandbox {
	pid_t pid; /* of the child, a group of its own; -1 = none */
	int result_fd; /* not blocking; readable when the child has spoken or gone; -1 = none */
	struct sandbox_message message;
	size_t message_bytes; /* of `message` that came; more than its size: it said too much */
	struct sandbox_question *question; /* owned; NULL: this child may not ask */
	size_t question_bytes; /* of `question` that came; 0 = none is being asked */
	unsigned int questions; /* so far */
	uint64_t cpu_ns; /* user and system, once it was reaped */
	uint64_t peak_bytes; /* likewise; the kernel counts what it shared before exec too */
	/* Of its limits, what tells whether it was they that ended it; 0 = none. */
	uint64_t memory_limit_bytes, cpu_limit_ns;
};

enum sandbox_outcome {
	SANDBOX_OK,
	SANDBOX_BAD_INPUT, /* it said the file is not readable, or another error of its own */
	SANDBOX_LIMIT, /* it reached one of its limits: the file is too much for it */
	SANDBOX_CRASH, /* it died of what it did, or babbled: a forbidden system call, a bad read */
	/*
	 * Ended from outside (SIGKILL by the kernel that was short of memory, SIGTERM of a service
	 * that stops, a file that shrank while it was read), or short of memory long before its own
	 * limit. The file may be the reason, or the moment: worth some more tries.
	 */
	SANDBOX_INTERRUPTED,
};

/* Starts the child on borrowed fds. */
int sandbox_start_files(const struct sandbox_files *files, const struct sandbox_limits *limits,
	struct sandbox *ret_sandbox);
/* The same of a file alone. */
int sandbox_start(int elf_fd, int output_fd, const struct sandbox_limits *limits,
	struct sandbox *ret_sandbox);
/*
 * Takes in what result_fd has. True when the pipe's other end is closed, which the kernel does
 * after it gave the child's memory back: sandbox_finish() will then not wait.
 */
bool sandbox_receive(struct sandbox *s);
/*
 * What the child asks, until it is answered; NULL = nothing. Names end with their NUL and sizes are
 * within their limits, but they are the child's words.
 */
const struct sandbox_question *sandbox_question(const struct sandbox *s);
/*
 * Passes OFFERED, at most SANDBOX_OFFER_MAX, which stay the caller's: to the child they come behind
 * those that it has.
 */
void sandbox_answer(struct sandbox *s, const struct companions *offered);
/*
 * Collects a child whose result_fd became readable; kills and reaps it when it lingers. *RET_RESULT
 * holds an error of its own making where the child left none: -EAGAIN where it was interrupted,
 * else -EIO.
 */
enum sandbox_outcome sandbox_finish(struct sandbox *s, struct sandbox_result *ret_result);
/* Kills and reaps. */
void sandbox_kill(struct sandbox *s);
/*
 * False in sanitizer builds: their run-time maps terabytes and needs system calls of its own, so
 * the child goes without RLIMIT_AS and the system-call filter there.
 */
bool sandbox_is_closed(void);
