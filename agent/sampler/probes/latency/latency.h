/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Function latency: which functions are measured, where they are probed, and what was measured.
 * Collect loads the BPF object (bpf/probes/latency.bpf.c) if its options have latency_options;
 * collect_probe_object() returns it. Knows nothing of processes, patterns and indexes: a function
 * is a number, a site an offset in an open file. Which processes are measured is up to collect's
 * filters; collect_set_tgids() changes those.
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
struct latency;
struct latency_attached;

/* In struct collect_options. */
struct latency_options {
	enum abi_latency_by by;
	uint32_t max_functions; /* at most ABI_LATENCY_FUNCTIONS; 0 = that many */
	uint32_t max_open_calls; /* 0 = ABI_LATENCY_OPEN_CALLS */
	uint32_t max_cells; /* 0 = by the number of CPUs, at most ABI_LATENCY_CELLS */
	/*
	 * If more calls begin in a second than this, only a share of those of the most frequent
	 * functions is measured. 0 = no limit.
	 */
	uint64_t max_calls_per_second;
};

/* What went wrong, or was not measured, since the beginning. */
struct latency_counts {
	uint64_t hits; /* of all probes, those of unwanted processes included */
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
};

/*
 * OBJECT is loaded, and borrowed. Returns -EOPNOTSUPP on kernels that cannot attach it in any way
 * (before 5.15), -EPERM or -EACCES without the rights, or another negative errno; *RET_STEP, a
 * static text, names the step that failed.
 */
int latency_create(struct bpf_object *object, const struct latency_options *options,
	struct latency **ret_latency, const char **ret_step);
/* Everything that is attached must have been detached. */
void latency_destroy(struct latency *l);

/* ---- functions ------------------------------------------------------------------------------ */

/*
 * Of FUNCTION, `flags` (ABI_LATENCY_FIBER), `stack_check`, `restart_off` and `go` count. Returns
 * -E2BIG if there are already max_functions.
 */
int latency_functions_add(
	struct latency *l, const struct abi_latency_function *function, uint32_t *ret_number);
/* Forgets functions that are not attached any more, with all that was measured. */
void latency_functions_remove(struct latency *l, const uint32_t *numbers, size_t count);

/* ---- sites ---------------------------------------------------------------------------------- */

struct latency_site {
	uint64_t file_off;
	uint32_t function;
	bool is_return;
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
 * NULL is allowed. Where each site is an event, a process of its own goes on detaching many of them
 * for some minutes: closer.h.
 */
void latency_detach(struct latency *l, struct latency_attached *attached);
/* Detaches all of LIST together, which is faster than one by one. NULLs are allowed. */
void latency_detach_all(struct latency *l, struct latency_attached **list, size_t count);
/* Whether one system call attaches all sites of a file (Linux 6.6); else each is an event. */
bool latency_attaches_at_once(const struct latency *l);

/* ---- what was measured ---------------------------------------------------------------------- */

/* Sums over all CPUs, since the function was added. */
struct latency_cell {
	uint32_t function;
	uint32_t bucket; /* abi_latency_bucket_start() */
	uint64_t by; /* according to latency_options.by */
	uint64_t count; /* of calls, with those that thinning left out */
	uint64_t sum_ns; /* likewise */
	uint64_t max_ns; /* of those that were measured */
};

/* Calls FN for each cell, in no order. Returns 0 or a negative errno; FN may have been called. */
int latency_read(const struct latency *l,
	void (*fn)(void *context, const struct latency_cell *cell), void *context);
int latency_read_counts(const struct latency *l, struct latency_counts *ret_counts);
/* One call of this many is measured at present; 1 = each. */
uint32_t latency_factor(const struct latency *l, uint32_t function);
/* The largest factor that any function has had. */
uint32_t latency_largest_factor(const struct latency *l);

/*
 * Adjusts the share of calls that is measured, and forgets some of the open calls whose thread,
 * process or goroutine has ended. Bounded work.
 */
void latency_tick(struct latency *l, uint64_t now_ns);
