/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this room share. */
#include "agent/sampler/functions/nearest.h"
#include "agent/sampler/latency_probes/deltas.h"
#include "agent/sampler/latency_probes/latency_probes.h"
#include "agent/sampler/latency_probes/probe_cost.h"
#include "agent/sampler/latency_probes/probe_spec.h"
#include "agent/sampler/latency_probes/process_sets.h"

enum { PROBE_FILES_MAX = 256 /* at once, of one probe */ };

/* One file of one probe; or the kernel, whose functions are another kind of probe. */
struct probe_run {
	struct probed_files *files; /* with one file; NULL = of the kernel */
	struct kernel_functions *kernel; /* NULL = of a file */
	uint32_t module; /* number of the file's */
	struct nearest_name nearest; /* of the first pattern that names no function of the file */
	uint64_t missed; /* kernel_functions_missed() when it was last read */
	bool ended;
	uint64_t failed_ns; /* when it was first seen that it cannot be attached; 0 = never */
	bool sealed; /* it ended before the last window was sealed */
};

struct named_probe {
	struct probe_spec spec;
	uint32_t set; /* of its processes */
	bool removed; /* its set is empty, its runs have ended */
	size_t place; /* in the owner's list */
	struct probe_run **runs;
	size_t run_count, run_capacity;
	uint64_t kernel_tried_ns; /* when its functions were last chosen; 0 = never */
	bool files_refused; /* there were more files than it may have */
	uint64_t suspended_until_ns; /* CLOCK_MONOTONIC; 0 = it is not suspended */
	uint64_t resumed_ns; /* 0 = it was never suspended */
	unsigned int suspensions; /* in a row */
	uint64_t hits; /* since the last window, as far as they were read */
	uint64_t recent_hits; /* between the last two readings */
};

struct latency_probes {
	struct latency_probes_options options;
	struct latency *latency; /* NULL = not loaded */
	struct kernel_latency *kernel; /* likewise */
	char kernel_problem[KERNEL_PROBLEM_BYTES]; /* why it is not */
	uint64_t kernel_missed; /* kernel_latency_missed_by_shared() when it was last read */
	struct named_probe **items; /* in the order in which they were added */
	size_t count, capacity;
	uint64_t sets_used; /* a bit for each set */
	struct process_sets processes;
	size_t process_place; /* of the next process to be looked at again */
	uint64_t retried_ns;
	struct deltas deltas;
	struct probe_cost cost;
	uint64_t *hits_seen; /* of each function number */
	struct latency_counts counted; /* when the last window was sealed */
	uint64_t processes_refused; /* likewise */
	struct sampler_latency_cost spent; /* before the last unloading */
};

/* probe_runs.c */
/* P, which NP selects, maps MAPPING. */
void probe_runs_mapped(struct latency_probes *lp, struct named_probe *np, const struct process *p,
	const struct mapping *mapping);
void probe_runs_end(struct probe_run *run);
bool probe_run_is_busy(const struct probe_run *run);
/* Goes on attaching and detaching. */
void probe_run_tend(struct probe_run *run);
void probe_runs_end_all(struct named_probe *np);
/*
 * Ends the runs that could not be attached for a reason that may pass, after a minute. Returns
 * whether there are files that should be offered again.
 */
bool probe_runs_end_failed(struct named_probe *np, uint64_t now_ns);
/* Frees the runs that are detached and were sealed. */
void probe_runs_sweep(struct named_probe *np);
void probe_runs_destroy(struct named_probe *np);
/* Reads how often the sites of each probe were hit since the last reading. */
void probe_runs_read_hits(struct latency_probes *lp);

/* run_functions.c */
struct run_function {
	const char *name, *linkage, *binary;
	struct build_id build_id; /* size 0 = none */
	uint64_t address; /* ELF address; 0 for the kernel's */
	uint32_t number; /* in struct latency_cell */
	bool numbered; /* it has one, even if it could not be attached */
	bool measured; /* or about to be */
	uint32_t sites; /* of a kernel function; those of a file are counted together */
	const char *refusal; /* "" = not refused; the end of a sentence about it */
};
size_t run_function_count(const struct probe_run *run);
struct run_function run_function_at(const struct probe_run *run, size_t number);

/* probe_summary.c */
enum { PROBE_REASON_BYTES = 512 };

struct probe_summary {
	size_t functions, refused_functions, sites, files, refused_files, waiting;
	uint32_t factor;
	enum window_latency_state state;
	/*
	 * Why something is not measured, or what the probe waits for; "" = nothing. May have
	 * foreign bytes.
	 */
	char reason[PROBE_REASON_BYTES];
};
void probe_summary_make(const struct latency_probes *lp, const struct named_probe *np,
	struct probe_summary *ret_summary);

/* probe_reasons.c */
/*
 * Writes why NP, which nothing prevents from being measured, has functions that are not; "" = it
 * has none.
 */
void probe_reason(const struct latency_probes *lp, const struct named_probe *np, bool is_measured,
	char text[PROBE_REASON_BYTES]);
/* INDEX of the file of RUN has come: looks for what a pattern that names nothing may have meant. */
void probe_reason_look(
	const struct named_probe *np, struct probe_run *run, const struct index *index);

/* kernel_runs.c */
/* Begins the runs of probes on kernel functions, and those again that measure none. May wait for
 * the kernel to attach, but for nobody else. */
void kernel_runs_tend(struct latency_probes *lp, uint64_t now_ns);
/* Reads how many calls were missed since the last reading. */
uint64_t kernel_runs_read_missed(struct latency_probes *lp);

/* probe_membership.c */
/* Puts P into the sets of those probes that select it; AGAIN: it was looked at before. */
void probe_membership_look(struct latency_probes *lp, struct process *p, bool again);
/* Looks at all processes, for new probes. */
void probe_membership_look_at_all(struct latency_probes *lp);
/* Offers the mappings of all processes in SETS again. */
void probe_membership_offer_again(struct latency_probes *lp, uint64_t sets);
/* Looks at some of all processes again: their names and containers change without notice. */
void probe_membership_look_at_some(struct latency_probes *lp);
