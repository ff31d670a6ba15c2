/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The settings of one remote store (--remote-store-…, --metadata-external-labels), converted for
 * agent/server/export; used by `fathom agent` and `fathom upload`. Opens nothing.
 */
#include "agent/settings/config.h"
#include "agent/server/export/payload.h"
#include "agent/server/export/remote/remote.h"

struct remote_settings {
	struct remote_options options; /* texts are borrowed from the config and the fields below */
	struct labels external;
	char **headers;
	char *place;
};

/*
 * Borrows CONFIG's texts; `name` is the type's name. -ENOENT: no remote store is configured; the
 * external labels are set nevertheless. -EINVAL: *RET_MESSAGE (the caller's to free) says which
 * setting and why.
 */
int remote_options_from_config(
	const struct config *config, struct remote_settings *ret_settings, char **ret_message);
void remote_settings_deinit(struct remote_settings *settings);
