/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "agent/settings/config_internal.h"
#include "agent/settings/config_lists.h"
#include "agent/settings/setting_text.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/items.h"
#include "symbolizer/debuginfod/debuginfod_fetch.h"

enum { TEXT_LIMIT = 64 * 1024 };

static const struct setting_row rows[SETTING_COUNT] = {
#define SETTING(id, type_, name_, letter_, commands_, argument_, fallback_, help_) \
	[SETTING_##id] = { .name = (name_),                                        \
		.argument = (argument_),                                           \
		.fallback = (fallback_),                                           \
		.help = (help_),                                                   \
		.type = SETTING_TYPE_##type_,                                      \
		.commands = (commands_),                                           \
		.letter = (letter_) },
#include "agent/settings/settings.def"
#undef SETTING
};

const char *config_wants(enum setting id)
{
	if (id == SETTING_debuginfod_urls)
		return "http:// and https:// URLs";
	switch (rows[id].type) {
	case SETTING_TYPE_FLAG:
		return "true or false";
	case SETTING_TYPE_NUMBER:
		return "a number";
	case SETTING_TYPE_DURATION:
		return "a time: 10 (seconds), 500ms, 2m, 1h";
	case SETTING_TYPE_BYTES:
		return "a size: 4096, 64M, 2G";
	case SETTING_TYPE_LIST:
		return "a shorter list, no item of which ends in a backslash";
	case SETTING_TYPE_TEXT:
	case SETTING_TYPE_REPEATED:
		break;
	}
	return "a shorter value";
}

const char *config_wants_named(const char *name)
{
	for (int id = 0; id < SETTING_COUNT; id++) {
		if (!strcmp(rows[id].name, name))
			return config_wants((enum setting)id);
	}
	return NULL;
}

const char *config_shown(const char *text)
{
	return text && strlen(text) <= TEXT_LIMIT ? text : "";
}

/*
 * A list or another value that may be repeated is extended if its source is the same; any other
 * value is replaced.
 */
static char *joined(const struct setting_value *value, enum setting_type type, const char *text,
	enum config_source source)
{
	bool repeats = type == SETTING_TYPE_LIST || type == SETTING_TYPE_REPEATED;
	char *both = NULL;

	if (!repeats || value->source != source || !value->text)
		return strdup(text);
	if (asprintf(&both, "%s%c%s", value->text, type == SETTING_TYPE_LIST ? ',' : '\n', text) <
		0)
		return NULL;
	return both;
}

int config_set(struct config *config, enum setting id, const char *text, enum config_source source)
{
	struct setting_value *value = &config->values[id];
	uint64_t number = 0;
	char *copy;

	if (!setting_text_read(rows[id].type, text, &number) || strlen(text) > TEXT_LIMIT ||
		(value->text && strlen(value->text) > TEXT_LIMIT) ||
		(id == SETTING_debuginfod_urls && !debuginfod_urls_are_valid(text)))
		return -EINVAL;
	if (value->source > source)
		return 0;
	copy = joined(value, rows[id].type, text, source);
	if (!copy)
		return -ENOMEM;
	free(value->text);
	*value = (struct setting_value){ .text = copy, .number = number, .source = source };
	return 0;
}

void config_environment_name(enum setting id, char *text, size_t size)
{
	size_t used = (size_t)snprintf(text, size, "FATHOM_%s", rows[id].name);

	for (size_t i = 0; i < used && i + 1 < size; i++)
		text[i] = text[i] == '-' ? '_' : (char)toupper((unsigned char)text[i]);
}

/*
 * The variable shared with gdb, elfutils and others: URL schemes that only they support are not an
 * error.
 */
static const char *urls_of_others(void)
{
	const char *text = getenv("DEBUGINFOD_URLS");

	if (!text || debuginfod_urls_are_valid(text))
		return text;
	fputs("fathom: DEBUGINFOD_URLS has URLs other than http:// and https://, ignoring it\n",
		stderr);
	return NULL;
}

static int set_fallbacks(struct config *config)
{
	char name[80];
	int err;

	for (int id = 0; id < SETTING_COUNT; id++) {
		const char *text;

		if (!(rows[id].commands & config->command))
			continue;
		err = rows[id].fallback ? config_set(config, id, rows[id].fallback, CONFIG_DEFAULT)
					: 0;
		if (err)
			return err;
		config_environment_name(id, name, sizeof(name));
		text = config_is_hidden((enum setting)id) ? NULL : getenv(name);
		if (!text && id == SETTING_debuginfod_urls)
			text = urls_of_others();
		if (!text || id == SETTING_help)
			continue;
		err = config_set(config, id, text, CONFIG_ENVIRONMENT);
		if (err) {
			fprintf(stderr, "fathom: %s=%s: %s must be %s\n", name, config_shown(text),
				config_name(id), config_wants(id));
			return err;
		}
	}
	return 0;
}

int config_parse(struct config *config, enum config_command command, int argc, char **argv)
{
	int err;

	*config = (struct config){ .command = command };
	err = set_fallbacks(config);
	if (!err)
		err = config_options_read(config, argc, argv);
	if (err)
		config_deinit(config);
	return err;
}

void config_deinit(struct config *config)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		free(config->values[id].text);
	config_lists_destroy(config->lists);
	free(config->file);
	*config = (struct config){ 0 };
}

bool config_flag(const struct config *config, enum setting id)
{
	return config->values[id].number != 0;
}

uint64_t config_number(const struct config *config, enum setting id)
{
	return config->values[id].number;
}

const char *config_text(const struct config *config, enum setting id)
{
	return config->values[id].text;
}

bool config_given(const struct config *config, enum setting id)
{
	return config->values[id].source > CONFIG_DEFAULT;
}

