/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The child that parses foreign files: `fathom` itself, executed anew (/proc/self/exe) with the
 * hidden command `index-module`, so that nothing of the agent's memory is in it. Before it reads a
 * byte it gives up: all capabilities and the way to get any (no_new_privs), every system call but a
 * dozen (seccomp allow-list), memory (RLIMIT_AS), CPU time, file size, other descriptors, and its
 * priority. It reads fd 3 (the ELF file) and writes fd 4 (the index), and says what came of it by a
 * struct on fd 5. Whatever else happens to it, it dies alone.
 */
#include <sys/types.h>

#include "symbolizer/index/builder.h"

struct sandbox_limits {
	unsigned long memory_bytes; /* RLIMIT_AS */
	unsigned int cpu_seconds;
	unsigned long output_bytes; /* RLIMIT_FSIZE */
};

struct sandbox {
	pid_t pid;     /* of the child, a group of its own; -1 = none */
	int result_fd; /* readable when the child has spoken or gone */
};

enum sandbox_outcome {
	SANDBOX_OK,
	SANDBOX_BAD_INPUT, /* it said the file is not readable */
	SANDBOX_LIMIT,	   /* killed by a limit, or it said -E2BIG or -ENOMEM */
	SANDBOX_CRASH,	   /* any other signal or exit, a forbidden system call included */
};

/* Starts the child on borrowed fds. */
int sandbox_start(
	int elf_fd, int output_fd, const struct sandbox_limits *limits, struct sandbox *ret_sandbox);
/* Collects a child whose result_fd became readable; kills and reaps it when it lingers. */
enum sandbox_outcome sandbox_finish(struct sandbox *s, struct builder_result *ret_result);
/* Kills and reaps. */
void sandbox_kill(struct sandbox *s);
/* The hidden command's main: closes itself in, builds, reports. Returns the exit status. */
int sandbox_child_main(int argc, char **argv);
/* For the tests: closes this process in (same steps as the child). */
int sandbox_enter(const struct sandbox_limits *limits);
