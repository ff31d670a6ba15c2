/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The token that opens the HTTP address to other users than root and the agent's own: what the file
 * of --http-token-file holds or, without that option, a token of our own. It is made at the first
 * start and kept in the cache directory, in a file that only our user can read.
 */
#include "agent/settings/config.h"

/*
 * Wipe and free *RET_TOKEN with secret_free(). CACHE_DIRECTORY need not exist. Our own token is
 * used for this run only, and logged as such, if it cannot be kept. On failure *RET_MESSAGE, if not
 * NULL, is the caller's to free and names the option.
 */
int token_get(const struct config *config, const char *cache_directory, char **ret_token,
	char **ret_message);
