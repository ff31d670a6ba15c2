/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The BPF sampler as user space sees it: loaded with the wanted filters, its window, its counters
 * and its maps. Knows nothing of perf events and rings; programs and maps are named by descriptor.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/ring_sizes.h"
#include "agent/sampler/collect/sample_rings.h"
#include "agent/sampler/collect/tables.h"

struct abi_kernel_tables;
struct bpf_sampler;

/* Errors and *RET_STEP as for collect_create(). */
int bpf_sampler_load(const struct collect_options *options, const struct ring_sizes *sizes,
	struct bpf_sampler **ret_sampler, const char **ret_step);
void bpf_sampler_unload(struct bpf_sampler *s);
/* The rings that it writes by itself; none: it writes to the output events. */
struct sample_rings *bpf_sampler_rings(struct bpf_sampler *s);
/* NULL where this kernel does not take the program that walks by tables. */
struct tables *bpf_sampler_tables(const struct bpf_sampler *s);
int bpf_sampler_program_fd(const struct bpf_sampler *s);
/* Samples threads that leave the CPU, if the options say so; or no more. */
int bpf_sampler_watch_switches(struct bpf_sampler *s, bool on);
/* BPF output on CPU goes to the event OUTPUT_FD; −1 takes the CPU's event out. */
int bpf_sampler_set_output(struct bpf_sampler *s, int cpu, int output_fd);
void bpf_sampler_set_window(struct bpf_sampler *s, uint32_t window);
/* The rings have room again for what user space is to finish. */
void bpf_sampler_rings_read(struct bpf_sampler *s);
/* What each sample weighs from now on: cpu-clock goes on telling the period that it began with. */
void bpf_sampler_set_period(struct bpf_sampler *s, uint64_t period_ns);
/* Once: where BPF finds what it walks the kernel's stack by. */
void bpf_sampler_set_kernel_tables(struct bpf_sampler *s, const struct abi_kernel_tables *tables);
int bpf_sampler_set_runtime(
	struct bpf_sampler *s, uint32_t tgid, const struct abi_runtime_process *how);
void bpf_sampler_remove_runtime(struct bpf_sampler *s, uint32_t tgid);
/* Sums over all CPUs. */
int bpf_sampler_counters(const struct bpf_sampler *s, uint64_t ret_counts[ABI_COUNTERS]);
int bpf_sampler_stats(const struct bpf_sampler *s, uint64_t *ret_ns, uint64_t *ret_runs);
uint64_t bpf_sampler_map_bytes(const struct bpf_sampler *s);
