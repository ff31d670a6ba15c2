/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The settings of one remote store (--remote-store-…, --metadata-external-labels) as
 * agent/server/export takes them; for `fathom agent` and `fathom upload`. Nothing is opened here.
 */
#include "agent/settings/config.h"
#include "agent/server/export/payload.h"
#include "agent/server/export/remote/remote.h"

struct remote_settings {
	struct remote_options options; /* its texts are the config's and those below */
	struct labels external;
	char **headers;
	char *place;
};

/*
 * Borrows CONFIG's texts. `name` is the type's. -ENOENT: no remote
 * store is configured; the external labels are there all the same. -EINVAL: *RET_MESSAGE (the
 * caller's to free) says which setting and why.
 */
int remote_options_from_config(
	const struct config *config, struct remote_settings *ret_settings, char **ret_message);
void remote_settings_deinit(struct remote_settings *settings);
