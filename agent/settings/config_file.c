/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings file: one YAML mapping from setting names to scalars, or for lists to sequences of
 * scalars; `remote-stores`, `relabel_configs` and `probes` are sequences of such mappings, with
 * their own names. Everything else is refused with its line, also duplicate names and nulls, so
 * that nothing in the file is silently ignored. A bad file changes nothing: values go into a copy
 * first.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "agent/settings/config_lists.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { MAX_KEYS = 4096, MAX_FILE_BYTES = 1 << 20, MAX_WAIT_SECONDS = 5 };

/* The names that a mapping may have, and the functions that set their values. */
struct section {
	enum config_kind (*kind)(const struct config *config, const char *name);
	int (*set)(struct config *config, const char *name, const char *text, unsigned int line);
	int (*add)(struct config *config, const char *name, const char *item, unsigned int line);
};

static const struct section file_section = { config_kind_named, config_set_named,
	config_add_named };
static const struct section store_section = { config_store_kind, config_store_set,
	config_store_add };
static const struct section rule_section = { config_rule_kind, config_rule_set, config_rule_add };
static const struct section probe_section = { config_probe_kind, config_probe_set,
	config_probe_add };
static const struct section label_section = { config_label_kind, config_label_set,
	config_probe_add };

/* Names seen in one mapping so far. */
struct keys {
	char **names;
	size_t count, capacity;
};

struct reader {
	yaml_parser_t parser;
	struct config *config;
	const struct section *section; /* section of the current mapping */
	const char *path;
	char *message;
	int fd;
	int input_error; /* of the last read */
	uint64_t deadline_ns; /* for reading the whole file */
	size_t bytes; /* read so far */
};

static int config_file_complain(
	struct reader *r, const yaml_mark_t *mark, const char *what, const char *key)
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
	return config_file_complain(r, &r->parser.problem_mark,
		"not YAML:", r->parser.problem ? r->parser.problem : "unreadable");
}

static bool is_of_a_probe(const struct section *section)
{
	return section == &probe_section || section == &label_section;
}

static int complain_value(struct reader *r, const yaml_mark_t *mark, const char *key)
{
	const char *wants = config_wants_named(key);
	autofree char *text = NULL;
	int length = 0;

	if (is_of_a_probe(r->section))
		length = asprintf(&text, "%s: %s", r->section == &label_section ? "labels" : key,
			r->config->lists->probes.problem);
	else if (wants)
		length = asprintf(&text, "%s: must be %s", key, wants);
	if (length < 0)
		text = NULL;
	return config_file_complain(r, mark, "not a valid value for", text ? text : key);
}

/* `~`, null and the like: the author may mean the default, or nothing. */
static bool is_null(const yaml_event_t *event)
{
	static const char *const nulls[] = { "~", "null", "Null", "NULL" };

	if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(nulls); i++) {
		if (!strcmp((const char *)event->data.scalar.value, nulls[i]))
			return true;
	}
	return false;
}

/* Sets the value of KEY, or adds an item to its list. */
static int set_value(struct reader *r, const char *key, const yaml_event_t *event, bool is_item)
{
	const char *text = (const char *)event->data.scalar.value;
	unsigned int line = (unsigned int)event->start_mark.line + 1;
	int err;

	if (is_null(event))
		return config_file_complain(r, &event->start_mark,
			"null is not a value (remove the line, or write '' for an empty value):",
			key);
	err = (is_item ? r->section->add : r->section->set)(r->config, key, text, line);
	if (err == -EINVAL)
		return complain_value(r, &event->start_mark, key);
	return err;
}

/* Reads the items of a list up to its end. An empty list replaces the default. */
static int read_sequence(struct reader *r, const char *key, const yaml_event_t *start)
{
	for (int items = 0; items < MAX_KEYS; items++) {
		yaml_event_t event;
		int err = next(r, &event);
		bool end;

		if (err)
			return err;
		end = event.type == YAML_SEQUENCE_END_EVENT;
		if (!end && event.type != YAML_SCALAR_EVENT)
			err = config_file_complain(
				r, &event.start_mark, "only plain values may be in", key);
		else if (!end)
			err = set_value(r, key, &event, true);
		else if (!items && r->section != &rule_section && !is_of_a_probe(r->section))
			err = r->section->set(
				r->config, key, "", (unsigned int)start->start_mark.line + 1);
		yaml_event_delete(&event);
		if (err || end)
			return err;
	}
	return config_file_complain(r, &r->parser.mark, "too many values in", key);
}

static void keys_deinit(struct keys *keys)
{
	for (size_t i = 0; i < keys->count; i++)
		free(keys->names[i]);
	free(keys->names);
}

/* -EEXIST: NAME was given before. */
static int keys_add(struct keys *keys, const char *name)
{
	for (size_t i = 0; i < keys->count; i++) {
		if (!strcmp(keys->names[i], name))
			return -EEXIST;
	}
	if (array_reserve(keys->names, keys->capacity, keys->count + 1, MAX_KEYS))
		return -ENOMEM;
	keys->names[keys->count] = strdup(name);
	return keys->names[keys->count++] ? 0 : -ENOMEM;
}

