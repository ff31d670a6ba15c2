/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings/config_lists.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_STORES = 16,
	MAX_RULES = 1000,
	MAX_SOURCE_LABELS = 64,
	NAME_BYTES = 80,
};

/* Indexed by enum relabel_action. */
static const char *const actions[] = { "replace", "keep", "drop", "labelmap", "labeldrop",
	"labelkeep", "hashmod", "lowercase", "uppercase", "keepequal", "dropequal" };

/* ---- making and copying --------------------------------------------------------------------- */

static void lists_rule_deinit(struct relabel_rule *rule)
{
	for (size_t i = 0; i < rule->source_label_count; i++)
		free((char *)rule->source_labels[i]);
	free((void *)rule->source_labels);
	free((char *)rule->separator);
	free((char *)rule->regex);
	free((char *)rule->target_label);
	free((char *)rule->replacement);
}

void config_lists_destroy(struct config_lists *lists)
{
	if (!lists)
		return;
	for (size_t i = 0; i < lists->store_count; i++)
		config_deinit(&lists->stores[i]);
	for (size_t i = 0; i < lists->rule_count; i++)
		lists_rule_deinit(&lists->rules[i]);
	config_probes_deinit(&lists->probes);
	free(lists->stores);
	free(lists->rules);
	free(lists);
}

static int lists_copy_text(const char *text, const char **ret_copy)
{
	if (!text)
		return 0;
	*ret_copy = strdup(text);
	return *ret_copy ? 0 : -ENOMEM;
}

static int add_source_label(struct relabel_rule *rule, const char *text)
{
	const char **grown;

	if (rule->source_label_count == MAX_SOURCE_LABELS)
		return -EINVAL;
	grown = reallocarray(
		(void *)rule->source_labels, rule->source_label_count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	rule->source_labels = grown;
	grown[rule->source_label_count] = strdup(text);
	if (!grown[rule->source_label_count])
		return -ENOMEM;
	rule->source_label_count++;
	return 0;
}

static int copy_rule(const struct relabel_rule *from, struct relabel_rule *to)
{
	int err = 0;

	to->action = from->action;
	to->modulus = from->modulus;
	for (size_t i = 0; !err && i < from->source_label_count; i++)
		err = add_source_label(to, from->source_labels[i]);
	if (!err)
		err = lists_copy_text(from->separator, &to->separator);
	if (!err)
		err = lists_copy_text(from->regex, &to->regex);
	if (!err)
		err = lists_copy_text(from->target_label, &to->target_label);
	if (!err)
		err = lists_copy_text(from->replacement, &to->replacement);
	return err;
}

static int lists_add_store(struct config_lists *lists, const struct config *store)
{
	struct config copy = { 0 };
	int err;

	if (array_reserve(lists->stores, lists->store_capacity, lists->store_count + 1, MAX_STORES))
		return lists->store_count == MAX_STORES ? -E2BIG : -ENOMEM;
	err = config_copy(store, &copy);
	if (!err)
		lists->stores[lists->store_count++] = copy;
	return err;
}

static int lists_add_rule(struct config_lists *lists, const struct relabel_rule *rule)
{
	if (array_reserve(lists->rules, lists->rule_capacity, lists->rule_count + 1, MAX_RULES))
		return lists->rule_count == MAX_RULES ? -E2BIG : -ENOMEM;
	lists->rules[lists->rule_count] = (struct relabel_rule){ 0 };
	return copy_rule(rule, &lists->rules[lists->rule_count++]);
}

int config_lists_copy(const struct config_lists *lists, struct config_lists **ret_lists)
{
	struct config_lists *copy = calloc(1, sizeof(*copy));
	int err = copy ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < lists->store_count; i++)
		err = lists_add_store(copy, &lists->stores[i]);
	for (size_t i = 0; !err && i < lists->rule_count; i++)
		err = lists_add_rule(copy, &lists->rules[i]);
	if (!err)
		err = config_probes_copy(&lists->probes, &copy->probes);
	if (err) {
		config_lists_destroy(copy);
		return err;
	}
	*ret_lists = copy;
	return 0;
}

/* ---- filling -------------------------------------------------------------------------------- */

static int make_lists(struct config *config)
{
	if (!config->lists)
		config->lists = calloc(1, sizeof(*config->lists));
	return config->lists ? 0 : -ENOMEM;
}

