/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What was measured in a run or an interval: for each function a histogram of the times from entry
 * to return, or one for each goroutine, process or cgroup. Plain data: it knows no probe, process
 * or index. Names are foreign bytes; each output makes them safe for itself.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/map.h"
#include "bpf/abi/latency.h"

/* As with --by, "goid"; NULL for ABI_LATENCY_BY_FUNCTION. */
const char *latency_by_name(enum abi_latency_by by);
/* Returns -EINVAL if there is no such name. */
int latency_by_of_name(const char *name, enum abi_latency_by *ret_by);

/* The longest time in BUCKET; UINT64_MAX for the last. */
uint64_t latency_bucket_last(uint32_t bucket);

/* What tells functions apart. Names with equal values are one function, whatever file they are in.
 */
struct latency_identity {
	const char *name; /* demangled */
	const char *linkage;
	const char *binary; /* path of the file; "kernel", or a module in brackets */
	const char *build_id; /* hexadecimal; "" = none */
	uint64_t address; /* ELF address of the entry; 0 = it is the kernel's */
};

struct latency_bucket {
	uint32_t number; /* abi_latency_bucket_start() */
	uint64_t calls;
};

struct latency_histogram {
	uint64_t key; /* goid, pid or cgroup ID; 0 = calls without one, or not asked for */
	uint64_t calls, total_ns, max_ns;
	struct latency_bucket *buckets; /* ascending; only those with calls */
	size_t bucket_count, bucket_capacity;
};

struct latency_function {
	struct latency_identity identity;
	uint64_t calls, total_ns, max_ns; /* of all its histograms */
	uint32_t factor; /* one call in so many was measured when there were most; 1 = each */
	struct latency_histogram *histograms; /* empty: it was not called */
	size_t histogram_count, histogram_capacity;
	struct map by_key; /* private: key → number of the histogram */
};

enum latency_loss {
#define LATENCY_LOSS(id, name, text) LATENCY_LOSS_##id,
#include "agent/latency/latency_losses.def"
#undef LATENCY_LOSS
	LATENCY_LOSSES
};
const char *latency_loss_name(enum latency_loss loss);
const char *latency_loss_text(enum latency_loss loss);

struct latency_report {
	enum abi_latency_by by;
	uint64_t duration_ns;
	uint64_t lost[LATENCY_LOSSES]; /* calls */
	uint64_t estimated; /* calls that were not measured, but are counted as others were */
	uint64_t hits; /* of probes: entries and returns */
	bool has_stacks; /* the callers' stacks were taken: */
	uint64_t stacks, stackless; /* measured calls with a stack in the profile, and without */
	/* How kernel functions were probed, "fentry/fexit"; NULL: none were. Static. */
	const char *kernel_way;
	uint64_t trap_ns; /* what a hit costs the program on this machine; 0 = not measured */
	struct latency_function *functions;
	size_t function_count, function_capacity;
	/* Private. */
	struct intern strings;
	struct intern identities; /* number - 1 is the function's */
	struct map key_names; /* key → string */
	size_t histogram_count; /* of all functions */
};

int latency_report_init(struct latency_report *report, enum abi_latency_by by);
void latency_report_deinit(struct latency_report *report);

/* Finds or adds a function. Returns -E2BIG or -ENOMEM. */
int latency_report_function(struct latency_report *report, const struct latency_identity *identity,
	uint32_t *ret_number);
/* Gives KEY a name that is shown beside it: the comm of a process, the path of a cgroup. */
int latency_report_name_key(struct latency_report *report, uint64_t key, const char *name);
const char *latency_report_key_name(const struct latency_report *report, uint64_t key); /* or "" */

/* Calls of one function and key whose times are in one bucket. */
struct latency_report_cell {
	uint32_t function; /* from latency_report_function() */
	uint32_t bucket;
	uint64_t key;
	uint64_t calls, total_ns, max_ns;
};
/*
 * Adds CELL to its histogram. Returns -EINVAL if there is no such function or bucket, -E2BIG if
 * there are too many histograms, -ENOMEM.
 */
int latency_report_add(struct latency_report *report, const struct latency_report_cell *cell);
/* Says that only one call in FACTOR of FUNCTION was measured; the largest factor is kept. */
void latency_report_factor(struct latency_report *report, uint32_t function, uint32_t factor);
/* Removes all that was measured. Functions keep their numbers, keys their names. */
void latency_report_clear(struct latency_report *report);
/*
 * Makes a report of what came between BEFORE and NOW, which holds BEFORE's functions under the same
 * numbers. A longest call that is not from this interval is unknown: the bound of its bucket is
 * used.
 */
int latency_report_since(const struct latency_report *now, const struct latency_report *before,
	struct latency_report *ret_report);

/* The calls in all functions. */
uint64_t latency_report_calls(const struct latency_report *report);
/*
 * Numbers of functions in the order in which they are shown, that with the longest total time
 * first; those without calls come last. The array is the caller's to free.
 */
int latency_report_order(const struct latency_report *report, uint32_t **ret_order);
/* The same for the histograms of FUNCTION. */
int latency_function_order(const struct latency_function *function, uint32_t **ret_order);