static int read_mapping(struct reader *r, struct keys *keys);

/* Validates the last rule by itself. */
static int check_rule(struct reader *r, const yaml_mark_t *mark)
{
	const struct config_lists *lists = r->config->lists;
	struct relabel *relabel = NULL;
	autofree char *message = NULL;
	const char *colon;
	int err;

	if (r->section != &rule_section)
		return 0;
	err = relabel_create(&lists->rules[lists->rule_count - 1], 1, &relabel, &message);
	relabel_destroy(relabel);
	if (err != -EINVAL || !message)
		return err;
	/* The line identifies the rule better than its number. */
	colon = strstr(message, ": ");
	return config_file_complain(r, mark, "relabel_configs:", colon ? colon + 2 : message);
}

static int check_probe(struct reader *r, const yaml_mark_t *mark)
{
	struct config_probes *probes = &r->config->lists->probes;
	int err = config_probes_check(probes);

	return err == -EINVAL ? config_file_complain(r, mark, "probes:", probes->problem) : err;
}

static int config_file_add_entry(struct reader *r, unsigned int line)
{
	if (r->section == &rule_section)
		return config_add_rule(r->config);
	return r->section == &probe_section ? config_add_probe(r->config, line)
					    : config_add_store(r->config, line);
}

/* Reads one entry of a list of mappings; EVENT starts it. */
static int config_file_read_entry(struct reader *r, const char *key, const yaml_event_t *event)
{
	autocall(keys_deinit) struct keys keys = { 0 };
	int err;

	if (event->type != YAML_MAPPING_START_EVENT)
		return config_file_complain(
			r, &event->start_mark, "expected `name: value` lines in", key);
	err = config_file_add_entry(r, (unsigned int)event->start_mark.line + 1);
	if (err == -E2BIG)
		return config_file_complain(r, &event->start_mark, "too many entries in", key);
	if (!err)
		err = read_mapping(r, &keys);
	if (err)
		return err;
	return r->section == &probe_section ? check_probe(r, &event->start_mark)
					    : check_rule(r, &event->start_mark);
}

static int config_file_read_entries(
	struct reader *r, const char *key, const struct section *section)
{
	int err = 0;
	bool end = false;

	r->section = section;
	while (!err && !end) {
		yaml_event_t event;

		err = next(r, &event);
		if (err)
			break;
		end = event.type == YAML_SEQUENCE_END_EVENT;
		if (!end)
			err = config_file_read_entry(r, key, &event);
		yaml_event_delete(&event);
	}
	r->section = &file_section;
	return err;
}

/* The section of the entries of KEY's list; NULL if it has no mappings. */
static const struct section *entry_section(const struct reader *r, const char *key)
{
	if (r->section != &file_section)
		return NULL;
	if (!strcmp(key, "remote-stores"))
		return &store_section;
	if (!strcmp(key, "probes"))
		return &probe_section;
	return strcmp(key, "relabel_configs") ? NULL : &rule_section;
}

/* Reads the mapping that is the value of a probe's `labels`. */
static int config_file_read_labels(struct reader *r)
{
	autocall(keys_deinit) struct keys keys = { 0 };
	int err;

	r->section = &label_section;
	err = read_mapping(r, &keys);
	r->section = &probe_section;
	return err;
}

static int config_file_read_value(struct reader *r, const char *key)
{
	const struct section *entries = entry_section(r, key);
	enum config_kind kind = entries ? CONFIG_LIST : r->section->kind(r->config, key);
	yaml_event_t event;
	int err = next(r, &event);

	if (err)
		return err;
	if (entries && event.type == YAML_SEQUENCE_START_EVENT)
		err = config_file_read_entries(r, key, entries);
	else if (entries)
		err = config_file_complain(r, &event.start_mark, "expected a list for", key);
	else if (event.type == YAML_SCALAR_EVENT)
		err = set_value(r, key, &event, false);
	else if (event.type == YAML_MAPPING_START_EVENT && kind == CONFIG_MAPPING)
		err = config_file_read_labels(r);
	else if (event.type != YAML_SEQUENCE_START_EVENT)
		err = config_file_complain(r, &event.start_mark, "expected a value for", key);
	else if (kind == CONFIG_LIST || kind == CONFIG_MAPPING)
		err = read_sequence(r, key, &event);
	else
		err = config_file_complain(
			r, &event.start_mark, "expected one value, not a list, for", key);
	yaml_event_delete(&event);
	return err;
}

/* Checks the name before its value, which may be anything. */
static int check_key(struct reader *r, struct keys *keys, const yaml_event_t *event)
{
	const char *key = (const char *)event->data.scalar.value;
	int err;

	if (!entry_section(r, key) && r->section->kind(r->config, key) == CONFIG_UNKNOWN)
		return config_file_complain(r, &event->start_mark, "no such setting:", key);
	err = keys_add(keys, key);
	return err == -EEXIST ? config_file_complain(r, &event->start_mark, "given twice:", key)
			      : err;
}

