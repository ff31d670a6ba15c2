/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as options of a command: their parsing, and their list in --help. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "agent/settings/config_internal.h"

struct option_table {
	struct option longs[SETTING_COUNT + 1];
	char letters[2 * SETTING_COUNT + 3];
};

enum { LONG_BASE = 256 }; /* getopt_long() returns LONG_BASE + id */

static void option_table_fill(struct option_table *table, enum config_command command)
{
	size_t count = 0, letters = 0;

	/*
	 * `+`: options end at the first other argument, which may be a command with its own; `:`:
	 * we report missing values.
	 */
	if (command != IN_VIEW)
		table->letters[letters++] = '+';
	table->letters[letters++] = ':';
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = config_row((enum setting)id);
		bool takes = row->type != SETTING_TYPE_FLAG;

		if (!(row->commands & command))
			continue;
		table->longs[count++] = (struct option){
			.name = row->name,
			.has_arg = takes ? required_argument : optional_argument,
			.val = LONG_BASE + id,
		};
		if (!row->letter)
			continue;
		table->letters[letters++] = row->letter;
		if (takes)
			table->letters[letters++] = ':';
	}
	table->letters[letters] = 0;
	table->longs[count] = (struct option){ 0 };
}

static int config_option_named(int got, enum config_command command)
{
	if (got >= LONG_BASE)
		return got - LONG_BASE;
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = config_row((enum setting)id);

		if (row->letter == got && (row->commands & command))
			return id;
	}
	return -1;
}

static int config_options_complain(const char *command, int got, char **argv)
{
	if (got == ':')
		fprintf(stderr, "fathom %s: %s needs a value\n", command, argv[optind - 1]);
	else if (optopt && optopt < LONG_BASE)
		fprintf(stderr, "fathom %s: unknown option -%c; see fathom %s --help\n", command,
			optopt, command);
	else
		fprintf(stderr, "fathom %s: unknown option %s; see fathom %s --help\n", command,
			argv[optind - 1], command);
	return -EINVAL;
}

int config_options_read(struct config *config, int argc, char **argv)
{
	struct option_table table;
	int got, id, err;

	option_table_fill(&table, config->command);
	optind = 0;
	opterr = 0;
	while ((got = getopt_long(argc, argv, table.letters, table.longs, NULL)) != -1) {
		id = got == '?' || got == ':' ? -1 : config_option_named(got, config->command);
		if (id < 0)
			return config_options_complain(argv[0], got, argv);
		err = config_set(
			config, (enum setting)id, optarg ? optarg : "1", CONFIG_COMMAND_LINE);
		if (err == -EINVAL)
			fprintf(stderr, "fathom %s: %s %s: must be %s\n", argv[0], config_name(id),
				config_shown(optarg), config_wants(id));
		if (err)
			return err;
	}
	config->rest = argv + optind;
	config->rest_count = argc - optind;
	return 0;
}

enum { HEAD_COLUMNS = 29 };

void config_print_options(FILE *out, enum config_command command)
{
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = config_row((enum setting)id);
		char head[80];
		int used;

		if (!(row->commands & command) || config_is_hidden((enum setting)id))
			continue;
		used = row->letter
			       ? snprintf(head, sizeof(head), "-%c, --%s", row->letter, row->name)
			       : snprintf(head, sizeof(head), "    --%s", row->name);
		if (row->argument)
			snprintf(head + used, sizeof(head) - (size_t)used, " %s", row->argument);
		/* A long head gets a line of its own. */
		if (strlen(head) + 2 > HEAD_COLUMNS)
			fprintf(out, "  %s\n%*s", head, HEAD_COLUMNS + 2, "");
		else
			fprintf(out, "  %-*s", HEAD_COLUMNS, head);
		fputs(row->help, out);
		if (row->fallback)
			fprintf(out, " (default: %s)", row->fallback);
		fputc('\n', out);
	}
}
