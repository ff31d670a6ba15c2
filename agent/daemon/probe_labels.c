/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/probe_labels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/daemon/container_labels.h"
#include "agent/daemon/export_settings.h"
#include "agent/daemon/process_labels.h"
#include "agent/latency/latency_exposition.h"
#include "agent/latency/latency_report.h"
#include "base/cleanup.h"

enum { HOST_BYTES = 256 };

/* ---- rules ---------------------------------------------------------------------------------- */

static char *probe_labels_node(const struct config *config)
{
	const char *node = config_text(config, SETTING_node);
	char host[HOST_BYTES] = "";

	if (node && *node)
		return strdup(node);
	if (gethostname(host, sizeof(host) - 1))
		return strdup("unknown");
	return strdup(host);
}

int probe_label_rules_read(
	const struct config *config, struct probe_label_rules *ret_rules, char **ret_message)
{
	autofree struct export_settings *settings = malloc(sizeof(*settings));
	struct probe_label_rules rules = { .node = probe_labels_node(config) };
	int err = settings && rules.node ? export_settings_read(config, settings, ret_message)
					 : -ENOMEM;

	if (err) {
		free(rules.node);
		return err;
	}
	rules.relabel = take(settings->relabel);
	rules.environment = take(settings->environment);
	rules.external = settings->external;
	settings->external = (struct labels){ 0 };
	export_settings_deinit(settings);
	*ret_rules = rules;
	return 0;
}

void probe_label_rules_deinit(struct probe_label_rules *rules)
{
	relabel_destroy(rules->relabel);
	labels_deinit(&rules->external);
	free(rules->environment);
	free(rules->node);
	*rules = (struct probe_label_rules){ 0 };
}

/* ---- of a process --------------------------------------------------------------------------- */

static int probe_labels_set_external(const struct probe_label_rules *rules, struct labels *labels)
{
	int err = labels_set(labels, "node", rules->node);

	for (size_t i = 0; !err && i < rules->external.count; i++)
		err = labels_set(
			labels, rules->external.items[i].name, rules->external.items[i].value);
	return err;
}

static int probe_labels_set_meta(const struct probe_label_rules *rules,
	const struct process_facts *facts, const struct symbolize *symbolize, struct labels *labels)
{
	struct symbolized_program program;
	bool known = facts->program && symbolize &&
		     symbolize_program(symbolize, facts->program, &program);

	return process_labels_meta(facts, known ? &program : NULL, rules->environment, labels);
}

/* The labels of a process's pod; its UID would tell apart what has the same names otherwise. */
static int probe_labels_set_container(const struct probe_label_rules *rules,
	const struct process_facts *facts, struct labels *labels)
{
	const struct container_facts *container =
		rules->containers ? metadata_view_find(rules->containers, facts->container_id)
				  : NULL;
	uint64_t cut = 0;
	int err;

	if (!container || !container_is_of_pod(container, facts->pod_uid))
		return 0;
	err = container_labels(container, labels);
	if (!err)
		err = labels_set(labels, "pod_uid", "");
	if (!err && rules->relabel)
		err = container_labels_meta(container, rules->node, labels, &cut);
	return err;
}

static void probe_labels_remove(struct labels *labels, const char *name)
{
	(void)labels_set(labels, name, "");
}

/* What a rule has set to another value stays. */
static void probe_labels_remove_same(struct labels *labels, const char *name, const char *value)
{
	const char *now = labels_get(labels, name);

	if (now && !strcmp(now, value))
		probe_labels_remove(labels, name);
}

static void probe_labels_remove_internal(
	const struct probe_label_rules *rules, struct labels *labels)
{
	probe_labels_remove_same(labels, "node", rules->node);
	for (size_t i = 0; i < rules->external.count; i++)
		probe_labels_remove_same(
			labels, rules->external.items[i].name, rules->external.items[i].value);
	for (size_t i = labels->count; i-- > 0;) {
		if (!strncmp(labels->items[i].name, "__", 2))
			probe_labels_remove(labels, labels->items[i].name);
	}
}

/* The container's ID, unless a rule has a better name for it. */
static int probe_labels_name_container(struct labels *labels)
{
	const char *id = labels_get(labels, "container_id");
	int err = 0;

	if (id && !labels_get(labels, "container"))
		err = labels_set(labels, "container", id);
	if (!err)
		probe_labels_remove(labels, "container_id");
	return err;
}

int probe_labels_of_process(const struct probe_label_rules *rules,
	const struct process_facts *facts, const struct symbolize *symbolize, struct labels *labels,
	bool *ret_keep)
{
	int err = probe_labels_set_external(rules, labels);

	*ret_keep = true;
	if (!err && facts)
		err = process_labels(facts, labels);
	if (!err && facts && rules->relabel)
		err = probe_labels_set_meta(rules, facts, symbolize, labels);
	if (!err && facts)
		err = probe_labels_set_container(rules, facts, labels);
	if (!err && rules->relabel)
		err = relabel_apply(rules->relabel, labels, ret_keep);
	if (err || !*ret_keep)
		return err;
	probe_labels_remove_internal(rules, labels);
	return probe_labels_name_container(labels);
}

/* ---- of a histogram ------------------------------------------------------------------------- */

static bool probe_labels_are_named(const struct config_texts *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++) {
		if (!strcmp(names->items[i], name))
			return true;
	}
	return false;
}

/* A rule may have made any label: ours come first. */
static bool probe_labels_is_ours(const char *name)
{
	static const char *const ours[] = { "function", "binary", "probe", "le", "goid", "pid",
		"cgroup" };

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		if (!strcmp(name, ours[i]))
			return true;
	}
	return false;
}

/* An empty label is the same as none. */
static void probe_labels_put(struct buffer *out, const char *name, const char *value)
{
	if (!*value)
		return;
	if (out->size)
		buffer_string(out, ",");
	latency_exposition_label(out, name, value);
}

static void probe_labels_put_key(const struct probe_labels_parts *parts, struct buffer *out)
{
	uint64_t key = parts->key;

	if (parts->by == ABI_LATENCY_BY_FUNCTION)
		return;
	if (parts->by == ABI_LATENCY_BY_PROCESS)
		key = parts->facts ? parts->facts->pid : 0;
	if (key)
		buffer_printf(out, ",%s=\"%" PRIu64 "\"", latency_by_name(parts->by), key);
}

int probe_labels_write(const struct probe_labels_parts *parts, struct buffer *out)
{
	const struct config_probe *probe = parts->probe;

	probe_labels_put(out, "function", parts->function->name);
	probe_labels_put(out, "binary", parts->function->binary);
	probe_labels_put(out, "probe", probe->name);
	for (size_t i = 0; i < parts->process->count; i++) {
		const struct label *label = &parts->process->items[i];

		if (!probe_labels_is_ours(label->name) &&
			!probe_labels_are_named(&probe->label_names, label->name))
			probe_labels_put(out, label->name, label->value);
	}
	for (size_t i = 0; i < probe->label_names.count; i++)
		probe_labels_put(out, probe->label_names.items[i], probe->label_values.items[i]);
	probe_labels_put_key(parts, out);
	return out->error;
}
