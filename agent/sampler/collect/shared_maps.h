/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The maps of bpf/shared.bpf.h, created and sized once for all probes: each BPF object gets their
 * descriptors before it is loaded. Knows nothing of programs.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/ring_sizes.h"
#include "agent/sampler/collect/sample_rings.h"
#include "agent/sampler/collect/tables.h"

struct abi_kernel_tables;
struct bpf_object;
struct shared_maps;

/* How user stacks are walked. */
enum walk { WALK_BY_FRAME_POINTER, WALK_BY_RANGES, WALK_BY_MAPPINGS };

/* Maps that WALK does not need are not created, or have one element. */
int shared_maps_create(const struct collect_options *options, const struct ring_sizes *sizes,
	enum walk walk, struct shared_maps **ret_maps);
void shared_maps_destroy(struct shared_maps *m);

/* Makes OBJECT, not yet loaded, use these maps in place of its own with the same names. */
int shared_maps_lend(const struct shared_maps *m, struct bpf_object *object);
/* Whether a map of this name is one of them. */
bool shared_maps_has(const struct shared_maps *m, const char *name);

/* The rings that BPF writes without perf; with none, it writes to the output events. */
struct sample_rings *shared_maps_rings(struct shared_maps *m);
/* NULL = walks by frame pointer. */
struct tables *shared_maps_tables(const struct shared_maps *m);
/* Sets the processes and threads to be sampled, if the options name some. */
int shared_maps_set_pids(struct shared_maps *m, const struct collect_options *options);
/* Replaces the processes; their filter must be on. Errors are those of collect_set_tgids(). */
int shared_maps_set_tgids(struct shared_maps *m, const uint32_t *tgids, size_t count);
/* As collect_leave_out_cgroup(). */
int shared_maps_leave_out_cgroup(struct shared_maps *m, uint64_t id, bool out);
/* Directs BPF output on CPU to the event OUTPUT_FD; −1 removes the CPU's event. */
int shared_maps_set_output(struct shared_maps *m, int cpu, int output_fd);
void shared_maps_set_window(struct shared_maps *m, uint32_t window);
/* Tells BPF that the rings were read: each CPU's allowance for unfinished walks is renewed. */
void shared_maps_rings_read(struct shared_maps *m);
/* Sets the period of samples from now on: cpu-clock keeps reporting the one it began with. */
void shared_maps_set_period(struct shared_maps *m, uint64_t period_ns);
/* Sets the tables by which BPF walks the kernel's stack. Call it once. */
void shared_maps_set_kernel_tables(struct shared_maps *m, const struct abi_kernel_tables *tables);
int shared_maps_set_runtime(
	struct shared_maps *m, uint32_t tgid, const struct abi_runtime_process *how);
void shared_maps_remove_runtime(struct shared_maps *m, uint32_t tgid);
/* Kernel memory in bytes of the map with this descriptor, and of all shared maps. */
uint64_t shared_maps_memory_of(int fd);
uint64_t shared_maps_memory(const struct shared_maps *m);
