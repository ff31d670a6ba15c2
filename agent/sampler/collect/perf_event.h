/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The perf events of a CPU: the output event, whose ring carries the side-band and BPF's output,
 * the event that reports mapped files, and the sampling event that runs the BPF program.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/collect/collect.h"

/*
 * Opens the output event of CPU for all tasks, readable at WATERMARK_BYTES in its ring. *BUILD_IDS
 * asks for build IDs in mapping records and is cleared if the kernel (before 5.12) has none.
 * Returns a descriptor or a negative errno.
 */
int perf_event_open_output(int cpu, uint32_t watermark_bytes, bool *build_ids);
/*
 * Opens the event of CPU that reports mappings with device and inode where the output event reports
 * build IDs. Must be opened after that: the kernel writes the newest event's record first.
 */
int perf_event_open_files(int cpu);
/* Directs FD's records into the ring of OUTPUT_FD, which must be mapped. */
int perf_event_share_ring(int fd, int output_fd);
/*
 * Opens an event at a place of user code, in all processes. PMU is the type of `uprobe` events
 * (/sys/bus/event_source/devices/uprobe/type), PATH the file's.
 */
int perf_event_open_uprobe(int pmu, const char *path, uint64_t file_off);
/*
 * Opens an event at the kernel function at KADDR, or AT_RETURN of it. PMU is the type of `kprobe`
 * events.
 */
int perf_event_open_kprobe(int pmu, uint64_t kaddr, bool at_return);
/* Opens the sampling event of CPU, disabled. Returns -ENOENT if it has no PMU. */
int perf_event_open_sampling(int cpu, const struct collect_options *options);
int perf_event_set_program(int fd, int program_fd);
int perf_event_enable(int fd, bool on);
/*
 * Changes the rate of a sampling event that was opened with a frequency. The kernel converts
 * cpu-clock's frequency into a period at open, so this sets a period for it.
 */
int perf_event_set_frequency(int fd, enum collect_event event, uint64_t hz);
/* How long the event has been enabled, in ns; stops when its CPU goes offline. */
int perf_event_enabled_ns(int fd, uint64_t *ret_ns);
