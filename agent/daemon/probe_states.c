/* SPDX-License-Identifier: Apache-2.0 */
/* The state of each probe, for /status and /metrics. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/daemon/exposition.h"
#include "agent/daemon/probes_internal.h"
#include "agent/latency/latency_exposition.h"
#include "agent/latency/latency_report.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/utf8.h"

enum { LABEL_BYTES = 1024, MAX_TEXT_BYTES = 600 };

/* ---- taking over ---------------------------------------------------------------------------- */

static void probe_states_free(struct probe_state *states, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(states[i].name);
		free(states[i].reason);
		free(states[i].logged);
	}
	free(states);
}

void probe_states_clear(struct daemon_probes *p)
{
	probe_states_free(p->states, p->state_count);
	p->states = NULL;
	p->state_count = 0;
}

/* NULL if there is none yet. */
static const struct probe_state *probe_states_before(
	const struct daemon_probes *p, const char *name)
{
	for (size_t i = 0; i < p->state_count; i++) {
		if (!strcmp(p->states[i].name, name))
			return &p->states[i];
	}
	return NULL;
}

/* What is shown of a probe until a window says more. */
static struct probe_state probe_state_first(
	const struct daemon_probes *p, const struct config_probe *settings)
{
	return (struct probe_state){
		.reason = p->problem,
		.figures = {
			.by = settings->by,
			.kernel = settings->kernel,
			.state = p->problem ? WINDOW_LATENCY_REFUSED : WINDOW_LATENCY_WAITING,
			.factor = 1,
		},
	};
}

/* FIGURES NULL: those of before stay. */
static bool probe_state_make(const struct daemon_probes *p, const struct config_probe *settings,
	const struct window_latency_probe *figures, struct probe_state *ret_state)
{
	const struct probe_state *before = probe_states_before(p, settings->name);
	struct probe_state state = before ? *before : probe_state_first(p, settings);

	if (figures) {
		state.figures = *figures;
		state.hits += figures->hits;
	}
	state.name = strdup(settings->name);
	state.reason = strdup(figures ? figures->reason : state.reason ?: "");
	state.logged = state.logged ? strdup(state.logged) : NULL;
	state.figures.name = state.figures.reason = NULL;
	*ret_state = state;
	return state.name && state.reason;
}

/* Logs why something is not measured, when that is another reason than last time. */
static void probe_state_log(struct probe_state *s)
{
	autofree char *reason = *s->reason ? strdup(s->reason) : NULL;

	if (!reason || (s->logged && !strcmp(s->logged, reason)))
		return;
	free(s->logged);
	s->logged = strdup(reason);
	utf8_clean(reason, strlen(reason));
	if (s->figures.state == WINDOW_LATENCY_REFUSED)
		log_warn("a probe measures nothing", "probe=\"%s\" reason=\"%s\"", s->name, reason);
	else
		log_info("a probe does not measure all that it names",
			"probe=\"%s\" state=%s reason=\"%s\"", s->name,
			window_latency_state_name(s->figures.state), reason);
}

/* Of two with this name, one is gone. */
static const struct window_latency_probe *probe_states_find(
	const struct window_latency *latency, const char *name)
{
	for (size_t i = 0; latency && i < latency->probe_count; i++) {
		const struct window_latency_probe *probe = &latency->probes[i];

		if (probe->state != WINDOW_LATENCY_REMOVED && !strcmp(probe->name, name))
			return probe;
	}
	return NULL;
}

int probe_states_take(struct daemon_probes *p, const struct window_latency *latency)
{
	const struct config_probes *settings = &p->now.settings;
	struct probe_state *states = calloc(settings->count + 1, sizeof(*states));
	bool made = states != NULL;
	size_t count = 0;

	for (; made && count < settings->count; count++) {
		const struct config_probe *probe = &settings->items[count];

		made = probe_state_make(
			p, probe, probe_states_find(latency, probe->name), &states[count]);
		if (made && latency)
			probe_state_log(&states[count]);
	}
	if (!made) {
		if (states)
			probe_states_free(states, count);
		return -ENOMEM;
	}
	probe_states_clear(p);
	p->states = states;
	p->state_count = count;
	return 0;
}

/* ---- metrics -------------------------------------------------------------------------------- */

static double probe_functions(const struct probe_state *s)
{
	return (double)s->figures.functions;
}

static double probe_refused_functions(const struct probe_state *s)
{
	return (double)s->figures.refused_functions;
}

static double probe_sites(const struct probe_state *s)
{
	return (double)s->figures.sites;
}

static double probe_files(const struct probe_state *s)
{
	return (double)s->figures.files;
}

static double probe_refused_files(const struct probe_state *s)
{
	return (double)s->figures.refused_files;
}

static double probe_processes(const struct probe_state *s)
{
	return (double)s->figures.processes;
}

static double probe_ratio(const struct probe_state *s)
{
	if (s->figures.state == WINDOW_LATENCY_SUSPENDED)
		return 0;
	return 1.0 / MAX(s->figures.factor, 1U);
}

static double probe_hits(const struct probe_state *s)
{
	return (double)s->hits;
}

