/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The child that parses foreign files: `fathom` itself, executed again (/proc/self/exe) with the
 * hidden command `index-module`, `keep-debug` or `read-arguments`, so that it holds nothing of the
 * agent's memory. Before it reads a byte it gives up all capabilities and the way to regain any
 * (no_new_privs), its user and its view of the file system where it may change them, all but about
 * twenty system calls (seccomp allow-list), memory (RLIMIT_AS), CPU time, file size, other
 * descriptors, and its priority; if memory is short, the kernel kills it first. It reads the ELF
 * file from fd 3 and debug files from fd 6 on, writes the index to fd 4, and reports its result as
 * a struct on fd 5, a socket. Over that socket it may also ask for the files that its ELF file
 * names. Nothing else that happens to it affects another process.
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
	SANDBOX_READ_ARGUMENTS, /* arguments_run() */
};

/*
 * The child's task and its resource limits. Memory and CPU time are the most that any file may
 * take; small files get less, see sandbox_limits_for().
 */
struct sandbox_limits {
	enum sandbox_task task;
	unsigned long memory_bytes; /* RLIMIT_AS; 0 = none */
	unsigned int cpu_seconds; /* 0 = none */
	unsigned long output_bytes; /* RLIMIT_FSIZE; 0 = none */
};

/* The priority of an index build is that much lower than its parent's. */
enum { SANDBOX_NICE = 10 };

/* The child's result message. */
struct sandbox_message {
	uint32_t magic;
	int32_t error;
	uint32_t broken_units;
	uint32_t check; /* hash of the three above: rejects random bytes */
};

struct sandbox {
	pid_t pid; /* of the child, a group of its own; -1 = none */
	/* Non-blocking; readable on a message or the child's end; -1 = none. */
	int result_fd;
	bool ends; /* result_fd is readable only when the child is gone: see sandbox_is_gone() */
	struct sandbox_message message;
	size_t message_bytes; /* bytes of `message` received; more than its size = invalid */
	struct sandbox_question *question; /* owned; NULL = this child may not ask */
	size_t question_bytes; /* bytes of `question` received; 0 = none pending */
	unsigned int questions; /* number of questions so far */
	uint64_t cpu_ns; /* user and system time, once reaped */
	uint64_t peak_bytes; /* peak RSS, once reaped; counts memory shared before exec */
	/* To tell whether a limit ended the child; 0 = none. */
	uint64_t memory_limit_bytes, cpu_limit_ns;
	struct sandbox_limits limits; /* of any file */
	uint64_t file_bytes; /* of the ELF file and the debug files that it got */
	/* Of sandbox_idle_looks(). */
	uint64_t seen_cpu_ns;
	unsigned int idle_looks;
};

enum sandbox_outcome {
	SANDBOX_OK,
	SANDBOX_BAD_INPUT, /* it reported an unreadable file or another error */
	SANDBOX_LIMIT, /* it reached one of its limits: the file is too big */
	SANDBOX_CRASH, /* forbidden system call, bad memory access, invalid message */
	/*
	 * Killed from outside (SIGKILL when the kernel ran out of memory, SIGTERM when the service
	 * stopped, a file truncated while it was read), or out of memory long before its own limit.
	 * The file may be the cause or not: worth some more attempts.
	 */
	SANDBOX_INTERRUPTED,
	/*
	 * No room for its output: the disk or the user's quota is full, or our own limit on the
	 * size of files is below the child's. Says nothing about the file.
	 */
	SANDBOX_NO_SPACE,
};

/*
 * What a child may use of LIMITS for files of FILE_BYTES together: 256 MiB of address space and ten
 * seconds, more only for more bytes. (What it does with them is bounded more tightly, in
 * symbolizer/indexer/writer/work.h; this holds for a child that a file has taken over, too.)
 */
struct sandbox_limits sandbox_limits_for(const struct sandbox_limits *limits, uint64_t file_bytes);
/* Starts the child; descriptors in FILES are borrowed. */
int sandbox_start_files(const struct sandbox_files *files, const struct sandbox_limits *limits,
	struct sandbox *ret_sandbox);
/* Like sandbox_start_files(), with no debug files. May wait for the file: it asks for its size. */
int sandbox_start(int elf_fd, int output_fd, const struct sandbox_limits *limits,
	struct sandbox *ret_sandbox);
/*
 * Reads from result_fd. Returns true when the child's end is closed or it has sent invalid data.
 */
bool sandbox_receive(struct sandbox *s);
/*
 * To be called then, by who must not wait in sandbox_finish(): a child may close its end and go on,
 * and its exit may wait for the server of a file. If it returns false, result_fd is another
 * descriptor, to be watched in place of the one before, which is closed; it is readable when the
 * child is gone. A second call kills a child that lingers.
 */
bool sandbox_is_gone(struct sandbox *s);
/*
 * Returns the child's unanswered question, NULL = none. Names are NUL-terminated and sizes within
 * their limits, but the contents are untrusted.
 */
const struct sandbox_question *sandbox_question(const struct sandbox *s);
/*
 * Answers the question with OFFERED, at most SANDBOX_OFFER_MAX files, still owned by the caller.
 * The child appends them to its debug files.
 */
void sandbox_answer(struct sandbox *s, const struct debug_files *offered);
/*
 * Collects a child after sandbox_receive() returned true; kills it if it lingers, and waits for its
 * end. If the child left no result, *RET_RESULT gets an error made here: -EAGAIN if it was
 * interrupted, else -EIO.
 */
enum sandbox_outcome sandbox_finish(struct sandbox *s, struct sandbox_result *ret_result);
/*
 * Kills the child, if any. Returns false if it is not gone a moment later, because the kernel waits
 * for a disk or a server: then sandbox_reap() is to be called until it returns true.
 */
bool sandbox_kill(struct sandbox *s);
bool sandbox_reap(struct sandbox *s);
/*
 * To be called about once a second: how many times in a row the child had used no CPU time since
 * the last look, and was asleep. Its limit on CPU time does not end a child whose file does not
 * answer.
 */
unsigned int sandbox_idle_looks(struct sandbox *s);
/*
 * Returns false in sanitizer builds: their run-time maps terabytes and needs system calls of its
 * own, so the child runs without RLIMIT_AS and the system-call filter.
 */
bool sandbox_is_closed(void);
