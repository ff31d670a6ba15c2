/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as options of a command: their parsing. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "agent/settings/config_internal.h"
#include "base/cleanup.h"
#include "base/suggestion.h"

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

/* ---- options that do not exist ----------------------------------------------------------------
 */

/* What to say to those who know them from other profilers. */
static const struct {
	const char *name, *text;
} foreign[] = {
	{ "call-graph", "stacks are always taken" },
	{ "all-cpus", "that is -a, and the default" },
	{ "max-stack", "stacks are taken as a whole" },
	{ "no-inherit", "the children of a CMD always belong to it; a single process is -p" },
};

struct unknown_option {
	const char *command;
	enum config_command commands; /* the same as a bit */
	const char *name; /* without dashes; may go on with `=VALUE`, which may be a secret */
	size_t size;
};

static const char *config_options_foreign(const struct unknown_option *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
		if (strlen(foreign[i].name) == o->size &&
			!strncmp(foreign[i].name, o->name, o->size))
			return foreign[i].text;
	}
	return NULL;
}

/* Whether the name begins several options, or is spelt as one of another command only. */
static unsigned int config_options_like(const struct unknown_option *o, bool whole, bool own)
{
	unsigned int count = 0;

	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = config_row((enum setting)id);

		if (config_is_hidden((enum setting)id) || !(row->commands & o->commands) == own)
			continue;
		count += !strncmp(row->name, o->name, o->size) &&
			 (!whole || strlen(row->name) == o->size);
	}
	return count;
}

static const char *config_options_nearest(const struct unknown_option *o)
{
	struct suggestion s = { .word = o->name, .size = o->size };

	for (int id = 0; id < SETTING_COUNT; id++) {
		if ((config_row((enum setting)id)->commands & o->commands) &&
			!config_is_hidden((enum setting)id))
			suggestion_offer(&s, config_row((enum setting)id)->name);
	}
	return s.name;
}

static void config_options_say_unknown(const struct unknown_option *o)
{
	const char *text = config_options_foreign(o), *nearest = config_options_nearest(o);

	fprintf(stderr, "fathom %s: ", o->command);
	if (config_options_like(o, false, true) > 1)
		fprintf(stderr, "--%.*s may be several options", (int)o->size, o->name);
	else
		fprintf(stderr, "unknown option --%.*s", (int)o->size, o->name);
	if (text)
		fprintf(stderr, ": %s\n", text);
	else if (config_options_like(o, true, false))
		fprintf(stderr, ", which another command has; see fathom %s --help\n", o->command);
	else if (nearest)
		fprintf(stderr, ": did you mean --%s?\n", nearest);
	else
		fprintf(stderr, "; see fathom %s --help\n", o->command);
}

static int config_options_complain(
	const char *command, enum config_command commands, int got, char **argv)
{
	const char *argument = argv[optind - 1];
	struct unknown_option o = { command, commands, argument + strspn(argument, "-"), 0 };

	o.size = strcspn(o.name, "=");
	if (got == ':')
		fprintf(stderr, "fathom %s: %s needs a value\n", command, argument);
	else if (optopt && optopt < LONG_BASE)
		fprintf(stderr, "fathom %s: unknown option -%c; see fathom %s --help\n", command,
			optopt, command);
	else
		config_options_say_unknown(&o);
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
			return config_options_complain(argv[0], config->command, got, argv);
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
