/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Function latency: which functions are measured, where they are probed, and what was measured.
 * Collect loads the BPF object (bpf/probes/latency.bpf.c, or latency_stacks.bpf.c) if its options
 * have latency_options; collect_probe_object() returns it. Knows nothing of processes, patterns and
 * indexes: a function is a number, a site an offset in an open file. Which processes are measured
 * is up to collect's filters; collect_set_tgids() changes those. With `by_sets` there are sets of
 * processes instead, a function is measured in those of one set, and each process has histograms of
 * its own.
 *
 * Order of calls: latency_functions_add(), latency_attach() with sites of these functions,
 * latency_read() as often as wanted, latency_detach(), latency_functions_remove(). Call
 * latency_tick() once a second.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/latency.h"

struct bpf_object;
struct collect_options;
struct latency;
struct latency_attached;
struct latency_attaching;
struct latency_detaching;

/* In struct collect_options. */
struct latency_options {
	enum abi_latency_by by; /* of functions whose own `by` is ABI_LATENCY_BY_FUNCTION */
	bool by_sets;
	uint64_t own_env_end; /* abi_latency_config.own_env_end */
	/* Also loads the programs at kernel functions (agent/sampler/probes/kernel_latency/). */
	bool kernel;
	bool kernel_only; /* loads those alone: latency_attach() is not called */
	bool kernel_by_sets; /* as by_sets, only for kernel functions; there are no histograms */
	/*
	 * The one process that the filters want; 0 = there may be others. Where the kernel can do
	 * it, sites are attached in its code only, so that others pay nothing.
	 */
	uint32_t only_tgid;
	uint32_t max_functions; /* at most ABI_LATENCY_FUNCTIONS; 0 = that many */
	uint32_t max_open_calls; /* 0 = ABI_LATENCY_OPEN_CALLS */
	uint32_t max_cells; /* 0 = by the number of CPUs, at most ABI_LATENCY_CELLS */
	uint32_t max_processes; /* in sets; 0 = ABI_LATENCY_PROCESSES */
	/*
	 * If more calls begin in a second than this, only a share of those of the most frequent
	 * functions is measured. 0 = no limit.
	 */
	uint64_t max_calls_per_second;
};

/* What went wrong, or was not measured, since the beginning. */
struct latency_counts {
	uint64_t hits; /* of all probes, those of unwanted processes included */
	uint64_t kernel_hits; /* those of them that are at kernel functions */
	uint64_t bpf_ns; /* run time of the BPF program at these; traps are not included */
	uint64_t calls; /* measured */
	uint64_t unmeasured; /* left out by max_calls_per_second; histograms include them */
	uint64_t open_full; /* not measured: too many calls were open */
	uint64_t cells_full; /* not measured: the histograms had too many buckets */
	/*
	 * Never returned: a panic, Goexit, an exception, longjmp, a tail call, the thread's end. No
	 * loss.
	 */
	uint64_t abandoned;
	uint64_t evicted; /* open for the longest time when too many calls were open */
	uint64_t unmatched; /* returns of calls that began before the probes, or in a parent */
	uint64_t fiber_errors; /* not measured: the goroutine could not be read */
	/* With call_stacks: calls whose stack was walked or could not be, and the walks' time. */
	uint64_t stacks, stacks_busy, stacks_ns;
	uint64_t kernel_stack_errors; /* of kernel functions: those without their kernel stack */
	/* Of kernel functions, as far as BPF notices: kernel_latency_missed() has the others. */
	uint64_t missed;
};

/* The name of the probe that has the BPF object; STACKS: collect_options.call_stacks. */
const char *latency_probe_name(bool stacks);
/*
 * OBJECT is loaded, and borrowed. Returns -EOPNOTSUPP on kernels that cannot attach it in any way,
 * -EPERM or -EACCES without the rights, or another negative errno; *RET_STEP, a
 * static text, names the step that failed.
 */
