/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/probes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/daemon/probes_internal.h"
#include "agent/settings/config_lists.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/items.h"
#include "base/log.h"

enum {
	MAX_SERIES = 20000,
	SELECTORS_BYTES = 1 << 20,
	GROUP_BYTES = 1 << 20,
	/*
	 * One window may be sealed before a reload and passed on after it, the next one has the
	 * last calls of a removed probe, and after that one its histograms may be read once more.
	 */
	WINDOWS_AFTER_REMOVAL = 3,
};

static const struct latency_history_limits HISTORY_LIMITS = {
	.windows = 360,
	.functions = 100,
	.bytes = 16 << 20,
};

/* ---- settings → sampler --------------------------------------------------------------------- */

static const struct config_probes *probes_of(const struct config *config)
{
	static const struct config_probes none;

	return config->lists ? &config->lists->probes : &none;
}

int daemon_probes_check(const struct config *config, char **ret_message)
{
	uint64_t most = config_number(config, SETTING_probe_series_max);

	if (most < 1 || most > MAX_SERIES)
		return config_refuse(config, SETTING_probe_series_max, ret_message,
			" must be 1 to %d", MAX_SERIES);
	return 0;
}

/* The selectors as one text; the caller frees it. */
static char *probes_join_selectors(const struct config_texts *selectors)
{
	autocall(buffer_deinit) struct buffer text;

	buffer_init(&text, SELECTORS_BYTES);
	for (size_t i = 0; i < selectors->count; i++) {
		autofree char *item = items_escape(selectors->items[i], ",");

		if (!item || buffer_printf(&text, "%s%s", i ? "," : "", item))
			return NULL;
	}
	if (buffer_append(&text, "", 1))
		return NULL;
	return (char *)take(text.bytes);
}

static int probes_convert(const struct config_probe *from, struct latency_probe *to)
{
	char *selectors = probes_join_selectors(&from->processes);

	*to = (struct latency_probe){
		.name = from->name,
		.processes = selectors,
		.functions = (const char *const *)from->functions.items,
		.function_count = from->functions.count,
		.unwanted = (const char *const *)from->unwanted.items,
		.unwanted_count = from->unwanted.count,
		.exclude_vendor = from->exclude_vendor,
		.kernel = from->kernel,
		.by = from->by,
	};
	return selectors ? 0 : -ENOMEM;
}

static int probes_refuse(const struct config *config, const struct config_probes *probes,
	const struct latency_probes_problem *problem, int err, char **ret_message)
{
	const char *why = *problem->text ? problem->text : strerror(-err);
	int size;

	if (problem->number < probes->count)
		size = asprintf(ret_message, "%s:%u: probes: '%s' %s", config->file,
			probes->items[problem->number].line, probes->items[problem->number].name,
			why);
	else
		size = asprintf(ret_message, "probes: %s", why);
	if (size < 0)
		*ret_message = NULL;
	return err;
}

int daemon_probes_set(struct sampler *sampler, const struct config *config, char **ret_message)
{
	const struct config_probes *probes = probes_of(config);
	struct latency_probe converted[CONFIG_PROBES_MAX] = { 0 };
	struct latency_probes_problem problem = { .number = probes->count };
	int err = 0;

	for (size_t i = 0; !err && i < probes->count; i++)
		err = probes_convert(&probes->items[i], &converted[i]);
	if (!err)
		err = sampler_latency_set_probes(sampler, converted, probes->count, &problem);
	for (size_t i = 0; i < probes->count; i++)
		free((char *)converted[i].processes);
	return err ? probes_refuse(config, probes, &problem, err, ret_message) : 0;
}

/* ---- making --------------------------------------------------------------------------------- */

static void probes_entries_deinit(struct probe_entries *entries)
{
	config_probes_deinit(&entries->settings);
	*entries = (struct probe_entries){ 0 };
}

/* What the histograms of a probe have in common: with other labels they are others. */
static int probes_group(const struct config_probe *probe, uint64_t *ret_group)
{
	autocall(buffer_deinit) struct buffer text;

	buffer_init(&text, GROUP_BYTES);
	buffer_append(&text, probe->name, strlen(probe->name) + 1);
	buffer_append(&text, &probe->by, sizeof(probe->by));
	for (size_t i = 0; i < probe->label_names.count; i++) {
		const char *name = probe->label_names.items[i];
		const char *value = probe->label_values.items[i];

		buffer_append(&text, name, strlen(name) + 1);
		buffer_append(&text, value, strlen(value) + 1);
	}
	if (text.error)
		return text.error;
	*ret_group = hash_bytes(text.bytes, text.size);
	return 0;
}

static int probes_entries_make(
	const struct config_probes *probes, struct probe_entries *ret_entries)
{
	struct probe_entries entries = { 0 };
	int err = config_probes_copy(probes, &entries.settings);

	for (size_t i = 0; !err && i < entries.settings.count; i++)
		err = probes_group(&entries.settings.items[i], &entries.groups[i]);
	if (err) {
		probes_entries_deinit(&entries);
		return err;
	}
	*ret_entries = entries;
	return 0;
}

const struct config_probe *probe_entries_find(
	const struct probe_entries *entries, const char *name, uint64_t *ret_group)
{
	for (size_t i = 0; i < entries->settings.count; i++) {
		if (strcmp(entries->settings.items[i].name, name) != 0)
			continue;
		*ret_group = entries->groups[i];
		return &entries->settings.items[i];
	}
	return NULL;
}