static const struct probe_metric {
	const char *name, *help;
	enum exposition_type type;
	double (*value)(const struct probe_state *s);
} probe_metrics[] = {
	{ "fathom_probe_functions", "Functions that a probe measures", EXPOSITION_GAUGE,
		probe_functions },
	{ "fathom_probe_refused_functions",
		"Functions that a probe names but that cannot be measured; /status has a reason",
		EXPOSITION_GAUGE, probe_refused_functions },
	{ "fathom_probe_files", "Files with functions that a probe measures", EXPOSITION_GAUGE,
		probe_files },
	{ "fathom_probe_refused_files",
		"Files with functions that a probe names but that cannot be measured",
		EXPOSITION_GAUGE, probe_refused_files },
	{ "fathom_probe_sites", "Instructions at which a probe is attached", EXPOSITION_GAUGE,
		probe_sites },
	{ "fathom_probe_processes", "Live processes that a probe selects", EXPOSITION_GAUGE,
		probe_processes },
	{ "fathom_probe_measured_ratio",
		"Share of the calls that is measured, the rest is estimated: of the function that "
		"is thinned out most; 0: the probe is suspended",
		EXPOSITION_GAUGE, probe_ratio },
	{ "fathom_probe_hits_total",
		"Times that a probe was hit, also by processes that it does not select",
		EXPOSITION_COUNTER, probe_hits },
};

/* `probe="NAME"`, as text. */
static void probe_label(const char *name, char text[LABEL_BYTES])
{
	autocall(buffer_deinit) struct buffer label;

	buffer_init(&label, LABEL_BYTES - 1);
	latency_exposition_label(&label, "probe", name);
	memcpy(text, label.bytes ?: (const uint8_t *)"", label.size);
	text[label.size] = 0;
}

static void probe_write_states(const struct daemon_probes *p, struct buffer *out)
{
	static const char name[] = "fathom_probe_state";

	exposition_family(out, name, EXPOSITION_GAUGE,
		"1 for the state that a probe is in: waiting (for a process or its index), "
		"measured, refused or suspended");
	for (size_t i = 0; i < p->state_count; i++) {
		char label[LABEL_BYTES];

		probe_label(p->states[i].name, label);
		for (enum window_latency_state s = 0; s < WINDOW_LATENCY_REMOVED; s++)
			exposition_value(out, name, p->states[i].figures.state == s,
				"%s,state=\"%s\"", label, window_latency_state_name(s));
	}
}

static void probe_write_figures(const struct daemon_probes *p, struct buffer *out)
{
	for (size_t m = 0; m < ARRAY_SIZE(probe_metrics); m++) {
		const struct probe_metric *metric = &probe_metrics[m];

		exposition_family(out, metric->name, metric->type, metric->help);
		for (size_t i = 0; i < p->state_count; i++) {
			char label[LABEL_BYTES];

			probe_label(p->states[i].name, label);
			exposition_value(
				out, metric->name, metric->value(&p->states[i]), "%s", label);
		}
	}
}

void daemon_probes_write_metrics(const struct daemon_probes *p, struct buffer *out)
{
	if (p->state_count) {
		probe_write_states(p, out);
		probe_write_figures(p, out);
	}
	exposition_family(out, "fathom_probe_series", EXPOSITION_GAUGE,
		"Histograms of functions that are kept; probe-series-max is the limit");
	exposition_value(out, "fathom_probe_series", (double)p->series.count, "%s", "");
	latency_series_write(&p->series, out);
}

/* ---- status --------------------------------------------------------------------------------- */

static void probe_write_text(struct json *j, const char *key, const char *text)
{
	char clean[MAX_TEXT_BYTES];

	if (!*text) {
		json_null(j, key);
		return;
	}
	snprintf(clean, sizeof(clean), "%s", text);
	utf8_clean(clean, strlen(clean));
	json_text(j, key, clean);
}

static void probe_write_state(const struct probe_state *s, struct json *j)
{
	const struct window_latency_probe *f = &s->figures;
	const char *by = latency_by_name(f->by);

	json_object(j, NULL);
	probe_write_text(j, "name", s->name);
	json_text(j, "state", window_latency_state_name(f->state));
	probe_write_text(j, "reason", s->reason);
	json_bool(j, "kernel", f->kernel);
	probe_write_text(j, "by", by ? by : "");
	json_number(j, "functions", f->functions);
	json_number(j, "refused_functions", f->refused_functions);
	json_number(j, "files", f->files);
	json_number(j, "refused_files", f->refused_files);
	json_number(j, "sites", f->sites);
	json_number(j, "processes", f->processes);
	json_number(j, "measured_one_in", MAX(f->factor, 1U));
	json_number(j, "hits", s->hits);
	json_decimal(j, "suspended_seconds", (double)f->suspended_ns / 1e9, 1);
	json_close(j);
}

void probe_states_write_reasons(const struct daemon_probes *p, struct json *j)
{
	json_array_by_line(j, "probes");
	for (size_t i = 0; i < p->state_count; i++) {
		const struct probe_state *s = &p->states[i];

		json_object(j, NULL);
		probe_write_text(j, "name", s->name);
		json_text(j, "state", window_latency_state_name(s->figures.state));
		probe_write_text(j, "reason", s->reason);
		json_close(j);
	}
	json_close(j);
}

void daemon_probes_write_status(const struct daemon_probes *p, struct json *j)
{
	json_array_by_line(j, "probes");
	for (size_t i = 0; i < p->state_count; i++)
		probe_write_state(&p->states[i], j);
	json_close(j);
}
