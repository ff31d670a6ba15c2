/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What container runtimes and the API server have told, for /metrics and /status. METADATA NULL:
 * none is asked.
 */
#include "agent/server/metadata/metadata.h"
#include "base/buffer.h"
#include "base/json.h"

/* Appends the gauges to /metrics, before its `# EOF`. */
void container_figures_write_metrics(struct metadata *metadata, struct buffer *out);
/* Writes a JSON array for /status. */
void container_figures_write_status(struct metadata *metadata, struct json *j, const char *key);
/* Writes a JSON object for /status; null if the API server is not asked. */
void container_figures_write_api(struct metadata *metadata, struct json *j, const char *key);
