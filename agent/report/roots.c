/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/roots.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const roots[] = {
	/* Entry point of a program and of ld.so: the kernel jumps there. */
	"_start",
	/* ld.so's entry code around _dl_start(), while it loads the program. */
	"_dl_start_user",
	"_dl_start",
	/* musl's entry point is assembly that falls into this. */
	"_start_c",
	/* Called by _start only, which leaves no frame where the unwinder needs one. */
	"__libc_start_main",
	"__libc_start_main_impl",
	"__libc_start_main_stage2",
	"__libc_start_call_main",
	/* The new thread begins inside the system call wrapper (glibc, musl). */
	"clone",
	"__clone",
	"clone3",
	"__clone3",
	/* glibc's thread entry: called by clone only. */
	"start_thread",
	/* Entry points of Go programs, and what they jump to; Go's own unwinder stops at rt0_go. */
	"_rt0_amd64",
	"_rt0_amd64_linux",
	"_rt0_arm64_linux",
	"runtime.rt0_go",
	/* Under every goroutine's first function, put there when it is made. */
	"runtime.goexit",
	/* First function of Go's own threads, and the system call wrapper they begin in. */
	"runtime.mstart",
	"runtime.clone",
	/*
	 * Switches to the scheduler's stack that do not come back there (runtime.topofstack).
	 * runtime.systemstack is not among them: its caller waits on the goroutine's stack, so a
	 * walk that ends there has lost frames.
	 */
	"runtime.mcall",
	"runtime.morestack",
};

static const char *const program_starters[] = {
	"__libc_start_main", /* exported, so it has a name in stripped libraries too */
	"__libc_start_main_impl",
	"_start_c",
};

/*
 * Here a thread has left a goroutine, or never was in it, and the frame pointer still leads to its
 * stack: what mcall calls never returns, gopreempt_m goes to the scheduler from within morestack,
 * and a new thread begins in mstart with the frame pointer of the one that made it.
 */
static const char *const last[] = {
	"runtime.mcall",
	"runtime.gopreempt_m",
	"runtime.mstart",
};

static bool listed(const char *const *names, size_t count, const char *name)
{
	size_t length = strlen(name);

	/* Go's assembly functions carry the name of their calling convention. */
	if (length > 5 && !strcmp(name + length - 5, ".abi0"))
		length -= 5;
	for (size_t i = 0; i < count; i++) {
		if (strlen(names[i]) == length && !memcmp(names[i], name, length))
			return true;
	}
	return false;
}

bool root_function(const char *name)
{
	return listed(roots, ARRAY_SIZE(roots), name);
}

bool root_starts_program(const char *name)
{
	return listed(program_starters, ARRAY_SIZE(program_starters), name);
}

bool root_hides_callers(const char *name)
{
	return listed(last, ARRAY_SIZE(last), name);
}
