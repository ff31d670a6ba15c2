/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/fixed_settings.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"

enum { NAMES_LIMIT_BYTES = 4096 }; /* more than those of all settings */

static bool can_change(enum setting id)
{
	static const enum setting changeable[] = {
		SETTING_sampling_frequency,
		SETTING_profiling_duration,
		SETTING_node,
		SETTING_http_token_file,
		SETTING_local_store_max_bytes,
		SETTING_local_store_max_age,
		SETTING_cpu_budget,
		SETTING_go_created_by,
		SETTING_include,
		SETTING_exclude,
		SETTING_pod_annotations,
		SETTING_log_level,
		SETTING_log_format,
		SETTING_external_labels,
		SETTING_container_runtime_socket,
		SETTING_kubernetes_api,
		SETTING_series_labels,
		SETTING_series_max,
		SETTING_include_env_var,
		SETTING_debuginfo_upload,
		SETTING_probe_series_max,
		SETTING_probe_series_max_idle,
	};

	for (size_t i = 0; i < ARRAY_SIZE(changeable); i++) {
		if (changeable[i] == id)
			return true;
	}
	return !strncmp(config_name(id), "--remote-store-", strlen("--remote-store-")) ||
	       !strncmp(config_name(id), "--spool-", strlen("--spool-"));
}

static bool is_other(const struct config *old, const struct config *new, enum setting id)
{
	const char *a = config_text(old, id), *b = config_text(new, id);

	return strcmp(a ? a : "", b ? b : "") != 0;
}

static void swap(struct config *old, struct config *new, enum setting id)
{
	struct setting_value kept = old->values[id];

	old->values[id] = new->values[id];
	new->values[id] = kept;
}

void fixed_settings_keep(struct config *old, struct config *new, char **ret_note)
{
	autocall(buffer_deinit) struct buffer names;
	unsigned int count = 0;

	buffer_init(&names, NAMES_LIMIT_BYTES);
	for (enum setting id = 0; id < SETTING_COUNT; id++) {
		if (can_change(id))
			continue;
		if (is_other(old, new, id))
			buffer_printf(&names, "%s%s", count++ ? ", " : "", config_name(id));
		swap(old, new, id);
	}
	if (count && asprintf(ret_note, "%.*s take%s effect at the next start", (int)names.size,
			     (const char *)names.bytes, count == 1 ? "s" : "") < 0)
		*ret_note = NULL;
}