/* Reads the names and values of a mapping up to its end. */
static int read_mapping(struct reader *r, struct keys *keys)
{
	for (int count = 0; count < MAX_KEYS; count++) {
		autofree char *key = NULL;
		yaml_event_t event;
		int err = next(r, &event);
		bool end;

		if (err)
			return err;
		end = event.type == YAML_MAPPING_END_EVENT;
		if (!end && event.type == YAML_SCALAR_EVENT)
			err = check_key(r, keys, &event);
		else if (!end)
			err = config_file_complain(
				r, &event.start_mark, "expected a setting's name", "");
		if (!end && !err)
			key = strdup((const char *)event.data.scalar.value);
		yaml_event_delete(&event);
		if (err || end)
			return err;
		err = key ? config_file_read_value(r, key) : -ENOMEM;
		if (err)
			return err;
	}
	return config_file_complain(r, &r->parser.mark, "too many settings", "");
}

/* A file may have several documents, which are merged. */
static int read_documents(struct reader *r)
{
	autocall(keys_deinit) struct keys keys = { 0 };

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
			err = config_file_complain(
				r, &event.start_mark, "expected `setting: value` lines", "");
		yaml_event_delete(&event);
		if (err || type == YAML_STREAM_END_EVENT)
			return err;
		if (type == YAML_MAPPING_START_EVENT)
			err = read_mapping(r, &keys);
		if (err)
			return err;
	}
}

/* Waits until the deadline at most: a FIFO may have no writer, a terminal nobody who types. */
static int wait_for_bytes(const struct reader *r)
{
	struct pollfd waiting = { .fd = r->fd, .events = POLLIN };
	uint64_t now = clock_monotonic_ns();
	int ready = 0;

	if (now < r->deadline_ns)
		ready = poll(&waiting, 1, (int)((r->deadline_ns - now) / 1000000) + 1);
	if (ready < 0 && errno != EINTR)
		return -errno;
	return ready ? 0 : -ETIMEDOUT;
}

static ssize_t read_some(const struct reader *r, void *bytes, size_t size)
{
	ssize_t got = -1;
	int err = wait_for_bytes(r);

	while (!err && (got = read(r->fd, bytes, size)) < 0 && (errno == EAGAIN || errno == EINTR))
		err = wait_for_bytes(r);
	if (err)
		return err;
	return got < 0 ? -errno : got;
}

/* Returns 0 on failure, as the parser expects. */
static int config_file_read_bytes(
	void *context, unsigned char *bytes, size_t size, size_t *ret_size)
{
	struct reader *r = context;
	ssize_t got = read_some(r, bytes, size);

	*ret_size = got < 0 ? 0 : (size_t)got;
	r->bytes += *ret_size;
	r->input_error = got < 0 ? (int)got : r->bytes > MAX_FILE_BYTES ? -E2BIG : 0;
	return !r->input_error;
}

/* Replaces the parser's message about a failed read. */
static int complain_input(struct reader *r)
{
	char why[80];

	if (r->input_error == -E2BIG)
		snprintf(why, sizeof(why), "is larger than 1 MiB");
	else if (r->input_error == -ETIMEDOUT)
		snprintf(why, sizeof(why), "did not end within %d s", MAX_WAIT_SECONDS);
	else
		snprintf(why, sizeof(why), "%s", strerror(-r->input_error));
	free(r->message);
	if (asprintf(&r->message, "%s: %s", r->path, why) < 0)
		r->message = NULL;
	return -EINVAL;
}

static int config_file_read_file(
	struct config *config, int fd, const char *path, char **ret_message)
{
	struct reader r = {
		.config = config,
		.section = &file_section,
		.path = path,
		.fd = fd,
		.deadline_ns = clock_monotonic_ns() + MAX_WAIT_SECONDS * UINT64_C(1000000000),
	};
	int err;

	if (!yaml_parser_initialize(&r.parser))
		return -ENOMEM;
	yaml_parser_set_input(&r.parser, config_file_read_bytes, &r);
	err = read_documents(&r);
	if (err && r.input_error)
		err = complain_input(&r);
	yaml_parser_delete(&r.parser);
	*ret_message = r.message;
	return err;
}

int config_load(struct config *config, const char *path, char **ret_message)
{
	/* Open must not block: read_some() waits, up to a deadline. */
	autoclose int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct config copy;
	int err;

	*ret_message = NULL;
	if (fd < 0) {
		err = -errno;
		if (asprintf(ret_message, "%s: %s", path, strerror(errno)) < 0)
			*ret_message = NULL;
		return err;
	}
	err = config_copy(config, &copy);
	if (err)
		return err;
	free(copy.file);
	copy.file = strdup(path);
	err = copy.file ? config_file_read_file(&copy, fd, path, ret_message) : -ENOMEM;
	if (err) {
		config_deinit(&copy);
		return err;
	}
	config_deinit(config);
	*config = copy;
	return 0;
}
