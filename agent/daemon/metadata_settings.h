/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who is asked about containers and pods, by the settings. */
#include <stdbool.h>

#include "agent/server/metadata/metadata.h"
#include "agent/settings/config.h"
#include "base/metrics.h"

/* What can be said without the machine. Returns -EINVAL with *RET_MESSAGE, the caller's to free. */
int metadata_settings_check(const struct config *config, char **ret_message);
/*
 * Begins to ask. *RET_METADATA is NULL if nobody is to be asked. On error *RET_MESSAGE, the
 * caller's to free, says why; it may be NULL.
 */
int metadata_settings_create(const struct config *config, struct metrics *metrics,
	struct metadata **ret_metadata, char **ret_message);
/* Whether others are asked, or about another node. */
bool metadata_settings_differ(const struct config *old, const struct config *new);
