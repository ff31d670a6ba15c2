/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/settings/arguments.h"
#include "agent/commands/commands.h"
#include "agent/settings/config.h"
#include "agent/daemon/daemon.h"
#include "base/cleanup.h"

static void print_usage(FILE *out)
{
	fputs("usage: fathom agent [--config-path FILE] [OPTION]…\n"
	      "Samples this machine all the time: profiles of the recent past in a directory, on a "
	      "page and on demand.\n\n",
		out);
	config_print_options(out, IN_AGENT);
}

static int load_file(struct config *config)
{
	const char *path = config_text(config, SETTING_config_path);
	autofree char *message = NULL;
	int err;

	if (path && !*path) {
		fputs("fathom agent: --config-path wants a file\n", stderr);
		return -EINVAL;
	}
	err = path ? config_load(config, path, &message) : 0;
	if (err)
		fprintf(stderr, "fathom agent: %s\n", message ? message : strerror(-err));
	return err;
}

static int run(int argc, char **argv)
{
	struct config config;
	int status;

	if (config_parse(&config, IN_AGENT, argc, argv))
		return EXIT_USAGE;
	if (config_flag(&config, SETTING_help)) {
		print_usage(stdout);
		status = EXIT_DONE;
	} else if (config.rest_count) {
		fprintf(stderr, "fathom agent: '%s' is not wanted here; see fathom agent --help\n",
			config.rest[0]);
		status = EXIT_USAGE;
	} else if (load_file(&config)) {
		status = EXIT_USAGE;
	} else {
		status = daemon_run(&config, argc, argv);
	}
	config_deinit(&config);
	return status;
}

int command_agent(int argc, char **argv)
{
	char **arguments;
	int status;

	if (arguments_take(argc, argv, &arguments)) {
		fputs("fathom agent: out of memory\n", stderr);
		return EXIT_FAILED;
	}
	status = run(argc, arguments);
	arguments_free(arguments);
	return status;
}
