/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Named probes on functions (agent/sampler/seam/latency_probes.h) while they are measured: which
 * processes each one selects, which of their files it probes, what was measured, and what it costs.
 *
 * Each probe has a set of processes of its own (bpf/abi/latency.h), and attaches to each file for
 * itself: a function that two probes name is trapped once by the kernel, and measured by both. A
 * file is a `run`: it lasts from the first selected process that maps the file until no process
 * maps it any more, the file was written to, or the probe is suspended or removed. A run that has
 * ended is kept until it is detached and what it measured was in a window.
 *
 * The table of processes and what files are opened and indexed by belong to the owner. Nothing here
 * waits. One thread.
 */
#include "agent/sampler/kernel_functions/kernel_functions.h"
#include "agent/sampler/probed_files/probed_files.h"
#include "agent/sampler/process/processes.h"
#include "agent/sampler/seam/latency_probes.h"
#include "agent/sampler/seam/window_latency.h"

struct latency_probes;

/* Of all probes together. */
enum { LATENCY_PROBES_FUNCTIONS = 4096, LATENCY_PROBES_PROCESSES = 16384 };

struct latency_probes_options {
	struct processes *processes; /* borrowed */
	/*
	 * Loads what measures functions, with `by_sets` and these bounds; *RET_LATENCY is borrowed
	 * until `unload`. Returns a negative errno and *RET_STEP.
	 */
	int (*load)(void *context, const struct latency_options *options,
		struct latency **ret_latency, const char **ret_step);
	/*
	 * Loads what measures functions of the kernel, once the above is loaded. *RET_KERNEL is
	 * borrowed until `unload`. On an error only probes on those are refused.
	 */
	int (*load_kernel)(
		void *context, struct kernel_latency **ret_kernel, const char **ret_step);
	void (*unload)(void *context);
	/* As in struct probed_files_options; the answers go to latency_probes_index(). */
	int (*open)(
		void *context, const struct process *p, const struct mapping *mapping, int *ret_fd);
	int (*want)(void *context, const struct process *p, const struct mapping *mapping);
	int (*check_file)(void *context, const struct module *module, int fd);
	bool (*fibers)(
		void *context, const struct index *index, struct abi_runtime_process *ret_how);
	uint64_t trap_ns; /* what one hit costs, as long as it is not measured */
	void *context;
};

int latency_probes_create(
	const struct latency_probes_options *options, struct latency_probes **ret_probes);
/* Detaches everything, and waits for nothing. */
void latency_probes_destroy(struct latency_probes *lp);

/* As sampler_latency_set_probes(), which has checked them. */
int latency_probes_set(struct latency_probes *lp, const struct latency_probe *probes, size_t count,
	struct latency_probes_problem *ret_problem);

/* NULL is allowed. */
bool latency_probes_exist(const struct latency_probes *lp);
/* P is new, or what selects it may have changed. */
void latency_probes_process(struct latency_probes *lp, struct process *p);
void latency_probes_mapped(
	struct latency_probes *lp, struct process *p, const struct mapping *mapping);
void latency_probes_ended(struct latency_probes *lp, const struct process *p);
/* An index of MODULE arrived; NULL: none is available. */
void latency_probes_index(
	struct latency_probes *lp, const struct module *module, const struct index *index);
/* MODULE is about to be freed. */
void latency_probes_forget(struct latency_probes *lp, const struct module *module);

/* Once a second. */
void latency_probes_tick(struct latency_probes *lp, uint64_t now_ns);
/* Often, while latency_probes_are_busy(): goes on attaching and detaching. */
void latency_probes_tend(struct latency_probes *lp);
bool latency_probes_are_busy(const struct latency_probes *lp);

/*
 * Fills W, which is zeroed, with what was measured since the last call, for latency_probes_free().
 * Returns false if there is nothing to say: no probe, now or since then.
 */
bool latency_probes_seal(struct latency_probes *lp, uint64_t now_ns, struct window_latency *w);
void latency_probes_free(struct window_latency *w);

struct sampler_latency_cost latency_probes_cost(const struct latency_probes *lp);
void latency_probes_allow(struct latency_probes *lp, double share);
