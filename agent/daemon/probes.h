/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The agent's `probes:`: which functions the sampler measures, and what becomes of the figures that
 * come with each window: histograms on /metrics, the recent past on the page, the state of each
 * probe on /status. Labels of processes are those of series that are sent, after relabelling.
 */
#include "agent/sampler/seam/latency_probes.h"
#include "agent/sampler/seam/sealed_window.h"
#include "agent/sampler/seam/symbolized.h"
#include "agent/server/metadata/metadata.h"
#include "agent/settings/config.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/metrics.h"

struct daemon_probes;

/* -EINVAL: *RET_MESSAGE (the caller's to free) says what is wrong with which setting. */
int daemon_probes_check(const struct config *config, char **ret_message);
/*
 * Makes the probes of CONFIG those that SAMPLER measures; unchanged ones are not touched. On an
 * error all stay as they were; *RET_MESSAGE is the caller's to free.
 */
int daemon_probes_set(struct sampler *sampler, const struct config *config, char **ret_message);

/* METRICS is borrowed. Returns -ENOMEM, or an error of CONFIG as daemon_probes_check(). */
int daemon_probes_create(const struct config *config, struct metrics *metrics,
	struct daemon_probes **ret_probes, char **ret_message);
void daemon_probes_destroy(struct daemon_probes *p);
/* The sampler has refused all probes, because of WHY, a text for people. */
void daemon_probes_refused(struct daemon_probes *p, const char *why);
/*
 * Takes over labels, rules and limits, after daemon_probes_set(). On an error nothing changes.
 * Histograms of a probe that is gone, or has other labels, go after its last window.
 */
int daemon_probes_reload(struct daemon_probes *p, const struct config *config, char **ret_message);

/* From now on histograms have labels of what METADATA (NULL = nothing) tells of containers. */
void daemon_probes_know_containers(struct daemon_probes *p, struct metadata *metadata);
/* Adds what WINDOW measured. SYMBOLIZE answers questions about its programs. */
void daemon_probes_window(struct daemon_probes *p, const struct sealed_window *window,
	const struct symbolize *symbolize);
void daemon_probes_write_metrics(const struct daemon_probes *p, struct buffer *out);
/* Writes the member `probes`: an array. */
void daemon_probes_write_status(const struct daemon_probes *p, struct json *j);
/* The body of /api/latency: windows that overlap [FROM_MS, TO_MS), ms since 1970. */
int daemon_probes_write_history(
	const struct daemon_probes *p, int64_t from_ms, int64_t to_ms, struct buffer *out);
