/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The settings of one run: defaults from settings.def, then FATHOM_… environment variables, then
 * the command line. An invalid value is refused with a message that names the setting.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum config_command {
	IN_RECORD = 1 << 0,
	IN_SYMBOLIZE = 1 << 1,
	IN_CHECK = 1 << 2,
	IN_AGENT = 1 << 3,
	IN_UPLOAD = 1 << 4,
	IN_TOP = 1 << 5,
	IN_LATENCY = 1 << 6,
	IN_TRACE = 1 << 7,
	IN_PGO = 1 << 8,
	IN_VIEW = 1 << 9,
	IN_ALL = IN_RECORD | IN_SYMBOLIZE | IN_CHECK | IN_AGENT | IN_UPLOAD | IN_TOP | IN_LATENCY |
		 IN_TRACE | IN_PGO | IN_VIEW,
};

enum setting_type {
	SETTING_TYPE_FLAG,
	SETTING_TYPE_TEXT,
	SETTING_TYPE_NUMBER,
	SETTING_TYPE_DURATION,
	SETTING_TYPE_BYTES,
	SETTING_TYPE_LIST,
	SETTING_TYPE_REPEATED,
};

enum setting {
#define SETTING(id, type, name, letter, commands, argument, fallback, help) SETTING_##id,
#include "agent/settings/settings.def"
#undef SETTING
	SETTING_COUNT
};

/* Where a value came from; a later source overrides an earlier one. */
enum config_source {
	CONFIG_UNSET,
	CONFIG_DEFAULT,
	CONFIG_FILE,
	CONFIG_ENVIRONMENT,
	CONFIG_COMMAND_LINE,
};

struct setting_value {
	/*
	 * As given; NULL = unset. Items of a LIST are joined by commas; read them with
	 * base/items.h. Values of a REPEATED setting are lines.
	 */
	char *text;
	uint64_t number; /* FLAG 0 or 1, NUMBER, DURATION in ns, BYTES */
	enum config_source source;
	unsigned int line; /* in the file; 0 = not from the file */
};

struct config_lists;

/* Prefix of the remote store settings, left out within `remote-stores`. */
#define CONFIG_STORE_PREFIX "remote-store-"

struct config {
	enum config_command command;
	struct setting_value values[SETTING_COUNT];
	struct config_lists *lists; /* agent/settings/config_lists.h; NULL = no lists in the file */
	char *file; /* path of the settings file; NULL = none */
	unsigned int line; /* of the `remote-stores` entry that this is; 0 = not an entry */
	char **rest; /* arguments after the options (a command to run); borrowed from argv */
	int rest_count;
};

/* Reads defaults, environment and ARGV (argv[0] is the command's name). Returns -EINVAL, with a
 * message on stderr, or -ENOMEM. */
int config_parse(struct config *config, enum config_command command, int argc, char **argv);
void config_deinit(struct config *config);
/*
 * Loads a YAML file. Its keys are the names of settings; a list is a sequence (whose items may
 * contain commas) or a comma-separated text. `remote-stores`, `relabel_configs` and `probes` are
 * lists of mappings (agent/settings/config_lists.h). The environment and the command line take
 * precedence. On error nothing of the file is applied, and *RET_MESSAGE, the caller's to free,
 * names line, key and problem. PATH may be a pipe, which must deliver everything within five
 * seconds.
 */
int config_load(struct config *config, const char *path, char **ret_message);
/* What a name in the file takes. */
enum config_kind {
	CONFIG_UNKNOWN,
	CONFIG_VALUE,
	CONFIG_LIST,
	CONFIG_MAPPING, /* of names to values; also a list of `NAME=VALUE` */
};
enum config_kind config_kind_named(const struct config *config, const char *name);
/* Sets one setting by name, from LINE of the file. -ENOENT: COMMAND has no such setting. */
int config_set_named(struct config *config, const char *name, const char *text, unsigned int line);
/* Adds one item to a LIST; it may contain separators. -EINVAL: it ends in a backslash. */
int config_add_named(struct config *config, const char *name, const char *item, unsigned int line);
int config_copy(const struct config *config, struct config *ret_copy);

bool config_flag(const struct config *config, enum setting id);
uint64_t config_number(const struct config *config, enum setting id);
const char *config_text(const struct config *config, enum setting id); /* NULL = unset */
/* Whether the user set it, rather than the default. */
bool config_given(const struct config *config, enum setting id);
/* The name as on the command line, for messages, e.g. "--duration". */
const char *config_name(enum setting id);
/*
 * Returns -EINVAL. *RET_MESSAGE, the caller's to free, is the place the user has to look at
 * ("--node", or "FILE:7: node" for a value from the file) followed by FORMAT's text.
 */
int config_refuse(const struct config *config, enum setting id, char **ret_message,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The kind of value it takes, for messages, e.g. "a number". */
const char *config_wants(enum setting id);
/* NULL if there is no such setting. */
const char *config_wants_named(const char *name);

/*
 * Reads a LIST of numbers and ranges (`1,4-7`), at most LIMIT of them. *RET_NUMBERS is the caller's
 * to free; unset gives an empty list. Returns -EINVAL with a message on stderr.
 */
int config_numbers(const struct config *config, enum setting id, size_t limit,
	uint32_t **ret_numbers, size_t *ret_count);

/* Prints COMMAND's options for --help. */
void config_print_options(FILE *out, enum config_command command);

/* The table itself, for generators: the manual page, shell completion. */
struct setting_row {
	const char *name; /* without its dashes */
	const char *argument; /* name of the value in --help; NULL = none */
	const char *fallback; /* default as text; NULL = unset */
	const char *help; /* NULL: hidden */
	enum setting_type type;
	unsigned int commands; /* enum config_command */
	char letter; /* 0 = none */
};
const struct setting_row *config_row(enum setting id);
/* Whether it is a switch for tests: command line only, in no list of options. */
bool config_is_hidden(enum setting id);
/* Whether it may be in the settings file; false if it only makes sense for a single run. */
bool config_in_file(enum setting id);
/* Writes its name in the environment, FATHOM_…. */
void config_environment_name(enum setting id, char *text, size_t size);
