/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The perf events of a CPU: the output event, whose ring carries the side-band and what BPF
 * writes, the event that tells of mapped files, and the sampling event that runs the BPF program.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/collect/collect.h"

/*
 * The output event of CPU for all tasks; WATERMARK_BYTES in its ring make it readable. *BUILD_IDS
 * asks for build IDs in mapping records and is cleared where the kernel (before 5.12) has none.
 * Returns a descriptor or a negative errno.
 */
int perf_event_open_output(int cpu, uint32_t watermark_bytes, bool *build_ids);
/*
 * The event of CPU that tells with device and inode of what the output event tells of with build
 * IDs. To be opened after that one: the kernel writes the newest event's record first.
 */
int perf_event_open_files(int cpu);
/* FD's records go into the ring of OUTPUT_FD, which is mapped. */
int perf_event_share_ring(int fd, int output_fd);
/* The sampling event of CPU, disabled. -ENOENT where there is no PMU for it. */
int perf_event_open_sampling(int cpu, const struct collect_options *options);
int perf_event_set_program(int fd, int program_fd);
int perf_event_enable(int fd, bool on);
/*
 * Changes the rate of a sampling event that was opened with a frequency. The kernel has turned
 * cpu-clock's frequency into a period at the start, so that is what it takes for it.
 */
int perf_event_set_frequency(int fd, enum collect_event event, uint64_t hz);
/* For how long the event was enabled, in ns; stands still when its CPU went away. */
int perf_event_enabled_ns(int fd, uint64_t *ret_ns);
