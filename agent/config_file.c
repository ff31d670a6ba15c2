/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings file: one YAML mapping from a setting's name to a scalar, or for lists to a sequence
 * of scalars; `remote-stores` and `relabel_configs` are sequences of such mappings, with names of
 * their own. Everything else is refused with its line, so that a misspelt key is never silently
 * without effect. A bad file changes nothing: values go into a copy first.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "agent/config_lists.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { MAX_KEYS = 4096, MAX_FILE_BYTES = 1 << 20, MAX_WAIT_SECONDS = 5 };

/* Of what mapping is being read. */
typedef int set_fn(struct config *config, const char *name, const char *text, unsigned int line);

struct reader {
	yaml_parser_t parser;
	struct config *config;
	set_fn *set;
	const char *path;
	char *message;
	int fd;
	int input_error; /* of the last reading */
	uint64_t deadline_ns; /* of reading it all */
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

static int complain_value(struct reader *r, const yaml_mark_t *mark, const char *key)
{
	const char *wants = config_wants_named(key);
	autofree char *text = NULL;

	if (!wants || asprintf(&text, "%s: it wants %s", key, wants) < 0)
		text = NULL;
	return complain(r, mark, "not a valid value for", text ? text : key);
}

static int set_value(struct reader *r, const char *key, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	int err = r->set(r->config, key, text, (unsigned int)event->start_mark.line + 1);

	if (err == -ENOENT)
		return complain(r, &event->start_mark, "no such setting:", key);
	if (err == -EEXIST)
		return complain(r, &event->start_mark, "given twice:", key);
	if (err == -EINVAL)
		return complain_value(r, &event->start_mark, key);
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

static int read_mapping(struct reader *r);

/* The rule that was read last, alone. */
static int check_rule(struct reader *r, const yaml_mark_t *mark)
{
	const struct config_lists *lists = r->config->lists;
	struct relabel *relabel = NULL;
	autofree char *message = NULL;
	const char *colon;
	int err;

	if (r->set != config_rule_set)
		return 0;
	err = relabel_create(&lists->rules[lists->rule_count - 1], 1, &relabel, &message);
	relabel_destroy(relabel);
	if (err != -EINVAL || !message)
		return err;
	/* The line tells better which rule it is than a number. */
	colon = strstr(message, ": ");
	return complain(r, mark, "relabel_configs:", colon ? colon + 2 : message);
}

/* The mappings of a list, up to its end; what an entry begins with is in EVENT. */
static int read_entry(struct reader *r, const char *key, const yaml_event_t *event)
{
	int err;

	if (event->type != YAML_MAPPING_START_EVENT)
		return complain(r, &event->start_mark, "expected `name: value` lines in", key);
	if (r->set == config_rule_set)
		err = config_add_rule(r->config);
	else
		err = config_add_store(r->config, (unsigned int)event->start_mark.line + 1);
	if (err == -E2BIG)
		return complain(r, &event->start_mark, "too many entries in", key);
	if (!err)
		err = read_mapping(r);
	return err ? err : check_rule(r, &event->start_mark);
}

static int read_entries(struct reader *r, const char *key, set_fn *set)
{
	int err = 0;
	bool end = false;

	r->set = set;
	while (!err && !end) {
		yaml_event_t event;

		err = next(r, &event);
		if (err)
			break;
		end = event.type == YAML_SEQUENCE_END_EVENT;
		if (!end)
			err = read_entry(r, key, &event);
		yaml_event_delete(&event);
	}
	r->set = config_set_named;
	return err;
}

/* How the entries of KEY's list are set; NULL: it is no such list. */
static set_fn *entry_setter(const struct reader *r, const char *key)
{
	if (r->set != config_set_named)
		return NULL;
	if (!strcmp(key, "remote-stores"))
		return config_store_set;
	return strcmp(key, "relabel_configs") ? NULL : config_rule_set;
}

static int read_value(struct reader *r, const char *key)
{
	set_fn *setter = entry_setter(r, key);
	yaml_event_t event;
	int err = next(r, &event);

	if (err)
		return err;
	if (setter && event.type == YAML_SEQUENCE_START_EVENT)
		err = read_entries(r, key, setter);
	else if (setter)
		err = complain(r, &event.start_mark, "expected a list for", key);
	else if (event.type == YAML_SCALAR_EVENT)
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

/* Up to its deadline: a FIFO may have no writer, a terminal nobody who types. */
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

/* 0 tells the parser that its input failed. */
static int read_bytes(void *context, unsigned char *bytes, size_t size, size_t *ret_size)
{
	struct reader *r = context;
	ssize_t got = read_some(r, bytes, size);

	*ret_size = got < 0 ? 0 : (size_t)got;
	r->bytes += *ret_size;
	r->input_error = got < 0 ? (int)got : r->bytes > MAX_FILE_BYTES ? -E2BIG : 0;
	return !r->input_error;
}

/* What the parser only knows as an input error. */
static int complain_input(struct reader *r)
{
	char why[80];

	if (r->input_error == -E2BIG)
		snprintf(why, sizeof(why), "is larger than 1 MiB");
	else if (r->input_error == -ETIMEDOUT)
		snprintf(why, sizeof(why), "has no end: waited for %d s", MAX_WAIT_SECONDS);
	else
		snprintf(why, sizeof(why), "%s", strerror(-r->input_error));
	free(r->message);
	if (asprintf(&r->message, "%s: %s", r->path, why) < 0)
		r->message = NULL;
	return -EINVAL;
}

static int read_file(struct config *config, int fd, const char *path, char **ret_message)
{
	struct reader r = {
		.config = config,
		.set = config_set_named,
		.path = path,
		.fd = fd,
		.deadline_ns = clock_monotonic_ns() + MAX_WAIT_SECONDS * UINT64_C(1000000000),
	};
	int err;

	if (!yaml_parser_initialize(&r.parser))
		return -ENOMEM;
	yaml_parser_set_input(&r.parser, read_bytes, &r);
	err = read_document(&r);
	if (err && r.input_error)
		err = complain_input(&r);
	yaml_parser_delete(&r.parser);
	*ret_message = r.message;
	return err;
}

int config_load(struct config *config, const char *path, char **ret_message)
{
	/* What waits is the reading, for a while. */
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
	err = copy.file ? read_file(&copy, fd, path, ret_message) : -ENOMEM;
	if (err) {
		config_deinit(&copy);
		return err;
	}
	config_deinit(config);
	*config = copy;
	return 0;
}
