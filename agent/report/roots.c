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
	/* Only called by _start, which leaves no frame where the unwinder needs one. */
	"__libc_start_main",
	"__libc_start_main_impl",
	"__libc_start_main_stage2",
	"__libc_start_call_main",
	/* A new thread starts inside the system call wrapper (glibc, musl). */
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
	/* The bottom frame of every goroutine, put there when it is created. */
	"runtime.goexit",
	/* First function of Go's own threads, and the system call wrapper in which they start. */
	"runtime.mstart",
	"runtime.clone",
	/*
	 * Switches to the scheduler's stack that never return (runtime.topofstack).
	 * runtime.systemstack is not one of them: its caller waits on the goroutine's stack, so a
	 * walk that ends there has lost frames.
	 */
	"runtime.mcall",
	"runtime.morestack",
};

static const char *const program_starters[] = {
	"__libc_start_main", /* exported, so stripped libraries have its name too */
	"__libc_start_main_impl",
	"_start_c",
};

/*
 * In these the thread is not running a goroutine, but the frame pointer still leads to the stack of
 * one: what mcall calls never returns, gopreempt_m enters the scheduler from within morestack, and
 * a new thread starts in mstart with its creator's frame pointer.
 */
static const char *const last[] = {
	"runtime.mcall",
	"runtime.gopreempt_m",
	"runtime.mstart",
};

static bool listed(const char *const *names, size_t count, const char *name)
{
	size_t length = strlen(name);

	/* Symbols of Go's assembly functions have their ABI as a suffix. */
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
