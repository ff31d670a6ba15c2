/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings/config_probes.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/latency/latency_report.h"
#include "agent/sampler/functions/patterns.h"
#include "agent/sampler/process/selection.h"
#include "agent/server/export/payload.h"
#include "agent/settings/setting_text.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/items.h"
#include "base/utf8.h"

enum {
	MAX_FUNCTION_PATTERNS = 1000, /* of a probe */
	MAX_PATTERN_BYTES = 16384,
};

/* Labels that the histograms have anyhow, or that Prometheus itself gives a meaning. */
static const char *const reserved_labels[] = { "address", "binary", "build_id", "cgroup", "comm",
	"container", "executable", "function", "goid", "le", "number", "pid", "probe", "quantile",
	"reason" };

/* ---- texts ---------------------------------------------------------------------------------- */

static void config_texts_deinit(struct config_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		free(texts->items[i]);
	free(texts->items);
	*texts = (struct config_texts){ 0 };
}

static int config_texts_add(struct config_texts *texts, const char *text)
{
	int err = array_reserve(
		texts->items, texts->capacity, texts->count + 1, MAX_FUNCTION_PATTERNS);

	if (err)
		return err;
	texts->items[texts->count] = strdup(text);
	return texts->items[texts->count] ? (texts->count++, 0) : -ENOMEM;
}

static int config_texts_copy(const struct config_texts *from, struct config_texts *to)
{
	int err = 0;

	for (size_t i = 0; !err && i < from->count; i++)
		err = config_texts_add(to, from->items[i]);
	return err;
}

static bool config_texts_are_same(const struct config_texts *a, const struct config_texts *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	}
	return true;
}

/* ---- probes --------------------------------------------------------------------------------- */

static void config_probe_deinit(struct config_probe *probe)
{
	free(probe->name);
	config_texts_deinit(&probe->processes);
	config_texts_deinit(&probe->functions);
	config_texts_deinit(&probe->unwanted);
	config_texts_deinit(&probe->label_names);
	config_texts_deinit(&probe->label_values);
}

void config_probes_deinit(struct config_probes *probes)
{
	for (size_t i = 0; i < probes->count; i++)
		config_probe_deinit(&probes->items[i]);
	free(probes->items);
	*probes = (struct config_probes){ 0 };
}

int config_probes_add(struct config_probes *probes, unsigned int line)
{
	int err = array_reserve(
		probes->items, probes->capacity, probes->count + 1, CONFIG_PROBES_MAX);

	if (!err)
		probes->items[probes->count++] = (struct config_probe){ .line = line };
	return err;
}

static int config_probe_copy(const struct config_probe *from, struct config_probe *to)
{
	int err = 0;

	to->exclude_vendor = from->exclude_vendor;
	to->kernel = from->kernel;
	to->by = from->by;
	if (from->name) {
		to->name = strdup(from->name);
		err = to->name ? 0 : -ENOMEM;
	}
	if (!err)
		err = config_texts_copy(&from->processes, &to->processes);
	if (!err)
		err = config_texts_copy(&from->functions, &to->functions);
	if (!err)
		err = config_texts_copy(&from->unwanted, &to->unwanted);
	if (!err)
		err = config_texts_copy(&from->label_names, &to->label_names);
	return err ? err : config_texts_copy(&from->label_values, &to->label_values);
}

int config_probes_copy(const struct config_probes *probes, struct config_probes *ret_probes)
{
	struct config_probes copy = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < probes->count; i++) {
		err = config_probes_add(&copy, probes->items[i].line);
		if (!err)
			err = config_probe_copy(&probes->items[i], &copy.items[i]);
	}
	if (err) {
		config_probes_deinit(&copy);
		return err;
	}
	*ret_probes = copy;
	return 0;
}

bool config_probe_is_same(const struct config_probe *a, const struct config_probe *b)
{
	return !strcmp(a->name, b->name) && a->exclude_vendor == b->exclude_vendor &&
	       a->kernel == b->kernel && a->by == b->by &&
	       config_texts_are_same(&a->processes, &b->processes) &&
	       config_texts_are_same(&a->functions, &b->functions) &&
	       config_texts_are_same(&a->unwanted, &b->unwanted) &&
	       config_texts_are_same(&a->label_names, &b->label_names) &&
	       config_texts_are_same(&a->label_values, &b->label_values);
}

/* ---- values --------------------------------------------------------------------------------- */

