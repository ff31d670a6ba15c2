/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sending as `fathom agent` does it: which remote stores the settings name, each window's series as
 * payloads, and the figures of it all. Without a remote store there is no struct daemon_export: no
 * thread, no directory, no work.
 */
#include "agent/settings/config.h"
#include "agent/server/export/exporter.h"
#include "agent/report/report.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/module_id.h"

struct daemon_export;

/*
 * *RET_EXPORT is NULL where no remote store is set. -EINVAL: *RET_MESSAGE says what is wrong. Debug
 * information is made ready in CACHE_DIRECTORY.
 */
int daemon_export_create(const struct config *config, struct metrics *metrics,
	const char *cache_directory, struct daemon_export **ret_export, char **ret_message);
void daemon_export_destroy(struct daemon_export *e, uint64_t grace_ns);
/* Whether the settings make sense; opens nothing. */
int daemon_export_check(const struct config *config, char **ret_message);
/*
 * What CONFIG says from now on, or after an error nothing of it; *E may be NULL before and after.
 * Relabelling and labels change at once. A remote store that stays keeps its place in the spool,
 * one that is left out is given up with what waits for it. Without any store the spool is closed
 * and left as it is.
 */
int daemon_export_reload(struct daemon_export **e, const struct config *config,
	struct metrics *metrics, const char *cache_directory, char **ret_message);
/* Whether the file of that build ID is to be opened for its debug information. E may be NULL. */
bool daemon_export_wants_file(struct daemon_export *e, const struct build_id *id);
void daemon_export_file(struct daemon_export *e, const struct build_id *id, int fd); /* takes FD */
/*
 * OPTIONS: time, duration and period of the window. Its stacks are added to the metrics with COUNT,
 * when no other report of the window does so.
 */
void daemon_export_window(struct daemon_export *e, const struct report_sources *sources,
	const struct report_options *options, bool count);
void daemon_export_figures(struct daemon_export *e, struct exporter_figures *ret_figures);
/* For /metrics, before its end. */
void daemon_export_write_metrics(struct daemon_export *e, struct buffer *out);
/* For /status: a JSON object. */
void daemon_export_write_status(struct daemon_export *e, struct json *j, const char *key);
