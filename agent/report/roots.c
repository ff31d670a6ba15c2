/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/roots.h"

#include <stddef.h>
#include <string.h>

#include "agent/sampler/seam/runtime_functions.h"
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
};

static const char *const program_starters[] = {
	"__libc_start_main", /* exported, so stripped libraries have its name too */
	"__libc_start_main_impl",
	"_start_c",
};

static bool roots_listed(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(names[i], name))
			return true;
	}
	return false;
}

bool root_function(const char *name)
{
	return roots_listed(roots, ARRAY_SIZE(roots), name) || runtime_function_is_root(name);
}

bool root_starts_program(const char *name)
{
	return roots_listed(program_starters, ARRAY_SIZE(program_starters), name);
}
