/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What all probes share: the rings, the unwind tables, the tags of what was shipped in this window,
 * the filters' pids, and the variables that user space changes. Each object includes this header
 * and so defines these maps, but only those of shared.bpf.c are created: user space opens it first,
 * sizes its maps, and reuses their descriptors in every object, by name
 * (agent/sampler/collect/shared_maps.c).
 *
 * A map that belongs to one probe is defined in that probe's object. The scratch memory
 * (scratch.bpf.h) is each object's own, since a sampling event can interrupt any other program.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sample_ring.h"
#include "bpf/abi/shared.h"
#include "bpf/abi/unwind_maps.h"

volatile struct abi_shared shared SEC(".data.shared") = {
	.ring_readings = 1,
	.unwind_epoch = 1,
	.unwind_rules_epoch = 1,
	.unwind_files_epoch = 1,
};

/* ---- who is sampled ------------------------------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_MAX_PIDS);
	__type(key, __u32);
	__type(value, __u8);
} tgids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_MAX_PIDS);
	__type(key, __u32);
	__type(value, __u8);
} tids SEC(".maps");

/* Control groups (version 2, by id) of which nothing is wanted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_LEFT_OUT_CGROUPS);
	__type(key, __u64);
	__type(value, __u8);
} left_out_cgroups SEC(".maps");

/* Preallocated: older kernels allow sampling programs no other hash maps. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_RUNTIME_PROCESSES);
	__type(key, __u32);
	__type(value, struct abi_runtime_process);
} runtime_processes SEC(".maps");

/* ---- output --------------------------------------------------------------------------------- */

/* The output event of each CPU, by number. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} output SEC(".maps");

/* The sampler's own rings, one per CPU. User space sets their size and number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, ABI_RING_DATA + ABI_RING_MIN_BYTES + ABI_RING_BEHIND_BYTES);
} sample_rings SEC(".maps");

/* The tags of stacks that were shipped in this window. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ABI_SEEN_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

/* The tags of mappings that were reported in this window. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ABI_SIGHTING_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} sightings_reported SEC(".maps");

/* ---- unwind tables (bpf/abi/unwind_maps.h) -------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_UNWIND_PROCESSES);
	__type(key, __u32);
	__type(value, struct abi_unwind_process);
} unwind_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_UNWIND_FILES);
	__type(key, struct abi_file);
	__type(value, struct abi_unwind_process);
} unwind_files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ABI_UNWIND_RANGES);
	__type(key, __u32);
	__type(value, struct abi_unwind_range);
} unwind_ranges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ABI_UNWIND_SLOTS);
	__type(key, __u32);
	__type(value, struct abi_unwind_slot);
} unwind_slots SEC(".maps");

struct unwind_region {
	abi_u8 bytes[ABI_UNWIND_REGION_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ABI_UNWIND_REGIONS);
	__type(key, __u32);
	__type(value, struct unwind_region);
} unwind_pool SEC(".maps");