static void probes_take_limits(struct daemon_probes *p, const struct config *config)
{
	latency_series_set_limit(&p->series, config_number(config, SETTING_probe_series_max));
	p->idle_ns = config_number(config, SETTING_probe_series_max_idle);
}

int daemon_probes_create(const struct config *config, struct metrics *metrics,
	struct daemon_probes **ret_probes, char **ret_message)
{
	struct daemon_probes *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->metrics = metrics;
	latency_series_init(&p->series, 0);
	probes_take_limits(p, config);
	err = latency_history_create(&HISTORY_LIMITS, &p->history);
	if (!err)
		err = probe_label_rules_read(config, &p->rules, ret_message);
	if (!err)
		err = probes_entries_make(probes_of(config), &p->now);
	if (!err)
		err = probe_states_take(p, NULL);
	if (err) {
		daemon_probes_destroy(p);
		return err;
	}
	*ret_probes = p;
	return 0;
}

void daemon_probes_destroy(struct daemon_probes *p)
{
	if (!p)
		return;
	latency_series_deinit(&p->series);
	latency_history_destroy(p->history);
	probe_label_rules_deinit(&p->rules);
	probes_entries_deinit(&p->now);
	probes_entries_deinit(&p->before);
	probe_states_clear(p);
	free(p->problem);
	free(p);
}

void daemon_probes_refused(struct daemon_probes *p, const char *why)
{
	free(p->problem);
	p->problem = strdup(why);
	probe_states_clear(p);
	(void)probe_states_take(p, NULL);
}

static bool probes_are_same(const struct config_probes *a, const struct config_probes *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (!config_probe_is_same(&a->items[i], &b->items[i]))
			return false;
	}
	return true;
}

/* Takes ENTRIES over. *RET_BEFORE is what was in force. */
static int probes_replace(struct daemon_probes *p, const struct probe_entries *entries,
	struct probe_entries *ret_before)
{
	char *problem = take(p->problem);
	int err;

	*ret_before = p->now;
	p->now = *entries;
	err = probe_states_take(p, NULL);
	if (err) {
		p->now = *ret_before;
		p->problem = problem;
		return err;
	}
	free(problem);
	return 0;
}

int daemon_probes_reload(struct daemon_probes *p, const struct config *config, char **ret_message)
{
	struct probe_label_rules rules;
	struct probe_entries entries, before;
	int err = probe_label_rules_read(config, &rules, ret_message);

	if (err)
		return err;
	err = probes_entries_make(probes_of(config), &entries);
	if (!err) {
		err = probes_replace(p, &entries, &before);
		if (err)
			probes_entries_deinit(&entries);
	}
	if (err) {
		probe_label_rules_deinit(&rules);
		return err;
	}
	probe_label_rules_deinit(&p->rules);
	p->rules = rules;
	probes_take_limits(p, config);
	if (probes_are_same(&before.settings, &p->now.settings)) {
		probes_entries_deinit(&before);
	} else {
		probes_entries_deinit(&p->before);
		p->before = before;
		p->windows_before = WINDOWS_AFTER_REMOVAL;
	}
	return 0;
}

/* ---- a window ------------------------------------------------------------------------------- */

static void probes_count_losses(struct daemon_probes *p, const struct window_latency_losses *losses)
{
	const struct {
		enum metric metric;
		uint64_t count;
	} counts[] = {
		{ METRIC_CALLS_NOT_RETURNED, losses->abandoned },
		{ METRIC_CALLS_NO_ENTRY, losses->unmatched },
		{ METRIC_CALLS_OPEN_FULL, losses->open_full },
		{ METRIC_CALLS_EVICTED, losses->evicted },
		{ METRIC_CALLS_HISTOGRAMS_FULL, losses->cells_full },
		{ METRIC_CALLS_FIBER_ERRORS, losses->fiber_errors },
		{ METRIC_CALLS_MISSED, losses->missed },
		{ METRIC_CALLS_ESTIMATED, losses->unmeasured },
		{ METRIC_PROBE_PROCESSES_REFUSED, losses->processes_refused },
		{ METRIC_PROBE_CELLS_LOST, losses->not_described },
	};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		metrics_add(p->metrics, counts[i].metric, counts[i].count);
}

static void probes_add_history(struct daemon_probes *p, const struct sealed_window *window)
{
	int err = probe_history_add(p, window);

	if (!err)
		return;
	metrics_add(p->metrics, METRIC_PROBE_WINDOWS_NOT_KEPT, 1);
	log_debug("a window of function latency is not kept for the page", "error=\"%s\"",
		strerror(-err));
}

void daemon_probes_know_containers(struct daemon_probes *p, struct metadata *metadata)
{
	p->metadata = metadata;
}

void daemon_probes_window(struct daemon_probes *p, const struct sealed_window *window,
	const struct symbolize *symbolize)
{
	const struct window_latency *latency = window->latency;

	if (latency) {
		probes_count_losses(p, &latency->losses);
		probe_series_add(p, window, symbolize);
		probes_add_history(p, window);
	}
	(void)probe_states_take(p, latency);
	if (p->windows_before && !--p->windows_before)
		probes_entries_deinit(&p->before);
	probe_series_expire(p, window->ended_ns);
}
