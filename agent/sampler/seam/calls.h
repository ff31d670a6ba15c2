/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What whoever reports, stores and sends calls while the sampler runs: to end windows, to open
 * profiles on demand, to change what is sampled, and to ask for names and figures. Who makes and
 * starts the sampler includes sampler.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/seam/sealed_window.h"
#include "agent/sampler/seam/trouble.h"
#include "base/metrics.h"

struct container_choices;
struct sampler;
struct selection;
struct symbolize;
struct windows_tap;

/*
 * Begins a new window without pausing sampling. The previous one is passed to `sealed` once its
 * last records have been read and pending index builds are done, or five seconds have passed.
 * Returns -EBUSY while the last records of the previous window are still being read.
 */
int sampler_rotate_window(struct sampler *sampler);
/* The current window: everything sampled since the last rotation. For use after sampler_stop(). */
struct sealed_window sampler_last_window(struct sampler *sampler);

/*
 * Opens an on-demand profile of PID (0 = all), independent of the windows. Returns -EAGAIN if too
 * many are open.
 */
int sampler_tap_open(struct sampler *sampler, uint32_t pid, struct windows_tap **ret_tap);
/* What TAP has collected so far. */
struct sealed_window sampler_tap_read(struct sampler *sampler, const struct windows_tap *tap);
void sampler_tap_close(struct sampler *sampler, struct windows_tap *tap);

/*
 * Who names the frames of the window that was passed on last, with what is known now. Valid until
 * the next window is passed on; call it again for each report that is made later than others.
 */
struct symbolize *sampler_symbolize(struct sampler *sampler);
const struct metrics *sampler_metrics(const struct sampler *sampler);
/* Writable, for rooms that count their own losses. */
struct metrics *sampler_metrics_to_add(struct sampler *sampler);
/*
 * Sets which processes are profiled from now on; NULL = all. SELECTION is borrowed until the next
 * call.
 */
void sampler_select(struct sampler *sampler, const struct selection *selection);
/*
 * Says which pods' containers are profiled (container_choices.h), from now on and in the window
 * that has not ended yet; NULL: containers have no pods. Takes CHOICES. Not recorded.
 */
void sampler_choose(struct sampler *sampler, struct container_choices *choices);
/* How many samples came from containers of which CHOICES did not tell enough. */
uint64_t sampler_containers_missed(const struct sampler *sampler);
/* Pauses or resumes sampling on all CPUs. */
int sampler_pause(struct sampler *sampler, bool pause);
/* Sets the samples per second and CPU. */
int sampler_set_frequency(struct sampler *sampler, uint64_t hz);

/* The answers of wants_file() may have changed: offers all sampled files to it again. */
void sampler_offer_files_again(struct sampler *sampler);

/* Current sizes. */
struct sampler_sizes {
	uint64_t index_bytes; /* mapped, not resident */
	uint64_t kallsyms_bytes, profile_bytes, bpf_map_bytes;
	size_t processes, modules;
};
struct sampler_sizes sampler_sizes(const struct sampler *sampler);
uint64_t sampler_samples(const struct sampler *sampler); /* added to profiles so far */
uint64_t sampler_first_sample_ns(const struct sampler *sampler); /* CLOCK_MONOTONIC; 0 = none yet */
/* CPU time of index builds, and the largest one's peak memory. */
uint64_t sampler_builds_cpu_ns(const struct sampler *sampler);
/* As builds_set_share() and builds_charged_ns(). */
void sampler_set_builds_share(struct sampler *sampler, double share);
uint64_t sampler_builds_charged_ns(const struct sampler *sampler);
/* CPU time of the children that read files of other processes. */
uint64_t sampler_file_helper_cpu_ns(const struct sampler *sampler);
uint64_t sampler_builds_peak_bytes(const struct sampler *sampler);
/* Run time of the BPF programs and number of runs; false before the first run. */
bool sampler_bpf_time(const struct sampler *sampler, uint64_t *ret_ns, uint64_t *ret_runs);
/* How many may wait at once: fewer if few descriptors may be open. */
unsigned int sampler_max_waiting_builds(const struct sampler *sampler);
/* What last went wrong. */
struct sampler_trouble sampler_trouble(const struct sampler *sampler);
/* Number of modules without an index whose build is waiting, running or about to be retried. */
unsigned int sampler_pending_builds(const struct sampler *sampler);
