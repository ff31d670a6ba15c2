/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/export_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/profile/sample_labels.h"
#include "agent/settings/config_lists.h"
#include "base/cleanup.h"
#include "base/intern.h"

enum {
	/* The largest profile that is sent (PAYLOAD_RAW_BYTES), if it does not compress. */
	MIN_SPOOL_BYTES = 2 << 20,
	VARIABLES_LIMIT = 32,
	VARIABLE_BYTES = 256,
	LABELS_TEXT_BYTES = 256,
};

/* ---- remote stores -------------------------------------------------------------------------- */

/* The first store of a type is named after it, further ones get a number appended. */
static void export_settings_name_place(struct export_settings *s, size_t at)
{
	const char *type = remote_type_name(s->stores[at].options.type);
	unsigned int same = 1;

	for (size_t i = 0; i < at; i++)
		same += s->stores[i].options.type == s->stores[at].options.type;
	if (same == 1)
		snprintf(s->place_names[at], EXPORT_NAME_BYTES, "%s", type);
	else
		snprintf(s->place_names[at], EXPORT_NAME_BYTES, "%s-%u", type, same);
}

/* Whether TEXT is safe in logs, metrics and JSON. */
static bool export_settings_is_name(const char *text)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	return !text[strspn(text, allowed)] && strlen(text) < EXPORT_NAME_BYTES;
}

static int name_store(
	struct export_settings *s, size_t at, const struct config *config, char **ret_message)
{
	struct remote_options *o = &s->stores[at].options;

	export_settings_name_place(s, at);
	if (o->given_name && !export_settings_is_name(o->given_name))
		return config_refuse(config, SETTING_remote_store_name, ret_message,
			": %s: up to %d letters, digits, _, . and -", o->given_name,
			EXPORT_NAME_BYTES - 1);
	snprintf(s->names[at], EXPORT_NAME_BYTES, "%s",
		o->given_name ? o->given_name : s->place_names[at]);
	o->name = s->names[at];
	for (size_t i = 0; i < at; i++) {
		if (!strcmp(s->names[i], s->names[at]))
			return config_refuse(config, SETTING_remote_store_name, ret_message,
				": %s is the name of two remote stores", s->names[at]);
	}
	return 0;
}

static int export_settings_refuse_store(const struct config *config, char **ret_message)
{
	return config_refuse(config, SETTING_remote_store_address, ret_message,
		": there are more than %d remote stores", EXPORT_STORES_LIMIT);
}

/* Moves CONFIG's external labels to *RET_EXTERNAL, unless it is NULL. */
static int export_settings_add_store(struct export_settings *s, const struct config *config,
	struct labels *ret_external, char **ret_message)
{
	struct remote_settings settings = { 0 };
	int err = remote_options_from_config(config, &settings, ret_message);

	if (err && err != -ENOENT)
		return err;
	if (ret_external) {
		*ret_external = settings.external;
		settings.external = (struct labels){ 0 };
	}
	if (err || s->store_count == EXPORT_STORES_LIMIT) {
		remote_settings_deinit(&settings);
		return err ? 0 : export_settings_refuse_store(config, ret_message);
	}
	s->stores[s->store_count] = settings;
	return name_store(s, s->store_count++, config, ret_message);
}

static int add_stores(struct export_settings *s, const struct config *config, char **ret_message)
{
	const struct config_lists *lists = config->lists;
	int err = export_settings_add_store(s, config, &s->external, ret_message);

	for (size_t i = 0; !err && lists && i < lists->store_count; i++) {
		size_t before = s->store_count;

		err = export_settings_add_store(s, &lists->stores[i], NULL, ret_message);
		if (!err && s->store_count == before)
			err = config_refuse(&lists->stores[i], SETTING_remote_store_address,
				ret_message, ": is missing");
	}
	return err;
}

/* ---- the rest ------------------------------------------------------------------------------- */

/* The labels of samples that users may choose: "thread_comm, tid, goid". Texts first. */
static void list_series_labels(char *text, size_t size)
{
	size_t used = 0;

	for (int is_text = 1; is_text >= 0; is_text--) {
		for (size_t i = 0; i < SAMPLE_LABEL_COUNT && used < size; i++) {
			const struct sample_label *label = &sample_labels[i];

			if (label->is_series_label && label->is_text == is_text)
				used += (size_t)snprintf(text + used, size - used, "%s%s",
					used ? ", " : "", label->name);
		}
	}
}

/* A name that is no label of a sample is the key of one that programs give to their goroutines. */
static int add_series_label(const struct config *config, struct export_settings *s,
	const char *name, char **ret_message)
{
	const struct sample_label *label = sample_label_find(name);
	char wanted[LABELS_TEXT_BYTES];
	const char *why;

	if (label && label->is_series_label) {
		s->series_labels |= UINT32_C(1) << (label - sample_labels);
		return 0;
	}
	why = fiber_keys_add(&s->fiber_keys, name);
	if (!why)
		return 0;
	list_series_labels(wanted, sizeof(wanted));
	return config_refuse(config, SETTING_series_labels, ret_message,
		" must be %s or a pprof label of Go programs: %s: %s", wanted, name, why);
}