static int __attribute__((format(printf, 2, 3)))
config_probe_refuse(struct config_probes *probes, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(probes->problem, sizeof(probes->problem), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int config_probe_set_name(struct config_probes *probes, const char *text)
{
	struct config_probe *probe = &probes->items[probes->count - 1];
	size_t length = strlen(text);

	if (!length || length > CONFIG_PROBE_NAME_BYTES || !utf8_is_clean(text, length))
		return config_probe_refuse(probes,
			"must be a text of 1 to %d bytes without control characters",
			CONFIG_PROBE_NAME_BYTES);
	for (size_t i = 0; i + 1 < probes->count; i++) {
		if (!strcmp(probes->items[i].name, text))
			return config_probe_refuse(probes, "'%s' is the probe in line %u already",
				text, probes->items[i].line);
	}
	probe->name = strdup(text);
	return probe->name ? 0 : -ENOMEM;
}

static int config_probe_set_by(struct config_probes *probes, const char *text)
{
	struct config_probe *probe = &probes->items[probes->count - 1];

	if (latency_by_of_name(text, &probe->by))
		return config_probe_refuse(probes, "must be goid, pid or cgroup");
	return 0;
}

static int config_probe_set_flag(struct config_probes *probes, const char *text, bool *ret_flag)
{
	uint64_t number;

	if (!setting_text_read(SETTING_TYPE_FLAG, text, &number))
		return config_probe_refuse(probes, "must be true or false");
	*ret_flag = number;
	return 0;
}

static int config_probe_add_selector(struct config_probes *probes, const char *item)
{
	struct config_probe *probe = &probes->items[probes->count - 1];
	autofree char *escaped = items_escape(item, ",");
	struct selection *selection = NULL;
	bool second;
	int err = escaped ? selection_create(escaped, NULL, &selection, &second) : -ENOMEM;
	bool pods = selection_needs_pods(selection);

	selection_destroy(selection);
	if (pods)
		return config_probe_refuse(probes,
			"cannot choose by pod: use container_id, cgroup, pid, comm or executable");
	if (err == -EINVAL || (!err && !selection))
		return config_probe_refuse(probes,
			"must be KEY=GLOB, with a key of pid, comm, executable, container_id or "
			"cgroup");
	if (!err && probe->processes.count == SELECTION_MAX)
		return config_probe_refuse(probes, "has more than %d selectors", SELECTION_MAX);
	return err ? err : config_texts_add(&probe->processes, item);
}

/* The selectors of one text, separated by commas as on the command line. */
static int config_probe_add_selectors(struct config_probes *probes, const char *text)
{
	autofree char *copy = strdup(text);
	char *rest = copy, *item;
	int err = copy ? 0 : -ENOMEM;

	while (!err && *text && (item = items_next(&rest, ",")) != NULL)
		err = config_probe_add_selector(probes, item);
	return err;
}

static int config_probe_add_pattern(
	struct config_probes *probes, struct config_texts *texts, const char *item)
{
	struct function_patterns parsed = { 0 };
	const char *problem = "is too long";
	int err = function_patterns_add(&parsed, item, &problem);

	function_patterns_deinit(&parsed);
	if (err == -EINVAL || err == -E2BIG)
		return config_probe_refuse(probes, "'%.100s' %s", item, problem);
	if (!err)
		err = config_texts_add(texts, item);
	if (err == -E2BIG)
		return config_probe_refuse(
			probes, "has more than %d patterns", MAX_FUNCTION_PATTERNS);
	return err;
}

/* ---- labels --------------------------------------------------------------------------------- */

static bool config_probe_is_label_name(const char *name)
{
	const char *at = name;

	if (!isalpha((unsigned char)*at) && *at != '_')
		return false;
	while (isalnum((unsigned char)*at) || *at == '_')
		at++;
	return !*at && strncmp(name, "__", 2) && strlen(name) < LABEL_NAME_BYTES;
}

static bool config_probe_is_reserved(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(reserved_labels); i++) {
		if (!strcmp(name, reserved_labels[i]))
			return true;
	}
	return false;
}

static bool config_probe_has_label(const struct config_probe *probe, const char *name)
{
	for (size_t i = 0; i < probe->label_names.count; i++) {
		if (!strcmp(probe->label_names.items[i], name))
			return true;
	}
	return false;
}

int config_probes_set_label(struct config_probes *probes, const char *name, const char *value)
{
	struct config_probe *probe = &probes->items[probes->count - 1];
	size_t length = strlen(value);
	int err;

	if (!config_probe_is_label_name(name))
		return config_probe_refuse(probes, "'%.60s' is not the name of a label", name);
	if (config_probe_is_reserved(name))
		return config_probe_refuse(
			probes, "'%.60s' is a label that the histograms have anyhow", name);
	if (config_probe_has_label(probe, name))
		return config_probe_refuse(probes, "'%.60s' is given twice", name);
	if (!length || length > LABEL_VALUE_BYTES || !utf8_is_clean(value, length))
		return config_probe_refuse(probes,
			"'%.60s' needs a text of 1 to %d bytes without control characters", name,
			LABEL_VALUE_BYTES);
	if (probe->label_names.count == CONFIG_PROBE_LABELS_MAX)
		return config_probe_refuse(
			probes, "has more than %d labels", CONFIG_PROBE_LABELS_MAX);
	err = config_texts_add(&probe->label_names, name);
	return err ? err : config_texts_add(&probe->label_values, value);
}

/* `NAME=VALUE` */
static int config_probe_add_label(struct config_probes *probes, const char *item)
{
	autofree char *name = strdup(item);
	char *value = name ? strchr(name, '=') : NULL;

	if (!name)
		return -ENOMEM;
	if (!value)
		return config_probe_refuse(probes, "must be NAME: VALUE lines, or NAME=VALUE");
	*value++ = 0;
	return config_probes_set_label(probes, name, value);
}

/* ---- by key --------------------------------------------------------------------------------- */

enum config_kind config_probes_kind(const char *key)
{
	static const struct {
		const char *key;
		enum config_kind kind;
	} keys[] = {
		{ "name", CONFIG_VALUE },
		{ "processes", CONFIG_LIST },
		{ "functions", CONFIG_LIST },
		{ "exclude", CONFIG_LIST },
		{ "exclude-vendor", CONFIG_VALUE },
		{ "kernel", CONFIG_VALUE },
		{ "by", CONFIG_VALUE },
		{ "labels", CONFIG_MAPPING },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!strcmp(key, keys[i].key))
			return keys[i].kind;
	}
	return CONFIG_UNKNOWN;
}