int config_add_store(struct config *config, unsigned int line)
{
	const struct config empty = {
		.command = config->command, .file = config->file, .line = line
	};
	int err = make_lists(config);

	return err ? err : lists_add_store(config->lists, &empty);
}

int config_add_rule(struct config *config)
{
	const struct relabel_rule empty = { 0 };
	int err = make_lists(config);

	return err ? err : lists_add_rule(config->lists, &empty);
}

int config_add_probe(struct config *config, unsigned int line)
{
	int err = make_lists(config);

	return err ? err : config_probes_add(&config->lists->probes, line);
}

/* The setting's name for NAME in an entry; "" if it is too long. */
static const char *store_setting(const char *name, char full[NAME_BYTES])
{
	if (snprintf(full, NAME_BYTES, "%s%s", CONFIG_STORE_PREFIX, name) >= NAME_BYTES)
		*full = 0;
	return full;
}

enum config_kind config_store_kind(const struct config *config, const char *name)
{
	char full[NAME_BYTES];

	return config_kind_named(config, store_setting(name, full));
}

int config_store_set(struct config *config, const char *name, const char *text, unsigned int line)
{
	struct config_lists *lists = config->lists;
	char full[NAME_BYTES];

	return config_set_named(
		&lists->stores[lists->store_count - 1], store_setting(name, full), text, line);
}

int config_store_add(struct config *config, const char *name, const char *item, unsigned int line)
{
	struct config_lists *lists = config->lists;
	char full[NAME_BYTES];

	return config_add_named(
		&lists->stores[lists->store_count - 1], store_setting(name, full), item, line);
}

static int set_action(struct relabel_rule *rule, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (strcasecmp(text, actions[i]))
			continue;
		rule->action = (enum relabel_action)i;
		return 0;
	}
	return -EINVAL;
}

static int set_modulus(struct relabel_rule *rule, const char *text)
{
	char *end;

	errno = 0;
	rule->modulus = strtoull(text, &end, 10);
	return errno || !isdigit((unsigned char)*text) || *end ? -EINVAL : 0;
}

static struct relabel_rule *last_rule(const struct config *config)
{
	return &config->lists->rules[config->lists->rule_count - 1];
}

enum config_kind config_rule_kind(const struct config *config, const char *name)
{
	static const char *const values[] = { "separator", "regex", "target_label", "replacement",
		"action", "modulus" };

	(void)config;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (!strcmp(name, values[i]))
			return CONFIG_VALUE;
	}
	return strcmp(name, "source_labels") ? CONFIG_UNKNOWN : CONFIG_LIST;
}

int config_rule_set(struct config *config, const char *name, const char *text, unsigned int line)
{
	struct relabel_rule *rule = last_rule(config);
	const struct {
		const char *name;
		const char **text;
	} texts[] = {
		{ "separator", &rule->separator },
		{ "regex", &rule->regex },
		{ "target_label", &rule->target_label },
		{ "replacement", &rule->replacement },
	};

	(void)line;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!strcmp(name, texts[i].name))
			return lists_copy_text(text, texts[i].text);
	}
	if (!strcmp(name, "source_labels"))
		return add_source_label(rule, text);
	if (!strcmp(name, "action"))
		return set_action(rule, text);
	if (!strcmp(name, "modulus"))
		return set_modulus(rule, text);
	return -ENOENT;
}

int config_rule_add(struct config *config, const char *name, const char *item, unsigned int line)
{
	(void)line;
	return strcmp(name, "source_labels") ? -ENOENT : add_source_label(last_rule(config), item);
}

/* ---- probes --------------------------------------------------------------------------------- */

enum config_kind config_probe_kind(const struct config *config, const char *name)
{
	(void)config;
	return config_probes_kind(name);
}

int config_probe_set(struct config *config, const char *name, const char *text, unsigned int line)
{
	(void)line;
	return config_probes_set(&config->lists->probes, name, text);
}

int config_probe_add(struct config *config, const char *name, const char *item, unsigned int line)
{
	(void)line;
	return config_probes_add_item(&config->lists->probes, name, item);
}

/* Any name may be given; an invalid one is refused with its value. */
enum config_kind config_label_kind(const struct config *config, const char *name)
{
	(void)config;
	(void)name;
	return CONFIG_VALUE;
}

int config_label_set(struct config *config, const char *name, const char *text, unsigned int line)
{
	(void)line;
	return config_probes_set_label(&config->lists->probes, name, text);
}
