/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A probe samples one kind of kernel event. It is a BPF object with its own kinds of records, what
 * its samples count and which losses are its own. All probes share maps, rings and unwind tables
 * (shared_maps.h). agent/sampler/probes/probes.def lists them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"
#include "bpf/abi/sampler.h"

struct abi_sample;
struct bpf_link;
struct bpf_object;
struct bpf_program;
struct collect_handlers;
struct collect_options;
struct probe;
struct sample_type;
struct sample_types;

enum { PROBE_MAX_KINDS = 4, PROBE_RECORD_MAX_BYTES = 1024, PROBE_MAX_LOSSES = 4 };

/* One kind of record that a probe writes. */
struct probe_record {
	uint32_t kind; /* enum abi_kind; 0 = none */
	/*
	 * The record begins with a struct abi_sample; a stack may follow, or its walk may be
	 * unfinished. `bytes` is then ABI_SAMPLE_BYTES.
	 */
	bool is_sample;
	size_t bytes;
	/* Calls the handler for RECORD (aligned, with all these bytes), if there is one. */
	void (*deliver)(
		const struct collect_handlers *handlers, uint64_t time_ns, const void *record);
	/*
	 * So many more may follow; the rest of a shorter record is delivered as zeros. Together at
	 * most PROBE_RECORD_MAX_BYTES.
	 */
	size_t more_bytes;
};

/* What BPF counts of this probe alone, and the metric of it. */
struct probe_loss {
	enum abi_counter counter;
	enum metric metric;
};

/* Attaches PROBE's PROGRAM while sampling runs. Returns 0 or a negative errno. */
typedef int probe_attach_fn(
	const struct probe *probe, struct bpf_program *program, struct bpf_link **ret_link);

/* To the raw tracepoint `tracepoint`. */
int probe_attach_raw_tracepoint(
	const struct probe *probe, struct bpf_program *program, struct bpf_link **ret_link);

struct probe {
	const char *name;
	const void *(*object)(
		size_t *ret_bytes); /* the embedded BPF object, for free(); NULL = no memory */
	/*
	 * A probe of an earlier row that is wanted whenever this one is: its own maps, counters
	 * included, are also this one's, by name. NULL = none.
	 */
	const char *lender;
	/*
	 * The names of its two programs, which walk user stacks differently; one is loaded. NULL =
	 * they walk none, and `configure` chooses. `attach` is then given the first one.
	 */
	const char *by_tables, *by_frame_pointer;
	/* Collect attaches it to each CPU's sampling event; at most one probe. */
	bool sampling_event;
	probe_attach_fn *attach; /* NULL: to a sampling event, or by the probe's owner */
	const char *tracepoint;
	/* No other program writes while this one does: it may use the sampler's own rings. */
	bool own_rings;
	bool (*is_wanted)(const struct collect_options *options);
	/* Its owner loads copies of its programs later: the object's types stay open for them. */
	bool keeps_types;
	/* Sets up the probe's own settings and maps before OBJECT is loaded. NULL = none. */
	int (*configure)(const struct collect_options *options, struct bpf_object *object);
	struct probe_record records[PROBE_MAX_KINDS];
	/* What its samples count, and the labels that they have; NULL = it takes none. Static. */
	const struct sample_type *(*sample_type)(const struct collect_options *options);
	struct probe_loss losses[PROBE_MAX_LOSSES];
	size_t loss_count;
};

/* The record of KIND among PROBES, which end with NULL. Returns NULL if no probe writes it. */
const struct probe_record *probe_record(const struct probe *const *probes, uint32_t kind);
/* Adds to METRICS what PROBE alone lost; COUNTS is what BPF has counted since the last call. */
void probe_count_losses(
	const struct probe *probe, const uint64_t counts[ABI_COUNTERS], struct metrics *metrics);
