/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a sealed window says about the latency of functions: its probes (latency_probes.h), the
 * functions that they measure, and what was measured since the last window was sealed. Copies that
 * refer to nothing of the sampler.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/module_id.h"
#include "bpf/abi/latency.h"

enum window_latency_state {
	/*
	 * No selected process maps such a file, its index is not there, or it has no such function.
	 */
	WINDOW_LATENCY_WAITING,
	WINDOW_LATENCY_MEASURED, /* functions of at least one file are measured */
	WINDOW_LATENCY_REFUSED, /* none can be measured: `reason` */
	WINDOW_LATENCY_SUSPENDED, /* detached for a while, as it costs too much */
	WINDOW_LATENCY_REMOVED, /* by a reload during the window: this is the last part of it */
	WINDOW_LATENCY_STATES,
};
/* A word for each: "waiting", "measured", "refused", "suspended", "removed". */
const char *window_latency_state_name(enum window_latency_state state);

struct window_latency_probe {
	const char *name;
	enum abi_latency_by by;
	bool kernel;
	enum window_latency_state state;
	/*
	 * What is not measured, and why, whatever the state is, as a text for people; "" = nothing.
	 * Of several reasons the first one. May have foreign bytes.
	 */
	const char *reason;
	size_t functions; /* that are measured */
	size_t refused_functions; /* that are named, but cannot be measured */
	size_t sites; /* attached */
	size_t files; /* with functions that are measured */
	size_t refused_files;
	size_t processes; /* that are selected now */
	/*
	 * The largest part of its functions' calls that one measured call stands for: 1 = all calls
	 * are measured. Of the present moment.
	 */
	uint32_t factor;
	uint64_t hits; /* of its sites in the window, those of unwanted processes included */
	uint64_t suspended_ns; /* SUSPENDED: how long until it is tried again */
};

/* The same function may be there twice: its file was attached again, or two probes name it. */
struct window_latency_function {
	uint32_t probe; /* index into `probes` */
	uint32_t factor; /* one call of this many is measured at present */
	const char *name; /* demangled; any bytes */
	const char *linkage; /* any bytes */
	/*
	 * Path of the file as its process sees it, any bytes; of the kernel "kernel", or the module
	 * in brackets.
	 */
	const char *binary;
	struct build_id build_id; /* size 0 = none */
	uint64_t address; /* ELF address of the entry */
};

/* What was added to one bucket in the window. */
struct window_latency_cell {
	uint32_t function; /* index into `functions` */
	/*
	 * Generation of the process that called, as in sealed_window.processes, which has it even
	 * if it ended in the window; NULL there: memory was short.
	 */
	uint32_t process;
	uint64_t by; /* goid or cgroup id, if the probe distinguishes calls by these, else 0 */
	uint32_t bucket; /* abi_latency_bucket_start() */
	uint64_t calls; /* with those that were not measured (`factor`) */
	uint64_t total_ns; /* likewise */
	/*
	 * The longest of the calls. If an earlier window had a longer one in the same bucket, the
	 * end of the bucket: an eighth too high at most.
	 */
	uint64_t max_ns;
};

/* Calls of the window that are in no cell, and those that were estimated. */
struct window_latency_losses {
	uint64_t unmeasured; /* in cells, by the factor of those that were measured */
	uint64_t abandoned; /* never returned: panic, exception, longjmp, exit; no loss */
	uint64_t unmatched; /* returns of calls that began before the probe; no loss */
	uint64_t open_full; /* too many calls were open */
	uint64_t evicted; /* likewise: open for the longest time */
	uint64_t cells_full; /* too many buckets, over all functions, processes and keys */
	uint64_t fiber_errors; /* the goroutine could not be read */
	uint64_t missed; /* of kernel functions: the kernel ran no program for them */
	uint64_t processes_refused; /* selected processes that found no room */
	uint64_t not_described; /* cells whose process is not in the window as memory was short */
};

struct window_latency {
	/* In the order of the last call of sampler_latency_set_probes(), then removed ones. */
	struct window_latency_probe *probes;
	struct window_latency_function *functions;
	struct window_latency_cell *cells; /* none is empty */
	size_t probe_count, function_count, cell_count;
	struct window_latency_losses losses;
	uint64_t hits; /* of all sites, in the window */
	uint64_t bpf_ns; /* run time of the BPF program at these */
	uint64_t trap_ns; /* what one hit costs the program besides; 0 = not known yet */
	struct arena memory; /* has all of it */
};
