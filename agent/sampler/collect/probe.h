/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A probe: something that happens in the kernel and that samples are taken of. It is a BPF object
 * that is attached in one of these ways and writes records of its own kinds into the rings; maps,
 * rings and unwind tables are shared by all probes (shared_maps.h). Rows of this kind stand in
 * agent/sampler/probes/probes.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct abi_sample;
struct bpf_object;
struct collect_handlers;
struct collect_options;

enum probe_attach {
	/* To each CPU's sampling event; at most one probe. */
	PROBE_SAMPLING_EVENT,
	/* To the raw tracepoint `tracepoint`, while sampling runs. */
	PROBE_RAW_TRACEPOINT,
};

enum { PROBE_MAX_KINDS = 4, PROBE_RECORD_MAX_BYTES = 256 };

/* One kind of record that a probe writes. */
struct probe_record {
	uint32_t kind; /* enum abi_kind; 0 = none */
	/*
	 * It begins with a struct abi_sample: a stack may follow, or it may be left unfinished.
	 * Then `bytes` is ABI_SAMPLE_BYTES.
	 */
	bool is_sample;
	size_t bytes; /* at most PROBE_RECORD_MAX_BYTES */
	/* Calls the handler that RECORD (aligned, `bytes` long) is for, if there is one. */
	void (*deliver)(
		const struct collect_handlers *handlers, uint64_t time_ns, const void *record);
};

struct probe {
	const char *name;
	const void *(*object)(size_t *ret_bytes); /* the embedded BPF object */
	/* Its programs, one of which is loaded: user stacks by tables, or by frame pointer. */
	const char *by_tables, *by_frame_pointer;
	enum probe_attach attach;
	const char *tracepoint;
	/* No other program writes while this one does, so it may use the sampler's own rings. */
	bool own_rings;
	bool (*is_wanted)(const struct collect_options *options);
	/* Settings and maps that the probe alone has, before OBJECT is loaded. NULL = none. */
	int (*configure)(const struct collect_options *options, struct bpf_object *object);
	struct probe_record records[PROBE_MAX_KINDS];
};

/* The record of KIND among PROBES (which end with NULL), NULL = no probe writes such. */
const struct probe_record *probe_record(const struct probe *const *probes, uint32_t kind);
