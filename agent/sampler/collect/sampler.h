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
struct sampler;

/* Errors and *RET_STEP as for collect_create(). */
int sampler_load(const struct collect_options *options, const struct ring_sizes *sizes,
	struct sampler **ret_sampler, const char **ret_step);
void sampler_unload(struct sampler *s);
/* The rings that it writes by itself; none: it writes to the output events. */
struct sample_rings *sampler_rings(struct sampler *s);
/* NULL where this kernel does not take the program that walks by tables. */
struct tables *sampler_tables(const struct sampler *s);
int sampler_program_fd(const struct sampler *s);
/* Samples threads that leave the CPU, if the options say so; or no more. */
int sampler_watch_switches(struct sampler *s, bool on);
/* BPF output on CPU goes to the event OUTPUT_FD; −1 takes the CPU's event out. */
int sampler_set_output(struct sampler *s, int cpu, int output_fd);
void sampler_set_window(struct sampler *s, uint32_t window);
/* The rings have room again for what user space is to finish. */
void sampler_rings_read(struct sampler *s);
/* What each sample weighs from now on: cpu-clock goes on telling the period that it began with. */
void sampler_set_period(struct sampler *s, uint64_t period_ns);
/* Once: where BPF finds what it walks the kernel's stack by. */
void sampler_set_kernel_tables(struct sampler *s, const struct abi_kernel_tables *tables);
int sampler_set_go_process(struct sampler *s, uint32_t tgid, const struct abi_go_process *how);
void sampler_remove_go_process(struct sampler *s, uint32_t tgid);
/* Sums over all CPUs. */
int sampler_counters(const struct sampler *s, uint64_t ret_counts[ABI_COUNTERS]);
int sampler_stats(const struct sampler *s, uint64_t *ret_ns, uint64_t *ret_runs);
uint64_t sampler_map_bytes(const struct sampler *s);