int latency_create(struct bpf_object *object, const struct latency_options *options,
	struct latency **ret_latency, const char **ret_step);
/* Everything that is attached must have been detached. */
void latency_destroy(struct latency *l);

/*
 * probe.configure() of a probe that finds calls as this one does: sizes the maps, and prepares all
 * programs for being attached to user functions.
 */
int latency_configure_object(const struct collect_options *options, struct bpf_object *object);

/* ---- functions ------------------------------------------------------------------------------ */

/*
 * Of FUNCTION, `flags` (ABI_LATENCY_FIBER, ABI_LATENCY_ROOT, ABI_LATENCY_FIBER_END),
 * `stack_check`, `restart_off`, `by`, `set`, `go` and `kaddr` count. Returns -E2BIG if there are
 * already max_functions.
 */
int latency_functions_add(
	struct latency *l, const struct abi_latency_function *function, uint32_t *ret_number);
/* Forgets functions that are not attached any more, with all that was measured. */
void latency_functions_remove(struct latency *l, const uint32_t *numbers, size_t count);

/*
 * Measures functions no more, from now on, though they may still be attached. What was measured
 * stays until they are removed; calls that are open now are forgotten.
 */
void latency_functions_end(struct latency *l, const uint32_t *numbers, size_t count);
/*
 * Ends all functions. Do this before everything is detached: the kernel detaches one site after the
 * other, and a call whose entry is probed longer than its return would seem never to return.
 */
void latency_end(struct latency *l);

/* ---- processes, with by_sets ----------------------------------------------------------------- */

/*
 * TGID (in our pid namespace) is in SETS, a bit for each of ABI_LATENCY_SETS; NUMBER, not 0, is in
 * the cells of calls that begin from now on. Returns -E2BIG if there are too many processes.
 */
int latency_set_process(struct latency *l, uint32_t tgid, uint64_t sets, uint32_t number);
/* TGID is in no set. */
void latency_forget_process(struct latency *l, uint32_t tgid);

/* ---- sites ---------------------------------------------------------------------------------- */

struct latency_site {
	uint64_t file_off;
	uint32_t function;
	bool is_return;
	bool is_again; /* Go: behind the prologue's call of morestack; ABI_LATENCY_AGAIN_SITE */
};

/* A site that could not be attached. */
struct latency_refused_site {
	size_t number; /* in the array of sites */
	/*
	 * A negative errno: -EINVAL not in the file, -ENOTSUP no instruction that the kernel can
	 * probe, -EEXIST twice in the array: an entry that is a return, too.
	 */
	int err;
};

/*
 * Attaches SITES of the file FILE_FD (any descriptor, O_PATH or not; may be closed afterwards),
 * in all processes that have it mapped now or later. Sites that the kernel refuses are left out and
 * reported. Returns a negative errno and *RET_STEP if none could be attached.
 */
int latency_attach(struct latency *l, int file_fd, const struct latency_site *sites, size_t count,
	struct latency_attached **ret_attached, const char **ret_step);
/* Valid until it is detached. */
const struct latency_refused_site *latency_refused_sites(
	const struct latency_attached *attached, size_t *ret_count);
/*
 * With only_tgid: attaches again if another thread has taken the process over by executing a
 * program, so that the kernel does not find it any more. FILE_FD as before. Returns a negative
 * errno if that failed; then nothing of ATTACHED is attached. Call it when the process maps a file.
 */
int latency_attach_again(struct latency *l, struct latency_attached *attached, int file_fd);
/*
 * NULL is allowed. Where each site is an event, a process of its own goes on detaching many of them
 * for some minutes: closer.h.
 */
void latency_detach(struct latency *l, struct latency_attached *attached);
/* Detaches all of LIST together, which is faster than one by one. NULLs are allowed. */
void latency_detach_all(struct latency *l, struct latency_attached **list, size_t count);
/* Whether sites are attached in the process `only_tgid` alone. */
bool latency_is_of_one_process(const struct latency *l);
/* Whether one system call attaches all sites of a file (Linux 6.6); else each is an event. */
bool latency_attaches_at_once(const struct latency *l);

