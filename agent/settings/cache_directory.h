/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where module indexes are kept. */
#include "agent/settings/config.h"

/*
 * --cache-directory, else $XDG_CACHE_HOME/fathom, else /var/cache/fathom for root and
 * ~/.cache/fathom for others. *RET_PATH is the caller's to free.
 */
int cache_directory(const struct config *config, char **ret_path);
