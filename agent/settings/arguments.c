/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings/arguments.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/settings/config.h"
#include "base/cleanup.h"

static const enum setting secrets[] = {
	SETTING_remote_store_bearer_token,
	SETTING_remote_store_headers,
	SETTING_remote_store_proxy_url,
};

/* getopt_long() accepts unambiguous prefixes of a name. */
static bool may_name_secret(const char *argument, size_t length)
{
	size_t shortest = strlen("--remote-store-") + 1;

	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++) {
		const char *name = config_name(secrets[i]);

		if (length >= shortest && length <= strlen(name) &&
			!strncmp(argument, name, length))
			return true;
	}
	return false;
}

static void arguments_hide(char *text)
{
	memset(text, '*', strlen(text));
}

static void hide_secrets(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t length = strcspn(argv[i], "=");

		if (!strcmp(argv[i], "--"))
			return;
		if (!may_name_secret(argv[i], length))
			continue;
		if (argv[i][length])
			arguments_hide(argv[i] + length + 1);
		else if (i + 1 < argc)
			arguments_hide(argv[++i]);
	}
}

int arguments_take(int argc, char **argv, char ***ret_copy)
{
	char **copy = calloc((size_t)argc + 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	for (int i = 0; i < argc; i++) {
		copy[i] = strdup(argv[i]);
		if (!copy[i]) {
			arguments_free(copy);
			return -ENOMEM;
		}
	}
	hide_secrets(argc, argv);
	*ret_copy = copy;
	return 0;
}

void arguments_free(char **copy)
{
	for (char **at = copy; copy && *at; at++)
		free(*at);
	free(copy);
}