/* ---- sites, without waiting ------------------------------------------------------------------ */

/*
 * As latency_attach(), in a process of its own: the kernel may have to wait for a file's server or
 * for the memory of a process. Returns -EAGAIN if too many are at work.
 */
int latency_attach_begin(struct latency *l, int file_fd, const struct latency_site *sites,
	size_t count, struct latency_attaching **ret_attaching);
/*
 * Ends what was begun: returns -EAGAIN if it goes on, what latency_attach() does, or -ETIMEDOUT.
 * After -EAGAIN call it again, else latency_attach_reap().
 */
int latency_attach_end(struct latency_attaching *attaching, struct latency_attached **ret_attached,
	const char **ret_step);
/* In place of latency_attach_end(). Its functions must have been ended. */
void latency_attach_cancel(struct latency_attaching *attaching);
/* Frees ATTACHING if its process is gone, and returns true; else call it again some time later. */
bool latency_attach_reap(struct latency *l, struct latency_attaching *attaching);
/* Frees ATTACHING in any case; nobody waits for its process, which was told to die. */
void latency_attach_abandon(struct latency *l, struct latency_attaching *attaching);
/*
 * Frees all of LIST (NULLs are allowed), and begins to detach them. *RET_DETACHING: until
 * latency_detach_reap() returns true, which frees it, some are attached yet. NULL: none is.
 */
void latency_detach_begin(struct latency *l, struct latency_attached **list, size_t count,
	struct latency_detaching **ret_detaching);
bool latency_detach_reap(struct latency_detaching *detaching);
/* Frees DETACHING in any case; its process goes on. */
void latency_detach_abandon(struct latency_detaching *detaching);

/* ---- what was measured ---------------------------------------------------------------------- */

/* Sums over all CPUs, since the function was added. */
struct latency_cell {
	uint32_t function;
	uint32_t bucket; /* abi_latency_bucket_start() */
	uint64_t by; /* according to the function's `by` */
	uint32_t process; /* with by_sets: the number of the process */
	uint64_t count; /* of calls, with those that thinning left out */
	uint64_t sum_ns; /* likewise */
	uint64_t max_ns; /* of those that were measured */
};

/* Calls FN for each cell, in no order. Returns 0 or a negative errno; FN may have been called. */
int latency_read(const struct latency *l,
	void (*fn)(void *context, const struct latency_cell *cell), void *context);
int latency_read_counts(const struct latency *l, struct latency_counts *ret_counts);
/* How many cells there can be. */
uint32_t latency_max_cells(const struct latency *l);
/* Forgets the cell of which CELL is a copy. Exact only if nobody calls its function any more. */
void latency_forget_cell(struct latency *l, const struct latency_cell *cell);
/* Hits of the sites of FUNCTION in any process so far, with by_sets; 0 if that cannot be read. */
uint64_t latency_function_hits(const struct latency *l, uint32_t function);
/* Changes latency_options.max_calls_per_second. */
void latency_limit_calls(struct latency *l, uint64_t per_second);
/*
 * What a hit costs the program on this machine besides `bpf_ns`, measured in the background from
 * latency_create() on: 0 = not known yet, or not at all. One thread.
 */
uint64_t latency_trap_ns(const struct latency *l);
/* One call of this many is measured at present; 1 = each. */
uint32_t latency_factor(const struct latency *l, uint32_t function);
/* The largest factor that any function has had. */
uint32_t latency_largest_factor(const struct latency *l);

/*
 * Adjusts the share of calls that is measured, and forgets some of the open calls whose thread,
 * process or goroutine has ended. Bounded work.
 */
void latency_tick(struct latency *l, uint64_t now_ns);
/*
 * Forgets all open calls whose thread, process or goroutine has ended, which are then counted as
 * abandoned. Takes some tenths of a second if very many are open.
 */
void latency_sweep_all(struct latency *l);