int config_probes_set(struct config_probes *probes, const char *key, const char *text)
{
	struct config_probe *probe = &probes->items[probes->count - 1];

	if (!strcmp(key, "name"))
		return config_probe_set_name(probes, text);
	if (!strcmp(key, "by"))
		return config_probe_set_by(probes, text);
	if (!strcmp(key, "kernel"))
		return config_probe_set_flag(probes, text, &probe->kernel);
	if (!strcmp(key, "exclude-vendor"))
		return config_probe_set_flag(probes, text, &probe->exclude_vendor);
	if (!strcmp(key, "processes"))
		return config_probe_add_selectors(probes, text);
	return config_probes_add_item(probes, key, text);
}

int config_probes_add_item(struct config_probes *probes, const char *key, const char *item)
{
	struct config_probe *probe = &probes->items[probes->count - 1];

	if (!strcmp(key, "processes"))
		return config_probe_add_selector(probes, item);
	if (!strcmp(key, "functions"))
		return config_probe_add_pattern(probes, &probe->functions, item);
	if (!strcmp(key, "exclude"))
		return config_probe_add_pattern(probes, &probe->unwanted, item);
	if (!strcmp(key, "labels"))
		return config_probe_add_label(probes, item);
	return -ENOENT;
}

/* Without processes, a pattern without BIN would apply to every program. */
static const char *config_probe_pattern_without_file(const struct config_probe *probe)
{
	for (size_t i = 0; i < probe->functions.count; i++) {
		struct function_patterns parsed = { 0 };
		const char *problem;
		bool has_file =
			!function_patterns_add(&parsed, probe->functions.items[i], &problem) &&
			parsed.items[0].binary;

		function_patterns_deinit(&parsed);
		if (!has_file)
			return probe->functions.items[i];
	}
	return NULL;
}

int config_probes_check(struct config_probes *probes)
{
	const struct config_probe *probe = &probes->items[probes->count - 1];
	const char *pattern;

	if (!probe->name)
		return config_probe_refuse(probes, "a probe needs a name");
	if (!probe->functions.count)
		return config_probe_refuse(
			probes, "'%s' needs functions, for example [main.*]", probe->name);
	if (probe->kernel && probe->exclude_vendor)
		return config_probe_refuse(probes,
			"'%s': exclude-vendor is for Go programs, and kernel for the kernel",
			probe->name);
	if (probe->kernel && probe->by == ABI_LATENCY_BY_FIBER)
		return config_probe_refuse(probes,
			"'%s': the kernel's functions know no goroutines: by is pid or cgroup",
			probe->name);
	if (probe->kernel || probe->processes.count)
		return 0;
	pattern = config_probe_pattern_without_file(probe);
	if (pattern)
		return config_probe_refuse(probes,
			"'%s': '%.60s' needs processes, or a file as in /usr/bin/app:%.60s",
			probe->name, pattern, pattern);
	return 0;
}