static int read_series_labels(
	const struct config *config, struct export_settings *s, char **ret_message)
{
	const char *text = config_text(config, SETTING_series_labels);
	autofree char *copy = strdup(text ? text : "");
	char *next = copy, *item;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (item = strsep(&next, ", ")) != NULL)
		if (*item)
			err = add_series_label(config, s, item, ret_message);
	return err;
}

/* A variable's name must fit into a label's name: others would be refused for each process. */
static bool is_variable(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

	return !name[strspn(name, allowed)] && strlen(name) <= VARIABLE_BYTES;
}

static int read_environment(
	const struct config *config, struct export_settings *s, char **ret_message)
{
	const char *text = config_text(config, SETTING_include_env_var);
	autofree char *copy = strdup(text ? text : "");
	/* Two terminating NULs, even if the list is empty. */
	autofree char *names = calloc(1, strlen(text ? text : "") + 2);
	char *next = copy, *item, *at = names;
	size_t count = 0;

	if (!copy || !names)
		return -ENOMEM;
	while ((item = strsep(&next, ", ")) != NULL) {
		if (!*item)
			continue;
		if (!is_variable(item) || ++count > VARIABLES_LIMIT)
			return config_refuse(config, SETTING_include_env_var, ret_message,
				": %s: up to %d names of letters, digits and _", item,
				VARIABLES_LIMIT);
		at = stpcpy(at, item) + 1;
	}
	s->environment = take(names);
	return 0;
}

static int read_debuginfo(
	const struct config *config, struct export_settings *s, char **ret_message)
{
	s->debuginfo_upload = config_flag(config, SETTING_debuginfo_upload);
	if (!s->debuginfo_upload)
		return 0;
	for (size_t i = 0; i < s->store_count; i++) {
		if (remote_type_has(s->stores[i].options.type, REMOTE_TAKES_DEBUGINFO))
			return 0;
	}
	return config_refuse(config, SETTING_debuginfo_upload, ret_message,
		": only Parca supports it, and no remote store is of that type");
}

static int check_spool(
	const struct config *config, const struct export_settings *s, char **ret_message)
{
	if (!s->store_count || config_number(config, SETTING_spool_max_bytes) >= MIN_SPOOL_BYTES)
		return 0;
	return config_refuse(config, SETTING_spool_max_bytes, ret_message,
		" must be 2M or more: one profile may be that large");
}

int export_settings_read(
	const struct config *config, struct export_settings *ret_settings, char **ret_message)
{
	struct export_settings *s = ret_settings;
	const struct config_lists *lists = config->lists;
	int err;

	*s = (struct export_settings){ 0 };
	*ret_message = NULL;
	err = add_stores(s, config, ret_message);
	if (!err)
		err = read_series_labels(config, s, ret_message);
	if (!err)
		err = read_environment(config, s, ret_message);
	if (!err)
		err = read_debuginfo(config, s, ret_message);
	if (!err)
		err = check_spool(config, s, ret_message);
	if (!err && lists && lists->rule_count)
		err = relabel_create(lists->rules, lists->rule_count, &s->relabel, ret_message);
	if (err)
		export_settings_deinit(s);
	return err;
}

void export_settings_deinit(struct export_settings *s)
{
	for (size_t i = 0; i < s->store_count; i++)
		remote_settings_deinit(&s->stores[i]);
	labels_deinit(&s->external);
	relabel_destroy(s->relabel);
	free(s->environment);
	*s = (struct export_settings){ 0 };
}

static bool belongs_to_a_store(enum setting id)
{
	return !strncmp(config_name(id), "--remote-store-", strlen("--remote-store-")) ||
	       !strncmp(config_name(id), "--spool-", strlen("--spool-"));
}

static uint64_t add_to_hash(uint64_t hash, const struct config *config)
{
	for (int id = 0; id < SETTING_COUNT; id++) {
		const char *text = config_text(config, id);
		uint64_t parts[] = { hash, (uint64_t)id,
			text ? hash_bytes(text, strlen(text)) : 0 };

		if (belongs_to_a_store(id))
			hash = hash_bytes(parts, sizeof(parts));
	}
	return hash;
}

uint64_t export_settings_hash(const struct config *config)
{
	const struct config_lists *lists = config->lists;
	uint64_t hash = add_to_hash(0, config);

	for (size_t i = 0; lists && i < lists->store_count; i++)
		hash = add_to_hash(hash, &lists->stores[i]);
	return hash;
}
