/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings/cache_directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cache_directory(const struct config *config, char **ret_path)
{
	const char *chosen = config_text(config, SETTING_cache_directory);
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int length;

	if (chosen)
		length = asprintf(&path, "%s", chosen);
	else if (xdg && *xdg == '/')
		length = asprintf(&path, "%s/fathom", xdg);
	else if (geteuid() != 0 && home && *home == '/')
		length = asprintf(&path, "%s/.cache/fathom", home);
	else
		length = asprintf(&path, "/var/cache/fathom");
	if (length < 0)
		return -ENOMEM;
	*ret_path = path;
	return 0;
}
