/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings file: one YAML mapping from a setting's name to a scalar, or for lists to a sequence
 * of scalars. Everything else is refused with its line, so that a misspelt key is never silently
 * without effect. A bad file changes nothing: values go into a copy first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "agent/config.h"
#include "base/cleanup.h"

enum { MAX_KEYS = 4096, MAX_FILE_BYTES = 1 << 20 };

struct reader {
	yaml_parser_t parser;
	struct config *config;
	const char *path;
	char *message;
	FILE *file;
	size_t bytes; /* read so far */
};

static int complain(struct reader *r, const yaml_mark_t *mark, const char *what, const char *key)
{
	free(r->message);
	if (asprintf(&r->message, "%s:%zu: %s%s%s", r->path, mark->line + 1, what, *key ? " " : "",
		    key) < 0)
		r->message = NULL;
	return -EINVAL;
}

static int next(struct reader *r, yaml_event_t *event)
{
	if (yaml_parser_parse(&r->parser, event))
		return 0;
	return complain(r, &r->parser.problem_mark,
		"not YAML:", r->parser.problem ? r->parser.problem : "unreadable");
}

static int set_value(struct reader *r, const char *key, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	int err = config_set_named(r->config, key, text, (unsigned int)event->start_mark.line + 1);

	if (err == -ENOENT)
		return complain(r, &event->start_mark, "no such setting:", key);
	if (err == -EEXIST)
		return complain(r, &event->start_mark, "given twice:", key);
	if (err == -EINVAL)
		return complain(r, &event->start_mark, "not a valid value for", key);
	return err;
}

/* The items of a list, up to its end. */
static int read_sequence(struct reader *r, const char *key)
{
	for (int items = 0; items < MAX_KEYS; items++) {
		yaml_event_t event;
		int err = next(r, &event);
		bool end;

		if (err)
			return err;
		end = event.type == YAML_SEQUENCE_END_EVENT;
		if (!end && event.type != YAML_SCALAR_EVENT)
			err = complain(r, &event.start_mark, "only plain values may be in", key);
		else if (!end)
			err = set_value(r, key, &event);
		yaml_event_delete(&event);
		if (err || end)
			return err;
	}
	return complain(r, &r->parser.mark, "too many values in", key);
}

static int read_value(struct reader *r, const char *key)
{
	yaml_event_t event;
	int err = next(r, &event);

	if (err)
		return err;
	if (event.type == YAML_SCALAR_EVENT)
		err = set_value(r, key, &event);
	else if (event.type == YAML_SEQUENCE_START_EVENT)
		err = read_sequence(r, key);
	else
		err = complain(r, &event.start_mark, "expected a value for", key);
	yaml_event_delete(&event);
	return err;
}

/* The keys of the top mapping, up to its end. */
static int read_mapping(struct reader *r)
{
	for (int keys = 0; keys < MAX_KEYS; keys++) {
		autofree char *key = NULL;
		yaml_event_t event;
		int err = next(r, &event);
		bool end;

		if (err)
			return err;
		end = event.type == YAML_MAPPING_END_EVENT;
		if (!end && event.type == YAML_SCALAR_EVENT)
			key = strdup((const char *)event.data.scalar.value);
		else if (!end)
			err = complain(r, &event.start_mark, "expected a setting's name", "");
		yaml_event_delete(&event);
		if (err || end)
			return err;
		err = key ? read_value(r, key) : -ENOMEM;
		if (err)
			return err;
	}
	return complain(r, &r->parser.mark, "too many settings", "");
}

static int read_document(struct reader *r)
{
	for (;;) {
		yaml_event_t event;
		int err = next(r, &event);
		yaml_event_type_t type;
		bool empty;

		if (err)
			return err;
		type = event.type;
		empty = type == YAML_SCALAR_EVENT && !event.data.scalar.length;
		if (type == YAML_SEQUENCE_START_EVENT || type == YAML_ALIAS_EVENT ||
			(type == YAML_SCALAR_EVENT && !empty))
			err = complain(r, &event.start_mark, "expected `setting: value` lines", "");
		yaml_event_delete(&event);
		if (err || type == YAML_STREAM_END_EVENT)
			return err;
		if (type == YAML_MAPPING_START_EVENT)
			err = read_mapping(r);
		if (err)
			return err;
	}
}

/* 0 tells the parser that its input failed. */
static int read_bytes(void *context, unsigned char *bytes, size_t size, size_t *ret_size)
{
	struct reader *r = context;

	*ret_size = fread(bytes, 1, size, r->file);
	r->bytes += *ret_size;
	return r->bytes <= MAX_FILE_BYTES && !ferror(r->file);
}

static int read_file(struct config *config, FILE *file, const char *path, char **ret_message)
{
	struct reader r = { .config = config, .path = path, .file = file };
	int err;

	if (!yaml_parser_initialize(&r.parser))
		return -ENOMEM;
	yaml_parser_set_input(&r.parser, read_bytes, &r);
	err = read_document(&r);
	yaml_parser_delete(&r.parser);
	*ret_message = r.message;
	return err;
}

int config_load(struct config *config, const char *path, char **ret_message)
{
	autofclose FILE *file = fopen(path, "re");
	struct config copy;
	int err;

	*ret_message = NULL;
	if (!file) {
		err = -errno;
		if (asprintf(ret_message, "%s: %s", path, strerror(errno)) < 0)
			*ret_message = NULL;
		return err;
	}
	err = config_copy(config, &copy);
	if (err)
		return err;
	err = read_file(&copy, file, path, ret_message);
	if (err) {
		config_deinit(&copy);
		return err;
	}
	config_deinit(config);
	*config = copy;
	return 0;
}