const char *config_name(enum setting id)
{
	static const char *const names[SETTING_COUNT] = {
#define SETTING(id, type, name, letter, commands, argument, fallback, help) \
	[SETTING_##id] = "--" name,
#include "agent/settings/settings.def"
#undef SETTING
	};

	return names[id];
}

/* Names the setting as the user wrote it: in the file, or as an option. */
static int config_name_place(const struct config *config, enum setting id, char **ret_place)
{
	const struct setting_value *value = &config->values[id];
	unsigned int line = value->source == CONFIG_FILE ? value->line : config->line;
	const char *name = rows[id].name;
	int length;

	if (config->line)
		length = asprintf(ret_place, "%s:%u: remote-stores: %s", config->file, line,
			name + strlen(CONFIG_STORE_PREFIX));
	else if (line)
		length = asprintf(ret_place, "%s:%u: %s", config->file, line, name);
	else
		length = asprintf(ret_place, "--%s", name);
	return length < 0 ? -ENOMEM : 0;
}

int config_refuse(
	const struct config *config, enum setting id, char **ret_message, const char *format, ...)
{
	autofree char *place = NULL, *why = NULL;
	va_list arguments;
	int length;

	*ret_message = NULL;
	if (config_name_place(config, id, &place))
		return -EINVAL;
	va_start(arguments, format);
	length = vasprintf(&why, format, arguments);
	va_end(arguments);
	if (length < 0)
		why = NULL;
	if (!why || asprintf(ret_message, "%s%s", place, why) < 0)
		*ret_message = NULL;
	return -EINVAL;
}

static int complain_numbers(const struct config *config, enum setting id, size_t limit)
{
	const char *name = config_name(id), *text = config->values[id].text;

	if (limit == 1)
		fprintf(stderr, "fathom: %s %s: must be one number\n", name, text);
	else
		fprintf(stderr, "fathom: %s %s: must be numbers like 1,4-7, at most %zu\n", name,
			text, limit);
	return -EINVAL;
}

int config_numbers(const struct config *config, enum setting id, size_t limit,
	uint32_t **ret_numbers, size_t *ret_count)
{
	autofree char *text = NULL;
	autofree uint32_t *numbers = NULL;
	size_t count = 0, capacity = 0;
	char *next, *item;

	text = strdup(config->values[id].text ? config->values[id].text : "");
	if (!text)
		return -ENOMEM;
	/* `-p "$(pidof x)"` without an x must not mean all processes. */
	if (!*text && config->values[id].source == CONFIG_COMMAND_LINE)
		return complain_numbers(config, id, limit);
	next = *text ? text : NULL;
	while ((item = strsep(&next, ",")) != NULL) {
		uint32_t first, last;

		if (!setting_text_span(item, &first, &last) || last - first >= limit - count) {
			return complain_numbers(config, id, limit);
		}
		for (uint32_t n = first; n <= last; n++) {
			if (array_reserve(numbers, capacity, count + 1, limit))
				return -ENOMEM;
			numbers[count++] = n;
		}
	}
	*ret_numbers = take(numbers);
	*ret_count = count;
	return 0;
}

const struct setting_row *config_row(enum setting id)
{
	return &rows[id];
}

bool config_is_hidden(enum setting id)
{
	return !rows[id].help;
}

bool config_in_file(enum setting id)
{
	return !config_is_hidden(id) && id != SETTING_help && id != SETTING_config_path &&
	       id != SETTING_announce && id != SETTING_quiet && id != SETTING_verbose;
}

/* -1 if the command has no such setting, or it cannot be in a file. */
static int setting_named(const struct config *config, const char *name)
{
	for (int id = 0; id < SETTING_COUNT; id++) {
		if ((rows[id].commands & config->command) && !strcmp(rows[id].name, name))
			return config_in_file(id) ? id : -1;
	}
	return -1;
}

enum config_kind config_kind_named(const struct config *config, const char *name)
{
	int id = setting_named(config, name);

	if (id < 0)
		return CONFIG_UNKNOWN;
	return rows[id].type == SETTING_TYPE_LIST ? CONFIG_LIST : CONFIG_VALUE;
}

int config_set_named(struct config *config, const char *name, const char *text, unsigned int line)
{
	int id = setting_named(config, name), err;

	if (id < 0)
		return -ENOENT;
	err = config_set(config, id, text, CONFIG_FILE);
	if (!err && config->values[id].source == CONFIG_FILE)
		config->values[id].line = line;
	return err;
}

int config_add_named(struct config *config, const char *name, const char *item, unsigned int line)
{
	/* External labels have a second separator, as in Parca's agent. */
	bool labels = setting_named(config, name) == SETTING_external_labels;
	autofree char *text = items_escape(item, labels ? ",;" : ",");
	size_t length = strlen(item);

	/* The backslash would escape the comma that follows. */
	if (length && item[length - 1] == '\\')
		return -EINVAL;
	return text ? config_set_named(config, name, text, line) : -ENOMEM;
}

static int copy_values(const struct config *config, struct config *copy)
{
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_value *from = &config->values[id];
		char *text = from->text ? strdup(from->text) : NULL;

		if (from->text && !text)
			return -ENOMEM;
		copy->values[id] = *from;
		copy->values[id].text = text;
	}
	return 0;
}

int config_copy(const struct config *config, struct config *ret_copy)
{
	struct config copy = { .command = config->command,
		.line = config->line,
		.rest = config->rest,
		.rest_count = config->rest_count };
	int err = copy_values(config, &copy);

	if (!err && config->file) {
		copy.file = strdup(config->file);
		err = copy.file ? 0 : -ENOMEM;
	}
	if (!err && config->lists)
		err = config_lists_copy(config->lists, &copy.lists);
	if (err) {
		config_deinit(&copy);
		return err;
	}
	*ret_copy = copy;
	return 0;
}
