/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A probe samples one kind of kernel event. It is a BPF object that is attached in one of the ways
 * below and writes its own kinds of records. All probes share maps, rings and unwind tables
 * (shared_maps.h). agent/sampler/probes/probes.c lists them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct abi_sample;
struct bpf_object;
struct collect_handlers;
struct collect_options;

enum probe_attach {
	/* Attached to each CPU's sampling event; at most one probe. */
	PROBE_SAMPLING_EVENT,
	/* Attached to the raw tracepoint `tracepoint` while sampling runs. */
	PROBE_RAW_TRACEPOINT,
};

enum { PROBE_MAX_KINDS = 4, PROBE_RECORD_MAX_BYTES = 256 };

/* One kind of record that a probe writes. */
struct probe_record {
	uint32_t kind; /* enum abi_kind; 0 = none */
	/*
	 * The record begins with a struct abi_sample; a stack may follow, or its walk may be
	 * unfinished. `bytes` is then ABI_SAMPLE_BYTES.
	 */
	bool is_sample;
	size_t bytes; /* at most PROBE_RECORD_MAX_BYTES */
	/* Calls the handler for RECORD (aligned, `bytes` long), if there is one. */
	void (*deliver)(
		const struct collect_handlers *handlers, uint64_t time_ns, const void *record);
};

struct probe {
	const char *name;
	const void *(*object)(size_t *ret_bytes); /* the embedded BPF object */
	/* The names of its two programs, which walk user stacks differently; one is loaded. */
	const char *by_tables, *by_frame_pointer;
	enum probe_attach attach;
	const char *tracepoint;
	/* No other program writes while this one does: it may use the sampler's own rings. */
	bool own_rings;
	bool (*is_wanted)(const struct collect_options *options);
	/* Sets up the probe's own settings and maps before OBJECT is loaded. NULL = none. */
	int (*configure)(const struct collect_options *options, struct bpf_object *object);
	struct probe_record records[PROBE_MAX_KINDS];
};

/* The record of KIND among PROBES, which end with NULL. Returns NULL if no probe writes it. */
const struct probe_record *probe_record(const struct probe *const *probes, uint32_t kind);
