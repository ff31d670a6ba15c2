/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Traced functions: what is written of their calls. Functions are numbered and attached as those
 * whose latency is measured (agent/sampler/probes/latency/latency.h), by a struct latency that is
 * made of this probe's object; collect delivers the events.
 */
#include <stdbool.h>
#include <stdint.h>

struct bpf_object;
struct collect;
struct collect_options;
struct argument_plan;

/* In struct collect_options. */
struct trace_options {
	uint32_t max_depth; /* levels of calls in a tree; 0 = no limit */
	bool drilldown; /* only calls of functions with ABI_LATENCY_ROOT begin trees */
	/* When so many events were written in a second, no more trees begin in it; 0 = no limit. */
	uint64_t max_events_per_second;
	uint32_t max_fetches; /* of arguments and results, of all functions; 0 = none */
};

/* What was not written, since the beginning. */
struct trace_counts {
	uint64_t calls; /* written */
	uint64_t trees_left_out; /* by max_events_per_second */
	uint64_t events_lost; /* the rings were full: nobody read them in time */
	uint64_t not_followed; /* calls: too many were open, or tasks, or programs on one CPU */
	uint64_t unmatched; /* returns of calls that began before the probes */
	uint64_t fiber_errors; /* entries and returns whose goroutine could not be read */
	/* Calls of kernel functions, as far as BPF notices: kernel_latency_missed() has the others.
	 */
	uint64_t missed;
};

/* Where the next function's fetches go. */
struct trace_fetches {
	uint32_t count; /* that are written */
};

/*
 * Has what the plans say fetched at function NUMBER's entry and returns; they may be NULL. To be
 * called before the function's sites are attached. Returns -E2BIG if there is no room for them.
 */
int trace_fetches_add(struct trace_fetches *fetches, const struct collect *collect, uint32_t number,
	const struct argument_plan *entry, const struct argument_plan *results);

/* Where open calls are: names of a probe and of two of its maps. */
struct trace_sweep_maps {
	const char *probe, *tasks, *levels;
};

/*
 * Forgets some of the open calls whose thread or process has ended, from *PLACE on, which it sets
 * for the next time; 0 at first. Call it once a second. Bounded work.
 */
void trace_sweep(
	const struct collect *collect, const struct trace_sweep_maps *maps, uint32_t *place);
/* The name of the probe that has the BPF object. */
const char *trace_probe_name(void);
/* Writes the settings into OBJECT, which also has those of probe.configure(). */
int trace_configure_settings(const struct collect_options *options, struct bpf_object *object);
void trace_read_counts(const struct collect *collect, struct trace_counts *ret_counts);
