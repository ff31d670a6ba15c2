/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One probe's BPF object while it is loaded: its programs, its own maps, its counters. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/collect/object_counters.h"
#include "agent/sampler/collect/probe.h"
#include "agent/sampler/collect/shared_maps.h"
#include "bpf/abi/sampler.h"

struct bpf_link;
struct kernel_types;

struct probe_object {
	const struct probe *probe;
	struct bpf_object *object; /* NULL = not loaded */
	struct bpf_program *program; /* the loaded one; NULL = the owner finds it in `object` */
	const struct bpf_object *lender; /* whose maps it uses; NULL = none */
	struct bpf_link *link; /* NULL = not attached, or to a sampling event */
	struct object_counters counters;
};

/* Parameters for loading an object. */
struct probe_load {
	const struct collect_options *options;
	const struct abi_sampler_config *config; /* without the probe's own settings */
	const struct shared_maps *maps;
	const struct probe_object *loaded; /* those of earlier rows */
	size_t loaded_count;
	struct kernel_types *types; /* NULL = libbpf reads the kernel's BTF itself */
	enum walk walk;
};

int probe_object_load(
	const struct probe *probe, const struct probe_load *how, struct probe_object *ret_object);
void probe_object_unload(struct probe_object *o);
int probe_object_program_fd(const struct probe_object *o);
/* Attaches it in its way, or detaches it; does nothing for a sampling event. */
int probe_object_attach(struct probe_object *o, bool on);
/* Adds its counters of all CPUs, in all slots of scratch memory, to COUNTS. */
int probe_object_count(const struct probe_object *o, uint64_t counts[ABI_COUNTERS]);
/* Runs on CPU until they were last counted, of a program with one slot of scratch memory. */
uint64_t probe_object_runs(const struct probe_object *o, int cpu);
/* Kernel memory in bytes of the maps that it does not share. */
uint64_t probe_object_memory(const struct probe_object *o, const struct shared_maps *maps);
