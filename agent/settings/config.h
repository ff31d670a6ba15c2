/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The settings of one run: settings.def's defaults, then FATHOM_… from the environment, then the
 * command line. A value that makes no sense is refused with a message that names the setting.
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
	IN_ALL = IN_RECORD | IN_SYMBOLIZE | IN_CHECK | IN_AGENT | IN_UPLOAD | IN_TOP,
};

enum setting_type {
	SETTING_TYPE_FLAG,
	SETTING_TYPE_TEXT,
	SETTING_TYPE_NUMBER,
	SETTING_TYPE_DURATION,
	SETTING_TYPE_BYTES,
	SETTING_TYPE_LIST,
};

enum setting {
#define SETTING(id, type, name, letter, commands, argument, fallback, help) SETTING_##id,
#include "agent/settings/settings.def"
#undef SETTING
	SETTING_COUNT
};

/* Where a value came from; a later one replaces an earlier one. */
enum config_source {
	CONFIG_UNSET,
	CONFIG_DEFAULT,
	CONFIG_FILE,
	CONFIG_ENVIRONMENT,
	CONFIG_COMMAND_LINE,
};

struct setting_value {
	/* As given; NULL = unset. A LIST is joined by commas, to be read with base/items.h. */
	char *text;
	uint64_t number; /* FLAG 0 or 1, NUMBER, DURATION in ns, BYTES */
	enum config_source source;
	unsigned int line; /* in the file; 0 = it does not come from there */
};

struct config_lists;

/* What `remote-stores` leaves out of the names of its settings. */
#define CONFIG_STORE_PREFIX "remote-store-"

struct config {
	enum config_command command;
	struct setting_value values[SETTING_COUNT];
	struct config_lists *lists; /* agent/settings/config_lists.h; NULL = the file has none */
	char *file; /* that was read; NULL = none */
	unsigned int line; /* of the entry of `remote-stores` that this is; 0 = it is none */
	char **rest; /* arguments after the options (a command to run); borrowed from argv */
	int rest_count;
};

/* Defaults and environment, then ARGV (argv[0] is the command's name). Says what is wrong on
 * stderr and returns -EINVAL; -ENOMEM. */
int config_parse(struct config *config, enum config_command command, int argc, char **argv);
void config_deinit(struct config *config);
/*
 * Values from a YAML file: keys are the settings' names, lists are sequences (in whose items a
 * comma is a character like any other) or comma-separated; besides them `remote-stores` and
 * `relabel_configs`, lists of mappings (agent/settings/config_lists.h).
 * Weaker than the environment and the command line. *RET_MESSAGE says what is wrong, with the line
 * and the key, and is the caller's to free; nothing of a bad file is taken. PATH may be a pipe,
 * which has five seconds to deliver it all.
 */
int config_load(struct config *config, const char *path, char **ret_message);
/* What may stand behind a name in the file. */
enum config_kind { CONFIG_UNKNOWN, CONFIG_VALUE, CONFIG_LIST };
enum config_kind config_kind_named(const struct config *config, const char *name);
/* Of one setting by its name, for LINE of the file. -ENOENT: COMMAND has no such setting. */
int config_set_named(struct config *config, const char *name, const char *text, unsigned int line);
/* Adds one item to a LIST: separators in it belong to it. -EINVAL: it ends in a backslash. */
int config_add_named(struct config *config, const char *name, const char *item, unsigned int line);
int config_copy(const struct config *config, struct config *ret_copy);

bool config_flag(const struct config *config, enum setting id);
uint64_t config_number(const struct config *config, enum setting id);
const char *config_text(const struct config *config, enum setting id); /* NULL = unset */
/* Given by the user, not by default. */
bool config_given(const struct config *config, enum setting id);
/* The name as on the command line, for messages: "--duration". */
const char *config_name(enum setting id);
/*
 * -EINVAL. *RET_MESSAGE, the caller's to free, is FORMAT's text behind the place that the user has
 * to look at: "--node", or "FILE:7: node" for what the file says.
 */
int config_refuse(const struct config *config, enum setting id, char **ret_message,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
/* What a value of it looks like, for messages: "a number". */
const char *config_wants(enum setting id);
/* NULL: there is no such setting. */
const char *config_wants_named(const char *name);

/*
 * A LIST of numbers and ranges (`1,4-7`), at most LIMIT of them. *RET_NUMBERS is the caller's to
 * free; unset gives none. -EINVAL is said on stderr.
 */
int config_numbers(const struct config *config, enum setting id, size_t limit,
	uint32_t **ret_numbers, size_t *ret_count);

/* The option list of COMMAND for --help. */
void config_print_options(FILE *out, enum config_command command);

/* The table itself, for what is made from it: the manual page, completion. */
struct setting_row {
	const char *name; /* without its dashes */
	const char *argument; /* of the option, for --help; NULL = none */
	const char *fallback; /* default as text; NULL = unset */
	const char *help; /* NULL: hidden */
	enum setting_type type;
	unsigned int commands; /* enum config_command */
	char letter; /* 0 = none */
};
const struct setting_row *config_row(enum setting id);
/* A switch for tests: on the command line only, in no list of options. */
bool config_is_hidden(enum setting id);
/* Whether a settings file may have it: not what only makes sense for one run. */
bool config_in_file(enum setting id);
/* FATHOM_… */
void config_environment_name(enum setting id, char *text, size_t size);
