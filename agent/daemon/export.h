/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How `fathom agent` sends: the remote stores of the settings, each window's series as payloads,
 * and the figures about both. Without a remote store there is no struct daemon_export, no thread
 * and no directory.
 */
#include "agent/settings/config.h"
#include "agent/server/export/exporter.h"
#include "agent/report/report.h"
#include "agent/server/metadata/metadata.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/module_id.h"

struct daemon_export;

/*
 * *RET_EXPORT is NULL if no remote store is set. Returns -EINVAL if a setting is wrong;
 * *RET_MESSAGE says which. Debug files for upload are prepared in CACHE_DIRECTORY.
 */
int daemon_export_create(const struct config *config, struct metrics *metrics,
	const char *cache_directory, struct daemon_export **ret_export, char **ret_message);
void daemon_export_destroy(struct daemon_export *e, uint64_t grace_ns);
/* Checks the settings without opening anything. */
int daemon_export_check(const struct config *config, char **ret_message);
/*
 * Applies CONFIG; on error nothing changes. *E may be NULL before and after. Relabelling and labels
 * change at once. A remote store that remains keeps its position in the spool; the pending payloads
 * of a removed one are abandoned. If no store remains, the spool is closed and its files stay.
 */
int daemon_export_reload(struct daemon_export **e, const struct config *config,
	struct metrics *metrics, const char *cache_directory, char **ret_message);
/* Whether to open the file with this build ID for its debug information. E may be NULL. */
bool daemon_export_wants_file(struct daemon_export *e, const struct build_id *id);
void daemon_export_file(struct daemon_export *e, const struct build_id *id, int fd); /* takes FD */
/* From now on windows have labels of what METADATA (NULL = nothing) tells of containers. */
void daemon_export_know_containers(struct daemon_export *e, struct metadata *metadata);
/*
 * OPTIONS: time, duration and period of the window. COUNT adds its stacks to the metrics; set it
 * when no other report of the window does.
 */
void daemon_export_window(struct daemon_export *e, const struct report_sources *sources,
	const struct report_options *options, bool count);
void daemon_export_figures(struct daemon_export *e, struct exporter_figures *ret_figures);
/* Appends the metrics to /metrics, before its `# EOF`. */
void daemon_export_write_metrics(struct daemon_export *e, struct buffer *out);
/* Writes a JSON object for /status. */
void daemon_export_write_status(struct daemon_export *e, struct json *j, const char *key);
