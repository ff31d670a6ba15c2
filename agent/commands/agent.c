/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/settings/config.h"
#include "agent/daemon/daemon.h"
#include "base/cleanup.h"

static int load_settings_file(struct config *config)
{
	const char *path = config_text(config, SETTING_config_path);
	autofree char *message = NULL;
	int err;

	if (path && !*path) {
		fputs("fathom agent: --config-path needs a file\n", stderr);
		return -EINVAL;
	}
	err = path ? config_load(config, path, &message) : 0;
	if (err)
		fprintf(stderr, "fathom agent: %s\n", message ? message : strerror(-err));
	return err;
}

int command_agent(struct invocation *call)
{
	if (load_settings_file(&call->config))
		return EXIT_USAGE;
	return daemon_run(&call->config, call->argc, call->argv);
}
