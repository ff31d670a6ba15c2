/* SPDX-License-Identifier: Apache-2.0 */
/* What functions of Go's runtime mean, by name. */
#include <stddef.h>

#include "agent/sampler/runtimes/runtime.h"

static const char *const roots[] = {
	/* Entry points of programs, and what they jump to; Go's own unwinder stops at rt0_go. */
	"_rt0_amd64", "_rt0_amd64_linux", "_rt0_arm64_linux", "runtime.rt0_go",
	/* The bottom frame of every goroutine, put there when it is created. */
	"runtime.goexit",
	/* First function of Go's own threads, and the system call wrapper in which they start. */
	"runtime.mstart", "runtime.clone",
	/*
	 * Switches to the scheduler's stack that never return (runtime.topofstack).
	 * runtime.systemstack is not one of them: its caller waits on the goroutine's stack, so a
	 * walk that ends there has lost frames.
	 */
	"runtime.mcall", "runtime.morestack", NULL
};

/*
 * In these the thread is not running a goroutine, but the frame pointer still leads to the stack of
 * one: what mcall calls never returns, gopreempt_m enters the scheduler from within morestack, and
 * a new thread starts in mstart with its creator's frame pointer.
 */
static const char *const last[] = { "runtime.mcall", "runtime.gopreempt_m", "runtime.mstart",
	NULL };

/*
 * What starts the collector's goroutines, and their first functions: a go statement with arguments
 * may begin with a function that the compiler made.
 */
static const char *const collectors[] = { "runtime.gcBgMarkStartWorkers", "runtime.gcenable",
	"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge", "runtime.forcegchelper",
	NULL };

/* notetsleep is sysmon's, if nothing has run for a while. */
static const char *const idle[] = { "runtime.stopm", "runtime.stoplockedm", "runtime.mPark",
	"runtime.notesleep", "runtime.notetsleep", NULL };

static const char *const own_prefixes[] = { "runtime.", "runtime/internal/", "internal/runtime/",
	NULL };

/* Assembly functions of the runtime and internal/bytealg without a package in their names. */
static const char *const own[] = { "aeshashbody", "callRet", "cmpbody", "countbody", "gogo",
	"gosave_systemstack_switch", "indexbody", "indexbytebody", "memeqbody", "setg_gcc", NULL };

const struct runtime_functions runtime_go_functions = {
	.roots = roots,
	.last = last,
	.own = own,
	.own_prefixes = own_prefixes,
	/* Symbols of assembly functions have their ABI as a suffix. */
	.suffix = ".abi0",
	/* After the last function has returned, and after the deferred ones of runtime.Goexit. */
	.fiber_end = "runtime.goexit1",
	.collectors = collectors,
	.idle = idle,
};
